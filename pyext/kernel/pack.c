/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* The only path to a kernel: each argument is checked against the kernel's real parameter and written to its place. If
 * this fails nothing has happened yet. */

typedef cudago_packing packing;

static int keep(packing *pk, OperandObject *o) {
    o->index = pk->index;
    if (!pk->keep && !(pk->keep = PyList_New(0))) return -1;
    return PyList_Append(pk->keep, (PyObject *)o);
}

/* Formatted only once: an operand needs its name only in an error, and formatting costs as much as the operand. */
const char *cudago_parameter_name(int index) {
    static char names[CUDAGO_MAX_PARAMS][16];
    if (!names[index][0]) snprintf(names[index], sizeof names[index], "parameter %d", index);
    return names[index];
}

/* Memory of another device is fine if the kernel's device has access to it. */
static QUIET int check_other_device(packing *pk, const cudago_cell *cell, uint64_t address, int32_t device) {
    int can = cudago_reachable(cell, address, device, pk->k->device);
    if (can) return can < 0 ? -1 : 0;
    PyErr_Format(PyExc_ValueError, "parameter %d of kernel %U is on device %d, the kernel on device %d, " CUDAGO_HAS_NO_ACCESS,
                 pk->index, pk->kernel->name, device, pk->k->device);
    return -1;
}

static inline QUIET int check_device(packing *pk, const cudago_cell *cell, uint64_t address, int32_t device) {
    return device < 0 || device == pk->k->device ? 0 : check_other_device(pk, cell, cell && cell->ptr ? cell->ptr : address, device);
}

/* Whoever has read-only memory relies on it: the hash of bytes is kept, an array may be mapped from a file. So the code
 * has to show that nothing is stored through the parameter. */
static QUIET int check_reads(packing *pk, PyObject *arg, int is_constant) {
    enum cudago_access access = cudago_kernel_access(pk->k, pk->index);
    if (access == ACCESS_READS) return 0;
    const char *why = access == ACCESS_MAY_STORE ? "the kernel may store through it"
                                                 : "without PTX it is not known whether the kernel stores through it";
    if (is_constant)
        return PyErr_Format(PyExc_TypeError,
                            "parameter %d of kernel %U is a variable in constant memory, which kernels do not change, and %s: pass a "
                            "copy in other memory, or declare the variable __device__",
                            pk->index, pk->kernel->name, why),
               -1;
    PyErr_Format(PyExc_TypeError,
                 "parameter %d of kernel %U is read-only memory (%R), and %s: pass a copy, such as bytearray(x), x.copy() or "
                 "cudago.asarray(x, stream=s)",
                 pk->index, pk->kernel->name, (PyObject *)Py_TYPE(arg), why);
    return -1;
}

/* An object of ours: its address is read once nothing that might close it can run any more. */
static int pack_later(packing *pk) {
    pk->native[pk->natives++] = (uint16_t)pk->index;
    return 0;
}

static QUIET int note_far(packing *pk, cudago_far far) {
    for (int i = 0; i < pk->n_far; i++)
        if (pk->far[i].h == far.h && pk->far[i].device == far.device) return 0;
    if (far.h) pk->far[pk->n_far++] = far;
    return 0;
}
static int note_theirs(packing *pk, OperandObject *o) {
    uintptr_t stream;
    int32_t at;
    if (cudago_theirs(o, pk->k->device, &stream, &at)) return -1;
    if (at != pk->k->device) return note_far(pk, (cudago_far){stream, at});
    for (int i = 0; i < pk->n_theirs; i++)
        if (pk->theirs[i] == stream) return 0;
    if (stream) pk->theirs[pk->n_theirs++] = stream;
    return 0;
}

