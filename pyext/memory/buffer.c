/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* A Buffer is a range of bytes of one allocation. It holds one count of the allocation's cell, as does every view of
 * it. close() gives that one count back; the memory goes with the last. */

static BufferObject *buffers; /* all of them; guarded by the GIL */

static void put_in(BufferObject *self) {
    self->next = buffers;
    self->prev = NULL;
    if (buffers) buffers->prev = self;
    buffers = self;
}
static void take_out(BufferObject *self) {
    if (self->prev) self->prev->next = self->next;
    else if (buffers == self) buffers = self->next;
    if (self->next) self->next->prev = self->prev;
}

/* Memory that another library holds stays, because that library has counts of its own. So does host memory with open
 * views. */
QUIET void cudago_buffers_release(void) {
    for (BufferObject *self = buffers; self; self = self->next) {
        cudago_cell *cell = self->cell;
        if (!cell || self->exports) continue;
        self->cell = NULL;
        cudago_cell_release(cell); /* only queues the release: nothing runs while the list is walked */
    }
}

QUIET int cudago_writable(int readonly, const char *what) {
    if (!readonly) return 0;
    PyErr_Format(PyExc_BufferError, "%s is read-only", what);
    return -1;
}

PyObject *cudago_buffer_new(cudago_cell *cell, uint64_t ptr, uint64_t size, int32_t device) {
    BufferObject *self = cudago_alloc_native(cudago_base[CLS_BUFFER], sizeof *self);
    if (!self) {
        cudago_cell_release_gil(cell);
        return NULL;
    }
    self->weak = NULL;
    self->cell = cell;
    self->ptr = ptr;
    self->size = size;
    self->device = device;
    self->exports = self->grows = self->readonly = self->told = 0;
    put_in(self);
    return (PyObject *)self;
}

static QUIET Py_ssize_t buffer_count(void) {
    Py_ssize_t n = 0;
    for (const BufferObject *b = buffers; b; b = b->next) n++;
    return n;
}
/* _all_buffers(): a tuple of all there are, of which the collector knows none. Making a tuple may collect some. */
PyObject *cudago_buffers(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    PyObject *all = NULL;
    for (Py_ssize_t n = -1; n != buffer_count();) {
        Py_XDECREF(all);
        n = buffer_count();
        if (!(all = PyTuple_New(n))) return NULL;
    }
    Py_ssize_t i = 0;
    for (BufferObject *b = buffers; b; b = b->next) PyTuple_SetItem(all, i++, NEW_REF(b));
    return all;
}

static PyObject *dying; /* who is told, or NULL */

/* _set_dying(callable or None): called with each Buffer that nobody refers to any more, as __del__ would be. */
PyObject *cudago_set_dying(PyObject *module, PyObject *callable) {
    (void)module;
    PyObject *before = dying;
    dying = callable == Py_None ? NULL : NEW_REF(callable);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}
static void tell(void *buffer) {
    PyObject *told = NEW_REF(dying), *r = PyObject_CallFunctionObjArgs(told, (PyObject *)buffer, NULL);
    Py_XDECREF(r);
    Py_DECREF(told);
}
/* Of a buffer without references, which is told of once. Has it one now? */
static int lives_on(BufferObject *self) {
    PyObject *o = (PyObject *)self;
    if (!dying || self->told || cudago_unusable) return 0;
    self->told = 1;
    Py_SET_REFCNT(o, 1);
    cudago_keep_exception(tell, o);
    Py_SET_REFCNT(o, Py_REFCNT(o) - 1);
    return Py_REFCNT(o) > 0;
}

static QUIET int open_buffer(BufferObject *self) { return cudago_cell_now(self->cell, "buffer"); }

static PyObject *view_of(const BufferObject *self, const cudago_span *b, uint64_t offset, uint64_t n) {
    PyObject *view = cudago_buffer_new(b->cell, b->ptr + offset, n, self->device);
    if (view) ((BufferObject *)view)->readonly = self->readonly;
    return view;
}

