/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* cu.launch: parse, pack and launch in C under the GIL. It enters Go only to load a kernel on a new device, to record a
 * captured launch, to keep the host memory of a launch until it ends, and for errors. */

enum { SMALL_VALUES = 1024 };

enum { COOPERATIVE_LAUNCH_TOO_LARGE = 720 }; /* CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE */

static QUIET void add_attribute(CUlaunchConfig *c, CUlaunchAttribute *a, CUlaunchAttributeID id, const void *value, size_t size) {
    CUlaunchAttribute *next = &a[c->NumAttrs++];
    memset(next, 0, sizeof *next);
    next->ID = id;
    memcpy(next->Value, value, size);
}

QUIET void cudago_fill_config(CUlaunchConfig *c, CUlaunchAttribute *a, const ConfigObject *o, uintptr_t stream) {
    *c = (CUlaunchConfig){
        .GridDimX = o->grid[0],
        .GridDimY = o->grid[1],
        .GridDimZ = o->grid[2],
        .BlockDimX = o->block[0],
        .BlockDimY = o->block[1],
        .BlockDimZ = o->block[2],
        .SharedMemBytes = o->shared_memory,
        .HStream = stream,
        .Attrs = (uintptr_t)a,
    };
    int32_t on = 1;
    if (o->cooperative) add_attribute(c, a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &on, sizeof on);
    if (o->cluster[0]) add_attribute(c, a, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, o->cluster, sizeof o->cluster);
    if (o->has_priority) add_attribute(c, a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &o->priority, sizeof o->priority);
    if (o->programmatic) add_attribute(c, a, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, &on, sizeof on);
    if (!cudago_records_events(o)) return;
    const EventObject *e = o->programmatic_event, *begun = o->launch_completion_event;
    CUlaunchEvent value = {.Event = e ? e->h : 0, .TriggerAtBlockStart = o->trigger_at_block_start};
    if (e) add_attribute(c, a, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, &value, sizeof value);
    value = (CUlaunchEvent){.Event = begun ? begun->h : 0};
    if (begun) add_attribute(c, a, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, &value, sizeof value);
}

cudago_recorder cudago_record;

/* A launch with its evaluated arguments. */
typedef struct {
    StreamObject *stream;
    ConfigObject *config;
    cudago_packing *p;
    uintptr_t *refs; /* room for what is kept until it has ended */
    PyObject *held[2]; /* keep the events that the launch records from being destroyed until it has ended; or NULL */
} launching;

/* Their events, of which either may be NULL. */
static QUIET EventObject *event_of(const launching *l, int i) {
    return i ? l->config->launch_completion_event : l->config->programmatic_event;
}
static QUIET int events_now(const launching *l, const cudago_stream *s) {
    for (int i = 0; i < 2; i++) {
        EventObject *e = event_of(l, i);
        if (!e) continue;
        if (cudago_event_now(e)) return -1;
        if (e->device != s->device)
            return PyErr_Format(PyExc_ValueError, "%s belongs to device %d, the stream to device %d",
                                i ? "launch_completion_event" : "programmatic_event", e->device, s->device),
                   -1;
    }
    return 0;
}
static QUIET void events_begin(const launching *l) {
    for (int i = 0; i < 2; i++)
        if (event_of(l, i)) cudago_recording_begins(event_of(l, i), 0);
}
static QUIET void events_end(const launching *l, int recorded) {
    for (int i = 0; i < 2; i++)
        if (event_of(l, i)) cudago_recording_ends(event_of(l, i), recorded, 0);
}

static QUIET int32_t call_driver(CUlaunchConfig *c, const cudago_packing *p, cudago_stream *s) {
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuLaunchKernelEx(c, p->k->f, (void **)p->params, NULL);
    cudago_ctx_leave(pushed);
    return r;
}

static QUIET int finish(const launching *l, cudago_stream *s, int32_t code, uint64_t position) {
    const cudago_packing *p = l->p;
    for (int i = 0; i < p->n_used; i++) cudago_cell_note_kept(p->used[i], s, position);
    if (code) {
        cudago_shape shape = cudago_shape_of(l->config);
        return cudago_launch_error("cuLaunchKernelEx", p->kernel, p->k, &shape, code);
    }
    if (!p->keep && !p->n_kept && !cudago_records_events(l->config)) return 0;
    size_t n = cudago_kept(p, l->refs);
    for (int i = 0; i < 2; i++)
        if (l->held[i]) l->refs[n++] = (uintptr_t)NEW_REF(l->held[i]);
    cudago_keep_until(s, position, l->refs, n);
    return 0;
}

static QUIET void unreserve(const cudago_packing *p, int n, cudago_stream *s) {
    for (int i = 0; i < n; i++) cudago_cell_note_kept(p->used[i], s, 0);
}

