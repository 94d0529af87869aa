/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* The only way from a Python object to an address, and to what keeps the bytes there. An Operand holds the object, and:
 *
 *   Buffer, view, Pointer, Tensor   a count of the allocation's cell, so that close() of the wrapper is safe
 *   buffer protocol                 an open export, so that a bytearray or an array cannot be resized
 *   DLPack                          the managed tensor, in a cell
 *   __cuda_array_interface__        the object alone: the protocol has no owner
 *   TensorMap, for a kernel         a count of the cell of the memory that it describes
 *   OpaqueArray, for a box          a count of its cell
 */

static QUIET void set_place(OperandObject *o, const cudago_cell *cell) {
    o->host = cudago_cell_is_host(cell);
    o->pageable = o->host && cell->kind != CUDAGO_CELL_PINNED;
}

static QUIET int from_buffer(OperandObject *o, BufferObject *b, uint64_t offset) {
    if (cudago_cell_now(b->cell, "buffer")) return -1;
    cudago_cell_retain(b->cell);
    o->cell = b->cell;
    o->address = b->ptr + offset;
    o->nbytes = b->size - offset;
    set_place(o, b->cell);
    o->readonly = cudago_buffer_readonly(b);
    o->device = b->cell->kind == CUDAGO_CELL_MANAGED ? -1 : b->device;
    return 0;
}

static QUIET int from_tensor(OperandObject *o, PyObject *t) {
    cudago_cell *cell;
    uint64_t ptr;
    if (cudago_tensor_argument(t, &ptr, &cell)) return -1;
    if (cudago_tensor_contiguous(t, &o->nbytes)) return -1;
    cudago_cell_retain(cell);
    o->cell = cell;
    o->address = ptr;
    set_place(o, cell);
    o->readonly = (((TensorObject *)t)->flags & TENSOR_READONLY) != 0;
    o->element = cudago_element(((TensorObject *)t)->dtype);
    o->device = o->host || cell->kind == CUDAGO_CELL_MANAGED || cell->device_type == kDLCUDAManaged ? -1 : ((TensorObject *)t)->device;
    return 0;
}

static int from_export(OperandObject *o, PyObject *object, int flags, const char *what) {
    cudago_exported_bytes e;
    if (!(o->export = cudago_export_of(object, flags & OPERAND_WRITABLE, what, &e))) return -1;
    o->address = e.address;
    o->nbytes = e.nbytes;
    o->readonly = e.readonly;
    o->element = e.dtype.bits ? cudago_element(e.dtype) : 0;
    o->host = 1;
    o->pageable = 1;
    return cudago_forbid_resize(object, &o->weak_array);
}

static void from_own_cell(OperandObject *o, cudago_cell *cell, uint64_t address) {
    o->cell = cell;
    o->address = address;
    o->host = cudago_cell_is_host(cell);
    o->device = o->host || cell->kind == CUDAGO_CELL_MANAGED ? -1 : cell->ordinal;
}

static int from_dlpack(OperandObject *o, PyObject *object, const char *what) {
    DLTensor t;
    cudago_cell *theirs, *own;
    uint64_t ptr;
    if (cudago_foreign_argument(object, &t, &theirs, &own, &ptr)) return -1;
    if (own) o->theirs = theirs, from_own_cell(o, own, ptr);
    else o->cell = theirs;
    o->readonly = (theirs->flags & CUDAGO_CELL_READONLY) != 0;
    o->element = cudago_element(t.dtype);
    o->at_rest = t.device.device_type == kDLCPU || t.device.device_type == kDLCUDAHost;
    if (cudago_dltensor_contiguous(&t, &o->nbytes)) {
        PyErr_Format(PyExc_BufferError, "%s must be C-contiguous", what);
        return -1;
    }
    if (own) return 0;
    o->address = (uint64_t)(uintptr_t)t.data + t.byte_offset;
    o->host = t.device.device_type == kDLCPU || t.device.device_type == kDLCUDAHost;
    o->pageable = t.device.device_type == kDLCPU;
    o->device = t.device.device_type == kDLCUDA ? t.device.device_id : -1;
    return 0;
}

/* dict -> address and size; strides must be absent or in C order. */
static int from_cai(OperandObject *o, PyObject *object, PyObject *interface, int flags, const char *what) {
    unsigned long long address = 0, nbytes = 0;
    PyObject *stream = NULL;
    PyObject *errors = PyImport_ImportModule("cudago._kernel.interop");
    PyObject *r = errors ? PyObject_CallMethod(errors, "_read_cuda_array_interface", "Os", interface, what) : NULL;
    Py_XDECREF(errors);
    int ok = r && PyArg_ParseTuple(r, "KKOpb", &address, &nbytes, &stream, &o->readonly, &o->element);
    if (ok && stream != Py_None) o->stream = (uintptr_t)PyLong_AsUnsignedLongLong(stream);
    Py_XDECREF(r);
    if (ok && o->readonly && flags & OPERAND_WRITABLE) return PyErr_Format(PyExc_BufferError, "%s is read-only", what), -1;
    o->address = address;
    o->nbytes = nbytes;
    o->device = ok && nbytes ? cudago_address_device(address) : -1; /* the protocol does not say it */
    o->interface = 1;
    if (!ok) return -1;
    o->of = &cudago_producer_of(Py_TYPE(object)).peer->ways[CUDAGO_WAY_INTERFACE];
    o->of->taken++;
    return 0;
}

