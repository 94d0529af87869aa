/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* cu.launch: parse, pack and launch in C under the GIL. Go is entered to load a kernel on a new device, to record a
 * captured launch, to keep the host memory of a launch until it ends, and for errors. */

enum { SMALL_VALUES = 1024 };

/* CUlaunchConfig and CUlaunchAttribute, from cuda.h, CUDA 12.4. */
typedef struct {
    int32_t id;
    int32_t pad;
    union {
        uint8_t bytes[64];
        int32_t number;
        uint32_t dims[3];
    } value;
} launch_attribute;
typedef struct {
    uint32_t grid[3], block[3], shared, pad;
    uintptr_t stream;
    launch_attribute *attributes;
    uint32_t n, pad2;
} launch_config;
_Static_assert(sizeof(launch_attribute) == 72 && sizeof(launch_config) == 56, "layout of cuda.h");

static void fill_config(launch_config *c, launch_attribute *a, const ConfigObject *o, uintptr_t stream) {
    memcpy(c->grid, o->grid, sizeof c->grid);
    memcpy(c->block, o->block, sizeof c->block);
    c->shared = o->shared_memory;
    c->pad = c->pad2 = c->n = 0;
    c->stream = stream;
    c->attributes = a;
    if (!o->cooperative && !o->cluster[0] && !o->has_priority) return;
    memset(a, 0, 3 * sizeof *a);
    if (o->cooperative) a[c->n].id = 2, a[c->n++].value.number = 1;
    if (o->cluster[0]) a[c->n].id = 4, memcpy(a[c->n++].value.dims, o->cluster, sizeof o->cluster);
    if (o->has_priority) a[c->n].id = 8, a[c->n++].value.number = o->priority;
}

static int32_t call_driver(launch_config *c, cudago_kernel *k, cudago_stream *s, void **params) {
    int pushed;
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuLaunchKernelEx(c, k->f, params, NULL);
    cudago_ctx_leave(pushed);
    return r;
}

static int launch_on(cudago_stream *s, ConfigObject *config, KernelObject *kernel, PyObject *const *args, Py_ssize_t n) {
    if (s->device >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_ValueError, "no such device"), -1;
    cudago_kernel *k = cudago_kernel_on(kernel, s->device);
    if (!k || cudago_check_config(config, k)) return -1;
    uint8_t small[SMALL_VALUES] __attribute__((aligned(16))), *values = small;
    void *params[CUDAGO_MAX_PARAMS];
    if (k->size > sizeof small && !(values = malloc(k->size))) return PyErr_NoMemory(), -1;
    int capturing = cudago_capturing(s), r;
    PyObject *kept;
    r = cudago_pack(kernel, k, s, args, n, capturing, values, params, &kept);
    if (!r) {
        launch_config c;
        launch_attribute attributes[3];
        fill_config(&c, attributes, config, s->h);
        if (capturing) {
            r = cudago_capture_launch(s, &c, config, k, params, (PyObject *)kernel, kept);
        } else {
            int32_t code;
            cudago_note_site();
            if (cudago_budget(s)) {
                code = call_driver(&c, k, s, params);
            } else {
                Py_BEGIN_ALLOW_THREADS
                code = call_driver(&c, k, s, params);
                Py_END_ALLOW_THREADS
            }
            r = code ? cudago_launch_error(kernel, k, config, code) : kept ? cudago_keep_until_done(s, kept) : 0;
        }
        Py_XDECREF(kept);
    }
    if (values != small) free(values);
    return r;
}

PyObject *cudago_launch(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n < 3) return PyErr_SetString(PyExc_TypeError, "launch(stream, config, kernel, *args)"), NULL;
    if (cudago_expect(args[1], CLS_CONFIG, "config") || cudago_expect(args[2], CLS_KERNEL, "kernel")) return NULL;
    PyObject *keep = NULL;
    cudago_stream *s = cudago_stream_arg(args[0], &keep);
    if (!s) return NULL;
    int r = launch_on(s, (ConfigObject *)args[1], (KernelObject *)args[2], args + 3, n - 3);
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

int cudago_launch_error(KernelObject *kernel, cudago_kernel *k, ConfigObject *c, int32_t code) {
    Py_ssize_t len;
    const char *name = PyUnicode_AsUTF8AndSize(kernel->name, &len);
    char text[256];
    snprintf(text, sizeof text, "kernel %.100s, grid (%u, %u, %u), block (%u, %u, %u), %u bytes of dynamic shared memory, device %d",
             name ? name : "?", c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared_memory,
             k->device);
    cudago_status st = {0};
    cudagoDetailError("cuLaunchKernelEx", code, k->device, text, &st);
    return cudago_raise(&st);
}

/* The stream of an argument: ours, or any object with __cuda_stream__, wrapped for the call. */
cudago_stream *cudago_stream_arg(PyObject *o, PyObject **keep) {
    if (!cudago_is(o, CLS_STREAM)) {
        PyObject *face = PyImport_ImportModule("cudago._stream");
        PyObject *wrapped = face ? PyObject_CallMethod(face, "_foreign", "O", o) : NULL;
        Py_XDECREF(face);
        if (!wrapped) return NULL;
        *keep = wrapped;
        o = wrapped;
    }
    cudago_stream *s = ((StreamObject *)o)->s;
    if (!s) cudago_raise_closed("stream");
    return s;
}

/* The host memory that a launch may read is kept until the launch has ended. */
int cudago_keep_until_done(cudago_stream *s, PyObject *kept) {
    Py_ssize_t n = PyList_Size(kept);
    uintptr_t *refs = malloc((size_t)n * sizeof *refs);
    if (!refs) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) refs[i] = (uintptr_t)NEW_REF(PyList_GetItem(kept, i));
    cudago_status st = {0};
    cudagoKeepUntilDone(s->id, refs, (int)n, &st); /* takes the references over, also when it fails */
    free(refs);
    return st.kind ? cudago_raise(&st) : 0;
}