/* Our work comes after what other libraries have queued on their memory. The GIL is released. */
static int order_theirs_away(const cudago_packing *p, int32_t device, uintptr_t h, cudago_status *st) {
    int busy = 0;
    for (int i = 0; !busy && !st->kind && i < p->n_theirs; i++)
        if (!cudago_same_stream(p->theirs[i], h)) busy = cudagoStreamsOrder(device, p->theirs[i], device, h, st);
    for (int i = 0; !busy && !st->kind && i < p->n_far; i++) busy = cudagoStreamsOrder(p->far[i].device, p->far[i].h, device, h, st);
    return busy || st->kind;
}

/* With the GIL released: the cells and the kernel's code are held for the call. */
static int launch_away(const launching *l, CUlaunchConfig *c, cudago_stream *s) {
    const cudago_packing *p = l->p;
    cudago_status st = {0};
    int32_t code = CUDAGO_NOT_CALLED;
    for (int i = 0; i < p->n_used; i++) cudago_cell_retain(p->used[i]);
    if (cudago_records_events(l->config)) events_begin(l);
    cudago_leave leave = cudago_gil_leave(s);
    int stopped = order_theirs_away(p, s->device, s->h, &st);
    if (cudago_records_events(l->config)) cudago_record_ends(cudago_record_begins()); /* not across a call that may block */
    if (!stopped) code = call_driver(c, p, s);
    uint64_t position = cudago_gil_back(&leave, code);
    if (cudago_records_events(l->config)) events_end(l, !stopped && !code);
    int r = 0;
    if (stopped) unreserve(p, p->n_used, s);
    else r = finish(l, s, code, position);
    for (int i = 0; i < p->n_used; i++) cudago_cell_release(p->used[i]);
    cudago_leave_end(&leave);
    return stopped ? cudago_not_ordered(&st) : r;
}

static QUIET int reserve(const cudago_packing *p, cudago_stream *s) {
    for (int i = 0; i < p->n_used; i++) {
        if (!cudago_cell_reserve(p->used[i], s)) continue;
        unreserve(p, i, s);
        return -1;
    }
    return 0;
}

static QUIET int order_theirs(const cudago_packing *p, const cudago_stream *s) {
    for (int i = 0; i < p->n_theirs; i++)
        if (cudago_order_after(s, p->theirs[i])) return -1;
    return 0;
}

static QUIET int raise_condition(void) {
    PyErr_SetString(PyExc_ValueError, "a condition is an argument of kernels of its graph alone: launch the kernel in the graph, or in a capture");
    return -1;
}

/* CUDAGO_AGAIN if the stream is capturing, and what its graph has to keep was not made. */
static QUIET int launch_now(const launching *l) {
    cudago_packing *p = l->p;
    cudago_stream *s = cudago_stream_now(l->stream);
    if (!s || (cudago_records_events(l->config) && events_now(l, s))) return -1;
    CUlaunchConfig c;
    CUlaunchAttribute attributes[CUDAGO_MAX_ATTRIBUTES];
    cudago_fill_config(&c, attributes, l->config, s->h);
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing) {
        if (!p->record) return CUDAGO_AGAIN;
        return cudago_pack_now(p) ? -1 : cudago_record.launch(s, &c, l->config, p); /* which notes the events */
    }
    if (p->condition) return raise_condition();
    if (cudago_pack_now(p)) return -1;
    int away = !cudago_keeps_gil(s) || p->n_far;
    if (!away && order_theirs(p, s)) return -1;
    if (reserve(p, s)) return -1;
    if (away) return launch_away(l, &c, s);
    int records = cudago_records_events(l->config);
    if (records) events_begin(l);
    int locked = records && cudago_record_begins();
    int32_t code = call_driver(&c, p, s);
    cudago_record_ends(locked);
    if (records) events_end(l, !code);
    return finish(l, s, code, code ? 0 : cudago_queued(s));
}

static int hold_events(launching *l) {
    for (int i = 0; i < 2; i++)
        if (event_of(l, i) && !(l->held[i] = cudago_event_hold(event_of(l, i)))) return -1;
    return 0;
}

/* What a graph keeps of it, whose node records no events. */
static int make_record(const launching *l, cudago_stream *s) {
    PyObject *config = cudago_config_without_events(l->config);
    PyObject *like = NULL;
    if (s) cudago_record.last(s, &like);
    l->p->like = like;
    int r = config ? cudago_pack_own(l->p, config) : -1;
    l->p->like = NULL;
    Py_XDECREF(like);
    Py_XDECREF(config);
    return r;
}

/* In a stream in which a capture was begun, the record is made before it is asked for. */
static int make_record_first(const launching *l) {
    cudago_stream *s = cudago_stream_now(l->stream);
    if (!s) return -1;
    return s->recorded ? make_record(l, s) : 0;
}

enum { FEW_REFS = 32 };