/* The driver's object would be none on another device, whatever memory that reaches, nor after a reset. */
static int check_home(const packing *pk, const DescriptorObject *d) {
    if (!d->texture) return 0;
    if (d->home == pk->k->device) return cudago_made(d->is_surface ? "surface" : "texture", d->home, d->generation);
    PyErr_Format(PyExc_ValueError, "parameter %d of kernel %U is a %s for kernels on device %d, the kernel is on device %d: make one of memory of "
                                   "that device",
                 pk->index, pk->kernel->name, d->is_surface ? "surface" : "texture", d->home, pk->k->device);
    return -1;
}

int cudago_pack_keep(packing *pk, OperandObject *o) {
    if (check_device(pk, o->cell, o->address, o->device)) return -1;
    if (cudago_is(o->object, CLS_DESCRIPTOR) && check_home(pk, (DescriptorObject *)o->object)) return -1;
    if (o->pageable && !pk->k->pageable && !cudago_host_known(o->address)) {
        PyErr_Format(PyExc_TypeError,
                     "parameter %d of kernel %U is ordinary host memory (%R), which kernels on device %d cannot read: copy it "
                     "to the device, or pin it (PinnedMemoryResource)",
                     pk->index, pk->kernel->name, (PyObject *)Py_TYPE(o->object), pk->k->device);
        return -1;
    }
    int is_constant = cudago_is_constant(o->cell);
    if ((o->readonly || is_constant) && check_reads(pk, o->object, is_constant)) return -1;
    if (note_theirs(pk, o)) return -1;
    if (o->pageable) cudago_operand_allow(o);
    return keep(pk, o);
}

static int pack_operand(packing *pk, const cudago_param *p, OperandObject *o, uint8_t *to) {
    if (cudago_element_differs(p, o->element)) return cudago_wrong_element(pk, p, o->object, o->element);
    if (!o->described && !cudago_is_place(p, o->address, o->nbytes)) return cudago_wrong_place(pk, p, o->object, o->address, o->nbytes);
    memcpy(to, &o->address, 8);
    return cudago_pack_keep(pk, o);
}

/* Everything else that has memory. */
int cudago_pack_memory(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    pk->ran = 1;
    OperandObject *o = cudago_operand(arg, OPERAND_KERNEL, cudago_parameter_name(pk->index));
    if (!o) return cudago_wrong_host_layout(arg, cudago_parameter_name(pk->index), pk->kernel->name);
    int r = pack_operand(pk, p, o, to);
    Py_DECREF(o);
    return r;
}

/* A tensor map is copied: it never changes. Its memory is looked at last, as that of all objects of ours. */
static int copy_descriptor(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    const DescriptorObject *d = (DescriptorObject *)arg;
    if (p->type != PARAM_BYTES || p->size != d->size) return cudago_wrong_argument(pk, p, arg);
    memcpy(to, d->bytes, d->size);
    return 0;
}

static QUIET int takes_texture(const cudago_param *p, PyObject *arg) {
    if (p->size != 8 || p->type == PARAM_FLOAT) return 0;
    return p->takes == TAKES_ANY || p->takes == (((DescriptorObject *)arg)->is_surface ? TAKES_SURFACE : TAKES_TEXTURE);
}

/* An Operand keeps a texture until the launch has ended: the driver destroys it at once. */
static int pack_descriptor(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (cudago_descriptor_open((DescriptorObject *)arg)) return -1;
    if (((DescriptorObject *)arg)->texture) return takes_texture(p, arg) ? cudago_pack_memory(pk, p, arg, to) : cudago_wrong_argument(pk, p, arg);
    return copy_descriptor(pk, p, arg, to) ? -1 : pack_later(pk);
}

/* Of a record: what it describes may be lost by now, but is held. */
static int pack_descriptor_again(packing *pk, const cudago_param *p, OperandObject *o, uint8_t *to) {
    if (copy_descriptor(pk, p, o->object, to) || check_device(pk, o->cell, 0, o->device)) return -1;
    int is_constant = cudago_is_constant(o->cell);
    if ((o->readonly || is_constant) && check_reads(pk, o->object, is_constant)) return -1;
    return keep(pk, o);
}

