/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Executables. A launch stays in C, on a block that Go made. */

QUIET int cudago_exec_open(ExecObject *self) {
    if (!self->x) return cudago_raise_closed("graph executable");
    return cudago_exec_lost(self->x) ? cudago_raise_lost("graph executable", self->device) : 0;
}

/* The reaper does not touch streams whose handles others have. On those, the thread that closes gets the executable's
 * work marked. */
static QUIET int has_unmarked(cudago_exec *x) {
    cudago_use *use = cudago_uses_at(&x->uses);
    for (uint32_t i = 0; i < x->uses.n; i++)
        if (use[i].clock->exposed && use[i].position > atomic_load(&use[i].clock->marked)) return 1;
    return 0;
}
/* Ends an executable that no call is inside of: Go's reaper destroys it and releases its operands once its uses have
 * ended. */
static void end(cudago_exec *x) {
    if (!cudago_callbacks_alive && has_unmarked(x)) cudagoProveExposed(); /* otherwise close() or a sync does it */
    cudagoExecClose(x->id);
    cudago_uses_free(&x->uses);
    cudago_hierarchy_release(x->of);
    free(x->frees);
    free(x);
}

static void leave(cudago_exec *x) {
    if (!--x->inside && x->closing && !cudago_unusable) end(x);
}

/* --- launches ----------------------------------------------------------------------------------------------------------- */

static QUIET int32_t call_driver(cudago_exec *x, cudago_stream *s) {
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(x->ctx, &pushed);
    if (!r) r = cu.cuGraphLaunch(x->h, s->h);
    cudago_ctx_leave(pushed);
    return r;
}

/* A launch of several nodes that fails may have begun, so it has a position like one that succeeds. */
static QUIET void note_launch(cudago_exec *x, cudago_stream *s, int32_t code, uint64_t position, cudago_status *st) {
    cudago_uses_note(&x->uses, s, position);
    s->graphs = position;
    if (!code) return;
    x->failed++;
    cudagoExecLaunchError(x->id, code, st);
}
static QUIET int launched(cudago_exec *x, cudago_stream *s, int32_t code, uint64_t position) {
    cudago_status st = {0};
    note_launch(x, s, code, position, &st);
    return code ? cudago_raise(&st) : 0;
}

static int launch_away(cudago_exec *x, cudago_stream *s) {
    int calls_python = x->calls_python;
    cudago_frees frees = {x->frees, x->n_frees};
    x->inside++;
    cudago_frees_begin(&frees);
    cudago_leave l = cudago_gil_leave(s);
    if (calls_python) cudagoCallbackEnter();
    int32_t code = call_driver(x, s);
    uint64_t position = cudago_gil_back(&l, 0);
    if (calls_python) cudagoCallbackLeave(s->id, position);
    cudago_frees_end(&frees);
    cudago_status st = {0};
    note_launch(x, s, code, position, &st);
    leave(x); /* before anything is raised: that runs Python, which may update the executable, and would wait */
    cudago_leave_end(&l);
    return code ? cudago_raise(&st) : 0;
}

/* A launch or an upload at the gate. */
typedef struct {
    cudago_exec *x; /* the executable it waits at, only for comparison; NULL: not waiting */
    uint64_t phase; /* the executable's phase when it came */
    cudago_exec *frees; /* after CUDAGO_IN_USE: counted inside */
} ticket;

/* Must a launch wait for an update? A launch that one update has kept waiting goes before the next update. */
static QUIET int must_wait(cudago_exec *x, ticket *t) {
    if (!x->updates || (t->x == x && t->phase != x->phase)) return 0;
    t->x = x;
    t->phase = x->phase;
    return 1;
}

static QUIET int is_updating(const cudago_exec *x) { return x->updater == PyThread_get_thread_ident(); }

/* Counted only during the nap. What else may run on this thread, such as signal handlers and what raising an error runs, may
 * update the executable, and an update waits for those that are counted. */
static int wait_at_gate(ExecObject *self, const ticket *t) {
    cudago_exec *x = t->x;
    if (is_updating(x))
        return PyErr_SetString(PyExc_RuntimeError, "this thread is updating the executable: a launch or an upload would wait for itself"), -1;
    x->waiting++;
    cudago_nap(CUDAGO_NAP_US);
    if (self->x != x) return 0; /* closed meanwhile: the block may be gone */
    x->waiting--;
    if (t->phase != x->phase) x->owed--;
    return PyErr_CheckSignals();
}

