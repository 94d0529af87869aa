/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Operations on a stream that is capturing. Go makes the driver call, finds the node that it added, and gives the
 * node's operands to the captured graph. */

static inline QUIET void set(cudago_ref *r, PyObject *object, uint64_t nbytes, int role, int reason) {
    *r = (cudago_ref){.object = (uintptr_t)NEW_REF(object), .nbytes = nbytes, .role = role, .reason = reason};
}
static inline QUIET void set_operand(cudago_ref *r, OperandObject *o, uint64_t nbytes, int role, int reason) {
    cudago_cell *cell = o->cell;
    set(r, (PyObject *)o, nbytes, role, reason);
    if (!cell) return;
    cell->flags |= CUDAGO_CELL_IN_GRAPH;
    if (cell->flags & CUDAGO_CELL_CAPTURED) r->memory = ((cudago_go_cell *)cell)->id;
}
QUIET void cudago_ref_set(cudago_ref *r, PyObject *object, uint64_t nbytes, int role, int reason) {
    if (Py_TYPE(object) == cudago_cls[CLS_OPERAND]) set_operand(r, (OperandObject *)object, nbytes, role, reason);
    else set(r, object, nbytes, role, reason);
}

QUIET int cudago_refs_of(const cudago_packing *p, cudago_ref *refs) {
    int n = 0;
    for (Py_ssize_t i = 0, kept = p->keep ? PyList_Size(p->keep) : 0; i < kept; i++) {
        OperandObject *o = (OperandObject *)PyList_GetItem(p->keep, i);
        set_operand(&refs[n++], o, o->nbytes, ROLE_PARAMETER + o->index, REASON_KERNEL);
    }
    for (int i = 0; p->own && i < p->natives; i++)
        set_operand(&refs[n++], p->own[i], p->own[i]->nbytes, ROLE_PARAMETER + p->own[i]->index, REASON_KERNEL);
    if (p->record) set(&refs[n++], p->record, 0, ROLE_KERNEL, REASON_KERNEL); /* keeps the kernel */
    return n;
}

void cudago_refs_drop(cudago_ref *refs, int n) {
    for (int i = 0; i < n; i++) Py_DecRef((PyObject *)refs[i].object);
}