/* A view of the n bytes at offset, which must be inside. */
static QUIET PyObject *view_now(BufferObject *self, uint64_t offset, uint64_t n) {
    cudago_span b;
    if (cudago_buffer_now(self, &b)) return NULL;
    if (offset > b.size || n > b.size - offset)
        return PyErr_Format(PyExc_ValueError, "bytes %llu to %llu are not inside a buffer of %llu bytes", (unsigned long long)offset,
                            (unsigned long long)(offset + n), (unsigned long long)b.size);
    cudago_cell_retain(b.cell);
    return view_of(self, &b, offset, n);
}

/* A view may be held for work that has ended, of which nobody has asked: the reaper learns of it a moment later. */
enum { MOMENT_MS = 10 };
static void await_views(const BufferObject *self) {
    if (!self->exports) return;
    cudago_prove_all();
    Py_BEGIN_ALLOW_THREADS
    cudagoReaperFlush(MOMENT_MS);
    Py_END_ALLOW_THREADS
    cudago_drain();
}

static PyObject *buffer_close(BufferObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    await_views(self);
    cudago_cell *cell = self->cell;
    if (cell && self->exports) {
        PyErr_Format(PyExc_BufferError, "buffer cannot be closed: %d view(s) of its host memory are open", self->exports);
        return NULL;
    }
    self->cell = NULL;
    cudago_note_site();
    if (cell) cudago_note_closed(cell);
    if (cell) cudago_cell_release_gil(cell);
    cudago_forget_site();
    Py_RETURN_NONE;
}

static PyObject *buffer_exit(BufferObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return buffer_close(self, NULL);
}

/* --- views ---------------------------------------------------------------------------------------------------- */

static PyObject *buffer_subscript(BufferObject *self, PyObject *key) {
    CUDAGO_ENTER(NULL);
    if (open_buffer(self)) return NULL;
    if (!PySlice_Check(key)) {
        PyErr_SetString(PyExc_TypeError, "a buffer is indexed by a slice of bytes, as in buf[16:32]; a typed, shaped "
                                         "view is buf.view(dtype, shape)");
        return NULL;
    }
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step)) return NULL;
    if (step != 1) return PyErr_SetString(PyExc_ValueError, "a view of a buffer is contiguous: the step must be 1"), NULL;
    Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)self->size, &start, &stop, step);
    return view_now(self, (uint64_t)start, (uint64_t)n);
}

/* _at(offset, size): a view that must lie inside. */
static PyObject *buffer_at(BufferObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_at(offset, size)"), NULL;
    unsigned long long offset = PyLong_AsUnsignedLongLong(args[0]), size = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    return view_now(self, offset, size);
}

/* --- memory of graphs --------------------------------------------------------------------------------------------- */

QUIET int cudago_cell_allocated(const cudago_cell *cell) {
    cudago_status st = {0};
    if (cudago_captured_is(cell, CAPTURED_OPEN))
        return PyErr_SetString(PyExc_ValueError, "this memory belongs to a capture that is still open: until its graph is launched, "
                                                 "only what is captured with it can use it"),
               -1;
    int allocated = cudagoMemoryAllocated(((const cudago_go_cell *)cell)->device, cell->ptr, &st);
    if (st.kind) return cudago_raise(&st);
    if (allocated) return 0;
    PyErr_SetString(PyExc_ValueError, "this memory of a graph is not allocated now: launch the graph that allocates it first");
    return -1;
}

/* --- growing -------------------------------------------------------------------------------------------------- */

static QUIET int may_grow(BufferObject *self) {
    if (open_buffer(self)) return -1;
    if (self->grows) return 0;
    if (self->cell->flags & CUDAGO_CELL_IMPORTED)
        return PyErr_SetString(PyExc_TypeError, "the buffer cannot grow: its memory is imported, and only the process that allocated it "
                                                "can make it larger, for itself"),
               -1;
    if (self->cell->kind != CUDAGO_CELL_DEVICE || self->cell->flags & CUDAGO_CELL_EXTERNAL)
        return PyErr_SetString(PyExc_TypeError, "the buffer cannot grow: only what a VirtualMemoryResource allocated can"), -1;
    if (!self->cell->size) return PyErr_SetString(PyExc_TypeError, "a buffer of no bytes has no address to grow at"), -1;
    return PyErr_SetString(PyExc_TypeError, "a view cannot grow: grow the buffer that was allocated, and take another view"), -1;
}

