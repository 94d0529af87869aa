/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* stream.h: the room of streams: the block that C reads, positions, uses, and the only way to put work into a stream.
 *
 * A *position* numbers the work of one stream. Work gets the next position after the driver has accepted it, so an
 * event recorded later stands behind it. One number, `proven`, says which work has ended: everything above it counts as
 * not ended. Only package graph writes it (graph/line.go). The GIL guards everything here except what is _Atomic. */
#pragma once
#include "border/border.h"

/* --- devices ---------------------------------------------------------------------------------------------------- */

/* A device, as everything that is made on it sees it. Its type is defined in room memory: device.c there. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    int32_t ordinal;
    PyObject *resource; /* the default memory resource */
    int32_t pageable;   /* kernels read pageable host memory */
} DeviceObject;

/* order.c: like cudago_making, and makes what is kept for each device: its context and an event for the order of
 * streams. */
int cudago_device_ready(int32_t device, uint32_t *generation);
QUIET void cudago_device_forget(int32_t device);               /* forgets both, which are lost */
QUIET uintptr_t cudago_context_of(int32_t device); /* only for a device that has had an object since its latest reset */
/* Makes the stream `then` wait for what is queued on `first`, both given as stream numbers of the device. BufferError
 * if one of them is capturing. May release the GIL. */
int cudago_order(int32_t device, uintptr_t first, uintptr_t then);
QUIET int cudago_order_streams(int32_t device, uintptr_t first, uintptr_t then); /* only while no callbacks are alive */
/* Do two numbers of streams of one device mean the same stream, so that there is nothing to order? */
static inline QUIET int cudago_same_stream(uintptr_t a, uintptr_t b) {
    return (a ? a : CU_STREAM_LEGACY) == (b ? b : CU_STREAM_LEGACY);
}
/* Is the stream of the current context capturing? Does not ask if *r, an earlier result of the driver, is an error
 * already. */
QUIET int cudago_is_capturing(uintptr_t stream, int32_t *r);
QUIET int cudago_refuse_capture(void); /* BufferError; returns -1 */
int cudago_not_ordered(cudago_status *st); /* what cudagoStreamsOrder did not do: raises, returns -1 */
int cudago_order_foreign(int32_t device, uintptr_t first, uintptr_t then);
/* The same for streams of two devices. Releases the GIL. */
int cudago_order_across(int32_t at, uintptr_t first, int32_t device, uintptr_t then);

/* --- streams ---------------------------------------------------------------------------------------------------- */

/* How far the work of a stream has come. It outlives the stream: to remember a position one holds only the clock, so
 * the stream can go when its work has ended. */
typedef struct cudago_clock {
    uint64_t id;             /* Go's handle of the stream */
    _Atomic uint64_t queued; /* position of the latest work that the driver has accepted; written by cudago_queued, and by graph.Line for marks */
    _Atomic uint64_t proven; /* up to here it has ended; written by graph.Line, which stays open until all has */
    _Atomic uint64_t marked; /* up to here an event stands behind it; written by graph.Line */
    _Atomic int64_t refs;
    int32_t exposed;         /* the stream is ours, and others know its handle: see graph.Line.Expose */
} cudago_clock;
QUIET void cudago_clock_release(cudago_clock *c); /* any thread */

/* References that work in flight keeps: inflight_refs.c. */
typedef struct {
    uint64_t position; /* of the latest work that uses them */
    uint64_t covered;  /* up to here the event stands behind the work; 0: it has not been recorded */
    uintptr_t event;   /* CUevent, which only users of the stream record; 0: none yet */
    size_t n, cap;
    uintptr_t refs[];
} cudago_batch;

/* An event behind the latest work in a stream that others use too: cover.c. */
typedef struct {
    uintptr_t event;  /* CUevent */
    uint64_t covered; /* the work up to here is before it; 0: it has not been recorded */
    uint64_t number;  /* of the stream that it stands in */
} cudago_cover;

