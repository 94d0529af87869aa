/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include <pthread.h>

/* Python callables in host nodes. CUDA calls a host function on a thread of its own, which must not enter Go and on
 * which taking the GIL can deadlock. So that thread queues the call and waits until a thread of ours has run it. */

typedef struct {
    PyObject *callable; /* borrowed from the owner of this record; NULL once it is freed. Guarded by the GIL */
    int32_t device;     /* the device that the graph is on */
    int calls;          /* calls under way; guarded by mu */
    int gone;           /* freed by its owner: the last call frees the memory; guarded by mu */
} call_record;

typedef struct pending {
    call_record *record;
    int done;
    struct pending *next;
} pending;

long cudago_callbacks_alive;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* guards first, last, done of a pending, closing */
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static pending *first, *last;
static int running[CUDAGO_MAX_DEVICES]; /* host functions that have not returned; guarded by mu */
static int closing; /* the interpreter is ending: callbacks no longer run */
static int worker_started; /* guarded by the GIL */
static unsigned long worker; /* its thread; guarded by the GIL */

QUIET int cudago_on_callback_thread(void) { return worker && PyThread_get_thread_ident() == worker; }

/* The host function of every Python callback. CUDA's thread; no GIL, no Go. */
static void host_function(void *user_data) {
    pending p = {.record = user_data};
    pthread_mutex_lock(&mu);
    if (!closing) {
        running[p.record->device]++;
        p.record->calls++; /* a reset of the device may free the record without waiting for this thread */
        if (last) last->next = &p;
        else first = &p;
        last = &p;
        pthread_cond_signal(&arrived);
        while (!p.done && !closing) pthread_cond_wait(&finished, &mu);
        if (!p.done) { /* closing, so no worker comes: take the call out again unless it is being run */
            pending **at = &first;
            while (*at && *at != &p) at = &(*at)->next;
            if (*at) {
                *at = p.next;
                last = NULL;
                for (pending *q = first; q; q = q->next) last = q;
            } else {
                while (!p.done) pthread_cond_wait(&finished, &mu);
            }
        }
        running[p.record->device]--;
        if (!--p.record->calls && p.record->gone) free(p.record);
    }
    pthread_mutex_unlock(&mu);
}

int cudago_callbacks_running(int32_t device) {
    pthread_mutex_lock(&mu);
    int n = running[device];
    pthread_mutex_unlock(&mu);
    return n;
}

QUIET uintptr_t cudago_host_function(void) { return (uintptr_t)host_function; }

static void run(call_record *r) {
    if (!r->callable) return; /* a reset has freed the record */
    PyObject *callable = NEW_REF(r->callable);
    PyObject *result = PyObject_CallObject(callable, NULL);
    if (result) Py_DECREF(result);
    else PyErr_WriteUnraisable(callable);
    Py_DECREF(callable);
}

/* The name that debuggers and threading.enumerate() show. */
static void name_thread(void) {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *thread = threading ? PyObject_CallMethod(threading, "current_thread", NULL) : NULL;
    PyObject *name = PyUnicode_FromString("cudago callbacks");
    if (thread && name) PyObject_SetAttrString(thread, "name", name);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(thread);
    Py_XDECREF(threading);
}

/* The worker. It is a C thread because Python no longer starts threads once the interpreter is ending. */
static void *work(void *unused) {
    (void)unused;
    PyGILState_Ensure();
    worker = PyThread_get_thread_ident();
    name_thread();
    for (;;) {
        pending *p = NULL;
        PyThreadState *ts = PyEval_SaveThread();
        pthread_mutex_lock(&mu);
        while (!first && !closing) pthread_cond_wait(&arrived, &mu);
        if (!closing) {
            p = first;
            first = p->next;
            if (!first) last = NULL;
        }
        pthread_mutex_unlock(&mu);
        if (!p) return NULL; /* closing: the GIL can no longer be taken */
        PyEval_RestoreThread(ts);
        run(p->record);
        pthread_mutex_lock(&mu);
        p->done = 1;
        pthread_cond_broadcast(&finished);
        pthread_mutex_unlock(&mu);
    }
}

static int start_worker(void) {
    pthread_t thread;
    if (worker_started) return 0;
    if (pthread_create(&thread, NULL, work, NULL)) return PyErr_SetString(PyExc_RuntimeError, "no thread for callbacks"), -1;
    pthread_detach(thread);
    worker_started = 1;
    return 0;
}

/* At exit, with the GIL: CUDA's threads continue without running their callbacks. */
void cudago_callbacks_close(void) {
    pthread_mutex_lock(&mu);
    closing = 1;
    pthread_cond_broadcast(&arrived);
    pthread_cond_broadcast(&finished);
    pthread_mutex_unlock(&mu);
}

void *cudago_call_new(PyObject *callable, int32_t device) {
    if (start_worker()) return NULL;
    call_record *r = calloc(1, sizeof *r);
    if (!r) return PyErr_NoMemory();
    r->callable = callable;
    r->device = device;
    cudago_callbacks_alive++; /* from now on launches release the GIL: a callback ahead of them may need it */
    return r;
}

void cudago_call_free(void *call) {
    call_record *r = call;
    cudago_callbacks_alive--;
    r->callable = NULL;
    pthread_mutex_lock(&mu);
    r->gone = 1;
    if (!r->calls) free(r);
    pthread_mutex_unlock(&mu);
}