/* The cell is held during the call: another thread's close() may give back the buffer's count. */
static int grow_away(BufferObject *self, cudago_cell *cell, uint64_t size) {
    cudago_status st = {0};
    uint64_t id = ((cudago_virtual_cell *)cell)->id, now;
    cudago_cell_retain(cell);
    Py_BEGIN_ALLOW_THREADS
    now = cudagoBufferGrow(id, size, &st);
    Py_END_ALLOW_THREADS
    if (now > cell->size) {
        cudago_tally_add(TALLY_VIRTUAL, 0, (int64_t)(now - cell->size));
        cell->size = now;
        if (now >= CUDAGO_LARGE_BYTES && !((cudago_pool_cell *)cell)->listed) cudago_large_add((cudago_pool_cell *)cell);
    }
    if (now > self->size) self->size = now;
    cudago_cell_release(cell);
    return st.kind ? cudago_raise(&st) : 0;
}
static QUIET int grow_now(BufferObject *self, uint64_t size) {
    if (may_grow(self)) return -1;
    return grow_away(self, self->cell, size);
}

/* grow(size): the address stays the same, so pointers, views, tensors and graphs remain valid. */
static PyObject *buffer_grow(BufferObject *self, PyObject *argument) {
    CUDAGO_ENTER(NULL);
    uint64_t size;
    if (may_grow(self) || cudago_size(argument, "size in bytes", &size)) return NULL;
    if (!grow_now(self, size)) Py_RETURN_NONE;
    cudago_explain_memory(0);
    return NULL;
}

/* --- the buffer protocol: host memory only --------------------------------------------------------------------- */

/* Memory of no bytes has no address on either side. */
static QUIET int is_host_memory(const cudago_span *b) {
    if (!cudago_cell_for_host(b->cell)) return 0;
    return b->cell->host || (!b->size && b->cell->device_type != kDLCUDA);
}

static int buffer_get(BufferObject *self, Py_buffer *view, int flags) {
    view->obj = NULL;
    if (cudago_forked) return cudago_raise_unusable();
    cudago_span b;
    if (cudago_buffer_now(self, &b)) return -1;
    if (!is_host_memory(&b)) {
        PyErr_SetString(PyExc_BufferError, "device memory has no Python buffer: copy it with copy_to(), or share it over "
                                           "DLPack");
        return -1;
    }
    static char nothing; /* not null: some consumers take null for a failure */
    void *at = b.cell->host ? (void *)(uintptr_t)(b.cell->host + (b.ptr - b.cell->ptr)) : &nothing;
    if (PyBuffer_FillInfo(view, (PyObject *)self, at, (Py_ssize_t)b.size, b.readonly, flags))
        return -1;
    cudago_exported_note(b.cell);
    self->exports++; /* from now on the buffer cannot be closed */
    cudago_host_access(b.ptr, b.size);
    return 0;
}
static void buffer_release(BufferObject *self, Py_buffer *view) {
    (void)view;
    self->exports--;
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static PyObject *buffer_size(BufferObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->size);
}
static PyObject *buffer_ptr(BufferObject *self, void *unused) {
    (void)unused;
    return open_buffer(self) ? NULL : cudago_pointer_new((PyObject *)self, 0);
}
static QUIET PyObject *buffer_handle(BufferObject *self, void *unused) {
    (void)unused;
    return open_buffer(self) ? NULL : PyLong_FromUnsignedLongLong(self->ptr);
}
static QUIET PyObject *buffer_is_closed(BufferObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(cudago_cell_closed(self->cell));
}
static PyObject *buffer_ordinal(BufferObject *self, void *unused) {
    (void)unused;
    if (self->device < 0) Py_RETURN_NONE;
    return PyLong_FromLong(self->device);
}
static QUIET PyObject *buffer_is_whole(BufferObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->cell && self->ptr == self->cell->ptr && self->size == self->cell->size);
}
static QUIET PyObject *buffer_kind(BufferObject *self, void *unused) {
    (void)unused;
    if (open_buffer(self)) return NULL;
    static const char *const names[] = {"device", "device", "pinned", "managed", "host", "foreign", "python", "graph", "variable"};
    return PyUnicode_FromString(names[self->cell->kind]);
}
static Py_ssize_t buffer_length(BufferObject *self) { return (Py_ssize_t)self->size; }

