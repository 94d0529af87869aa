/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* What a kernel takes by value to find memory with: tensor maps, textures and surfaces. They never change, so a launch
 * copies a tensor map's bytes, or the handle of the others. One holds a count of its memory's cell, so that no tensor has to stay open.
 * The driver has objects for textures and surfaces, which are destroyed when the Python object goes, or is closed and not used. */

PyObject *cudago_descriptor_over(const DescriptorObject *d, cudago_cell *cell) {
    DescriptorObject *new = cudago_alloc(CLS_DESCRIPTOR);
    if (!new) return cudago_cell_release(cell), NULL;
    new->facts = NEW_REF(d->facts);
    new->tensor = NEW_REF(Py_None); /* the user's would keep what the user may drop */
    new->cell = cell;
    new->address = d->address;
    new->nbytes = d->nbytes;
    new->device = d->device;
    new->home = d->home;
    new->readonly = d->readonly;
    new->size = d->size;
    memcpy(new->bytes, d->bytes, sizeof new->bytes);
    return (PyObject *)new;
}

static int read_numbers(PyObject *tuple, const char *name, int n, uint64_t *out) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != n) return PyErr_Format(PyExc_TypeError, "%s must be a tuple of %d ints", name, n), -1;
    for (int i = 0; i < n; i++) {
        out[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, i));
        if (out[i] == (uint64_t)-1 && PyErr_Occurred()) return -1;
    }
    return 0;
}

static int read_short(PyObject *tuple, const char *name, int n, uint32_t *out) {
    uint64_t wide[5];
    if (read_numbers(tuple, name, n, wide)) return -1;
    for (int i = 0; i < n; i++) {
        if (wide[i] > UINT32_MAX) return PyErr_Format(PyExc_OverflowError, "%s does not fit 32 bits", name), -1;
        out[i] = (uint32_t)wide[i];
    }
    return 0;
}

static int read_columns(PyObject *tuple, cudago_tiles *t) {
    t->mode = -1;
    if (!PyArg_ParseTuple(tuple, "(iii)(iii)II|i", &t->lower[0], &t->lower[1], &t->lower[2], &t->upper[0], &t->upper[1], &t->upper[2],
                          &t->channels, &t->pixels, &t->mode)) return -1;
    t->columns = t->mode < 0 ? TILES_COLUMNS : TILES_WIDE;
    return 0;
}

/* kinds is (type, interleave, swizzle, promotion, beyond), numbers is (dims, strides, box, steps), or these and (lower,
 * upper, channels, pixels[, mode]), with corners of 3 numbers and a box of ones. With the mode the columns are wide, and the
 * first numbers of the corners count. */
static int read_tiles(PyObject *kinds, PyObject *numbers, cudago_tiles *t) {
    PyObject *dims, *strides, *box, *steps, *columns = NULL;
    if (!PyArg_ParseTuple(kinds, "iiiii", &t->type, &t->interleave, &t->swizzle, &t->promotion, &t->beyond)) return -1;
    if (!PyArg_ParseTuple(numbers, "O!O!O!O!|O!", &PyTuple_Type, &dims, &PyTuple_Type, &strides, &PyTuple_Type, &box, &PyTuple_Type, &steps,
                          &PyTuple_Type, &columns)) return -1;
    if (columns && read_columns(columns, t)) return -1;
    Py_ssize_t rank = PyTuple_Size(dims);
    if (rank < 1 || rank > 5) return PyErr_Format(PyExc_ValueError, "a tensor map has 1 to 5 dimensions, got %zd", rank), -1;
    t->rank = (int32_t)rank;
    return read_numbers(dims, "dims", (int)rank, t->dims) || read_numbers(strides, "strides", (int)rank - 1, t->strides) ||
                   read_short(box, "box", (int)rank, t->box) || read_short(steps, "steps", (int)rank, t->steps)
               ? -1
               : 0;
}

DescriptorObject *cudago_descriptor_alloc(PyObject *cls, PyObject *of, PyObject *facts) {
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, cudago_base[CLS_DESCRIPTOR]))
        return PyErr_SetString(PyExc_TypeError, "not a class of descriptors"), NULL;
    PyTypeObject *type = (PyTypeObject *)cls;
    DescriptorObject *d = (DescriptorObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!d) return NULL;
    d->tensor = NEW_REF(of);
    d->facts = NEW_REF(facts);
    return d;
}