static QUIET int from_descriptor(OperandObject *o, DescriptorObject *d) {
    if (cudago_descriptor_open(d)) return -1;
    cudago_cell_retain(d->cell);
    o->cell = d->cell;
    o->address = d->address;
    if (d->texture) memcpy(&o->address, d->bytes, sizeof o->address);
    o->nbytes = d->nbytes;
    o->host = cudago_cell_is_host(d->cell);
    o->readonly = d->readonly;
    o->device = d->device;
    o->described = 1;
    d->users++;
    return 0;
}

static QUIET int from_array(OperandObject *o, const ArrayObject *a) {
    if (cudago_cell_now(a->cell, "array")) return -1;
    cudago_cell_retain(a->cell);
    o->cell = a->cell;
    o->address = a->handle;
    o->nbytes = a->nbytes;
    o->device = a->device;
    o->array = 1;
    return 0;
}
static int refuse_mipmapped(const char *what) {
    PyErr_Format(PyExc_TypeError, "%s must not be a MipmappedArray, which has no address: its levels are copied, those that get_level returns, and "
                                  "kernels take a Texture of it",
                 what);
    return -1;
}
static int refuse_array(const char *what) {
    PyErr_Format(PyExc_TypeError, "%s must not be an OpaqueArray, which has no address: it is copied as a whole, with a tensor or an array of "
                                  "its shape on the other side, and kernels take a Texture or a Surface of it",
                 what);
    return -1;
}