enum { CAPTURED = 2, /* nothing is launched: the stream is capturing */
       GONE = 3 };   /* nothing is launched: something that it uses is gone */

static QUIET int in_use(cudago_exec *x, ticket *t) {
    x->inside++; /* so that it stays while the launch waits */
    t->frees = x;
    return CUDAGO_IN_USE;
}

static QUIET int launch_now(ExecObject *self, StreamObject *stream, ticket *t) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_exec_open(self)) return -1;
    cudago_exec *x = self->x;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing) return CAPTURED; /* cuGraphLaunch would fail, and invalidate the capture */
    if (must_wait(x, t)) return CUDAGO_AGAIN;
    if (cudago_held_gone(self->held, x->id)) return GONE;
    if (x->n_frees && cudago_graph_memory_in_use(x->frees, x->n_frees)) return in_use(x, t);
    if (cudago_uses_reserve(&x->uses, s)) return -1;
    x->launches++;
    if (x->calls_python || !cudago_keeps_gil(s)) return launch_away(x, s);
    int32_t code = call_driver(x, s);
    return launched(x, s, code, cudago_queued(s));
}

/* May it be launched at once, with the GIL held throughout? Nothing is raised: whoever launches it otherwise finds out
 * why. */
QUIET int cudago_exec_is_calm(ExecObject *self, StreamObject *stream) {
    cudago_exec *x = self->x;
    if (!x || cudago_exec_lost(x) || x->updates || x->calls_python || x->n_frees || cudago_checking || cudago_watcher || cudago_held_gone(self->held, x->id) || stream->device != self->device) return 0;
    cudago_stream *s = stream->s;
    return s && !cudago_stream_lost(s) && cudago_keeps_gil(s) && !cudago_maybe_capturing(s);
}
QUIET int cudago_exec_launch_calm(ExecObject *self, StreamObject *stream) {
    cudago_exec *x = self->x;
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_uses_reserve(&x->uses, s)) return -1;
    x->launches++;
    int32_t code = call_driver(x, s);
    return launched(x, s, code, cudago_queued(s));
}

static int wait_for_uses(cudago_exec *x) {
    int r = cudago_graph_memory_wait(x->frees, x->n_frees);
    leave(x);
    return r;
}

/* `now` answers CUDAGO_AGAIN while an update is ahead of it, or CUDAGO_IN_USE. */
static inline int through_gate(ExecObject *self, StreamObject *stream, int (*now)(ExecObject *, StreamObject *, ticket *)) {
    if (stream->device != self->device) {
        PyErr_Format(PyExc_ValueError, "the graph is on device %d, the stream on device %d", self->device, stream->device);
        return -1;
    }
    ticket t = {0};
    cudago_note_site();
    int r = now(self, stream, &t);
    while (r == CUDAGO_AGAIN || r == CUDAGO_IN_USE) r = (r == CUDAGO_IN_USE ? wait_for_uses(t.frees) : wait_at_gate(self, &t)) ? -1 : now(self, stream, &t);
    return r;
}

/* Becomes a node of the capture instead. CUDAGO_AGAIN if that has ended meanwhile. */
static int launch_captured(ExecObject *self, StreamObject *stream) {
    PyObject *r = PyObject_CallMethod((PyObject *)self, "_launch_into", "O", (PyObject *)stream);
    Py_XDECREF(r);
    return !r ? -1 : r == Py_False ? CUDAGO_AGAIN
                                   : 0;
}

/* What was gone may be back by now: PyTorch's memory, or a device whose reset was given up. */
static int refuse_gone(ExecObject *self) { return cudago_exec_whole(self) ? -1 : cudago_raise_moved("memory of an operand"); }

static inline int launch(ExecObject *self, StreamObject *stream) {
    if (CUDAGO_WATCH("launching", "(O)", self)) return -1;
    int r = through_gate(self, stream, launch_now);
    if (r < 0) cudago_explain_memory(0); /* the first launch allocates what nodes do */
    return r == GONE ? refuse_gone(self) : r;
}