/* What kind of foreign object is it? The type tells, except for __cuda_array_interface__, which on CuPy's and Numba's
 * objects is a property that may raise. -1 with an exception. */
enum { HAS_VALUE = 1,
       HAS_DLPACK = 2,
       HAS_MEMORY = 4 };
static int kind_of(PyObject *arg, int maybe_memory) {
    PyObject *t = (PyObject *)Py_TYPE(arg);
    int dlpack = cudago_has(t, "__dlpack__"), dtype = dlpack ? 0 : cudago_has(t, "dtype"), item = dtype > 0 ? cudago_has(t, "item") : 0;
    if (dlpack < 0 || dtype < 0 || item < 0) return -1;
    if (item) return HAS_VALUE;
    int buffer = PyObject_CheckBuffer(arg), number = buffer ? cudago_is_number(arg) : 0;
    if (number) return number < 0 ? -1 : HAS_VALUE;
    if (dlpack) return HAS_DLPACK | HAS_MEMORY;
    if (buffer) return HAS_MEMORY;
    int interface = maybe_memory ? cudago_has(arg, "__cuda_array_interface__") : 0;
    return interface < 0 ? -1 : interface ? HAS_MEMORY
                                          : 0;
}

static PyTypeObject *condition_class;

/* _set_condition(cls): an argument of this class is a number that only kernels of its graph can use. */
PyObject *cudago_set_condition(PyObject *module, PyObject *cls) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (!PyType_Check(cls)) return PyErr_SetString(PyExc_TypeError, "_set_condition takes a class"), NULL;
    PyTypeObject *before = condition_class;
    condition_class = (PyTypeObject *)NEW_REF(cls);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

QUIET int cudago_is_condition(PyObject *arg) { return Py_TYPE(arg) == condition_class; }

/* Of a record: a texture. */
static QUIET int is_texture_for(const cudago_param *p, const OperandObject *o) {
    return cudago_is(o->object, CLS_DESCRIPTOR) && takes_texture(p, o->object);
}

static int pack_object(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    pk->ran = 1;
    if (cudago_is_condition(arg)) {
        int takes = p->size == 8 && p->type != PARAM_FLOAT && (!p->takes || p->takes == TAKES_CONDITION);
        if (!takes) return cudago_wrong_argument(pk, p, arg);
        if (!pk->condition) pk->condition = arg;
    }
    if (Py_TYPE(arg) == cudago_cls[CLS_OPERAND] && cudago_is(((OperandObject *)arg)->object, CLS_DESCRIPTOR) &&
        !((DescriptorObject *)((OperandObject *)arg)->object)->texture)
        return pack_descriptor_again(pk, p, (OperandObject *)arg, to);
    if (p->type == PARAM_BYTES || p->type == PARAM_BITS) return cudago_pack_struct(pk, p, arg, to);
    int pointer = cudago_takes_memory(p);
    if (pointer && arg == Py_None) return memset(to, 0, 8), 0;
    if (Py_TYPE(arg) == cudago_cls[CLS_OPERAND]) /* of a record: its object may be closed by now, its memory is not */
        return pointer || is_texture_for(p, (OperandObject *)arg) ? pack_operand(pk, p, (OperandObject *)arg, to) : cudago_wrong_argument(pk, p, ((OperandObject *)arg)->object);
    int kind = kind_of(arg, pointer);
    if (kind < 0) return -1;
    if (kind & HAS_VALUE) return cudago_pack_scalar(pk, p, arg, to);
    if (p->type == PARAM_FLOAT) return kind & HAS_DLPACK ? cudago_wrong_argument(pk, p, arg) : cudago_pack_float(pk, p, arg, to);
    if (pointer && kind & HAS_MEMORY) return cudago_pack_memory(pk, p, arg, to);
    if (!PyIndex_Check(arg) || kind & HAS_DLPACK) return cudago_wrong_argument(pk, p, arg);
    PyObject *v = PyNumber_Index(arg);
    int r = v ? cudago_pack_int(pk, p, v, to) : -1;
    Py_XDECREF(v);
    return r;
}