/* The device whose kernels can use a texture of the memory: that of the resource which pinned or managed memory is of. */
static QUIET int32_t home_of(const TensorObject *t, const cudago_cell *cell) {
    if (cell->flags & CUDAGO_CELL_POOLED) return ((const cudago_pool_cell *)cell)->home;
    if (cell->kind == CUDAGO_CELL_PINNED || cell->kind == CUDAGO_CELL_MANAGED) return ((const cudago_go_cell *)cell)->device;
    return t->device < 0 ? 0 : t->device;
}

/* Takes the tensor's memory. Ordinary host memory would be out of reach once the tensor is gone. */
static QUIET int hold(DescriptorObject *d, PyObject *tensor) {
    const TensorObject *t = (TensorObject *)tensor;
    cudago_cell *cell;
    if (cudago_tensor_argument(tensor, &d->address, &cell)) return -1;
    if (cudago_cell_is_host(cell) && cell->kind != CUDAGO_CELL_PINNED)
        return PyErr_SetString(PyExc_TypeError, "the memory must be a device's, or pinned: this tensor's is ordinary host memory; copy it "
                                                "to the device"),
               -1;
    cudago_cell_retain(cell);
    d->cell = cell;
    d->readonly = (t->flags & TENSOR_READONLY) != 0;
    d->device = cudago_cell_is_host(cell) || cell->kind == CUDAGO_CELL_MANAGED || cell->device_type == kDLCUDAManaged ? -1 : t->device;
    d->home = home_of(t, cell);
    d->nbytes = (uint64_t)t->size * (uint64_t)cudago_itemsize(t->dtype);
    return 0;
}

static int encode(DescriptorObject *d, cudago_tiles *tiles) {
    cudago_status st = {0};
    int32_t device = d->device < 0 ? 0 : d->device;
    d->size = sizeof d->bytes;
    Py_BEGIN_ALLOW_THREADS /* the device may have to be set up */
    cudagoTensorMap(device, d->address, tiles, d->bytes, &st);
    Py_END_ALLOW_THREADS
    return st.kind ? cudago_raise(&st) : 0;
}

/* _tensor_map_new(cls, tensor, kinds, numbers, facts) */
PyObject *cudago_tensor_map_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *tensor, *kinds, *numbers, *facts;
    cudago_tiles tiles = {0};
    if (!PyArg_ParseTuple(args, "OOO!O!O!", &cls, &tensor, &PyTuple_Type, &kinds, &PyTuple_Type, &numbers, &PyTuple_Type, &facts)) return NULL;
    if (!cudago_is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "tensor must be a Tensor, not %R", (PyObject *)Py_TYPE(tensor)), NULL;
    if (read_tiles(kinds, numbers, &tiles)) return NULL;
    DescriptorObject *d = cudago_descriptor_alloc(cls, tensor, facts);
    if (!d) return NULL;
    if (!hold(d, tensor) && !encode(d, &tiles) && !cudago_cell_now(d->cell, "tensor")) return (PyObject *)d;
    Py_DECREF(d);
    return NULL;
}

/* A texture's handle would be that of another graph's memory, or of none. */
static int lasts(const DescriptorObject *d) {
    if (cudago_cell_for_graphs(d->cell) == d->cell) return 0;
    return PyErr_SetString(PyExc_ValueError, "a texture cannot be made of memory that a capture allocates: allocate it before"), -1;
}

int cudago_make_texture(DescriptorObject *d, cudago_texels *texels) {
    cudago_status st = {0};
    uint64_t handle = 0;
    d->size = sizeof handle;
    if (cudago_making(d->home, &d->generation)) return -1;
    Py_BEGIN_ALLOW_THREADS
    d->texture = cudagoTexture(d->home, d->address, texels, &handle, &st);
    Py_END_ALLOW_THREADS
    memcpy(d->bytes, &handle, sizeof handle);
    return st.kind ? cudago_raise(&st) : cudago_made("texture", d->home, d->generation);
}

