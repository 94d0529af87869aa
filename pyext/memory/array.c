/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Arrays: memory without an address, so no Buffer is over it, and its cell has none. Like virtual memory it is released
 * after its stream and the streams that used it. A mipmapped array is one of a class of its own, since copies reach its levels
 * alone: arrays that hold its cell. */

static void release_array(cudago_cell *cell) {
    cudago_tally_add(TALLY_ARRAY, -1, -(int64_t)cell->size);
    cudago_idle_release((cudago_virtual_cell *)cell, cudagoArrayRelease);
}

static cudago_cell *cell_of(uint64_t id, uint64_t size, cudago_stream *s) {
    cudago_virtual_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory(), NULL;
    c->id = id;
    cudago_cell_init(&c->pool.cell, CUDAGO_CELL_DEVICE, release_array);
    cudago_pool_cell_fill(&c->pool, s->device, 0, 0, size, s);
    cudago_tally_add(TALLY_ARRAY, 1, (int64_t)size);
    return &c->pool.cell;
}

/* The stream on whose device an array is to be made, if one can be. */
static QUIET cudago_stream *may_make(StreamObject *stream) {
    cudago_stream *s = cudago_stream_to_hold(stream);
    int capturing = s ? cudago_capturing(s) : -1;
    if (capturing < 0) return NULL;
    if (!capturing) return s;
    return PyErr_SetString(PyExc_ValueError, "an array cannot be made on a stream that is capturing, since no node of a graph makes "
                                             "arrays: make it before the capture, or on another stream"),
           NULL;
}

/* Makes the array with the GIL released; the stream is held. */
static int make(ArrayObject *self, cudago_stream *s, cudago_sizes *e) {
    cudago_status st = {0};
    uint32_t generation;
    uint64_t id;
    if (cudago_making(s->device, &generation)) return -1;
    cudago_note_site();
    Py_BEGIN_ALLOW_THREADS
    id = cudagoArrayNew(s->device, e, &self->handle, &st);
    Py_END_ALLOW_THREADS
    cudago_forget_site();
    if (st.kind) return cudago_raise(&st);
    if (cudago_made("array", s->device, generation) || !(self->cell = cell_of(id, self->nbytes, s))) {
        cudagoArrayDiscard(id);
        return -1;
    }
    return 0;
}

static int make_on(ArrayObject *self, StreamObject *stream, cudago_sizes *e) {
    cudago_stream *s = may_make(stream);
    if (!s) return -1;
    self->device = s->device;
    cudago_stream_retain(s); /* it may be closed while the GIL is released */
    int r = make(self, s, e);
    cudago_stream_release(s);
    return r;
}

static ArrayObject *alloc_array(PyObject *cls, enum cudago_class k, uint64_t nbytes, PyObject *facts) {
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, cudago_base[k]))
        return PyErr_SetString(PyExc_TypeError, "not a class of such arrays"), NULL;
    PyTypeObject *type = (PyTypeObject *)cls;
    ArrayObject *self = (ArrayObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->facts = NEW_REF(facts);
    self->nbytes = nbytes;
    return self;
}

/* _array_new(cls, stream, (format, channels, width, height, depth, layered, cubes, surfaces, levels), nbytes, facts): a
 * mipmapped array if there are levels. */
PyObject *cudago_array_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *given, *facts, *keep = NULL;
    cudago_sizes e = {0};
    unsigned long long width, height, depth, nbytes;
    if (!PyArg_ParseTuple(args, "OO(IIKKKpppI)KO!", &cls, &given, &e.format, &e.channels, &width, &height, &depth, &e.layered, &e.cubes,
                          &e.surfaces, &e.levels, &nbytes, &PyTuple_Type, &facts)) return NULL;
    e.width = width;
    e.height = height;
    e.depth = depth;
    ArrayObject *self = alloc_array(cls, e.levels ? CLS_MIPMAPPED : CLS_ARRAY, nbytes, facts);
    if (!self) return NULL;
    StreamObject *stream = cudago_stream_arg(given, &keep);
    int r = stream ? make_on(self, stream, &e) : -1;
    if (r && PyErr_ExceptionMatches(PyExc_MemoryError)) {
        if (stream && cudago_reclaim(stream) > 0) r = make_on(self, stream, &e);
        if (r) cudago_explain_memory(nbytes);
    }
    Py_XDECREF(keep);
    if (!r) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