/* Memory that the driver does not know, or may not: an Operand tells. */
static inline QUIET int is_ordinary(const cudago_cell *c) {
    return cudago_cell_is_host(c) && c->kind != CUDAGO_CELL_PINNED && c->kind != CUDAGO_CELL_POOL;
}
static inline QUIET int has_ordinary(const BufferObject *b) { return b->cell && is_ordinary(b->cell); } /* none: it is closed */
/* One that is closed is refused when its address is read. */
static inline QUIET int is_place(const cudago_param *p, const BufferObject *b, uint64_t offset) {
    return !b->cell || cudago_is_place(p, b->ptr + offset, b->size - offset);
}
static inline int pack_buffer(packing *pk, const cudago_param *p, PyObject *arg, const BufferObject *b, uint64_t offset, uint8_t *to) {
    if (!is_place(p, b, offset)) return cudago_wrong_place(pk, p, arg, b->ptr + offset, b->size - offset);
    return has_ordinary(b) ? cudago_pack_memory(pk, p, arg, to) : pack_later(pk);
}
static int pack_pointer(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    const PointerObject *at = (PointerObject *)arg;
    return pack_buffer(pk, p, arg, (BufferObject *)at->buffer, (uint64_t)at->offset, to);
}

/* An Operand keeps a Tensor until the launch has ended if the driver does not know its memory. Of one whose memory another
 * library frees, in the order of its own streams, the launch keeps the cell. */
static int pack_tensor(packing *pk, const cudago_param *p, TensorObject *t, uint8_t *to) {
    uint64_t address;
    cudago_cell *cell;
    uint64_t nbytes;
    if (p->element && cudago_element_differs(p, cudago_element(t->dtype))) return cudago_wrong_element(pk, p, (PyObject *)t, cudago_element(t->dtype));
    if (cudago_tensor_argument((PyObject *)t, &address, &cell)) return cudago_raise_parameter_closed(pk);
    if (cudago_tensor_contiguous((PyObject *)t, &nbytes)) return cudago_wrong_layout(pk); /* the kernel would not learn its strides */
    if (!cudago_is_place(p, address, nbytes)) return cudago_wrong_place(pk, p, (PyObject *)t, address, nbytes);
    return is_ordinary(cell) ? cudago_pack_memory(pk, p, (PyObject *)t, to) : pack_later(pk);
}

static int pack_one(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    PyTypeObject *t = Py_TYPE(arg);
    int pointer = cudago_takes_memory(p);
    if (t == cudago_cls[CLS_BUFFER]) return pointer ? pack_buffer(pk, p, arg, (BufferObject *)arg, 0, to) : cudago_wrong_argument(pk, p, arg);
    if (cudago_pack_number(p, arg, to)) return 0;
    if (PyLong_Check(arg)) {
        pk->ran |= !PyLong_CheckExact(arg); /* a class of its own may say what it is as a float */
        if (p->type == PARAM_FLOAT) return cudago_pack_float(pk, p, arg, to);
        return p->type == PARAM_BYTES || cudago_is_small(p) ? cudago_pack_small(pk, p, arg, to) : cudago_pack_int(pk, p, arg, to);
    }
    if (PyFloat_CheckExact(arg)) return p->type == PARAM_FLOAT ? cudago_pack_float(pk, p, arg, to) : cudago_pack_small(pk, p, arg, to);
    if (pointer && cudago_lends(t)) {
        int r = cudago_pack_lent(pk, p, arg, to);
        return r > 0 ? cudago_pack_memory(pk, p, arg, to) : r;
    }
    if (t == cudago_cls[CLS_POINTER]) return pointer ? pack_pointer(pk, p, arg, to) : cudago_wrong_argument(pk, p, arg);
    if (cudago_is_tensor(arg)) return pointer ? pack_tensor(pk, p, (TensorObject *)arg, to) : cudago_wrong_argument(pk, p, arg);
    if (cudago_is(arg, CLS_BUFFER)) return pointer ? pack_buffer(pk, p, arg, (BufferObject *)arg, 0, to) : cudago_wrong_argument(pk, p, arg);
    if (cudago_is(arg, CLS_DESCRIPTOR)) return pack_descriptor(pk, p, arg, to);
    if (cudago_is(arg, CLS_ARRAY) || cudago_is(arg, CLS_MIPMAPPED)) return cudago_pack_memory(pk, p, arg, to); /* which says why not */
    return pack_object(pk, p, arg, to);
}