static int resolve(OperandObject *o, PyObject *object, int flags, const char *what) {
    if (Py_TYPE(object) == cudago_cls[CLS_BUFFER]) return from_buffer(o, (BufferObject *)object, 0); /* as most are */
    if (cudago_is(object, CLS_ARRAY)) return flags & OPERAND_BOX ? from_array(o, (ArrayObject *)object) : refuse_array(what);
    if (cudago_is(object, CLS_MIPMAPPED)) return refuse_mipmapped(what);
    if (flags & OPERAND_KERNEL && cudago_is(object, CLS_DESCRIPTOR)) return from_descriptor(o, (DescriptorObject *)object);
    if (cudago_is(object, CLS_BUFFER)) return from_buffer(o, (BufferObject *)object, 0);
    if (cudago_is(object, CLS_POINTER)) {
        PointerObject *p = (PointerObject *)object;
        return from_buffer(o, (BufferObject *)p->buffer, (uint64_t)p->offset);
    }
    if (cudago_is_tensor(object)) return from_tensor(o, object);
    if (PyObject_CheckBuffer(object)) return from_export(o, object, flags, what);
    int exports = cudago_has((PyObject *)Py_TYPE(object), "__dlpack__");
    if (exports) return exports < 0 ? -1 : from_dlpack(o, object, what);
    PyObject *cai = PyObject_GetAttrString(object, "__cuda_array_interface__");
    if (cai && cai != Py_None) { /* None: a class that has the attribute, of an object without such memory */
        int r = from_cai(o, object, cai, flags, what);
        Py_DECREF(cai);
        return r;
    }
    if (!cai && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    Py_XDECREF(cai);
    if (cudago_refuse_slot(object, what)) return -1;
    PyErr_Format(PyExc_TypeError,
                 "%s must be a Buffer, Pointer or Tensor, or an object with the buffer protocol, __dlpack__ or "
                 "__cuda_array_interface__, not %R",
                 what, (PyObject *)Py_TYPE(object));
    return -1;
}

/* Of what a capture allocates, graphs keep the address. If they kept the user's object, it would never be dropped, and the
 * memory not be freed. */
static int keep_address(OperandObject *o) {
    cudago_cell *users = o->cell, *kept = users ? cudago_cell_for_graphs(users) : NULL;
    if (kept == users) return 0;
    PyObject *object = o->object;
    cudago_cell_retain(kept);
    PyObject *own = cudago_is(object, CLS_DESCRIPTOR) ? cudago_descriptor_over((DescriptorObject *)object, kept)
                                                      : cudago_buffer_new(kept, o->address, o->nbytes, o->device);
    if (!own) return -1;
    cudago_cell_retain(kept);
    o->cell = kept;
    o->object = own;
    if (o->described) cudago_descriptor_left((DescriptorObject *)object);
    o->described = 0; /* nobody closes a copy of ours */
    cudago_cell_release(users);
    Py_DECREF(object);
    return 0;
}

int64_t cudago_operands_stored;

/* Of a cell that keeps one of PyTorch's storages, which may give the memory back all the same. */
static int watch_storage(OperandObject *o) {
    if (!o->cell) return 0;
    if (cudago_storage_watch(o->cell, &o->storage)) return -1;
    if (o->storage.data) cudago_operands_stored++;
    return 0;
}

OperandObject *cudago_operand(PyObject *object, int flags, const char *what) {
    if (Py_TYPE(object) == cudago_cls[CLS_OPERAND]) return (OperandObject *)NEW_REF(object); /* it goes back where it was */
    OperandObject *o = cudago_alloc(CLS_OPERAND);
    if (!o) return NULL;
    o->object = NEW_REF(object);
    o->device = o->at = -1;
    if (resolve(o, object, flags, what) || watch_storage(o) || (flags & OPERAND_WRITABLE && cudago_writable(o->readonly, what)) || keep_address(o) || cudago_stall_wait()) {
        Py_DECREF(o);
        return cudago_raise_closed_named(what), NULL;
    }
    return o;
}

/* Is o's memory that of the view? Numbers that were converted are in a copy, which only the cell keeps. */
static int is_in_view(const OperandObject *o, PyObject *view) {
    Py_buffer v;
    if (PyObject_GetBuffer(view, &v, PyBUF_FULL_RO)) return PyErr_Clear(), 0;
    uint64_t low = (uint64_t)(uintptr_t)v.buf, high = low + (uint64_t)v.itemsize;
    for (int i = 0; i < v.ndim; i++) {
        int64_t reach = v.shape[i] ? (int64_t)(v.shape[i] - 1) * v.strides[i] : 0;
        if (reach < 0) low += (uint64_t)reach;
        else high += (uint64_t)reach;
    }
    PyBuffer_Release(&v);
    return o->address >= low && o->nbytes <= high - low && o->address - low <= high - low - o->nbytes;
}

/* What a cell keeps is hidden from the collector, which then finds no cycle through it. So of what exports its memory the export
 * is kept, which the collector sees. Not of types that have none, as those of ml_dtypes. */
static int keep_export(OperandObject *o, PyObject *object) {
    if (!o->pageable || !o->cell || !PyObject_CheckBuffer(object)) return 0;
    PyObject *view = PyMemoryView_FromObject(object);
    if (!view) return cudago_forgive();
    if (!is_in_view(o, view)) return Py_DECREF(view), 0;
    cudago_cell *cell = o->cell;
    o->export = view;
    o->cell = NULL;
    cudago_cell_release_gil(cell);
    return cudago_forbid_resize(object, &o->weak_array);
}

/* _operand(memory, object, writable): an Operand of the memory, such as the bytes that a copy of rows begins with, which says
 * that it is the object. What is allocated in a capture stays what it is: see keep_address. */
PyObject *cudago_operand_as(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    int writable = n == 3 ? PyObject_IsTrue(args[2]) : -1;
    if (writable < 0) return PyErr_SetString(PyExc_TypeError, "_operand(memory, object, writable)"), NULL;
    OperandObject *o = cudago_operand(args[0], OPERAND_BOX | (writable ? OPERAND_WRITABLE : 0), writable ? "dst" : "src");
    if (o && keep_export(o, args[1])) Py_CLEAR(o);
    if (o && o->object == args[0]) { /* its memory is kept by the cell, or the export */
        o->object = NEW_REF(args[1]);
        Py_DECREF(args[0]);
    }
    return (PyObject *)o;
}

QUIET int cudago_operand_now(const OperandObject *o) {
    if (!o->cell) return 0;
    if (cudago_cell_now(o->cell, "memory")) return -1;
    return cudago_operand_moved(o) ? cudago_raise_moved("the memory") : 0;
}

int cudago_raise_moved(const char *what) {
    return cudago_raise_closed_as("%s is gone: PyTorch gave its storage other memory, as resize_ does, and freed this. Resize a tensor "
                                  "before it is passed, or pass it again",
                                  what);
}

/* Device work may touch o's pageable memory until o goes. */
void cudago_operand_allow(OperandObject *o) {
    if (!o->pageable || o->allowed || !o->nbytes) return;
    cudagoAllowHost(o->address, o->nbytes, o->readonly);
    o->allowed = 1;
}

/* Work with pageable memory is done with it when the call returns. Other memory without a cell is some library's that only
 * the object tells of: an interface's, or host memory that the driver knows, over which there is an array. */
int cudago_outlasts(const OperandObject *o) { return !o->cell && o->nbytes && (!o->pageable || cudago_host_known(o->address)); }

/* --- order with other libraries --------------------------------------------------------------------------------- */

int cudago_theirs(OperandObject *o, int32_t device, uintptr_t *stream, int32_t *at) {
    intptr_t theirs;
    *at = o->device >= 0 ? o->device : device;
    DLDevice on = {kDLCUDA, *at};
    PyObject *obj = o->object;
    *stream = o->stream;
    if (o->interface && o->stream) { /* the protocol does not say that it is of the memory's device, only the handle may */
        int32_t of = cudagoConsumerDevice(o->stream);
        if (of >= 0) *at = of;
    }
    if (o->interface || o->host || o->at_rest) return 0;
    if (cudago_is(obj, CLS_BUFFER) || cudago_is(obj, CLS_POINTER) || cudago_is_tensor(obj) || cudago_is(obj, CLS_DESCRIPTOR) ||
        o->array) return 0;
    if (cudago_foreign_stream(obj, on, &theirs)) return -1;
    *stream = (uintptr_t)theirs;
    return 0;
}

/* --- the type ----------------------------------------------------------------------------------------------------- */

/* No tp_clear: the tp_clear of a graph or an executable breaks the cycles. Anything else that the collector clears is
 * not in use: an executable shows its operands only while no launch of it can be in flight (exec.c). */
static int operand_traverse(OperandObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->object);
    Py_VISIT(self->export);
    return 0;
}