/* Each lookup of a graph's memory or a variable makes another cell, but an address is reserved only once. */
static QUIET int same_memory(const cudago_cell *a, const cudago_cell *b) {
    if (!a || !b || a == b) return a && a == b;
    if (cudago_cell_lost(a) || cudago_cell_lost(b)) return 0;
    return cudago_cell_looked_up(a) && a->kind == b->kind && a->ptr == b->ptr;
}

static QUIET PyObject *buffer_compare(BufferObject *self, PyObject *other, int op) {
    if ((op != Py_EQ && op != Py_NE) || !cudago_is(other, CLS_BUFFER)) Py_RETURN_NOTIMPLEMENTED;
    BufferObject *o = (BufferObject *)other;
    int same = self == o || (same_memory(self->cell, o->cell) && self->ptr == o->ptr && self->size == o->size);
    return PyBool_FromLong(same == (op == Py_EQ));
}
static Py_hash_t buffer_hash(BufferObject *self) {
    uint64_t h = self->ptr * 0x9E3779B97F4A7C15u; /* the address outlives close(), and grow() does not change it */
    return (Py_hash_t)(h == (uint64_t)-1 ? 1 : h);
}

static void buffer_dealloc(BufferObject *self) {
    if (lives_on(self)) return;
    take_out(self); /* first: who is told below may list all buffers, and would get one without references */
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    cudago_cell *cell = self->cell;
    self->cell = NULL;
    if (cell && !cudago_unusable) cudago_note_site();
    if (cell) cudago_cell_release_gil(cell);
    if (cell && !cudago_unusable) cudago_forget_site();
    cudago_free_native((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"close", METHOD(buffer_close), METH_NOARGS, DOC_BUFFER_CLOSE},
    {"grow", METHOD(buffer_grow), METH_O, DOC_BUFFER_GROW},
    {"_at", METHOD(buffer_at), METH_FASTCALL, NULL},
    {"_advise", METHOD(cudago_buffer_advise), METH_FASTCALL, NULL},
    {"_prefetch", METHOD(cudago_buffer_prefetch), METH_FASTCALL, NULL},
    {"_reach", cudago_buffer_reach, METH_VARARGS, NULL},
    {"_range", METHOD(cudago_buffer_range), METH_NOARGS, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(buffer_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"size", (getter)buffer_size, NULL, DOC_BUFFER_SIZE, NULL},
    {"nbytes", (getter)buffer_size, NULL, DOC_BUFFER_NBYTES, NULL},
    {"ptr", (getter)buffer_ptr, NULL, DOC_BUFFER_PTR, NULL},
    {"handle", (getter)buffer_handle, NULL, DOC_BUFFER_HANDLE, NULL},
    {"is_closed", (getter)buffer_is_closed, NULL, DOC_BUFFER_IS_CLOSED, NULL},
    {"kind", (getter)buffer_kind, NULL, DOC_BUFFER_KIND, NULL},
    {"_ordinal", (getter)buffer_ordinal, NULL, NULL, NULL},
    {"_is_whole", (getter)buffer_is_whole, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(BufferObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_mp_subscript, buffer_subscript},
    {Py_mp_length, buffer_length},
    {Py_bf_getbuffer, buffer_get},
    {Py_bf_releasebuffer, buffer_release},
    {Py_tp_richcompare, buffer_compare},
    {Py_tp_hash, buffer_hash},
    {0, NULL},
};
/* A buffer holds a cell and no Python object, so the collector need not see it: see the type of tensors. */
PyType_Spec cudago_buffer_spec = {
    "cudago.Buffer",
    sizeof(BufferObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