/* What launch(stream) does: the hot call. */
PyObject *cudago_exec_launch(ExecObject *self, PyObject *argument) {
    CUDAGO_ENTER(NULL);
    if (cudago_exec_open(self)) return NULL;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(argument, &keep);
    int r = stream ? launch(self, stream) : -1;
    while (r == CAPTURED) {
        r = launch_captured(self, stream);
        if (r == CUDAGO_AGAIN) r = launch(self, stream);
    }
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

int cudago_exec_launch_uncaptured(ExecObject *self, PyObject *argument, int *captured) {
    if (cudago_exec_open(self)) return -1;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(argument, &keep);
    int r = stream ? launch(self, stream) : -1;
    Py_XDECREF(keep);
    *captured = r == CAPTURED;
    return r < 0 ? -1 : 0;
}

/* _ask(): raises what a launch would, of an executable whose nodes are run in other ways. */
static PyObject *exec_ask(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (CUDAGO_WATCH("launching", "(O)", self) || cudago_exec_whole(self)) return NULL;
    Py_RETURN_NONE;
}

static int upload_away(cudago_exec *x, cudago_stream *s) {
    cudago_status st = {0};
    x->inside++;
    cudago_leave l = cudago_gil_leave(s);
    cudagoExecUpload(x->id, s->id, &st);
    cudago_uses_note(&x->uses, s, cudago_gil_back(&l, 0));
    leave(x);
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}
static QUIET int upload_now(ExecObject *self, StreamObject *stream, ticket *t) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_exec_open(self)) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing)
        return PyErr_SetString(PyExc_ValueError, "an executable cannot be uploaded on a stream that is capturing"), -1;
    if (must_wait(self->x, t)) return CUDAGO_AGAIN;
    if (cudago_held_gone(self->held, self->x->id)) return GONE;
    if (cudago_uses_reserve(&self->x->uses, s)) return -1;
    return upload_away(self->x, s);
}

