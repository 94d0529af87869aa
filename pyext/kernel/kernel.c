/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* What elements.py says of a parameter, in a byte: a pointer's element; or one of these. */
enum { KNOWN_POINTER = 127, /* to what is not known */
       KNOWN_SIGNED = 128 + RANGE_SIGNED,
       KNOWN_UNSIGNED = 128 + RANGE_UNSIGNED, /* or an address, or a handle */
       KNOWN_BOOL = 128 + RANGE_BOOL,
       KNOWN_SIZE,
       KNOWN_TEXTURE,
       KNOWN_SURFACE,
       KNOWN_CONDITION };

enum { MOST_ALIGNED = 16 }; /* that any access needs */

static QUIET void tell_element(cudago_param *p, uint8_t known, uint8_t unit) {
    static const uint8_t takes[] = {
        [KNOWN_SIGNED - 128] = TAKES_NUMBER,
        [KNOWN_SIZE - 128] = TAKES_NUMBER,
        [KNOWN_TEXTURE - 128] = TAKES_TEXTURE,
        [KNOWN_SURFACE - 128] = TAKES_SURFACE,
        [KNOWN_CONDITION - 128] = TAKES_CONDITION,
    };
    p->element = known < KNOWN_POINTER ? known : 0;
    p->range = known == KNOWN_SIZE ? RANGE_UNSIGNED : known > 128 && known < KNOWN_SIZE ? known - 128
                                                                                        : RANGE_ANY;
    p->takes = p->size != 8 ? TAKES_ANY : known >= 128 ? takes[known - 128]
                                      : known          ? TAKES_MEMORY
                                                       : TAKES_ANY;
    p->unit = p->mask = 0;
    if (p->takes != TAKES_MEMORY) return;
    p->range = RANGE_ADDRESS;
    p->unit = unit;
    if (unit) p->mask = (uint8_t)(((unit | MOST_ALIGNED) & -(unit | MOST_ALIGNED)) - 1);
}

/* Two bytes of each parameter; they may be fewer than the parameters: then no more is known. */
static QUIET void tell_elements(cudago_kernel *k, const char *elements, Py_ssize_t n) {
    for (int i = 0; i < k->n; i++) {
        int known = 2 * i + 1 < n;
        tell_element(&k->params[i], known ? (uint8_t)elements[2 * i] : 0, known ? (uint8_t)elements[2 * i + 1] : 0);
    }
}