static int launch_packed(launching *l) {
    uintptr_t few[FEW_REFS];
    cudago_packing *p = l->p;
    size_t most = (p->keep ? (size_t)PyList_Size(p->keep) : 0) + (size_t)(2 * p->n_lent + p->natives) + 2;
    l->refs = most <= FEW_REFS ? few : malloc(most * sizeof *l->refs);
    if (!l->refs) return PyErr_NoMemory(), -1;
    cudago_note_site();
    int r = cudago_records_events(l->config) ? hold_events(l) : 0;
    if (!r && p->n_lent && p->ran) r = cudago_lent_unchanged(p);
    if (!r) r = make_record_first(l);
    if (!r) r = launch_now(l);
    if (r == CUDAGO_AGAIN) r = make_record(l, NULL) ? -1 : launch_now(l);
    Py_XDECREF(l->held[0]);
    Py_XDECREF(l->held[1]);
    if (l->refs != few) free(l->refs);
    return r;
}

static int launch_on(StreamObject *stream, ConfigObject *config, KernelObject *kernel, PyObject *const *args, Py_ssize_t n) {
    if (stream->device >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_ValueError, "no such device"), -1;
    cudago_kernel *k = cudago_kernel_on(kernel, stream->device);
    if (!k || cudago_check_config(config, k)) return -1;
    uint8_t small[SMALL_VALUES] __attribute__((aligned(16))), *values = small;
    if (k->size > sizeof small && !(values = malloc(k->size))) return PyErr_NoMemory(), -1;
    cudago_packing p;
    int r = cudago_pack(&p, kernel, k, args, n, values);
    if (!r) {
        launching l = {.stream = stream, .config = config, .p = &p};
        r = launch_packed(&l);
        if (p.keep || p.own || p.record || p.n_lent) cudago_pack_free(&p);
    }
    if (values != small) free(values);
    return r ? cudago_tell_parameter(kernel) : 0;
}

/* named.py knows which parameter has which name. */
PyObject *cudago_arranged(KernelObject *kernel, PyObject *all, PyObject *names) {
    PyObject *python = PyImport_ImportModule("cudago._kernel.named");
    PyObject *r = python ? PyObject_CallMethod(python, "_arranged", "OOO", (PyObject *)kernel, all, names) : NULL;
    Py_XDECREF(python);
    if (!r || PyTuple_Check(r)) return r;
    Py_DECREF(r);
    return PyErr_SetString(PyExc_TypeError, "_arranged must return a tuple"), NULL;
}

static PyObject *arranged(KernelObject *kernel, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Py_ssize_t named = PyTuple_Size(names);
    PyObject *all = PyTuple_New(n + named), *r = NULL;
    for (Py_ssize_t i = 0; all && i < n + named; i++)
        if (PyTuple_SetItem(all, i, NEW_REF(args[i]))) Py_CLEAR(all);
    if (all) r = cudago_arranged(kernel, all, names);
    Py_XDECREF(all);
    return r;
}

/* With names the launch takes as long as the Python code that resolves them. */
static int launch_named(StreamObject *stream, ConfigObject *config, KernelObject *kernel, PyObject *const *args, Py_ssize_t n,
                        PyObject *names) {
    PyObject *all = arranged(kernel, args, n, names);
    if (!all) return -1;
    Py_ssize_t count = PyTuple_Size(all);
    PyObject **items = malloc((size_t)(count + 1) * sizeof *items);
    if (!items) return Py_DECREF(all), PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(all, i); /* borrowed from all */
    int r = launch_on(stream, config, kernel, items, count);
    free(items);
    Py_DECREF(all);
    return r;
}

PyObject *cudago_launch(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n < 3) return PyErr_SetString(PyExc_TypeError, "launch(stream, config, kernel, *args)"), NULL;
    if (cudago_expect(args[1], CLS_CONFIG, "config") || cudago_expect(args[2], CLS_KERNEL, "kernel")) return NULL;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(args[0], &keep);
    int r = -1;
    if (stream && names && PyTuple_Size(names)) r = launch_named(stream, (ConfigObject *)args[1], (KernelObject *)args[2], args + 3, n - 3, names);
    else if (stream) r = launch_on(stream, (ConfigObject *)args[1], (KernelObject *)args[2], args + 3, n - 3);
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

int cudago_launch_error(const char *operation, KernelObject *kernel, const cudago_kernel *k, const cudago_shape *s, int32_t code) {
    Py_ssize_t len;
    const char *name = PyUnicode_AsUTF8AndSize(kernel->name, &len);
    char text[320];
    if (code == COOPERATIVE_LAUNCH_TOO_LARGE) {
        PyErr_Format(PyExc_ValueError,
                     "kernel %U, %llu blocks of %llu threads: a cooperative launch needs all blocks on device %d at the same time; "
                     "max_active_blocks() tells how many a multiprocessor has",
                     kernel->name, (unsigned long long)s->grid[0] * s->grid[1] * s->grid[2],
                     (unsigned long long)s->block[0] * s->block[1] * s->block[2], k->device);
        return -1;
    }
    snprintf(text, sizeof text,
             "kernel %.100s, grid (%u, %u, %u), block (%u, %u, %u), %u bytes of dynamic shared memory, %u of local memory for each "
             "thread, device %d",
             name ? name : "?", s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2], s->shared_memory,
             k->local_size, k->device);
    cudago_status st = {0};
    cudagoDetailError((char *)operation, code, k->device, text, &st);
    return cudago_raise(&st);
}