static PyObject *exec_upload(ExecObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *keep = NULL, *argument = cudago_read_stream(args, n, names);
    if (!argument) return NULL;
    StreamObject *stream = cudago_stream_arg(argument, &keep);
    int r = stream ? through_gate(self, stream, upload_now) : -1;
    if (r == GONE) refuse_gone(self);
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

int cudago_read_node(PyObject *o, uint64_t *node) {
    *node = PyLong_AsUnsignedLongLong(o);
    return *node == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

static QUIET PyObject *exec_launches(ExecObject *self, void *unused) {
    (void)unused;
    return cudago_exec_open(self) ? NULL : PyLong_FromUnsignedLongLong(self->x->launches - self->x->failed);
}
static QUIET PyObject *exec_is_closed(ExecObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(!self->x || cudago_exec_lost(self->x));
}
static PyObject *exec_ordinal(ExecObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static PyObject *exec_flags(ExecObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->flags);
}

/* Where the slots are used, for slot.py: a dict without anything in it that the collector tracks, or None. */
static PyObject *exec_uses(ExecObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->slots ? self->slots : Py_None);
}
static PyObject *exec_replace_uses(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    return cudago_slots_replace(&self->slots, args, n);
}

static void exec_release(ExecObject *self) {
    cudago_exec *x = self->x;
    self->id = 0;
    self->x = NULL;
    self->held = NULL; /* first: Go frees it, and dropping what it held may run the collector */
    if (!x || cudago_unusable) return;
    x->closing = 1;
    if (!x->inside) end(x);
}
static QUIET int needs_marks(ExecObject *self) { return self->x && has_unmarked(self->x); }
static void prove_exposed(void) {
    Py_BEGIN_ALLOW_THREADS /* this queries the driver */
    cudagoProveExposed();
    Py_END_ALLOW_THREADS
}

static PyObject *exec_close(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    if (needs_marks(self)) prove_exposed();
    exec_release(self);
    cudago_drain();
    Py_RETURN_NONE;
}
static PyObject *exec_exit(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return exec_close(self, NULL);
}

/* While a launch may be in flight the collector is not shown what the launch reads. Otherwise it would clear the
 * operands of an unreachable graph under the launch. */
static QUIET int in_flight(cudago_exec *x) { return x && !cudago_unusable && (x->inside || cudago_uses_pending(&x->uses)); }
static int exec_traverse(ExecObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    return in_flight(self->x) ? 0 : cudago_held_traverse(self->held, visit, arg);
}
static int exec_clear(ExecObject *self) {
    exec_release(self);
    return 0;
}
static void exec_dealloc(ExecObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    exec_release(self);
    Py_XDECREF(self->slots);
    Py_XDECREF(self->found);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"launch", METHOD(cudago_exec_call), METH_FASTCALL | METH_KEYWORDS, DOC_GRAPHEXEC_LAUNCH},
    {"__call__", METHOD(cudago_exec_call), METH_FASTCALL | METH_KEYWORDS, DOC_GRAPHEXEC_CALL},
    {"_capture_into", METHOD(cudago_exec_capture), METH_O, NULL},
    {"_ask", METHOD(exec_ask), METH_NOARGS, NULL},
    {"upload", METHOD(exec_upload), METH_FASTCALL | METH_KEYWORDS, DOC_GRAPHEXEC_UPLOAD},
    {"_update_memcpy", METHOD(cudago_update_memcpy), METH_FASTCALL, NULL},
    {"_update_memset", METHOD(cudago_update_memset), METH_FASTCALL, NULL},
    {"_update_semaphore", METHOD(cudago_update_semaphore), METH_FASTCALL, NULL},
    {"_update_memop", METHOD(cudago_update_memop), METH_FASTCALL, NULL},
    {"_update_kernel", METHOD(cudago_update_kernel), METH_FASTCALL, NULL},
    {"_update_host", METHOD(cudago_update_host), METH_FASTCALL, NULL},
    {"_update_event", METHOD(cudago_update_event), METH_FASTCALL, NULL},
    {"_update_child", METHOD(cudago_update_child), METH_FASTCALL, NULL},
    {"_update", METHOD(cudago_update_graph), METH_FASTCALL, NULL},
    {"bind", METHOD(cudago_exec_bind), METH_FASTCALL | METH_KEYWORDS, DOC_GRAPHEXEC_BIND},
    {"_in_python", METHOD(cudago_exec_in_python), METH_O, NULL},
    {"_change_all", METHOD(cudago_exec_change_all), METH_FASTCALL, NULL},
    {"_node", METHOD(cudago_exec_node_new), METH_FASTCALL, NULL},
    {"_set_enabled", METHOD(cudago_update_enabled), METH_FASTCALL, NULL},
    {"_call_inside", METHOD(cudago_update_inside), METH_O, NULL},
    {"_made_at", METHOD(cudago_exec_made_at), METH_O, NULL},
    {"_is_enabled", METHOD(cudago_exec_enabled), METH_O, NULL},
    {"_params", METHOD(cudago_exec_params), METH_O, NULL},
    {"_record", METHOD(cudago_exec_record), METH_O, NULL},
    {"_nodes", METHOD(cudago_exec_nodes), METH_NOARGS, NULL},
    {"_find", METHOD(cudago_exec_find), METH_O, NULL},
    {"_edges", METHOD(cudago_exec_edges), METH_NOARGS, NULL},
    {"_edge_data", METHOD(cudago_exec_edge_data), METH_NOARGS, NULL},
    {"_count", METHOD(cudago_exec_count), METH_NOARGS, NULL},
    {"_retained", METHOD(cudago_exec_retained), METH_NOARGS, NULL},
    {"_replace_uses", METHOD(exec_replace_uses), METH_FASTCALL, NULL},
    {"close", METHOD(exec_close), METH_NOARGS, DOC_GRAPHEXEC_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(exec_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)exec_is_closed, NULL, DOC_GRAPHEXEC_IS_CLOSED, NULL},
    {"launch_count", (getter)exec_launches, NULL, DOC_GRAPHEXEC_LAUNCH_COUNT, NULL},
    {"_ordinal", (getter)exec_ordinal, NULL, NULL, NULL},
    {"_uses", (getter)exec_uses, NULL, NULL, NULL},
    {"_flags", (getter)exec_flags, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ExecObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, exec_dealloc},
    {Py_tp_traverse, exec_traverse},
    {Py_tp_clear, exec_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_mp_subscript, cudago_exec_item},
    {0, NULL},
};
PyType_Spec cudago_exec_spec = {
    "cudago._core.GraphExec",
    sizeof(ExecObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