static void begin(packing *pk, KernelObject *kernel, cudago_kernel *k, PyObject *const *args, uint8_t *values) {
    pk->kernel = kernel; /* field by field: the arrays are filled only as far as they are used */
    pk->k = k;
    pk->args = args;
    pk->values = values;
    pk->keep = NULL;
    pk->own = NULL;
    pk->record = NULL;
    pk->like = NULL;
    pk->condition = NULL;
    pk->natives = pk->n_theirs = pk->n_far = pk->n_lent = pk->n_kept = pk->ran = pk->inside = 0;
    pk->asked_type = NULL;
}

/* The parameter pk->index. */
static inline int pack_at(packing *pk) {
    const cudago_param *p = &pk->k->params[pk->index];
    pk->params[pk->index] = pk->values + p->offset;
    if (!pack_one(pk, p, pk->args[pk->index], pk->values + p->offset)) return 0;
    cudago_pack_free(pk);
    return -1;
}

int cudago_pack(packing *pk, KernelObject *kernel, cudago_kernel *k, PyObject *const *args, Py_ssize_t n, uint8_t *values) {
    if (n != k->n) return cudago_wrong_count(kernel, k->n, n);
    begin(pk, kernel, k, args, values);
    for (pk->index = 0; pk->index < k->n; pk->index++)
        if (pack_at(pk)) return -1;
    return 0;
}

int cudago_pack_some(packing *pk, KernelObject *kernel, cudago_kernel *k, PyObject *const *args, const uint16_t *which, int n,
                     uint8_t *values) {
    begin(pk, kernel, k, args, values);
    for (int i = 0; i < n; i++) {
        pk->index = which[i];
        if (pack_at(pk)) return -1;
    }
    return 0;
}

static inline QUIET int buffer_now(PyObject *buffer, cudago_span *out, int32_t *device) {
    *device = ((BufferObject *)buffer)->device;
    return cudago_buffer_now((BufferObject *)buffer, out);
}

static QUIET int other_now(PyObject *arg, cudago_span *out, int32_t *device) {
    if (cudago_is(arg, CLS_DESCRIPTOR)) {
        const DescriptorObject *d = (DescriptorObject *)arg;
        if (cudago_descriptor_open(d)) return -1;
        *out = (cudago_span){d->cell, d->address, 0, d->readonly};
        *device = d->device;
        return 0;
    }
    if (cudago_is_tensor(arg)) {
        *device = ((TensorObject *)arg)->device;
        out->readonly = (((TensorObject *)arg)->flags & TENSOR_READONLY) != 0;
        return cudago_tensor_argument(arg, &out->ptr, &out->cell);
    }
    if (!cudago_is(arg, CLS_POINTER)) return buffer_now(arg, out, device);
    if (buffer_now(((PointerObject *)arg)->buffer, out, device)) return -1;
    out->ptr += (uint64_t)((PointerObject *)arg)->offset;
    return 0;
}

/* The memory of one of our own objects; first what most of them are. */
static inline QUIET int native_now(PyObject *arg, cudago_span *out, int32_t *device) {
    return Py_TYPE(arg) == cudago_cls[CLS_BUFFER] ? buffer_now(arg, out, device) : other_now(arg, out, device);
}