static QUIET int capture_memcpy(cudago_stream *s, OperandObject *dst, OperandObject *src, uint64_t size) {
    cudago_ref refs[2];
    cudago_status st = {0};
    cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
    if (size && cudago_records_here(s, refs, 2)) return cudago_record_memcpy(s, dst->address, src->address, size, refs);
    cudagoCaptureMemcpy(s->id, dst->address, src->address, size, refs, 2, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int capture_box(cudago_stream *s, OperandObject *dst, OperandObject *src, const cudago_box *box) {
    cudago_ref refs[2];
    cudago_status st = {0};
    cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
    cudagoCaptureBox(s->id, dst->address, src->address, cudago_side(dst), cudago_side(src), (cudago_box *)box, refs, 2, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int capture_memset(cudago_stream *s, OperandObject *dst, uint32_t value, uint32_t width, uint64_t count) {
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMSET);
    cudagoCaptureMemset(s->id, dst->address, value, width, count, &ref, 1, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int capture_memop(cudago_stream *s, OperandObject *at, const cudago_memop *m) {
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)at, at->nbytes, m->waits ? ROLE_SRC : ROLE_DST, REASON_MEMOP);
    cudagoCaptureMemOp(s->id, at->address, (cudago_memop *)m, &ref, 1, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int capture_semaphore(cudago_stream *s, SemaphoreObject *sem, uint64_t value, int32_t waits) {
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)sem, 0, ROLE_SEMAPHORE, REASON_SEMAPHORE);
    cudagoCaptureSemaphore(s->id, sem->id, value, waits, &ref, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int capture_launch(cudago_stream *s, CUlaunchConfig *config, ConfigObject *c, cudago_packing *p) {
    cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
    cudago_status st = {0};
    int n = cudago_refs_of(p, refs);
    if (!cudago_records_events(c) && cudago_records_here(s, refs, n)) return cudago_record_launch(s, config, c, p, refs, n);
    cudago_shape shape = cudago_shape_of(c);
    EventObject *events[2] = {c->programmatic_event, c->launch_completion_event};
    uint64_t ids[2];
    int n_ids = 0, captured;
    for (int i = 0; i < 2; i++)
        if (events[i]) ids[n_ids++] = events[i]->id;
    captured = cudagoCaptureLaunch(s->id, config, p->k->id, &shape, p->params, refs, n, ids, n_ids, &st);
    for (int i = 0; i < 2 && !st.kind; i++)
        if (events[i]) cudago_event_recorded(events[i], captured);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int capture_last(cudago_stream *s, PyObject **record) {
    *record = cudago_recorded_last(s);
    return 0;
}

const cudago_recorder cudago_recording = {capture_memcpy, capture_box, capture_memset, capture_memop, capture_semaphore, capture_launch, capture_last};

/* --- begin and end ------------------------------------------------------------------------------------------------------ */

typedef struct {
    GraphObject *graph;
    StreamObject *stream;
    cudago_status st; /* why it was refused, unless the stream is closed */
} beginning;

static QUIET int begun(GraphObject *self, cudago_stream *s, const cudago_status *st) {
    if (!st->kind) {
        self->capturing = s;
        if (s->h > CU_STREAM_PER_THREAD) s->recorded = self->recorded; /* the default stream of a thread is that thread's */
        self->generation = s->generation;
        self->thread = cudago_thread();
        return 0;
    }
    atomic_fetch_sub(&cudago_captures_open, 1);
    cudago_stream_release(s);
    return -1;
}

/* CUDAGO_AGAIN also while another thread begins to wait for the device, which would invalidate the capture. */
static QUIET int begin_now(void *at, int turn) {
    beginning *b = at;
    cudago_stream *s = b->stream->s;
    if (!s || cudago_stream_lost(s)) return -1;
    if (!cudago_is_untouched(s) || cudago_turn_is_not(turn) || cudagoContextWaited()) return CUDAGO_AGAIN;
    atomic_fetch_add(&cudago_captures_open, 1);
    if (!cudago_covers_over()) {
        atomic_fetch_sub(&cudago_captures_open, 1);
        return CUDAGO_AGAIN;
    }
    cudago_stream_retain(s); /* the with block may close its stream, and must still be able to end the capture */
    b->graph->capture = cudagoCaptureBegin(s->id, b->graph->mode, b->graph->recorded, &b->st);
    return begun(b->graph, s, &b->st);
}

/* _capture_begin(stream, mode): a Graph that is being captured. */
PyObject *cudago_capture_begin(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_expect(args[0], CLS_STREAM, "stream")) return NULL;
    StreamObject *stream = (StreamObject *)args[0];
    long mode = PyLong_AsLong(args[1]);
    if (mode == -1 && PyErr_Occurred()) return NULL;
    GraphObject *self = cudago_graph_alloc_object(stream->device, 0, NULL);
    if (!self) return NULL;
    self->mode = (int32_t)mode;
    self->recorded = cudago_recorded_new();
    beginning b = {self, stream, {0}};
    int r = self->recorded ? cudago_turn_take(begin_now, &b) : -1;
    if (!self->recorded) PyErr_NoMemory();
    else if (r < 0 && b.st.kind) cudago_raise(&b.st);
    else if (r < 0) cudago_stream_now(stream); /* raises the error */
    if (r) {
        cudago_recorded_free(self->recorded);
        self->recorded = NULL;
        Py_DECREF(self);
        return NULL;
    }
    self->origin = NEW_REF(args[0]);
    return (PyObject *)self;
}

/* A capture that is to end, and what C has recorded in it. */
typedef struct {
    cudago_stream *s; /* retained by the capture */
    uint64_t capture;
    cudago_recorded *recorded;
} ending;

/* 1 if the capture is over, whatever its outcome: then Go is done with what C has recorded. Otherwise another thread must
 * end it, and it continues. */
static QUIET int ended(const ending *e, int32_t open) {
    cudago_stream *s = e->s;
    if (open) return 0;
    if (s->recorded == e->recorded) s->recorded = NULL; /* it may capture again by now */
    cudago_recorded_free(e->recorded);
    atomic_fetch_sub(&cudago_captures_open, 1);
    cudago_stream_release(s);
    return 1;
}

/* Nobody else has the capture, nor what of its stream belongs to it. The end waits for records of events, by a lock: see
 * Driver.capture in Go. */
static int end(const ending *e, int discard, uint64_t *id, cudago_status *st) {
    int32_t open = 0;
    PyThreadState *t = cudago_step_aside();
    *id = cudagoCaptureEnd(e->capture, discard, &open, st);
    cudago_step_back(t);
    return ended(e, open);
}

/* Until its end is over the graph counts as being captured, so that no thread closes it, uses it or ends it again.
 * Returns its stream; NULL with an exception if there is no capture that can be ended. */
static QUIET cudago_stream *ending_begins(GraphObject *g) {
    if (g->ending) return PyErr_SetString(PyExc_ValueError, "another thread is ending the capture of the graph"), NULL;
    if (!g->capturing) return PyErr_SetString(PyExc_ValueError, "the graph is not being captured"), NULL;
    g->ending = 1;
    return g->capturing;
}
static QUIET void ending_ends(GraphObject *g, int over, uint64_t id) {
    g->ending = 0;
    if (!over) return;
    g->capturing = NULL;
    g->recorded = NULL;
    if (!id) return;
    g->held = cudagoCaptureAdopt(id, &g->nodes);
    g->id = id;
}

/* 1 if the capture is over, 0 if it continues, -1 with an exception if there is none. */
static int end_graph(GraphObject *g, int discard, cudago_status *st) {
    uint64_t id = 0;
    cudago_stream *s = ending_begins(g);
    if (!s) return -1;
    int over = end(&(ending){s, g->capture, g->recorded}, discard, &id, st);
    ending_ends(g, over, id);
    return over;
}

/* After an end that failed while the driver went on capturing, nobody could use the stream: the with block is over. 1 if
 * the capture is over now. Not if another thread has to end it. */
static int end_after_all(GraphObject *g) {
    cudago_status st = {0};
    int over = end_graph(g, 1, &st);
    free(st.message); /* the first error is raised */
    free(st.detail);
    if (over < 0) PyErr_Clear(); /* another thread was faster */
    return over > 0;
}

/* The driver would refuse it to any thread but the one that began it, and discard it all the same. */
static int refuse_anothers(GraphObject *g) {
    if (!cudago_is_anothers(g) || cudago_thread_is_over(g->thread)) return 0;
    cudago_status st = {0};
    cudagoDetailError("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, g->device,
                      "leave the block of the capture in the thread that entered it", &st);
    return cudago_raise(&st);
}

/* _capture_end(graph, discard): completes the graph, or raises an error that says why the capture was invalid. */
PyObject *cudago_capture_end(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (cudago_unusable) Py_RETURN_NONE; /* a with block that is still open when the interpreter ends */
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_expect(args[0], CLS_GRAPH, "graph")) return NULL;
    int discard = PyObject_IsTrue(args[1]);
    if (discard < 0 || cudago_stall_wait() || refuse_anothers((GraphObject *)args[0])) return NULL;
    cudago_status st = {0};
    int over = end_graph((GraphObject *)args[0], discard, &st);
    if (over < 0) return NULL;
    if (!over) over = end_after_all((GraphObject *)args[0]);
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    if (over && !st.kind && CUDAGO_WATCH("captured", "(O)", args[0])) PyErr_Fetch(&type, &value, &trace);
    if (over) {
        cudago_free_put_off(); /* now, before the next capture begins */
        Py_CLEAR(((GraphObject *)args[0])->origin);
    }
    if (st.kind) return cudago_raise(&st), NULL;
    if (type) return PyErr_Restore(type, value, trace), NULL;
    Py_RETURN_NONE;
}

/* _invalidated(cause): notes what has just failed as the cause where a capture is invalidated now, and returns what is known
 * of those that are open. The cause is a callable, which is asked for a text if there are captures. Called while an exception
 * is made, so that nothing is dropped here. */
PyObject *cudago_invalidated(PyObject *module, PyObject *cause) {
    (void)module;
    if (cudago_unusable || !atomic_load(&cudago_captures_open)) return PyUnicode_FromString("");
    PyObject *text = PyObject_CallNoArgs(cause);
    const char *of = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    cudago_answer a = {0};
    if (of) cudagoInvalidated((char *)of, &a);
    Py_XDECREF(text);
    return of ? cudago_answer_text(&a) : NULL;
}

/* _captures_open(): how many captures have begun here and not ended. */
PyObject *cudago_captures_are_open(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromLong(atomic_load(&cudago_captures_open));
}

/* --- forks ---------------------------------------------------------------------------------------------------------- */

/* May the stream join the capture? What a wait of its would do otherwise invalidates captures. */
static QUIET int may_fork(GraphObject *self, StreamObject *stream) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s) return -1;
    if (!self->capturing)
        return PyErr_SetString(PyExc_ValueError, "the graph is not being captured: a fork is made inside the with block of a capture"), -1;
    if (s == self->capturing) return PyErr_SetString(PyExc_ValueError, "stream is the one that is captured: fork another"), -1;
    if (s->h <= CU_STREAM_LEGACY)
        return PyErr_SetString(PyExc_ValueError, "the legacy default stream cannot take part in a capture: fork another"), -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (!capturing || cudagoCaptureHas(self->capture, s->id)) return 0;
    return PyErr_SetString(PyExc_ValueError, "stream is in another capture, and two captures cannot be joined"), -1;
}

/* _origin(stream): the Stream of the capture, if another one may join it. */
PyObject *cudago_capture_origin(GraphObject *self, PyObject *stream) {
    CUDAGO_ENTER(NULL);
    if (cudago_expect(stream, CLS_STREAM, "stream") || may_fork(self, (StreamObject *)stream)) return NULL;
    return NEW_REF(self->origin);
}

/* --- captures whose graph is gone --------------------------------------------------------------------------------- */

/* What could not be ended when its graph was dropped is tried again later: the end of a capture while callbacks are alive
 * may have to release the GIL, and a drop must not. Guarded by the GIL. */
typedef struct orphan {
    ending e;
    struct orphan *next;
} orphan;
static orphan *orphans;

/* 1 if it is over. Another thread's capture is, too, although the driver refuses to end it: seen on an H200. */
static int discard(const ending *e) {
    uint64_t id;
    cudago_status st = {0};
    cudago_stream *s = e->s;
    cudago_stream_retain(s); /* the end gives up the capture's reference */
    int over = end(e, 1, &id, &st);
    free(st.message); /* nobody will see this capture's error */
    free(st.detail);
    s->abandoned = over ? 0 : st.code ? st.code
                                      : CUDAGO_CAPTURE_LEFT;
    cudago_stream_release(s);
    return over;
}

static QUIET ending take_capture(GraphObject *g) {
    ending e = {g->capturing, g->capture, g->recorded};
    g->capturing = NULL;
    g->recorded = NULL;
    return e;
}

void cudago_capture_abandon(GraphObject *self) {
    ending e = take_capture(self);
    if (!cudago_callbacks_alive && discard(&e)) return;
    orphan *o = malloc(sizeof *o);
    if (!o) return; /* the stream stays in capture: nothing that it may use is freed */
    if (!e.s->abandoned) e.s->abandoned = CUDAGO_CAPTURE_LEFT;
    *o = (orphan){e, orphans};
    orphans = o;
    atomic_store(&cudago_drop_hint, 1);
}

void cudago_captures_end_orphans(void) {
    orphan *list = orphans, *next;
    orphans = NULL;
    for (orphan *o = list; o; o = next) {
        next = o->next;
        if (discard(&o->e)) {
            free(o);
            continue;
        }
        o->next = orphans;
        orphans = o;
    }
    if (orphans) atomic_store(&cudago_drop_hint, 1); /* so that their threads drain at their next entry */
}
