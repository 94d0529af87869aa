/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* A variable of the code as a Buffer. Its cell holds the module, so that the memory is there as long as anybody has it:
 * a view, a tensor, a graph. */

static void release_variable(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell;
    cudago_go_cell_release(c, cudagoVariableReleaseAfter);
}

/* The host accesses it at its own address, as managed memory; but it is found, not allocated. */
static void show_managed(cudago_cell *cell, int32_t device) {
    cell->flags |= CUDAGO_CELL_MANAGED_VARIABLE;
    if (cell->host) return; /* simulated memory, to which its kind is nothing new */
    cell->device_type = kDLCUDAManaged;
    cell->host = cudagoHostAddress(device, cell->ptr);
}

static void fill_cell(cudago_go_cell *c, int32_t device, uint64_t ptr, uint64_t size) {
    cudago_cell_init(&c->cell, CUDAGO_CELL_VARIABLE, release_variable);
    c->device = device;
    c->cell.class = cudago_exports_class(device);
    c->cell.device_type = kDLCUDA;
    c->cell.device_id = c->cell.ordinal = device;
    c->cell.ptr = ptr;
    c->cell.size = size;
    if (cudagoHostVisible(device)) cudago_cell_show(&c->cell, device);
}

/* _code_variable(id, name, device) -> Buffer */
PyObject *cudago_code_variable(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    unsigned long long code;
    const char *name;
    Py_ssize_t n;
    PyObject *device;
    if (!PyArg_ParseTuple(args, "Ks#O", &code, &name, &n, &device)) return NULL;
    if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    int32_t ordinal = ((DeviceObject *)device)->ordinal;
    uint32_t generation;
    if (cudago_making(ordinal, &generation)) return NULL;
    cudago_go_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory();
    cudago_status st = {0};
    uint64_t ptr = 0, size = 0;
    int32_t constant = 0, managed = 0;
    int callback = cudago_on_callback_thread();
    Py_BEGIN_ALLOW_THREADS
    c->id = cudagoVariable(code, (char *)name, (int)n, ordinal, callback, &ptr, &size, &constant, &managed, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return free(c), cudago_raise(&st), NULL;
    if (cudago_made("buffer", ordinal, generation)) {
        cudagoVariableRelease(c->id);
        free(c);
        return NULL;
    }
    fill_cell(c, ordinal, ptr, size);
    if (constant) c->cell.flags |= CUDAGO_CELL_CONSTANT;
    if (managed) show_managed(&c->cell, ordinal);
    return cudago_buffer_new(&c->cell, ptr, size, ordinal);
}
