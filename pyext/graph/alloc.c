/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Memory that the nodes of a graph allocate. */

/* The device that the memory is on, by default the graph's. */
static int memory_device(GraphObject *self, PyObject *device, int32_t *ordinal) {
    uint32_t generation;
    *ordinal = self->device;
    if (device == Py_None) return 0;
    if (cudago_expect(device, CLS_DEVICE, "device")) return -1;
    *ordinal = ((DeviceObject *)device)->ordinal;
    return cudago_device_ready(*ordinal, &generation);
}

/* _add_alloc(deps, size, device or None, peers, name): peers has a bit for each other device that may use the memory */
PyObject *cudago_graph_alloc(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    uint64_t size;
    int32_t device;
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p) || cudago_size(args[1], "size in bytes", &size) ||
        memory_device(self, args[2], &device)) return NULL;
    unsigned long peers = PyLong_AsUnsignedLong(args[3]);
    if (peers == (unsigned long)-1 && PyErr_Occurred()) return NULL;
    cudago_note_site();
    for (int attempt = 0;; attempt++) {
        uint64_t graph = cudago_graph_number(self);
        if (!graph) return NULL;
        cudago_status st = {0};
        uint64_t node = cudagoGraphAlloc(graph, p.v, (int)p.n, (char *)p.name, (int)p.name_len, size, device, (uint32_t)peers, &st);
        PyObject *r = cudago_node_added(node, &st);
        if (r || !PyErr_ExceptionMatches(PyExc_MemoryError)) return r;
        if (attempt) return cudago_explain_memory(size), NULL;
        PyErr_Clear();
        Py_BEGIN_ALLOW_THREADS /* memory that was released before may still have to be given back: see AfterReleases */
        cudagoReaperFlush(CUDAGO_PATIENCE_MS);
        Py_END_ALLOW_THREADS
    }
}

/* The memory of an alloc node: all of it, not a view of a part. */
static QUIET int whole_memory(PyObject *buffer) {
    if (cudago_expect(buffer, CLS_BUFFER, "buffer")) return -1;
    BufferObject *b = (BufferObject *)buffer;
    if (cudago_cell_now(b->cell, "buffer")) return -1;
    if (b->cell->kind != CUDAGO_CELL_GRAPH)
        return PyErr_SetString(PyExc_TypeError, "buffer must be memory that a graph allocates; other memory goes when nobody holds it"), -1;
    if (b->ptr == b->cell->ptr && b->size == b->cell->size) return 0;
    return PyErr_SetString(PyExc_ValueError, "buffer must be the whole of what the graph allocates, and is a view of some of it"), -1;
}

/* Which of the allocations that have its address. */
static QUIET uint64_t memory_number(const cudago_cell *cell) { return ((const cudago_go_cell *)cell)->id; }

/* _add_free(deps, buffer, name): the buffer may belong to another graph; its address must stay reserved */
PyObject *cudago_graph_free(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 3 || cudago_graph_open(self) || cudago_read_place(args[0], args[2], &p) || whole_memory(args[1])) return NULL;
    OperandObject *o = cudago_operand(args[1], 0, "buffer");
    uint64_t graph = o ? cudago_graph_number(self) : 0;
    if (!graph) return Py_XDECREF(o), NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)o, o->nbytes, ROLE_MEMORY, REASON_FREE);
    uint64_t memory = memory_number(o->cell); /* the buffer may have been closed since */
    uint64_t node = cudagoGraphFree(graph, p.v, (int)p.n, (char *)p.name, (int)p.name_len, memory, &ref, &st);
    Py_DECREF(o);
    return cudago_node_added(node, &st);
}

/* The address stays reserved as long as the cell lives. */
static void release_graph_memory(cudago_cell *cell) {
    cudago_go_cell_release((cudago_go_cell *)cell, cudagoGraphMemoryReleaseAfter);
}

/* _buffer(node): a Buffer over what an alloc node allocates. */
PyObject *cudago_graph_buffer(GraphObject *self, PyObject *node) {
    CUDAGO_ENTER(NULL);
    unsigned long long number = PyLong_AsUnsignedLongLong(node);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    cudago_go_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory();
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return free(c), NULL;
    cudago_status st = {0};
    uint64_t ptr = 0, size = 0, id = cudagoGraphMemory(graph, number, &ptr, &size, &c->device, &c->peers, &st);
    if (st.kind) {
        free(c);
        return cudago_raise(&st), NULL;
    }
    cudago_cell_init(&c->cell, CUDAGO_CELL_GRAPH, release_graph_memory);
    cudago_graph_cell(c, id, c->device, ptr, size, cudagoHostVisible(c->device));
    return cudago_buffer_new(&c->cell, ptr, size, c->device);
}

static int free_away(cudago_stream *s, uint64_t memory, uint64_t ptr) {
    cudago_status st = {0};
    cudago_frees frees = {&ptr, 1};
    cudago_frees_begin(&frees);
    cudago_leave l = cudago_gil_leave(s);
    cudagoGraphMemoryFree(s->id, memory, &st);
    cudago_gil_back(&l, st.kind);
    cudago_frees_end(&frees);
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}
/* A node of the graph that is captured, which frees the memory at each launch. */
static int capture_free_away(cudago_stream *s, uint64_t memory, OperandObject *o) {
    cudago_ref ref;
    cudago_status st = {0};
    uint32_t site = cudago_site();
    cudago_ref_set(&ref, (PyObject *)o, o->nbytes, ROLE_MEMORY, REASON_FREE);
    cudago_leave l = cudago_gil_leave(s);
    cudagoCaptureFree(s->id, memory, &ref, site, &st);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}
/* CUDAGO_AGAIN if the stream is capturing and o is NULL. */
static QUIET int free_now(BufferObject *buffer, StreamObject *stream, OperandObject *o, uint64_t *ptr) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || whole_memory((PyObject *)buffer)) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing) return o ? capture_free_away(s, memory_number(buffer->cell), o) : CUDAGO_AGAIN;
    if (cudago_captured_is(buffer->cell, CAPTURED_OPEN)) return cudago_cell_allocated(buffer->cell);
    *ptr = buffer->cell->ptr;
    return cudago_graph_memory_in_use(ptr, 1) ? CUDAGO_IN_USE : free_away(s, memory_number(buffer->cell), *ptr);
}
static int free_unused(BufferObject *buffer, StreamObject *stream, OperandObject *o) {
    uint64_t ptr;
    int r;
    while ((r = free_now(buffer, stream, o, &ptr)) == CUDAGO_IN_USE)
        if (cudago_graph_memory_wait(&ptr, 1)) return -1;
    return r;
}
static int free_on(PyObject *buffer, StreamObject *stream) {
    int r = free_unused((BufferObject *)buffer, stream, NULL);
    if (r != CUDAGO_AGAIN) return r;
    OperandObject *o = cudago_operand(buffer, 0, "buffer");
    r = o ? free_unused((BufferObject *)buffer, stream, o) : -1;
    Py_XDECREF(o);
    return r;
}

/* free(*, stream) of a Buffer */
static PyObject *buffer_free(PyObject *buffer, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    if (n || !cudago_names_stream(names))
        return PyErr_SetString(PyExc_TypeError, "free(*, stream) takes stream="), NULL;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(args[0], &keep);
    cudago_note_site();
    int r = stream ? free_on(buffer, stream) : -1;
    cudago_forget_site();
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef cudago_buffer_frees[] = {
    {"free", METHOD(buffer_free), METH_FASTCALL | METH_KEYWORDS, DOC_BUFFER_FREE},
    {0},
};
