/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* Arguments that their library lends: PyTorch's tensors. What is lent is valid while the object's storage lives, so a launch
 * needs no Operand: it reads the address, keeps the object and the storage until it has ended, and looks again if other
 * code has run meanwhile. Everything out of the ordinary is left to operand.c, which knows what to say about it. */

typedef cudago_packing packing;

/* The library's stream, whose work comes first. All its tensors of a device are worked on in the same one. */
static int note_stream(packing *pk, PyObject *arg, DLDevice device) {
    intptr_t stream;
    int told = !pk->ran && pk->asked_type == Py_TYPE(arg) && pk->asked.device_type == device.device_type && pk->asked.device_id == device.device_id;
    if (told) return 0; /* by another tensor of this launch */
    if (cudago_foreign_stream(arg, device, &stream)) return -1;
    pk->asked = device;
    pk->asked_type = Py_TYPE(arg);
    for (int i = 0; i < pk->n_theirs; i++)
        if (pk->theirs[i] == (uintptr_t)stream) return 0;
    pk->theirs[pk->n_theirs++] = (uintptr_t)stream;
    return 0;
}

/* Memory that the kernel's device reads as it is. */
static QUIET int is_plain(const packing *pk, const DLTensor *t, const cudago_cell *own) {
    if (!own) return t->device.device_type == kDLCUDA && t->device.device_id == pk->k->device;
    if (cudago_is_constant(own)) return 0;
    int any = cudago_cell_is_host(own) || own->kind == CUDAGO_CELL_MANAGED;
    return any || own->ordinal == pk->k->device;
}

/* One of the library's own elements is enough, but for a vector. */
static QUIET int is_place(const cudago_param *p, const DLTensor *t, uint64_t address) {
    uint64_t n = 1;
    for (int i = 0; i < t->ndim; i++) n *= (uint64_t)t->shape[i];
    return cudago_is_place(p, address, n * t->dtype.bits * t->dtype.lanes / 8);
}

/* It is for operand.c, which looks at everything again. -1 with an exception that ends the program. */
static int leave(cudago_cell *own, PyObject *storage) {
    int r = cudago_forgive() ? -1 : 1;
    if (own) cudago_cell_release(own);
    Py_XDECREF(storage);
    return r;
}

int cudago_pack_lent(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    DLTensor t;
    cudago_cell *own = NULL;
    PyObject *storage = NULL;
    uint64_t address;
    /* The storage first: a mode of PyTorch's, which that may run, might exchange it. */
    if (pk->n_lent == CUDAGO_MAX_LENT || cudago_lent_storage(arg, &storage)) return leave(NULL, NULL);
    if (!cudago_lent_argument(arg, &t, &own, &address)) return leave(NULL, storage);
    uint8_t element = cudago_element(t.dtype);
    if (!own) address = (uint64_t)(uintptr_t)t.data + t.byte_offset;
    if (!is_plain(pk, &t, own) || cudago_element_differs(p, element) || !is_place(p, &t, address)) return leave(own, storage);
    pk->lent[pk->n_lent++] = (cudago_lent){own, storage, t.data, (uint16_t)pk->index};
    memcpy(to, &address, 8);
    return t.device.device_type == kDLCUDA ? note_stream(pk, arg, t.device) : 0;
}

int cudago_lent_unchanged(packing *pk) {
    if (cudago_tracing) return 0;
    for (int i = 0; i < pk->n_lent; i++) {
        const cudago_lent *l = &pk->lent[i];
        DLTensor t;
        cudago_cell *own = NULL;
        uint64_t address;
        int same = cudago_lent_argument(pk->args[l->index], &t, &own, &address) && t.data == l->data && own == l->cell;
        if (own) cudago_cell_release(own);
        if (same) continue;
        PyErr_Format(PyExc_BufferError, "parameter %d of kernel %U was changed while other arguments were converted (%R)", l->index,
                     pk->kernel->name, (PyObject *)Py_TYPE(pk->args[l->index]));
        return -1;
    }
    return 0;
}

static void drop(const cudago_lent *l) {
    if (l->cell) cudago_cell_release(l->cell);
    Py_XDECREF(l->storage);
}

int cudago_lent_own(packing *pk) {
    while (pk->n_lent) {
        const cudago_lent *l = &pk->lent[pk->n_lent - 1];
        pk->index = l->index;
        if (cudago_pack_memory(pk, &pk->k->params[l->index], pk->args[l->index], pk->params[l->index])) return -1;
        drop(l);
        pk->n_lent--;
    }
    return 0;
}

void cudago_lent_free(packing *pk) {
    for (int i = 0; i < pk->n_lent; i++) drop(&pk->lent[i]);
    pk->n_lent = 0;
}