typedef struct cudago_stream {
    uint64_t id;               /* Go's handle */
    uintptr_t h;               /* CUstream */
    uintptr_t ctx;             /* CUcontext */
    cudago_clock *clock;
    uint64_t graphs;           /* position of the latest launch of a graph */
    uint64_t waits;            /* made in the stream for others' work, which has no position: see cudago_stream_mark */
    uint64_t awaited;          /* how often somebody has begun to wait for all that is in the stream */
    uint64_t done, done_mark;  /* the latest of those waits that is over, and the stream's mark when it began */
    int32_t device;
    uint32_t generation;
    int32_t foreign;           /* not ours: others queue work too, so calls release the GIL on it and mark each use */
    int32_t listed;            /* in cudago_streams */
    int32_t freed;             /* memory was freed in it. Guarded by the GIL */
    int32_t gives_back;        /* the same, to a pool that gives memory back when somebody waits, which nobody has since. Likewise */
    uint32_t inside;           /* calls in the driver with it that released the GIL: no capture begins meanwhile */
    uint32_t polled;           /* waits that ask the driver about it, without the GIL: they are stuck behind nothing */
    void *recorded;            /* if C may record in the capture that was begun in it: what it has recorded; else NULL. Guarded by the GIL */
    int32_t abandoned;         /* its capture is nobody's any more and goes on: see cudago_raise_abandoned. Guarded by the GIL */
    int32_t unmarked;          /* it keeps something, and an event is to be recorded behind that without the GIL */
    _Atomic(cudago_batch *) kept; /* the open batch, or NULL: also while a thread adds to it */
    _Atomic(cudago_cover *) cover; /* of a foreign stream, or NULL: also while a thread records it */
    _Atomic int32_t watched;   /* the reaper looks after open batches */
    _Atomic int32_t ended;     /* Go is done with it: cudago_streams_sweep frees it */
    _Atomic int64_t refs;      /* the Python object, allocations, calls under way; of ours written with the GIL */
    PyObject *owner;           /* of another library's stream: kept while allocations hold the block. Guarded by the GIL */
    struct cudago_stream *next, *prev; /* all blocks; guarded by the GIL */
} cudago_stream;

static inline QUIET int cudago_stream_lost(const cudago_stream *s) { return cudago_lost(s->device, s->generation); }
/* A number that grows with all that is put into a stream of ours, so that what was ordered after the stream at the same
 * number need not be ordered again. 0: others may put work there unseen, or a call is putting some there now. */
static inline QUIET uint64_t cudago_stream_mark(const cudago_stream *s) {
    if (s->foreign || s->clock->exposed || s->inside) return 0;
    return atomic_load_explicit(&s->clock->queued, memory_order_relaxed) + s->waits + 1;
}
/* What a thread was given in the stream after so many waits had begun, as memory is, which has no position: has all that
 * was in the stream up to the mark, and that too, ended in a wait? */
static inline QUIET int cudago_stream_done(const cudago_stream *s, uint64_t mark, uint64_t awaited) {
    return mark && mark == s->done_mark && s->done > awaited;
}
QUIET void cudago_stream_retain(cudago_stream *s);  /* GIL, or of a default stream */
QUIET void cudago_stream_release(cudago_stream *s); /* GIL */
void cudago_streams_sweep(void);               /* part of a drain: frees the blocks of streams that are gone */
void cudago_streams_add(cudago_stream *s, uint32_t generation); /* unless it is listed already */
void cudago_stream_ended(cudago_stream *s);   /* any thread: Go is done with it */
int64_t *cudago_proven_total_address(void);
void cudago_prove_all(void);                  /* learns what has ended; may release the GIL */
extern cudago_stream *cudago_streams;         /* all there are */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    cudago_stream *s; /* NULL once closed; read through cudago_stream_now only */
    PyObject *owner;  /* what keeps a foreign stream alive, or NULL */
    int32_t device;
} StreamObject;

/* The stream of an argument: a Stream, or one made for this call from an object with __cuda_stream__, which is then
 * returned as a new reference in *keep. Runs Python. NULL with an exception. */
