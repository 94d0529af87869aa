/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"
#include <unistd.h>

/* An executable: the launch stays in C, on a block that Go owns. */

static int open_exec(ExecObject *self) { return self->x ? 0 : cudago_raise_closed("graph executable"); }

/* The index of s among the streams that the executable was launched on; asks Go to note a new one. More streams than
 * there is room for take turns: Go notes one that it knows without doing anything. */
static int slot(ExecObject *self, cudago_exec *x, cudago_stream *s) {
    uint32_t known = x->n < CUDAGO_EXEC_STREAMS ? x->n : CUDAGO_EXEC_STREAMS;
    for (uint32_t i = 0; i < known; i++)
        if (x->stream[i] == s->id) return (int)i;
    cudago_status st = {0};
    cudagoExecNoteStream(self->id, s->id, &st);
    if (st.kind) return cudago_raise(&st);
    uint32_t i = x->n++ % CUDAGO_EXEC_STREAMS;
    x->stream[i] = s->id;
    return (int)i;
}

/* A stream of another library: Go marks each launch with an event, since nobody tells when such a stream ends. */
static int32_t launch_foreign(ExecObject *self, cudago_stream *s, cudago_status *st) {
    uint64_t id = self->id, stream = s->id;
    cudago_exec *x = self->x;
    atomic_fetch_add_explicit(&x->busy, 1, memory_order_seq_cst);
    x->foreign = cudago_foreign_launches = 1;
    Py_BEGIN_ALLOW_THREADS
    cudagoExecLaunch(id, stream, st);
    Py_END_ALLOW_THREADS
    atomic_fetch_sub_explicit(&x->busy, 1, memory_order_release);
    return st->kind;
}

/* An update must not meet a launch of the same executable in the driver, and a launch that gave the GIL away may be
 * waiting for a callback that needs it. So the update waits first, with the GIL released. */
static int wait_for_launches(ExecObject *self) {
    while (self->x && atomic_load_explicit(&self->x->busy, memory_order_acquire)) {
        Py_BEGIN_ALLOW_THREADS
        usleep(50);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals()) return -1;
    }
    return open_exec(self);
}

static int32_t call_driver(cudago_exec *x, cudago_stream *s) {
    int pushed;
    int32_t r = cudago_ctx_enter(x->ctx, &pushed);
    if (!r) r = cu.cuGraphLaunch(x->h, s->h);
    cudago_ctx_leave(pushed);
    return r;
}

static int32_t launch_own(cudago_exec *x, cudago_stream *s, int i) {
    int32_t r;
    cudago_note_site();
    if (cudago_budget(s) && !x->calls_python) {
        x->launches++; /* the GIL is the lock */
        r = call_driver(x, s);
    } else {
        atomic_fetch_add_explicit(&x->busy, 1, memory_order_seq_cst); /* before launches: the reaper reads them so */
        x->launches++;
        Py_BEGIN_ALLOW_THREADS
        r = call_driver(x, s);
        Py_END_ALLOW_THREADS
        atomic_fetch_sub_explicit(&x->busy, 1, memory_order_release);
    }
    x->last[i] = s->launched;
    return r;
}

/* launch(stream): the hot call. */
static PyObject *exec_launch(ExecObject *self, PyObject *stream) {
    CUDAGO_ENTER(NULL);
    if (open_exec(self)) return NULL;
    PyObject *keep = NULL;
    cudago_stream *s = cudago_stream_arg(stream, &keep);
    if (!s) return NULL;
    cudago_status st = {0};
    int i = 0, refused = 1;
    int32_t r = 0;
    if (s->device != self->device)
        PyErr_Format(PyExc_ValueError, "the graph is on device %d, the stream on device %d", self->device, s->device);
    else if (cudago_capturing(s)) /* cuGraphLaunch would fail, and spoil the capture */
        PyErr_SetString(PyExc_ValueError, "an executable cannot be launched on a stream that is capturing: embed its graph "
                                          "instead");
    else if (s->foreign)
        refused = launch_foreign(self, s, &st) ? cudago_raise(&st) : 0;
    else if ((i = slot(self, self->x, s)) >= 0)
        refused = (r = launch_own(self->x, s, i)) != 0;
    if (r) {
        cudagoDetailError("cuGraphLaunch", r, self->device, "", &st);
        cudago_raise(&st);
    }
    Py_XDECREF(keep);
    if (refused) return NULL;
    Py_RETURN_NONE;
}