static void operand_dealloc(OperandObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->allowed && !cudago_forked) cudagoDisallowHost(self->address, self->nbytes, self->readonly);
    if (self->call) cudago_call_free(self->call);
    Py_XDECREF(self->export);
    Py_XDECREF(self->weak_array);
    if (self->of) self->of->released++;
    if (self->theirs && !cudago_forked) cudago_cell_release_gil(self->theirs);
    if (self->storage.data) cudago_operands_stored--;
    if (self->described) cudago_descriptor_left((DescriptorObject *)self->object);
    if (self->cell && !cudago_forked) cudago_cell_release_gil(self->cell);
    Py_XDECREF(self->object);
    cudago_free((PyObject *)self);
}

static PyObject *operand_object(OperandObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->object ? self->object : Py_None);
}
static PyObject *operand_nbytes(OperandObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->nbytes);
}
static PyObject *operand_at(OperandObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->at);
}
static PyObject *operand_address(OperandObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->address);
}

/* What kind of memory it is, in a word. Memory of other libraries is what they say that it is. */
QUIET enum cudago_place_of cudago_operand_place(const OperandObject *o) {
    if (o->cell && (o->cell->kind == CUDAGO_CELL_MANAGED || o->cell->device_type == kDLCUDAManaged)) return PLACE_MANAGED;
    return o->host ? PLACE_HOST : PLACE_DEVICE;
}

QUIET const char *cudago_operand_kind(const OperandObject *self) {
    const cudago_cell *cell = self->cell;
    const char *kind = self->pageable ? "host" : self->host ? "pinned"
                                                            : "device";
    if (cudago_operand_place(self) == PLACE_MANAGED) kind = "managed";
    if (cell && cell->kind == CUDAGO_CELL_GRAPH) kind = "graph";
    if (cell && cell->kind == CUDAGO_CELL_VARIABLE) kind = "variable";
    return self->array ? "array" : kind;
}
static PyObject *operand_kind(OperandObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(cudago_operand_kind(self));
}

static QUIET int is_inside(const OperandObject *o, const cudago_cell *cell) {
    return cell->ptr && o->address >= cell->ptr && o->address - cell->ptr + o->nbytes <= cell->size;
}
static QUIET PyObject *whole_now(OperandObject *self) {
    cudago_cell *cell = self->cell;
    if (!cell || !is_inside(self, cell)) return NEW_REF(Py_None);
    if (cudago_operand_now(self)) return NULL;
    cudago_cell_retain(cell);
    return cudago_buffer_new(cell, cell->ptr, cell->size, self->device);
}
/* A Buffer over the allocation that the bytes are part of; None if only the bytes themselves are known. */
static PyObject *operand_whole(OperandObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return whole_now(self);
}

static PyGetSetDef getset[] = {
    {"object", (getter)operand_object, NULL, NULL, NULL},
    {"kind", (getter)operand_kind, NULL, NULL, NULL},
    {"whole", (getter)operand_whole, NULL, NULL, NULL},
    {"nbytes", (getter)operand_nbytes, NULL, NULL, NULL},
    {"address", (getter)operand_address, NULL, NULL, NULL},
    {"at", (getter)operand_at, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(OperandObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, operand_dealloc},
    {Py_tp_traverse, operand_traverse},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_operand_spec = {
    "cudago._core.Operand",
    sizeof(OperandObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
