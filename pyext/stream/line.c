/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"
#include <time.h>
#include <unistd.h>

/* Work into a stream: when may a call keep the GIL, and which position does its work get?
 *
 * Beside a busy Python thread, a call that releases the GIL waits milliseconds to get it back. A call that keeps it on
 * a full queue freezes Python, and hangs it for good if a host callback ahead needs the GIL. Measured on driver 580: a
 * queue takes 1021 launches, and streams beyond the eighth share queues, so what counts is all our work that is not yet
 * known to have ended. Guarded by the GIL. */

enum { HELD_MAX = 768,
       MARK_EVERY = 64 };

/* Go makes and queries marks, which costs as much as several hot calls do in C. A position is known to have ended only
 * once the next mark has. So marks are far apart while so little is unproven that no stream is near the limit, and
 * close together where several streams share it. */
enum { CALM_MAX = 512,
       MARK_EVERY_CALM = 256 };

static int64_t queued_total;          /* positions given on streams of ours */
static _Atomic int64_t proven_total;  /* those of them that have ended; graph.Line adds to it */

_Atomic int cudago_captures_open;

int64_t *cudago_proven_total_address(void) { return (int64_t *)&proven_total; }

static QUIET int64_t unproven(void) {
    return queued_total - atomic_load_explicit(&proven_total, memory_order_relaxed);
}
static QUIET uint64_t unmarked(const cudago_clock *c) {
    return atomic_load_explicit(&c->queued, memory_order_relaxed) - atomic_load_explicit(&c->marked, memory_order_relaxed);
}

static QUIET int slow(cudago_stream *s) {
    static unsigned tick;
    cudagoLineProve(s->id);
    if (unproven() >= HELD_MAX && (++tick & 15) == 1) cudagoProveAllAside();
    return unmarked(s->clock) <= MARK_EVERY && unproven() <= HELD_MAX;
}

QUIET int cudago_keeps_gil(cudago_stream *s) {
    if (s->foreign || cudago_callbacks_alive) return 0;
    int64_t in_flight = unproven();
    if (unmarked(s->clock) < (in_flight < CALM_MAX ? MARK_EVERY_CALM : MARK_EVERY) && in_flight < HELD_MAX) return 1;
    return slow(s);
}

/* Locked, also for a stream of ours: what waits for all of its work (AfterAll) takes a position too, without the GIL. */
QUIET uint64_t cudago_queued(cudago_stream *s) {
    queued_total++;
    return atomic_fetch_add_explicit(&s->clock->queued, 1, memory_order_release) + 1;
}

/* NVIDIA's driver makes cuGraphExecDestroy wait for a thread that is stuck in a launch, and whoever copies a graph waits for
 * cuGraphExecDestroy (cuda.Driver.related), with the GIL: which a callback may need before the launch can go on. So
 * executables are destroyed while no thread is away, and those that want to be wait meanwhile, which is short. */
static _Atomic int64_t away;
static _Atomic int32_t apart; /* set by the reaper alone */

enum { APART_US = 20,
       APART_TRIES = 10 };

void cudago_away_begin(void) {
    for (;;) {
        atomic_fetch_add(&away, 1);
        if (!atomic_load(&apart)) return;
        atomic_fetch_sub(&away, 1);
        while (atomic_load(&apart)) usleep(APART_US);
    }
}
void cudago_away_end(void) { atomic_fetch_sub(&away, 1); }

/* Threads that come and go all the time would leave no moment without one: so new ones wait a little. */
int cudago_apart_begin(void) {
    atomic_store(&apart, 1);
    for (int i = 0; i < APART_TRIES && atomic_load(&away); i++) usleep(APART_US);
    if (!atomic_load(&away)) return 1;
    atomic_store(&apart, 0);
    return 0;
}
void cudago_apart_end(void) { atomic_store(&apart, 0); }

/* A foreign stream is marked before the GIL is taken back: taking it back may wait, and this thread must be the one to
 * make the mark. */