static QUIET int check_natives_read(packing *pk) {
    for (int i = 0; i < pk->natives; i++) {
        cudago_span memory = {0};
        int32_t device;
        pk->index = pk->native[i];
        PyObject *arg = pk->args[pk->index];
        if (pk->own) memory = (cudago_span){pk->own[i]->cell, 0, 0, pk->own[i]->readonly};
        else if (native_now(arg, &memory, &device)) return -1;
        int is_constant = cudago_is_constant(memory.cell);
        if ((memory.readonly || is_constant) && check_reads(pk, arg, is_constant)) return -1;
    }
    return 0;
}

QUIET int cudago_pack_now(packing *pk) {
    for (Py_ssize_t i = 0, n = pk->keep ? PyList_Size(pk->keep) : 0; i < n; i++)
        if (cudago_operand_now((OperandObject *)PyList_GetItem(pk->keep, i))) return -1;
    int readonly = 0; /* of all: a launch pays for one test */
    pk->n_kept = 0;
    for (int i = 0; i < pk->natives; i++) {
        cudago_span memory = {0};
        int32_t device = -1;
        pk->index = pk->native[i];
        if (pk->own) {
            if (cudago_operand_now(pk->own[i])) return -1;
            memory = (cudago_span){pk->own[i]->cell, pk->own[i]->address, 0, pk->own[i]->readonly};
            device = pk->own[i]->device;
        } else if (native_now(pk->args[pk->index], &memory, &device)) {
            return cudago_raise_parameter_closed(pk);
        }
        if (check_device(pk, memory.cell, memory.ptr, device)) return -1;
        readonly |= memory.readonly | cudago_is_constant(memory.cell);
        if (pk->k->params[pk->index].size == 8) memcpy(pk->params[pk->index], &memory.ptr, 8); /* a tensor map is there already */
        pk->used[i] = memory.cell;
        pk->n_kept += memory.cell->kind == CUDAGO_CELL_FOREIGN;
    }
    pk->n_used = pk->natives;
    for (Py_ssize_t i = 0, n = pk->keep ? PyList_Size(pk->keep) : 0; i < n; i++) {
        const OperandObject *o = (OperandObject *)PyList_GetItem(pk->keep, i);
        if (o->cell) pk->used[pk->n_used++] = o->cell;
    }
    for (int i = 0; i < pk->n_lent; i++) {
        if (pk->lent[i].cell) pk->used[pk->n_used++] = pk->lent[i].cell;
        else pk->n_kept += 2;
    }
    return readonly ? check_natives_read(pk) : 0;
}

QUIET size_t cudago_kept(const packing *pk, uintptr_t *refs) {
    size_t n = 0;
    for (Py_ssize_t i = 0, kept = pk->keep ? PyList_Size(pk->keep) : 0; i < kept; i++)
        refs[n++] = (uintptr_t)NEW_REF(PyList_GetItem(pk->keep, i));
    for (int i = 0; i < pk->n_lent; i++) {
        if (pk->lent[i].cell) continue;
        refs[n++] = (uintptr_t)NEW_REF(pk->args[pk->lent[i].index]);
        if (pk->lent[i].storage) refs[n++] = (uintptr_t)NEW_REF(pk->lent[i].storage);
    }
    for (int i = 0; i < pk->natives; i++) {
        if (pk->used[i]->kind != CUDAGO_CELL_FOREIGN) continue;
        cudago_cell_retain(pk->used[i]);
        refs[n++] = (uintptr_t)pk->used[i] | CUDAGO_REF_CELL;
    }
    return n;
}

void cudago_pack_free(packing *pk) {
    if (pk->n_lent) cudago_lent_free(pk);
    Py_CLEAR(pk->keep);
    for (int i = 0; pk->own && i < pk->natives; i++) Py_XDECREF(pk->own[i]);
    if (pk->own != pk->few_own) free(pk->own);
    pk->own = NULL;
    Py_CLEAR(pk->record);
}