static PyObject *exec_upload(ExecObject *self, PyObject *stream) {
    CUDAGO_ENTER(NULL);
    if (open_exec(self)) return NULL;
    PyObject *keep = NULL;
    cudago_stream *s = cudago_stream_arg(stream, &keep);
    if (!s) return NULL;
    cudago_status st = {0};
    uint64_t id = self->id, sid = s->id;
    Py_BEGIN_ALLOW_THREADS
    cudagoExecUpload(id, sid, &st);
    Py_END_ALLOW_THREADS
    Py_XDECREF(keep);
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

static PyObject *done(cudago_status *st) {
    if (st->kind) return cudago_raise(st), NULL;
    cudago_drain();
    Py_RETURN_NONE;
}

/* _update_memcpy(node, dst or None, src or None) */
static PyObject *exec_update_memcpy(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 3 || wait_for_launches(self)) return NULL;
    uint64_t node = PyLong_AsUnsignedLongLong(args[0]);
    if (node == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    static const char *const names[] = {"dst", "src"};
    OperandObject *o[2] = {NULL, NULL};
    cudago_ref refs[2];
    int given[2] = {args[1] != Py_None, args[2] != Py_None}, m = 0, ok = 1;
    for (int i = 0; i < 2 && ok; i++) {
        if (!given[i]) continue;
        ok = (o[i] = cudago_operand(args[1 + i], i ? 0 : OPERAND_WRITABLE, names[i])) != NULL;
        ok = ok && !cudago_copies(self->device, o[i], names[i]);
    }
    cudago_status st = {0};
    if (ok) {
        for (int i = 1; i >= 0; i--) /* src first, as everywhere */
            if (o[i]) cudago_ref_set(&refs[m++], (PyObject *)o[i], o[i]->nbytes, i ? ROLE_SRC : ROLE_DST, REASON_MEMCPY);
        cudagoExecMemcpy(self->id, node, given[0], o[0] ? o[0]->address : 0, o[0] ? o[0]->host : 0, o[0] ? o[0]->nbytes : 0,
                         given[1], o[1] ? o[1]->address : 0, o[1] ? o[1]->host : 0, o[1] ? o[1]->nbytes : 0, refs, m, &st);
    }
    Py_XDECREF(o[0]);
    Py_XDECREF(o[1]);
    return ok ? done(&st) : NULL;
}

/* _update_memset(node, dst, value) */
static PyObject *exec_update_memset(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 3 || wait_for_launches(self)) return NULL;
    uint64_t node = PyLong_AsUnsignedLongLong(args[0]);
    if (node == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    OperandObject *o = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    uint32_t value, width;
    if (!o || cudago_fill_value(args[2], o->nbytes, &value, &width)) {
        Py_XDECREF(o);
        return NULL;
    }
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)o, o->nbytes, ROLE_DST, REASON_MEMSET);
    cudagoExecMemset(self->id, node, o->address, value, width, o->nbytes / width, &ref, &st);
    Py_DECREF(o);
    return done(&st);
}

typedef struct {
    uint64_t exec, node;
} exec_node;
static uint64_t set_kernel(void *at, cudago_kernel *k, void **params, cudago_ref *refs, int n, ConfigObject *c, cudago_status *st) {
    exec_node *e = at;
    cudagoExecKernel(e->exec, e->node, k->id, c->grid, c->block, c->shared_memory, params, refs, n, st);
    return e->node;
}

/* _update_kernel(node, config, kernel, args) */
static PyObject *exec_update_kernel(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 4 || wait_for_launches(self)) return NULL;
    exec_node at = {self->id, PyLong_AsUnsignedLongLong(args[0])};
    if (at.node == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    PyObject *r = cudago_with_kernel(self->device, args[1], args[2], args[3], set_kernel, &at);
    if (r) cudago_drain();
    return r;
}

/* _update_host(node, callable) */
static PyObject *exec_update_host(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2 || wait_for_launches(self)) return NULL;
    uint64_t node = PyLong_AsUnsignedLongLong(args[0]);
    if (node == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    OperandObject *o = cudago_callable_operand(args[1]);
    if (!o) return NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    cudagoExecHost(self->id, node, cudago_host_function(), (uintptr_t)o->call, &ref, &st);
    Py_DECREF(o);
    return done(&st);
}