uint64_t cudago_gil_back(cudago_leave *l, int32_t result) {
    cudago_stream *s = l->s;
    uint64_t position = 0;
    if (!result && s->foreign) position = cudago_covered_work(s);
    cudago_away_end();
    PyEval_RestoreThread(l->thread);
    if (!result && !s->foreign) position = cudago_queued(s);
    s->inside--;
    return position;
}

/* Waits under way, each on the stack of its thread. Guarded by the GIL. */
typedef struct wait_on {
    const cudago_stream *s;
    unsigned long thread; /* its signal handlers run inside the wait, and may do what other threads must not */
    int64_t since_ms;
    struct wait_on *next;
} wait_on;
static wait_on *waits;
long cudago_beginners;

static QUIET int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A wait this old no longer holds up a capture: it is past the driver's look at the stream, and what it waits for may
 * come only after the capture. */
enum { ENTERED_MS = 100 };

QUIET int cudago_waited_for(const cudago_stream *s) {
    unsigned long me = PyThread_get_thread_ident();
    for (wait_on *w = waits; w; w = w->next)
        if (w->s == s && w->thread != me && now_ms() - w->since_ms < ENTERED_MS) return 1;
    return 0;
}

void cudago_give_way(void) {
    for (int i = 0; i < 20 && cudago_beginners; i++) {
        cudago_nap(CUDAGO_NAP_US);
    }
}

/* A callback is refused by the wait itself. */
static int is_over_soon(cudago_stream *s) {
    if (cudago_on_callback_thread()) return 0;
    int over;
    s->polled++;
    Py_BEGIN_ALLOW_THREADS
    over = cudago_poll_stream(s->ctx, s->h);
    Py_END_ALLOW_THREADS
    s->polled--;
    return over;
}

int cudago_wait_stream(cudago_stream *s) {
    wait_on here = {s, PyThread_get_thread_ident(), now_ms(), waits};
    cudago_stream_retain(s); /* another thread may close the stream meanwhile */
    waits = &here;
    uint64_t mark = cudago_stream_mark(s), number = ++s->awaited;
    int blocks = s->gives_back; /* for the driver a look is no wait */
    s->gives_back = 0;
    int r = !blocks && is_over_soon(s) ? 0 : cudago_wait_for(WAIT_STREAM, s->id, blocks);
    if (r && blocks) s->gives_back = 1; /* the wait has ended too early */
    if (!r && mark && number > s->done) s->done = number, s->done_mark = mark;
    wait_on **at = &waits;
    while (*at != &here) at = &(*at)->next;
    *at = here.next;
    cudago_stream_release(s);
    cudago_give_way();
    return r;
}

int cudago_wait_position(uint64_t stream, uint64_t position) {
    if (cudago_on_callback_thread()) return cudago_refuse_wait(WAIT_STREAM);
    for (int again = 1; again;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoLineAwait(stream, position, CUDAGO_SLICE_MS);
        Py_END_ALLOW_THREADS
        if (again && cudago_interrupted()) return -1;
    }
    return 0;
}

/* While callbacks are alive the GIL must not be held in the driver: see callback.go. */
void cudago_prove_all(void) {
    if (!cudago_streams) return;
    PyThreadState *t = cudago_step_aside();
    cudagoProveAll();
    cudago_step_back(t);
}

/* A collection may come at any time, also in a thread that a callback waits for: so it must not wait for a launch that
 * waits for the callback, not even without the GIL. */
static QUIET void prove_now(void) {
    if (!cudago_streams) return;
    if (cudago_callbacks_alive && (cudago_exclusive || cudago_queues_busy())) cudagoLookAll();
    else cudagoProveAllAside();
}

/* For gc.callbacks: before a collection, learn which launches have ended, so that the executables of a dead cycle count
 * as idle. What is still running is marked now, and a later collection will see that it has ended. */
PyObject *cudago_collect_prove(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (cudago_unusable || n < 1 || PyUnicode_CompareWithASCIIString(args[0], "start")) Py_RETURN_NONE;
    prove_now();
    Py_RETURN_NONE;
}
