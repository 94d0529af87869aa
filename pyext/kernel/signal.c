/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* A stream signals a semaphore of another API, or waits for one. */

/* With the GIL released, because the call goes through Go; the caller holds the semaphore's object. */
static int signal_away(cudago_stream *s, SemaphoreObject *sem, uint64_t id, uint64_t value, int32_t waits) {
    cudago_status st = {0};
    cudago_leave l = cudago_gil_leave(s);
    cudagoSemaphoreOp(s->id, id, value, waits, &st);
    cudago_semaphore_note(sem, s, cudago_gil_back(&l, st.kind));
    int r = st.kind ? cudago_raise(&st) : 0;
    cudago_leave_end(&l);
    return r;
}

static QUIET int signal_now(StreamObject *stream, SemaphoreObject *sem, uint64_t value, int32_t waits) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_semaphore_now(sem)) return -1;
    if (sem->device != stream->device)
        return PyErr_Format(PyExc_ValueError, "semaphore is of device %d, the stream of device %d", sem->device, stream->device), -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing) return cudago_record.semaphore(s, sem, value, waits);
    if (cudago_semaphore_reserve(sem, s)) return -1;
    return signal_away(s, sem, sem->id, value, waits);
}

/* _signal(stream, semaphore, value or None, waits) */
PyObject *cudago_stream_signal(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 4) return PyErr_SetString(PyExc_TypeError, "_signal(stream, semaphore, value, waits)"), NULL;
    if (cudago_expect(args[0], CLS_STREAM, "stream") || cudago_expect(args[1], CLS_SEMAPHORE, "semaphore")) return NULL;
    SemaphoreObject *sem = (SemaphoreObject *)args[1];
    uint64_t value;
    int waits = PyObject_IsTrue(args[3]);
    if (waits < 0 || cudago_semaphore_value(sem, args[2], &value)) return NULL;
    cudago_note_site();
    if (signal_now((StreamObject *)args[0], sem, value, waits)) return NULL;
    Py_RETURN_NONE;
}