StreamObject *cudago_stream_arg(PyObject *o, PyObject **keep);

/* The object over a block that Go has made, or Go's error. */
PyObject *cudago_stream_object(cudago_stream *s, uint32_t generation, cudago_status *st, PyObject *owner);

/* Blocks of other libraries' streams that nobody holds: idle.c. */
/* Takes over a block without a holder. Returns the one that is to end: this one, if it cannot stay, the oldest, or NULL. */
QUIET cudago_stream *cudago_idle_keep(cudago_stream *s);
QUIET cudago_stream *cudago_idle_take(int32_t device, uintptr_t handle); /* with a reference for the caller, or NULL */
QUIET cudago_stream *cudago_idle_of(int32_t device);                     /* any of the device's, which is no longer idle; or NULL */
int cudago_idle_count(void);                                             /* any thread */
QUIET void cudago_defaults_forget(int32_t device); /* its default streams have new blocks from now on */

int cudago_priority(PyObject *o, int32_t *priority); /* -1 with an exception */

/* A green context: green.c, green.go. */
#define CUDAGO_RESOURCE_BYTES 144 /* of a CUdevResource */
typedef struct {
    uint64_t id; /* Go's handle */
    uintptr_t h; /* CUgreenCtx */
    int32_t sm_count;
} cudago_green;

int cudago_raise_no_stream(const cudago_stream *s); /* ClosedError: closed (NULL) or lost; returns -1 */
/* The block of an open stream, borrowed: it stays valid while nothing runs that could close the stream. NULL with
 * ClosedError. */
static inline QUIET cudago_stream *cudago_stream_now(StreamObject *o) {
    cudago_stream *s = o->s;
    if (s && !cudago_stream_lost(s)) return s;
    return cudago_raise_no_stream(s), NULL;
}

/* The same for an allocation, which holds the block: it is given back in the stream, so the stream's owner stays too. */
QUIET cudago_stream *cudago_stream_to_hold(StreamObject *o);

/* Others are given the handle and may begin a capture on it unknown to us: the reaper leaves the stream alone from now
 * on. */
void cudago_stream_expose(cudago_stream *s);

/* --- events ------------------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    uintptr_t h;
    int32_t device;
    int32_t captured; /* last recorded in a capture: it stands for a place in a graph, and never completes */
    uint32_t generation;
    uint32_t recording;    /* records under way that released the GIL */
    int32_t into_captures; /* one of them, or of those that they overlap, goes into a capture */
    int32_t timing, shared; /* immutable; shared: with other processes */
} EventObject;
static inline QUIET int cudago_event_closed(const EventObject *e) { return !e->h || cudago_lost(e->device, e->generation); }
#define CUDAGO_EVENT_HANDLE 64 /* bytes of a CUipcEventHandle */
QUIET int cudago_event_now(const EventObject *e); /* -1 with ClosedError */
/* While the capsule lives the event is not destroyed, even if it is closed. NULL with ClosedError. */
PyObject *cudago_event_hold(EventObject *e);
/* Around what records an event and releases the GIL; capturing: into a capture. */
QUIET void cudago_recording_begins(EventObject *e, int capturing);
QUIET void cudago_recording_ends(EventObject *e, int recorded, int captured);
/* After a record with the GIL, which those may overlap. */
QUIET void cudago_event_recorded(EventObject *e, int captured);

/* --- captures -------------------------------------------------------------------------------------------------- */

extern _Atomic int cudago_captures_open; /* captures that we began; at 0 our unexposed streams are not queried */
/* Is a capture open on s? This costs 17 ns on NVIDIA's driver, and nothing where nobody captures. The answer holds
 * while nothing runs that could begin or end a capture: so QUIET functions ask, right before the call that depends on
 * it. *r is not 0 if the driver did not say but might the next time. */
