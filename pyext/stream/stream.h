/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* stream.h: the room of streams: the block that C reads, positions, uses, and the one way for work into a stream.
 *
 * A *position* numbers the work of one stream. Work gets the next one after the driver has taken it, so that an event
 * recorded later stands behind it. "Has it ended?" is answered by one number, `proven`, which package graph alone writes
 * (graph/line.go); the answer for everything above it is: no. Everything here is guarded by the GIL but for what is
 * _Atomic. */
#pragma once
#include "border/border.h"

/* --- devices ---------------------------------------------------------------------------------------------------- */

/* A device, as everything sees it that is made on one. The type is memory's: device.c there. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    int32_t ordinal;
    PyObject *resource; /* the default memory resource */
    int32_t pageable;   /* kernels read pageable host memory */
} DeviceObject;

/* order.c: as cudago_making; makes what is kept for each device, its context and an event for the order of streams. */
int cudago_device_ready(int32_t device, uint32_t *generation);
QUIET void cudago_device_forget(int32_t device);               /* lets go of that, which is lost */
uintptr_t cudago_context_of(int32_t device); /* of a device that has had an object since its latest reset */
/* Makes the stream `then` wait for what is queued on `first`, both numbers of the device. BufferError if one captures. */
QUIET int cudago_order_streams(int32_t device, uintptr_t first, uintptr_t then);
/* Does the stream of the current context capture? Not asked where *r, the driver's answer, is an error already. */
QUIET int cudago_is_capturing(uintptr_t stream, int32_t *r);
QUIET int cudago_refuse_capture(void); /* BufferError; returns -1 */
int cudago_order_foreign(int32_t device, uintptr_t first, uintptr_t then);

/* --- streams ---------------------------------------------------------------------------------------------------- */

/* How far the work of a stream is. It outlives the stream: who remembers a position holds the clock alone, so that the
 * stream can go when its work has ended. */
typedef struct {
    uint64_t id;             /* Go's handle of the stream */
    _Atomic uint64_t queued; /* position of the latest work that the driver has taken */
    _Atomic uint64_t proven; /* up to here it has ended; written by graph.Line, which is not closed before all has */
    _Atomic uint64_t marked; /* up to here an event stands behind it; written by graph.Line */
    _Atomic int64_t refs;
    int32_t exposed;         /* the stream is ours, and others know the handle: see graph.Line.Expose */
} cudago_clock;
QUIET void cudago_clock_release(cudago_clock *c); /* any thread */

typedef struct cudago_stream {
    uint64_t id;               /* Go's handle */
    uintptr_t h;               /* CUstream */
    uintptr_t ctx;             /* CUcontext */
    cudago_clock *clock;
    uint64_t graphs;           /* position of the latest launch of a graph */
    int32_t device;
    uint32_t generation;
    int32_t foreign;           /* not ours: other launches may be queued, so the GIL is never kept on it, and each use is marked */
    int32_t listed;            /* in cudago_streams */
    uint32_t inside;           /* calls that gave the GIL away and have this stream in the driver: no capture begins meanwhile */
    _Atomic int32_t ended;     /* Go is done with it: cudago_streams_sweep frees it */
    _Atomic int64_t refs;      /* the Python object, allocations, calls under way */
    struct cudago_stream *next, *prev; /* all blocks; guarded by the GIL */
} cudago_stream;

static inline QUIET int cudago_stream_lost(const cudago_stream *s) { return cudago_lost(s->device, s->generation); }
QUIET void cudago_stream_retain(cudago_stream *s);
QUIET void cudago_stream_release(cudago_stream *s); /* GIL */
void cudago_streams_sweep(void);               /* a drain: frees the blocks of streams that have gone */
void cudago_streams_add(cudago_stream *s, uint32_t generation); /* if it is not among them */
void cudago_stream_ended(cudago_stream *s);   /* any thread: Go is done with it */
int64_t *cudago_proven_total_address(void);
void cudago_prove_all(void);                  /* learns what has ended; may give the GIL away */
extern cudago_stream *cudago_streams;         /* all there are */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    cudago_stream *s; /* NULL once closed; read through cudago_stream_now only */
    PyObject *owner;  /* what keeps a foreign stream alive, or NULL */
    int32_t device;
} StreamObject;

/* The stream of an argument: a Stream, or one made for the call of an object with __cuda_stream__, which is then a new
 * reference in *keep. Runs Python. NULL with an exception. */