/* Takes a count of all levels' cell. */
static QUIET int hold_levels(ArrayObject *self, PyObject *of) {
    const ArrayObject *all = (ArrayObject *)of;
    if (cudago_cell_now(all->cell, "array")) return -1;
    cudago_cell_retain(all->cell);
    self->cell = all->cell;
    self->device = all->device;
    return 0;
}

static int find_level(ArrayObject *self, uint32_t level) {
    cudago_status st = {0};
    uint64_t id = ((cudago_virtual_cell *)self->cell)->id;
    Py_BEGIN_ALLOW_THREADS
    self->handle = cudagoArrayLevel(id, level, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st);
    return cudago_cell_now(self->cell, "array"); /* a reset may have destroyed it meanwhile */
}

/* _array_level(cls, mipmapped array, level, nbytes, facts) */
PyObject *cudago_array_level(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *of, *facts;
    unsigned level;
    unsigned long long nbytes;
    if (!PyArg_ParseTuple(args, "OOIKO!", &cls, &of, &level, &nbytes, &PyTuple_Type, &facts)) return NULL;
    if (cudago_expect(of, CLS_MIPMAPPED, "array")) return NULL;
    ArrayObject *self = alloc_array(cls, CLS_ARRAY, nbytes, facts);
    if (self && !hold_levels(self, of) && !find_level(self, level)) return (PyObject *)self;
    Py_XDECREF(self);
    return NULL;
}

static void let_go(ArrayObject *self) {
    cudago_cell *cell = self->cell;
    self->cell = NULL;
    if (cell) cudago_cell_release_gil(cell);
}

static PyObject *array_close(ArrayObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    let_go(self);
    Py_RETURN_NONE;
}
static PyObject *array_exit(ArrayObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return array_close(self, NULL);
}

static void array_dealloc(ArrayObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    let_go(self);
    Py_XDECREF(self->facts);
    cudago_free((PyObject *)self);
}

static QUIET PyObject *array_is_closed(ArrayObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(cudago_cell_closed(self->cell));
}
static PyObject *array_facts(ArrayObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->facts);
}
static PyObject *array_ordinal(ArrayObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}
static PyObject *array_nbytes(ArrayObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->nbytes);
}
static QUIET PyObject *handle_now(ArrayObject *self) {
    return cudago_cell_now(self->cell, "array") ? NULL : PyLong_FromUnsignedLongLong(self->handle);
}
static PyObject *array_handle(ArrayObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return handle_now(self);
}

static PyMethodDef methods[] = {
    {"close", METHOD(array_close), METH_NOARGS, DOC_OPAQUEARRAY_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(array_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)array_is_closed, NULL, DOC_OPAQUEARRAY_IS_CLOSED, NULL},
    {"handle", (getter)array_handle, NULL, DOC_OPAQUEARRAY_HANDLE, NULL},
    {"nbytes", (getter)array_nbytes, NULL, DOC_OPAQUEARRAY_NBYTES, NULL},
    {"_facts", (getter)array_facts, NULL, NULL, NULL},
    {"_ordinal", (getter)array_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMethodDef mipmapped_methods[] = {
    {"close", METHOD(array_close), METH_NOARGS, DOC_MIPMAPPEDARRAY_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(array_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef mipmapped_getset[] = {
    {"is_closed", (getter)array_is_closed, NULL, DOC_MIPMAPPEDARRAY_IS_CLOSED, NULL},
    {"handle", (getter)array_handle, NULL, DOC_MIPMAPPEDARRAY_HANDLE, NULL},
    {"nbytes", (getter)array_nbytes, NULL, DOC_MIPMAPPEDARRAY_NBYTES, NULL},
    {"_facts", (getter)array_facts, NULL, NULL, NULL},
    {"_ordinal", (getter)array_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ArrayObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_array_spec = {
    "cudago._core.OpaqueArray",
    sizeof(ArrayObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
static PyType_Slot mipmapped_slots[] = {
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_methods, mipmapped_methods},
    {Py_tp_getset, mipmapped_getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_mipmapped_spec = {
    "cudago._core.MipmappedArray",
    sizeof(ArrayObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    mipmapped_slots,
};