/* A Kernel is loaded on a device when it is first needed there. */
cudago_kernel *cudago_kernel_on(KernelObject *self, int32_t device) {
    cudago_kernel *before = self->on[device];
    uint32_t generation;
    if (before && !cudago_lost(device, before->generation)) return before;
    if (cudago_making(device, &generation)) return NULL;
    Py_ssize_t n;
    const char *name = PyUnicode_AsUTF8AndSize(self->name, &n);
    if (!name) return NULL;
    cudago_status st = {0};
    cudago_kernel *k;
    uint64_t code = self->code;
    int callback = cudago_on_callback_thread();
    Py_BEGIN_ALLOW_THREADS
    k = cudagoKernelLoad(code, (char *)name, (int)n, device, callback, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    if (cudago_made("kernel", device, generation)) return cudagoKernelRelease(k), NULL;
    before = self->on[device];
    if (before && before->generation == generation) return cudagoKernelRelease(k), before; /* another thread was faster */
    if (before) cudagoKernelForget(before);
    k->generation = generation;
    k->before = before;
    char *elements;
    Py_ssize_t known;
    if (self->elements && !PyBytes_AsStringAndSize(self->elements, &elements, &known)) tell_elements(k, elements, known);
    return self->on[device] = k;
}

QUIET enum cudago_access cudago_kernel_access(cudago_kernel *k, int index) {
    if (k->params[index].access == ACCESS_NOT_ASKED) cudagoKernelStores(k);
    return k->params[index].access;
}

int cudago_opt_in(cudago_kernel *k, uint32_t bytes, uint32_t *most) {
    *most = k->max_shared;
    if (k->shared_set || bytes <= k->max_shared) return 0;
    cudago_status st = {0};
    PyThreadState *t = cudago_step_aside();
    cudagoKernelOptIn(k, bytes, most, &st);
    cudago_step_back(t);
    if (st.kind) return cudago_raise(&st);
    if (bytes <= *most && !k->shared_set) k->max_shared = *most;
    return 0;
}

/* _kernel_new(cls, code object, code id, name, device) */
PyObject *cudago_kernel_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *owner, *name, *device;
    unsigned long long code;
    if (!PyArg_ParseTuple(args, "OKUO", &owner, &code, &name, &device)) return NULL;
    if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    KernelObject *self = cudago_alloc(CLS_KERNEL);
    if (!self) return NULL;
    self->code = code;
    self->name = NEW_REF(name);
    self->owner = NEW_REF(owner);
    if (!cudago_kernel_on(self, ((DeviceObject *)device)->ordinal)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *kernel_name(KernelObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->name);
}

/* _parameters(): [(type, size, offset), ...] of the kernel, from any device that it is loaded on. */
static PyObject *kernel_parameters(KernelObject *self, PyObject *unused) {
    (void)unused;
    static const char *const prefix[] = {"", "s", "u", "f", "b", "b"};
    cudago_kernel *k = NULL;
    for (int i = 0; i < CUDAGO_MAX_DEVICES && !k; i++) k = self->on[i];
    PyObject *list = PyList_New(0);
    for (int i = 0; list && k && i < k->n; i++) {
        cudago_param *p = &k->params[i];
        char type[24];
        if (p->type == PARAM_BYTES) snprintf(type, sizeof type, "b8[%u]", p->size);
        else snprintf(type, sizeof type, "%s%u", prefix[p->type], p->size * 8);
        PyObject *item = Py_BuildValue("(sII)", type, p->size, p->offset);
        if (!item || PyList_Append(list, item)) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* _attribute(device, number), _max_active_blocks(device, block, shared) */
static PyObject *kernel_attribute(KernelObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    long attribute = PyLong_AsLong(args[1]);
    if (attribute == -1 && PyErr_Occurred()) return NULL;
    int32_t device = ((DeviceObject *)args[0])->ordinal;
    if (!cudago_kernel_on(self, device)) return NULL;
    Py_ssize_t len;
    const char *name = PyUnicode_AsUTF8AndSize(self->name, &len);
    cudago_status st = {0};
    int v = cudagoKernelAttribute(self->code, (char *)name, (int)len, device, (int)attribute, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromLong(v);
}

static PyObject *kernel_blocks(KernelObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    int32_t block, shared;
    if (cudago_int32(args[1], "block", 1, &block) || cudago_int32(args[2], "shared_memory", 0, &shared)) return NULL;
    int32_t device = ((DeviceObject *)args[0])->ordinal;
    uint32_t most;
    cudago_kernel *k = cudago_kernel_on(self, device);
    if (!k || cudago_opt_in(k, (uint32_t)shared, &most)) return NULL;
    Py_ssize_t len;
    const char *name = PyUnicode_AsUTF8AndSize(self->name, &len);
    cudago_status st = {0};
    uint64_t code = self->code;
    PyThreadState *t = cudago_step_aside();
    int v = cudagoKernelBlocks(code, (char *)name, (int)len, device, block, shared, &st);
    cudago_step_back(t);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromLong(v);
}

/* _clusters(device, config, active): the largest cluster, or how many can run at once. */
static PyObject *kernel_clusters(KernelObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device") || cudago_expect(args[1], CLS_CONFIG, "config")) return NULL;
    int active = PyObject_IsTrue(args[2]);
    if (active < 0) return NULL;
    cudago_shape shape = cudago_shape_of((ConfigObject *)args[1]);
    int32_t device = ((DeviceObject *)args[0])->ordinal;
    uint32_t most;
    cudago_kernel *k = cudago_kernel_on(self, device);
    if (!k || cudago_opt_in(k, shape.shared_memory, &most)) return NULL;
    Py_ssize_t len;
    const char *name = PyUnicode_AsUTF8AndSize(self->name, &len);
    cudago_status st = {0};
    uint64_t code = self->code;
    PyThreadState *t = cudago_step_aside();
    int v = cudagoKernelClusters(code, (char *)name, (int)len, device, &shape, active, &st);
    cudago_step_back(t);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromLong(v);
}

/* _set_attribute(device, number, value) */
static PyObject *kernel_set_attribute(KernelObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    int32_t attribute, value;
    if (cudago_int32(args[1], "attribute", 0, &attribute)) return NULL;
    if (cudago_int32(args[2], "the attribute's value", INT32_MIN, &value)) return NULL;
    int32_t device = ((DeviceObject *)args[0])->ordinal;
    cudago_kernel *k = cudago_kernel_on(self, device);
    if (!k) return NULL;
    Py_ssize_t len;
    const char *name = PyUnicode_AsUTF8AndSize(self->name, &len);
    cudago_status st = {0};
    uint64_t code = self->code;
    PyThreadState *t = cudago_step_aside();
    cudagoKernelSetAttribute(code, (char *)name, (int)len, device, attribute, value, &st);
    cudago_step_back(t);
    if (st.kind) return cudago_raise(&st), NULL;
    if (attribute != 8) Py_RETURN_NONE; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    k->max_shared = (uint32_t)value;
    k->shared_set = 1;
    Py_RETURN_NONE;
}

/* _set_elements(bytes): what is known of each parameter, see tell_element, and the bytes of what it points to; 0 where anything
 * will do. */
static PyObject *kernel_set_elements(KernelObject *self, PyObject *elements) {
    CUDAGO_ENTER(NULL);
    char *text;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(elements, &text, &n)) return NULL;
    PyObject *before = self->elements;
    self->elements = NEW_REF(elements);
    for (int i = 0; i < CUDAGO_MAX_DEVICES; i++)
        if (self->on[i]) tell_elements(self->on[i], text, n);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* _set_work(work: str, counted: bool): once, when the kernel is made. */
static PyObject *kernel_set_work(KernelObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_set_work takes work, counted"), NULL;
    PyObject *before = self->work;
    self->work = NEW_REF(args[0]);
    self->counted = args[1] == Py_True;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *kernel_work(KernelObject *self, void *closure) {
    CUDAGO_ENTER(NULL);
    return self->work ? NEW_REF(self->work) : PyUnicode_FromString("");
}

/* _set_names(tuple): the names of the parameters. None stands for one that no keyword argument means. */
static PyObject *kernel_set_names(KernelObject *self, PyObject *given) {
    CUDAGO_ENTER(NULL);
    Py_ssize_t n = PyTuple_Size(given);
    PyObject *names = n < 0 ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; names && i < n; i++) {
        PyObject *name = NEW_REF(PyTuple_GetItem(given, i));
        if (name != Py_None) PyUnicode_InternInPlace(&name);
        if (PyTuple_SetItem(names, i, name)) Py_CLEAR(names);
    }
    PyObject **by_name = names ? malloc((size_t)(n + 1) * sizeof *by_name) : NULL;
    if (!by_name) return names ? (Py_DECREF(names), PyErr_NoMemory()) : NULL;
    for (Py_ssize_t i = 0; i < n; i++) by_name[i] = PyTuple_GetItem(names, i);
    PyObject *before = self->names;
    free(self->by_name);
    self->names = names;
    self->by_name = by_name;
    self->n_names = n;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

QUIET int cudago_kernel_named(const KernelObject *kernel, const cudago_kernel *k, PyObject *name) {
    for (int i = 0; i < k->n && i < kernel->n_names; i++)
        if (kernel->by_name[i] == name) return i;
    return -1;
}

static int kernel_traverse(KernelObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->owner);
    return 0;
}

static void kernel_dealloc(KernelObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    for (int i = 0; i < CUDAGO_MAX_DEVICES && !cudago_unusable; i++)
        for (cudago_kernel *k = self->on[i], *before; k; k = before) {
            before = k->before;
            cudagoKernelRelease(k);
        }
    Py_XDECREF(self->name);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->elements);
    Py_XDECREF(self->names);
    Py_XDECREF(self->work);
    free(self->by_name);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"_parameters", METHOD(kernel_parameters), METH_NOARGS, NULL},
    {"_attribute", METHOD(kernel_attribute), METH_FASTCALL, NULL},
    {"_set_attribute", METHOD(kernel_set_attribute), METH_FASTCALL, NULL},
    {"_set_elements", METHOD(kernel_set_elements), METH_O, NULL},
    {"_set_names", METHOD(kernel_set_names), METH_O, NULL},
    {"_set_work", METHOD(kernel_set_work), METH_FASTCALL, NULL},
    {"_max_active_blocks", METHOD(kernel_blocks), METH_FASTCALL, NULL},
    {"_clusters", METHOD(kernel_clusters), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"name", (getter)kernel_name, NULL, DOC_KERNEL_NAME, NULL},
    {"_work", (getter)kernel_work, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(KernelObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_kernel_spec = {
    "cudago._core.Kernel",
    sizeof(KernelObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