static inline QUIET int cudago_capture_open(cudago_stream *s, int32_t *r) {
    int32_t status = *r = 0;
    if (cudago_stream_lost(s)) return 0; /* the driver no longer knows it */
    if (!s->foreign && !s->clock->exposed && !atomic_load_explicit(&cudago_captures_open, memory_order_relaxed)) return 0;
    uintptr_t pushed; /* the handles of default streams mean those of the current context */
    *r = cudago_ctx_enter(s->ctx, &pushed);
    if (!*r) *r = cu.cuStreamIsCapturing(s->h, &status);
    cudago_ctx_leave(pushed);
    if (*r && cudago_result_persists(*r)) return *r = 0; /* the call itself will say what is wrong */
    return !*r && status;
}
/* -1 with an exception if the driver does not say: the call could then succeed, and go into a capture that keeps
 * nothing alive. */
enum { CUDAGO_CAPTURE_LEFT = -1 }; /* as the stream's abandoned: nothing has failed, it is to be ended later */
int cudago_raise_abandoned(const cudago_stream *s); /* what is queued would be lost with the capture. Returns -1 */
static inline QUIET int cudago_capturing(cudago_stream *s) {
    int32_t r;
    int open = cudago_capture_open(s, &r);
    if (open && s->abandoned) return cudago_raise_abandoned(s);
    return r ? cudago_raise_result("cuStreamIsCapturing", r) : open;
}
/* For callers that can try again later: also 1 if the driver does not say. */
static inline QUIET int cudago_maybe_capturing(cudago_stream *s) {
    int32_t r;
    return cudago_capture_open(s, &r) || r;
}
/* The same for a stream that may be closed, for callers that have not begun yet: only a hint. */
static inline QUIET int cudago_may_be_capturing(StreamObject *o) { return o->s && cudago_maybe_capturing(o->s); }
/* What a QUIET function returns if it finds that the stream is capturing and was not given what the capture has to
 * keep. */
enum { CUDAGO_AGAIN = 1 };

/* Between these, calls of C record events in a stream that is not capturing. A thread with the GIL that has found no capture
 * there sees none begin. But another thread may be at the end of one: it has released the GIL, the driver says already that
 * nothing is captured, and NVIDIA's crashes if an event is recorded then. So while a capture is open Go's lock keeps both
 * apart. */
QUIET int cudago_record_begins(void);
QUIET void cudago_record_ends(int locked);
/* cuEventRecord, with the GIL. */
QUIET int32_t cudago_event_record(uintptr_t event, uintptr_t stream);

/* --- work into a stream ------------------------------------------------------------------------------------------- */

/* May this call keep the GIL? See line.c. */
QUIET int cudago_keeps_gil(cudago_stream *s);
/* The driver has accepted work into a stream of ours: returns its position. */
QUIET uint64_t cudago_queued(cudago_stream *s);

/* Around what a thread does in the driver without the GIL, where it may be stuck behind a full launch queue; and around what
 * must not wait for such a thread, nor make one wait: 0 if there is one. Without the GIL. See line.c. */
void cudago_away_begin(void);
void cudago_away_end(void);
int cudago_apart_begin(void);
void cudago_apart_end(void);

/* The position of work that this thread has just put into a foreign stream, which it marks: cover.c. Without the GIL. */
uint64_t cudago_covered_work(cudago_stream *s);
/* Any thread. Now the caller's; event 0: none, or a thread has it in its hands. */
cudago_cover cudago_cover_take(cudago_stream *s);
cudago_cover cudago_cover_take_recorded(cudago_stream *s); /* leaves one that stands behind none */
int cudago_cover_put(cudago_stream *s, uintptr_t event);   /* a new one; 0: there is one, or no memory */
QUIET int cudago_is_covered(cudago_stream *s);
/* Before a capture begins, which is counted in cudago_captures_open already: 0 if a thread still records a cover. */
QUIET int cudago_covers_over(void);

/* Goes around a driver call that releases the GIL. The caller must hold what the call uses and use it through locals
 * only: the wrappers may be closed meanwhile. On a foreign stream the end of the call makes a mark, on the same
 * thread. */