/* _texture_new(cls, tensor, (format, channels, width, height, pitch), (x, y, linear, normalized, integer, srgb), border, facts) */
PyObject *cudago_texture_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *tensor, *facts;
    cudago_texels t = {0};
    unsigned long long width, height, pitch;
    if (!PyArg_ParseTuple(args, "OO(IIKKK)(iiiiii)(ffff)O!", &cls, &tensor, &t.format, &t.channels, &width, &height, &pitch, &t.address[0],
                          &t.address[1], &t.linear, &t.normalized, &t.integer, &t.srgb, &t.border[0], &t.border[1], &t.border[2],
                          &t.border[3], &PyTuple_Type, &facts)) return NULL;
    t.address[2] = CU_TR_ADDRESS_MODE_CLAMP;
    t.width = width;
    t.height = height;
    t.pitch = pitch;
    if (!cudago_is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "tensor must be a Tensor, not %R", (PyObject *)Py_TYPE(tensor)), NULL;
    DescriptorObject *d = cudago_descriptor_alloc(cls, tensor, facts);
    if (!d) return NULL;
    if (!hold(d, tensor) && !lasts(d) && !cudago_make_texture(d, &t) && !cudago_cell_now(d->cell, "tensor")) return (PyObject *)d;
    Py_DECREF(d);
    return NULL;
}

/* --- what it has -------------------------------------------------------------------------------------------------------- */

static QUIET void take(DescriptorObject *d, uint64_t *texture, cudago_cell **cell, PyObject **tensor) {
    *texture = d->texture;
    *cell = d->cell;
    *tensor = d->tensor;
    d->texture = 0;
    d->cell = NULL;
    d->tensor = NULL;
}

static void let_go(DescriptorObject *d) {
    uint64_t texture;
    cudago_cell *cell;
    PyObject *tensor;
    take(d, &texture, &cell, &tensor);
    if (texture && !cudago_unusable) cudagoTextureRelease(texture);
    if (cell && !cudago_forked) cudago_cell_let_go(cell);
    Py_XDECREF(tensor);
}

static QUIET const char *memory_of(const DescriptorObject *d) {
    return d->texture ? "memory of the texture or surface" : "memory of the tensor map";
}
/* The driver's object is of a context, which a reset destroys, also where the memory stays. */
static QUIET int is_lost(const DescriptorObject *d) { return d->texture && cudago_lost(d->home, d->generation); }

QUIET int cudago_descriptor_open(const DescriptorObject *d) {
    if (d->closed) return cudago_raise_closed(d->size == sizeof d->bytes ? "tensor map" : "texture or surface");
    if (is_lost(d)) return cudago_raise_lost(d->is_surface ? "surface" : "texture", d->home);
    return cudago_cell_now(d->cell, memory_of(d));
}

void cudago_descriptor_left(DescriptorObject *d) {
    if (!--d->users && d->closed) let_go(d);
}

/* close(): the driver destroys a texture at once, so it stays for those who use it. */
static PyObject *descriptor_close(DescriptorObject *d, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    d->closed = 1;
    if (!d->users) let_go(d);
    Py_RETURN_NONE;
}
static PyObject *descriptor_exit(DescriptorObject *d, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return descriptor_close(d, NULL);
}

static void descriptor_dealloc(DescriptorObject *d) {
    if (d->weak) PyObject_ClearWeakRefs((PyObject *)d);
    let_go(d);
    Py_XDECREF(d->facts);
    cudago_free((PyObject *)d);
}

static QUIET PyObject *tensor_now(DescriptorObject *d) { return cudago_descriptor_open(d) ? NULL : NEW_REF(d->tensor); }
static PyObject *descriptor_tensor(DescriptorObject *d, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return tensor_now(d);
}
static PyObject *descriptor_facts(DescriptorObject *d, void *unused) {
    (void)unused;
    return NEW_REF(d->facts);
}
static PyObject *descriptor_bytes(DescriptorObject *d, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (cudago_descriptor_open(d)) return NULL;
    return PyBytes_FromStringAndSize((const char *)d->bytes, (Py_ssize_t)d->size);
}
static QUIET PyObject *descriptor_is_closed(DescriptorObject *d, void *unused) {
    (void)unused;
    return PyBool_FromLong(d->closed || is_lost(d) || cudago_cell_closed(d->cell));
}

static PyMethodDef methods[] = {
    {"close", METHOD(descriptor_close), METH_NOARGS, DOC_DESCRIPTOR_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(descriptor_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"_tensor", (getter)descriptor_tensor, NULL, NULL, NULL},
    {"_facts", (getter)descriptor_facts, NULL, NULL, NULL},
    {"_bytes", (getter)descriptor_bytes, NULL, NULL, NULL},
    {"is_closed", (getter)descriptor_is_closed, NULL, DOC_DESCRIPTOR_IS_CLOSED, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(DescriptorObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, descriptor_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_descriptor_spec = {
    "cudago._core.Descriptor",
    sizeof(DescriptorObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