StreamObject *cudago_stream_arg(PyObject *o, PyObject **keep);

int cudago_raise_no_stream(const cudago_stream *s); /* ClosedError: closed (NULL) or lost; returns -1 */
/* The block of an open stream, borrowed: it stays while nothing runs that could close the stream. NULL with ClosedError. */
static inline QUIET cudago_stream *cudago_stream_now(StreamObject *o) {
    cudago_stream *s = o->s;
    if (s && !cudago_stream_lost(s)) return s;
    return cudago_raise_no_stream(s), NULL;
}

/* Others are given the handle, and may begin a capture behind our back: the reaper leaves the stream alone from now on. */
QUIET void cudago_stream_expose(cudago_stream *s);

/* --- events ------------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    uintptr_t h;
    int32_t device;
    int32_t captured; /* last recorded in a capture: it stands for a place in a graph, and never completes */
    uint32_t generation;
} EventObject;
static inline QUIET int cudago_event_closed(const EventObject *e) { return !e->h || cudago_lost(e->device, e->generation); }
QUIET int cudago_event_now(const EventObject *e); /* -1 with ClosedError */

/* --- captures -------------------------------------------------------------------------------------------------- */

extern _Atomic int cudago_captures_open; /* by us; a stream that nobody captures is then not asked */
/* Is a capture open on s? 17 ns on NVIDIA's driver; not asked where nobody captures. The answer holds while nothing runs
 * that could begin or end one: so it is asked by QUIET functions, right before the call that depends on it. *r is not 0 where
 * the driver does not say, but might the next time. */
static inline QUIET int cudago_capture_open(cudago_stream *s, int32_t *r) {
    int32_t status = *r = 0;
    if (cudago_stream_lost(s)) return 0; /* the driver knows it no more */
    if (!s->foreign && !s->clock->exposed && !atomic_load_explicit(&cudago_captures_open, memory_order_relaxed)) return 0;
    int pushed; /* the default streams are those of the current context */
    *r = cudago_ctx_enter(s->ctx, &pushed);
    if (!*r) *r = cu.cuStreamIsCapturing(s->h, &status);
    cudago_ctx_leave(pushed);
    if (*r && cudago_result_persists(*r)) return *r = 0; /* what is wrong the call itself will say */
    return !*r && status;
}
/* -1 with an exception where the driver does not say: the call could then succeed, and go into a capture that keeps nothing. */
static inline QUIET int cudago_capturing(cudago_stream *s) {
    int32_t r;
    int open = cudago_capture_open(s, &r);
    return r ? cudago_raise_result("cuStreamIsCapturing", r) : open;
}
/* For those who can do it later: 1 too where the driver does not say. */
static inline QUIET int cudago_maybe_capturing(cudago_stream *s) {
    int32_t r;
    return cudago_capture_open(s, &r) || r;
}
/* The same of a stream that may be closed, for those who have not begun yet: a hint. */
static inline QUIET int cudago_may_be_capturing(StreamObject *o) { return o->s && cudago_maybe_capturing(o->s); }
/* What a QUIET function answers that finds the stream capturing and was not given what a capture keeps. */
enum { CUDAGO_AGAIN = 1 };

/* --- work into a stream ------------------------------------------------------------------------------------------- */

/* May this call keep the GIL? See line.c. */
QUIET int cudago_keeps_gil(cudago_stream *s);
/* The driver has taken work into a stream of ours: its position. */
QUIET uint64_t cudago_queued(cudago_stream *s);

/* Around a driver call that gives the GIL away. What the call uses must be held, and is used through locals only: the
 * wrappers may be closed meanwhile. The end of a call on a foreign stream marks it, on the same thread. */
typedef struct {
    cudago_stream *s;
    PyThreadState *thread;
} cudago_leave;
static inline cudago_leave cudago_gil_leave(cudago_stream *s) {
    s->inside++;
    cudago_stream_retain(s);
    return (cudago_leave){s, PyEval_SaveThread()};
}
uint64_t cudago_gil_back(cudago_leave *l, int32_t result); /* the position, if the driver took the work; the stream is held on */
static inline void cudago_leave_end(cudago_leave *l) { cudago_stream_release(l->s); }

/* Waits for all that is queued on a stream that was not capturing a moment ago: no other thread begins a capture of it meanwhile,
 * which the wait would spoil. As cudago_wait. */
