/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* A Handle holds a Go object that has no hot calls: object code. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
} HandleObject;

PyObject *cudago_handle_new(uint64_t id) {
    HandleObject *self = cudago_alloc(CLS_CODE);
    if (self) self->id = id;
    else cudagoCodeRelease(id);
    return (PyObject *)self;
}

static PyObject *handle_id(HandleObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->id);
}
static void handle_dealloc(HandleObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->id && !cudago_unusable) cudagoCodeRelease(self->id);
    cudago_free((PyObject *)self);
}
static PyGetSetDef getset[] = {{"id", (getter)handle_id, NULL, NULL, NULL}, {0}};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(HandleObject), {0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, handle_dealloc}, {Py_tp_getset, getset}, {Py_tp_members, members}, {0, NULL}};
PyType_Spec cudago_code_spec = {"cudago._core.Handle", sizeof(HandleObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

/* Go copies it by a count of 32 bits, and compilers and linkers have no larger ones either. */
static int check_size(const char *what, Py_ssize_t n) {
    if (n <= INT32_MAX) return 0;
    PyErr_Format(PyExc_ValueError, "%s can have %d bytes at most, got %zd", what, INT32_MAX, n);
    return -1;
}

/* _compile(device, source, kind, target, options JSON) -> (Handle, kind, log, warning) */
PyObject *cudago_compile(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *device;
    const char *source, *kind, *target, *options;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "Os#sss", &device, &source, &n, &kind, &target, &options)) return NULL;
    if (cudago_expect(device, CLS_DEVICE, "device") || check_size("source", n)) return NULL;
    cudago_status st = {0};
    char *out_kind = NULL, *log = NULL, *warning = NULL;
    uint64_t id;
    int32_t ordinal = ((DeviceObject *)device)->ordinal;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoCompile(ordinal, (char *)source, n, (char *)kind, (char *)target, (char *)options, &out_kind, &log, &warning, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *handle = cudago_handle_new(id);
    PyObject *r = handle ? Py_BuildValue("(NsNN)", handle, out_kind, cudago_text_of(log), cudago_text_of(warning)) : NULL;
    free(out_kind);
    free(log);
    free(warning);
    return r;
}

/* _code_from(kind, data) -> Handle */
PyObject *cudago_code_from(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *kind;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "sy*", &kind, &data)) return NULL;
    if (check_size("object code", data.len) || cudago_open()) return PyBuffer_Release(&data), NULL;
    cudago_status st = {0};
    uint64_t id = cudagoCodeFrom((char *)kind, data.buf, data.len, &st);
    PyBuffer_Release(&data);
    if (st.kind) return cudago_raise(&st), NULL;
    return cudago_handle_new(id);
}

/* _code_from_state(state) -> Handle: state is the "state" of _code_data */
PyObject *cudago_code_from_state(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    Py_buffer state;
    if (!PyArg_ParseTuple(args, "y*", &state)) return NULL;
    if (check_size("the state of object code", state.len) || cudago_open()) return PyBuffer_Release(&state), NULL;
    cudago_status st = {0};
    uint64_t id = cudagoCodeFromState(state.buf, state.len, &st);
    PyBuffer_Release(&state);
    if (st.kind) return cudago_raise(&st), NULL;
    return cudago_handle_new(id);
}

/* _code_data(id, what, device): "ptx" (str), "data", "state" (bytes), "kernels" (lines, on a device), "log", "symbol NAME", "plain NAME",
 * "described NAME" (lines: first all names, then all types) */
PyObject *cudago_code_data(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    unsigned long long id;
    const char *what;
    PyObject *device;
    if (!PyArg_ParseTuple(args, "KsO", &id, &what, &device)) return NULL;
    int32_t ordinal = -1;
    if (device != Py_None) {
        if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
        ordinal = ((DeviceObject *)device)->ordinal;
    }
    cudago_status st = {0};
    char *data = NULL;
    int64_t n;
    int callback = cudago_on_callback_thread();
    Py_BEGIN_ALLOW_THREADS
    n = cudagoCodeData(id, (char *)what, ordinal, callback, &data, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyBytes_FromStringAndSize(data, (Py_ssize_t)n);
    free(data);
    return r;
}
