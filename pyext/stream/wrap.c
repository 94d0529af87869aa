/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

#include <limits.h>

/* Streams of other libraries: wrapped for good, or for one call that is given such an object as it is. A loop gives the
 * same object to each launch, so what was seen before is wrapped without Go: the object is asked for its handle, and the
 * handle's block is idle, or that of a default stream. */

/* The blocks of the legacy and the per-thread default stream of each device, once they were wrapped. They live until their
 * device is reset. Guarded by the GIL. */
static cudago_stream *defaults[CUDAGO_MAX_DEVICES][CU_STREAM_PER_THREAD];

QUIET void cudago_defaults_forget(int32_t device) { memset(defaults[device], 0, sizeof defaults[device]); }

static QUIET cudago_stream *known(int32_t device, uintptr_t handle) {
    if (handle > CU_STREAM_PER_THREAD) return cudago_idle_take(device, handle);
    cudago_stream *s = defaults[device][(handle ? handle : CU_STREAM_LEGACY) - 1];
    if (!s || cudago_stream_lost(s)) return NULL;
    cudago_stream_retain(s);
    return s;
}

static PyObject *wrap(int32_t device, uintptr_t handle, PyObject *owner) {
    cudago_status st = {0};
    uint32_t generation;
    if (cudago_unusable) return cudago_raise_unusable(), NULL; /* the object's own code has run */
    if (cudago_device_ready(device, &generation)) return NULL;
    cudago_stream *s = known(device, handle);
    if (s) return cudago_stream_object(s, generation, &st, owner);
    Py_BEGIN_ALLOW_THREADS /* an event for its marks: see cudago_stream_new */
    s = cudagoStreamWrap(device, handle, &st);
    Py_END_ALLOW_THREADS
    PyObject *made = cudago_stream_object(s, generation, &st, owner);
    if (made && handle <= CU_STREAM_PER_THREAD) defaults[device][(handle ? handle : CU_STREAM_LEGACY) - 1] = s;
    return made;
}

/* _stream_wrap(device, handle, owner): another library's stream, which owner keeps alive. Handle 0 or 1 is the legacy
 * default stream, 2 the per-thread one. Does not ask the driver about the handle. */
PyObject *cudago_stream_wrap(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    uint64_t h;
    if (cudago_uint64(args[1], "handle", "a CUstream", &h)) return NULL;
    return wrap(((DeviceObject *)args[0])->ordinal, h, args[2]);
}

/* The device of a stream whose object tells none: cudago knows its own, and the driver those of others. 0 of default streams,
 * which every device has. */
static QUIET int32_t device_of(uintptr_t handle) {
    if (handle <= CU_STREAM_PER_THREAD) return 0;
    for (const cudago_stream *s = cudago_streams; s; s = s->next)
        if (s->h == handle && !s->foreign && !cudago_stream_lost(s) && !atomic_load(&s->ended)) return s->device;
    return cudagoStreamDevice(handle);
}

/* _stream_device(handle): the device of a stream of another library that does not tell it */
PyObject *cudago_stream_device(PyObject *module, PyObject *handle) {
    (void)module;
    CUDAGO_ENTER(NULL);
    uint64_t h;
    return cudago_uint64(handle, "handle", "a CUstream", &h) ? NULL : PyLong_FromLong(device_of(h));
}

/* --- for one call ----------------------------------------------------------------------------------------------------- */

enum { NAME_PROTOCOL,
       NAME_DEVICE,
       NAME_INDEX,
       NAME_DEVICE_ID,
       NAMES };
static PyObject *names[NAMES]; /* interned, once they are needed */

static int learn_names(void) {
    static const char *const texts[] = {"__cuda_stream__", "device", "index", "device_id"};
    for (int i = 0; i < NAMES; i++)
        if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i]))) return -1;
    return 0;
}

/* An attribute that is an int of at least 0; -1 if there is none, with or without an exception. */
static long ordinal_in(PyObject *o, int name) {
    PyObject *v = o ? PyObject_GetAttr(o, names[name]) : NULL;
    int overflow = 0;
    long n = v && PyLong_Check(v) ? PyLong_AsLongAndOverflow(v, &overflow) : -1;
    Py_XDECREF(v);
    return overflow > 0 ? LONG_MAX : n;
}

/* Is there no exception but one that says so? Then it is cleared. */
static int only(PyObject *exception) {
    if (!PyErr_Occurred()) return 1;
    if (!PyErr_ExceptionMatches(exception)) return 0;
    PyErr_Clear();
    return 1;
}
static int attribute_missing(void) { return only(PyExc_AttributeError); }

/* The device of another library's stream: PyTorch's device.index, device.device_id of cuda.core, device_id of CuPy, whose
 * default streams have -1 there; where it does not tell, that of the handle. -1 with an exception. */
static long ordinal_of(PyObject *o, uintptr_t handle) {
    PyObject *device = PyObject_GetAttr(o, names[NAME_DEVICE]);
    if (!device && !attribute_missing()) return -1;
    long n = ordinal_in(device, NAME_INDEX);
    if (n < 0 && attribute_missing()) n = ordinal_in(device, NAME_DEVICE_ID);
    if (n < 0 && attribute_missing()) n = ordinal_in(o, NAME_DEVICE_ID);
    Py_XDECREF(device);
    if (n >= 0) return n;
    return attribute_missing() ? device_of(handle) : -1;
}

/* What __cuda_stream__ gives, if that is (0, handle) of a device in use. 0 without an exception: the Python face is to
 * look, which knows of older protocols, and says what is wrong. -1 with an exception. */
static int ask(PyObject *o, int32_t *device, uintptr_t *handle) {
    if (learn_names()) return -1;
    PyObject *told = PyObject_CallMethodObjArgs(o, names[NAME_PROTOCOL], NULL);
    if (!told) return attribute_missing() || only(PyExc_TypeError) ? 0 : -1; /* TypeError: it may be None */
    int right = PyTuple_CheckExact(told) && PyTuple_Size(told) == 2 && PyLong_CheckExact(PyTuple_GetItem(told, 0)) &&
                PyLong_CheckExact(PyTuple_GetItem(told, 1)) && PyLong_AsLong(PyTuple_GetItem(told, 0)) == 0;
    *handle = right ? PyLong_AsUnsignedLongLong(PyTuple_GetItem(told, 1)) : 0;
    Py_DECREF(told);
    if (PyErr_Occurred()) return PyErr_Clear(), 0; /* a number that is too large */
    long n = right ? ordinal_of(o, *handle) : 0;
    *device = (int32_t)n;
    if (n < 0) return -1;
    return right && n < CUDAGO_MAX_DEVICES && cudago_context_of(*device);
}

static PyObject *wrap_for_call(PyObject *o) {
    int32_t device;
    uintptr_t handle;
    int asked = ask(o, &device, &handle);
    if (asked) return asked < 0 ? NULL : wrap(device, handle ? handle : CU_STREAM_LEGACY, o);
    PyObject *face = PyImport_ImportModule("cudago._stream.stream");
    PyObject *wrapped = face ? PyObject_CallMethod(face, "_foreign", "O", o) : NULL;
    Py_XDECREF(face);
    return wrapped;
}

StreamObject *cudago_stream_arg(PyObject *o, PyObject **keep) {
    if (cudago_is(o, CLS_STREAM)) return (StreamObject *)o;
    PyObject *wrapped = wrap_for_call(o);
    if (wrapped && (cudago_expect(wrapped, CLS_STREAM, "stream") || cudago_stall_wait())) Py_CLEAR(wrapped);
    return (StreamObject *)(*keep = wrapped);
}