/* _set_enabled(node, bool) */
static PyObject *exec_set_enabled(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2 || wait_for_launches(self)) return NULL;
    uint64_t node = PyLong_AsUnsignedLongLong(args[0]);
    int enabled = PyObject_IsTrue(args[1]);
    if (PyErr_Occurred()) return NULL;
    cudago_status st = {0};
    cudagoExecEnable(self->id, node, enabled, &st);
    return done(&st);
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

static PyObject *exec_text(ExecObject *self, PyObject *what) {
    CUDAGO_ENTER(NULL);
    const char *w = PyUnicode_AsUTF8AndSize(what, NULL);
    if (!w || open_exec(self)) return NULL;
    cudago_status st = {0};
    char *text = cudagoExecText(self->id, (char *)w, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyUnicode_FromString(text);
    free(text);
    return r;
}
static PyObject *exec_held(ExecObject *self, PyObject *address) { return cudago_held_at(self->held, address); }
static PyObject *exec_launches(ExecObject *self, void *unused) {
    (void)unused;
    return open_exec(self) ? NULL : PyLong_FromUnsignedLongLong(self->x->launches);
}
static PyObject *exec_is_closed(ExecObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->x == NULL);
}
static PyObject *exec_ordinal(ExecObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static void give_up(ExecObject *self) {
    uint64_t id = self->id;
    self->id = 0;
    self->x = NULL;    /* Go's reaper frees it when the last launch has ended */
    self->held = NULL; /* first: Go frees it, and dropping what it held may run the collector */
    if (id && !cudago_unusable) cudagoExecClose(id);
}
static PyObject *exec_close(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    give_up(self);
    cudago_drain();
    Py_RETURN_NONE;
}
static PyObject *exec_exit(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return exec_close(self, NULL);
}

/* While a launch may be in flight, what it reads is not shown to the collector, which would otherwise clear the
 * operands of a graph that nobody can reach any more under the launch. */
static int in_flight(cudago_exec *x) {
    if (!x || cudago_unusable) return 0;
    if (x->foreign || atomic_load_explicit(&x->busy, memory_order_relaxed)) return 1;
    for (uint32_t i = 0; i < x->n && i < CUDAGO_EXEC_STREAMS; i++) {
        const cudago_stream *s = cudago_budget_find(x->stream[i]);
        if (s && x->last[i] > s->proven) return 1;
    }
    return 0;
}
static int exec_traverse(ExecObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    return in_flight(self->x) ? 0 : cudago_held_traverse(self->held, visit, arg);
}
static int exec_clear(ExecObject *self) {
    give_up(self);
    return 0;
}
static void exec_dealloc(ExecObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    give_up(self);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"launch", METHOD(exec_launch), METH_O, DOC_GRAPHEXEC_LAUNCH},
    {"upload", METHOD(exec_upload), METH_O, DOC_GRAPHEXEC_UPLOAD},
    {"_update_memcpy", METHOD(exec_update_memcpy), METH_FASTCALL, NULL},
    {"_update_memset", METHOD(exec_update_memset), METH_FASTCALL, NULL},
    {"_update_kernel", METHOD(exec_update_kernel), METH_FASTCALL, NULL},
    {"_update_host", METHOD(exec_update_host), METH_FASTCALL, NULL},
    {"_set_enabled", METHOD(exec_set_enabled), METH_FASTCALL, NULL},
    {"_text", METHOD(exec_text), METH_O, NULL},
    {"_held", METHOD(exec_held), METH_O, NULL},
    {"close", METHOD(exec_close), METH_NOARGS, DOC_GRAPHEXEC_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(exec_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)exec_is_closed, NULL, DOC_GRAPHEXEC_IS_CLOSED, NULL},
    {"launch_count", (getter)exec_launches, NULL, DOC_GRAPHEXEC_LAUNCH_COUNT, NULL},
    {"_ordinal", (getter)exec_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ExecObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, exec_dealloc}, {Py_tp_traverse, exec_traverse}, {Py_tp_clear, exec_clear}, {Py_tp_methods, methods},
    {Py_tp_getset, getset},        {Py_tp_members, members},        {0, NULL},
};
PyType_Spec cudago_exec_spec = {
    "cudago._core.GraphExec", sizeof(ExecObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};