typedef struct {
    cudago_stream *s;
    PyThreadState *thread;
} cudago_leave;
static inline cudago_leave cudago_gil_leave(cudago_stream *s) {
    s->inside++;
    cudago_stream_retain(s);
    PyThreadState *t = PyEval_SaveThread();
    cudago_away_begin();
    return (cudago_leave){s, t};
}
enum { CUDAGO_NOT_CALLED = -1 }; /* no result of the driver */
/* The position, if the driver accepted the work. The stream stays held. */
uint64_t cudago_gil_back(cudago_leave *l, int32_t result);
void cudago_mark_kept(cudago_stream *s); /* may release the GIL */
extern long cudago_beginners; /* threads that want to begin a capture, or to join one, and cannot yet. Guarded by the GIL */
/* After a wait or another call without the GIL: releases it for a moment if there are such threads. One that makes such calls
 * again and again has the GIL between them, so that no other thread would ever find it outside of one. */
void cudago_give_way(void);
static inline void cudago_leave_end(cudago_leave *l) {
    if (l->s->unmarked) cudago_mark_kept(l->s);
    cudago_stream_release(l->s);
    if (cudago_beginners) cudago_give_way();
}

/* Waits for all that is queued on a stream that was not capturing a moment ago. Meanwhile no other thread begins a
 * capture of it, which the wait would invalidate. Returns as cudago_wait does. */
int cudago_wait_stream(cudago_stream *s);
QUIET int cudago_waited_for(const cudago_stream *s); /* has another thread just begun to wait for it? */
int cudago_wait_position(uint64_t stream, uint64_t position); /* up to a position; the caller holds the stream */
/* May the stream begin to capture, or join a capture? Not while another thread is in the driver with it: its work must neither
 * fall into the capture, which would not keep what it uses, nor collide with the begin. Nor while one begins to wait for it. */
QUIET int cudago_is_untouched(const cudago_stream *s);
int cudago_wait_a_moment(void); /* for that: releases the GIL. -1 with an exception of a signal */

/* --- turns: gil_policy.c ------------------------------------------------------------------------------------------ */

QUIET int cudago_queues_busy(void);    /* is a call in the driver with work, having released the GIL? */
QUIET int cudago_streams_polled(void); /* does a wait ask the driver? Go does not know of it; it ends soon */

/* A turn is the right to make, with the GIL, a driver call that waits while a thread is stuck in a full launch queue,
 * as cuStreamBeginCapture does (580.159). If that queue were behind a Python callback the call would never return. So
 * it is made when no thread is in the driver with work; a thread that would have to wait too long for that keeps new
 * work out. Guarded by the GIL. */

/* Must the call wait? For the QUIET function that makes the call. 0 on the callback thread. */
QUIET int cudago_turn_is_not(int mine);
/* Calls `now`, again and again while it answers CUDAGO_AGAIN, and returns its other answer; CUDAGO_AGAIN with a signal's
 * exception. `now` is QUIET and raises nothing: that runs Python now and then, which would wait for this turn to end. */
int cudago_turn_take(int (*now)(void *at, int mine), void *at);

/* --- uses --------------------------------------------------------------------------------------------------------- */

/* Sets of uses: dlpack/cell.h. A use holds the clock of its stream. */
static inline QUIET cudago_use *cudago_uses_at(cudago_uses *u) { return u->cap ? u->many : u->some; }
QUIET int cudago_uses_reserve_next(cudago_uses *u, cudago_stream *s);
/* Announces a use on s before the driver is called, so that noting it cannot fail: from now on it is pending. -1 with
 * MemoryError. */
static inline QUIET int cudago_uses_reserve(cudago_uses *u, cudago_stream *s) {
    cudago_use *first = cudago_uses_at(u);
    if (!u->n || first->clock != s->clock) return cudago_uses_reserve_next(u, s);
    first->reserved++;
    return 0;
}
/* Ends a reservation; position 0: the driver did not accept the work. */
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