int cudago_wait_stream(cudago_stream *s);
QUIET int cudago_waited_for(const cudago_stream *s); /* by another thread than this one, which has begun to just now */
int cudago_wait_position(uint64_t stream, uint64_t position); /* for a part of the work of a stream, which the caller holds */
extern long cudago_beginners; /* who would begin a capture and cannot yet. Guarded by the GIL */

/* --- turns: turn.c ------------------------------------------------------------------------------------------------ */

QUIET int cudago_queues_busy(void); /* has a call given the GIL away and is in the driver with work? */

/* A turn: the right to make a driver call with the GIL that waits while a thread is stuck in a full launch queue, as
 * cuStreamBeginCapture does (580.159). If the queue is behind a Python callback nobody would ever come back. So the call is made
 * when no thread is in the driver with work; who cannot wait so long keeps new work out. Guarded by the GIL. */
QUIET int cudago_turn_is_not(int mine); /* must the call wait? Asked by the QUIET function that makes it. 0 on the callback thread */
int cudago_turn_wait(int *mine);        /* a moment without the GIL; -1 with an exception of a signal. Ended by cudago_turn_end */
void cudago_turn_end(int *mine);

/* --- uses --------------------------------------------------------------------------------------------------------- */

/* A stream, and the position up to which it uses something. Holds the clock. */
typedef struct {
    cudago_clock *clock;
    uint64_t position;
    uint32_t reserved; /* calls that are about to use it, or are in the driver */
} cudago_use;
enum { CUDAGO_USES_INLINE = 2 };
/* A set of uses, one for each stream. */
typedef struct {
    uint32_t n, cap; /* cap 0: in some */
    union {
        cudago_use some[CUDAGO_USES_INLINE];
        cudago_use *many;
    };
} cudago_uses;
static inline QUIET cudago_use *cudago_uses_at(cudago_uses *u) { return u->cap ? u->many : u->some; }
QUIET int cudago_uses_reserve_next(cudago_uses *u, cudago_stream *s);
/* Announces a use on s, before the driver is called, so that noting it cannot fail: from now on it is pending. -1 with
 * MemoryError. */
static inline QUIET int cudago_uses_reserve(cudago_uses *u, cudago_stream *s) {
    cudago_use *first = cudago_uses_at(u);
    if (!u->n || first->clock != s->clock) return cudago_uses_reserve_next(u, s);
    first->reserved++;
    return 0;
}
/* Ends a reservation; position 0: the driver has not taken the work. */
static inline QUIET void cudago_uses_note(cudago_uses *u, cudago_stream *s, uint64_t position) {
    cudago_use *use = cudago_uses_at(u);
    while (use->clock != s->clock) use++; /* it was reserved */
    use->reserved--;
    if (position > use->position) use->position = position;
}
QUIET int cudago_uses_pending(cudago_uses *u); /* may work be under way? */
QUIET void cudago_uses_free_some(cudago_uses *u);
static inline QUIET void cudago_uses_free(cudago_uses *u) {
    if (u->n) cudago_uses_free_some(u);
}
static inline QUIET int cudago_pending(const cudago_clock *c, uint64_t position) {
    return position > atomic_load_explicit(&c->proven, memory_order_acquire);
}

/* Makes a stream, given by its number, wait for everything on `from` up to position. 0, CUDAGO_AGAIN if `from` captures and
 * nothing stands behind the position yet, or -1 with an exception. */
QUIET int cudago_join_handle(uintptr_t into, cudago_clock *from, uint64_t position);
/* The same for a release, which has nobody to tell: not 0 if it must be tried later. *failed: a call has failed, and may not
 * the next time. */
QUIET int cudago_join_or_later(cudago_stream *into, cudago_clock *from, uint64_t position, int32_t *failed);
/* Is the stream capturing, so that nothing can stand behind that position before the capture ends? */
QUIET int cudago_unmarkable(cudago_clock *c, uint64_t position);

/* Keeps references of Operands until position of s has ended; takes them over. */
QUIET void cudago_keep_until(cudago_stream *s, uint64_t position, uintptr_t *refs, size_t n);

/* Go's, for later rooms. */
void cudagoProveExposed(void);
void cudagoDefaultStreamsForget(int32_t ordinal);

/* --- what room.c hangs into the module ------------------------------------------------------------------------------- */

PyObject *cudago_stream_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_stream_wrap(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_event_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_collect_prove(PyObject *module, PyObject *const *args, Py_ssize_t n);
extern PyType_Spec cudago_stream_spec, cudago_event_spec;
int cudago_stream_room(PyObject *module); /* -1 with an exception */