/* cudago_order_streams for a stream that the caller has just found not to be capturing: the driver is not asked again. */
QUIET int cudago_order_after(const cudago_stream *s, uintptr_t first);
/* Makes a stream of a device, given by its number, wait for everything on `from` up to position. The caller holds `from`. 0 if
 * done, CUDAGO_AGAIN if `from` is capturing and nothing stands behind the position yet, -1 with an exception. May release the
 * GIL. */
int cudago_join_handle(int32_t device, uintptr_t into, cudago_clock *from, uint64_t position);
/* The same for a release, which has no caller to report to, and which has released the GIL if callbacks are alive: not 0 if it must be tried later. *failed: the result of a
 * call that failed but may succeed the next time. */
QUIET int cudago_join_or_later(cudago_stream *into, cudago_clock *from, uint64_t position, int32_t *failed);
/* Is the stream capturing, so that nothing can stand behind that position until the capture ends? */
QUIET int cudago_unmarkable(cudago_clock *c, uint64_t position);

/* Takes over references and keeps them until position of s has ended, and a moment longer: inflight_refs.c. */
QUIET void cudago_keep_until(cudago_stream *s, uint64_t position, uintptr_t *refs, size_t n);
cudago_batch *cudago_batch_take(cudago_stream *s); /* the open batch, now the caller's, or NULL. Any thread */
int cudago_batch_is_open(cudago_stream *s);        /* and no thread adds to it. Any thread */
void cudago_let_go(cudago_stream *s); /* after a wait: drops what was kept for work that is known to have ended; runs Python, releases the GIL */
/* What is queued in the streams of a device before a wait for all of it, and what follows from the wait: as for one stream. */
typedef struct cudago_awaited cudago_awaited;
cudago_awaited *cudago_awaited_begin(int32_t device);
void cudago_awaited_end(cudago_awaited *all, int waited);

/* --- semaphores of other APIs: semaphore.c ----------------------------------------------------------------------- */

/* Unlike an event it must not be destroyed before the work that uses it has ended: so it knows its uses. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;      /* Go's handle; 0 once closed */
    uintptr_t h;      /* CUexternalSemaphore */
    uint64_t closing; /* Go's handle, if it was closed while calls were inside */
    uint32_t inside;  /* calls in the driver with it that released the GIL */
    int32_t device, timeline;
    uint32_t generation;
    cudago_uses uses;
} SemaphoreObject;
QUIET int cudago_semaphore_closed(const SemaphoreObject *self);
QUIET int cudago_semaphore_now(const SemaphoreObject *self); /* -1 with ClosedError */
/* The value of an operation: an int for a timeline, None otherwise. Runs Python; -1 with an exception. */
int cudago_semaphore_value(const SemaphoreObject *self, PyObject *value, uint64_t *out);
/* As cudago_cell_reserve and cudago_cell_note. The caller holds the object. */
QUIET int cudago_semaphore_reserve(SemaphoreObject *self, cudago_stream *s);
void cudago_semaphore_note(SemaphoreObject *self, cudago_stream *s, uint64_t position);

/* Go functions for later rooms. */
int cudagoStreamsOrder(int32_t at, uintptr_t first, int32_t ordinal, uintptr_t then, cudago_status *st);
int32_t cudagoConsumerDevice(uintptr_t handle);
void cudagoProveExposed(void);
void cudagoDefaultStreamsForget(int32_t ordinal);

/* --- what room.c adds to the module ------------------------------------------------------------------------------- */

PyObject *cudago_stream_wait_handle(StreamObject *self, PyObject *handle); /* record.c */
PyObject *cudago_stream_wait_event(StreamObject *self, PyObject *event);
PyObject *cudago_stream_record(StreamObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *cudago_stream_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_stream_device(PyObject *module, PyObject *handle);
PyObject *cudago_stream_wrap(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_green_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_event_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_event_open(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_collect_prove(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_semaphore_import(PyObject *module, PyObject *const *args, Py_ssize_t n);
extern PyType_Spec cudago_stream_spec, cudago_event_spec, cudago_green_spec, cudago_semaphore_spec;
int cudago_stream_room(PyObject *module); /* -1 with an exception */
