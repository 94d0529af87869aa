/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "xla.h"

#include "_cgo_export.h"

/* The programs that operators are traced to: made here, and freed. */

typedef cudago_xla_program program;
typedef cudago_xla_launch traced;

/* --- one launch, while its operator is traced ---------------------------------------------------------------------- */

/* The kernel on each device of the tuple, with which the configuration must be possible; the last of them. NULL with an
 * exception. */
static cudago_kernel *kernel_on_all(KernelObject *kernel, ConfigObject *config, PyObject *devices) {
    cudago_kernel *k = NULL;
    for (Py_ssize_t i = 0, n = PyTuple_Size(devices); i < n; i++) {
        int32_t device;
        if (cudago_int32(PyTuple_GetItem(devices, i), "device", 0, &device)) return NULL;
        if (device >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_ValueError, "no such device"), NULL;
        if (!(k = cudago_kernel_on(kernel, device)) || (config && cudago_check_config(config, k))) return NULL;
    }
    if (!k) PyErr_SetString(PyExc_ValueError, "no device");
    return k;
}

/* An array's place in the arguments: None there, and here its type as DLPack's code and bits; -1 where a value is. */
static int check_array(KernelObject *kernel, const cudago_param *p, Py_ssize_t index, int32_t type, PyObject *name) {
    if (!cudago_takes_memory(p)) {
        PyErr_Format(PyExc_TypeError,
                     "parameter %zd of kernel %U takes %u bytes and no address, got an array of %U: a kernel gets an array's memory; what "
                     "it takes by value must be a number when the operator is called, also in jax.jit (static_argnums=)",
                     index, kernel->name, p->size, name);
        return -1;
    }
    DLDataType t = {.code = (uint8_t)(type >> 8), .bits = (uint8_t)type, .lanes = 1};
    if (!cudago_element_differs(p, cudago_element(t))) return 0;
    PyErr_Format(PyExc_TypeError,
                 "parameter %zd of kernel %U points to other elements by the kernel's source than %U: convert the array; "
                 "kernel.parameter_types says what is known, and can be set",
                 index, kernel->name, name);
    return -1;
}

static int check_arrays(KernelObject *kernel, cudago_kernel *k, PyObject *types, PyObject *names) {
    for (Py_ssize_t i = 0, n = PyTuple_Size(types); i < n && i < k->n; i++) {
        int32_t type;
        if (cudago_int32(PyTuple_GetItem(types, i), "type", -1, &type)) return -1;
        if (type >= 0 && check_array(kernel, &k->params[i], i, type, PyTuple_GetItem(names, i))) return -1;
    }
    return 0;
}

/* (values, for each parameter whether the kernel may store through it) */
static PyObject *packed(cudago_kernel *k, const uint8_t *values) {
    PyObject *stores = PyTuple_New(k->n);
    for (int i = 0; stores && i < k->n; i++) {
        const cudago_param *p = &k->params[i];
        int may = p->size == 8 && p->type != PARAM_FLOAT && cudago_kernel_access(k, i) == ACCESS_MAY_STORE;
        if (PyTuple_SetItem(stores, i, PyBool_FromLong(may))) Py_CLEAR(stores);
    }
    return stores ? Py_BuildValue("(y#N)", (const char *)values, (Py_ssize_t)k->size, stores) : NULL;
}

static PyObject *pack_on(KernelObject *kernel, cudago_kernel *k, PyObject *args) {
    Py_ssize_t n = PyTuple_Size(args);
    PyObject **items = malloc((size_t)(n + 1) * sizeof *items);
    uint8_t *values = calloc(1, k->size + 16);
    PyObject *r = NULL;
    cudago_packing p;
    for (Py_ssize_t i = 0; items && i < n; i++) items[i] = PyTuple_GetItem(args, i); /* borrowed from args */
    if (!items || !values) PyErr_NoMemory();
    else if (!cudago_pack(&p, kernel, k, items, n, values)) {
        if (p.condition)
            PyErr_Format(PyExc_ValueError,
                         "kernel %U is given a condition, which is an argument of kernels of its graph alone: XLA launches the kernel "
                         "outside of graphs",
                         kernel->name);
        else if (p.keep || p.natives || p.n_lent)
            PyErr_Format(PyExc_TypeError,
                         "kernel %U is given memory that is no argument of the operator: XLA may run the kernel at any time, when that "
                         "memory may be gone; pass it as an array to the operator",
                         kernel->name);
        else r = packed(k, values);
        cudago_pack_free(&p);
    }
    free(values);
    free(items);
    return r;
}

/* _xla_pack(kernel, config, devices, args, types, names) -> (values, stores) */
PyObject *cudago_xla_pack(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *kernel, *config, *devices, *given, *types, *names;
    if (!PyArg_ParseTuple(args, "OOO!O!O!O!", &kernel, &config, &PyTuple_Type, &devices, &PyTuple_Type, &given, &PyTuple_Type, &types,
                          &PyTuple_Type, &names))
        return NULL;
    if (cudago_expect(config, CLS_CONFIG, "config") || cudago_expect(kernel, CLS_KERNEL, "kernel") ||
        cudago_refuse_events((ConfigObject *)config, "a kernel that XLA launches"))
        return NULL;
    if (PyTuple_Size(names) != PyTuple_Size(types)) return PyErr_SetString(PyExc_ValueError, "a name for each type"), NULL;
    cudago_kernel *k = kernel_on_all((KernelObject *)kernel, (ConfigObject *)config, devices);
    if (!k || check_arrays((KernelObject *)kernel, k, types, names)) return NULL;
    return pack_on((KernelObject *)kernel, k, given);
}

/* --- a program ----------------------------------------------------------------------------------------------------- */

static char *copy_text(PyObject *text) {
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(text, &n);
    char *copy = s ? malloc((size_t)n + 1) : NULL;
    if (copy) memcpy(copy, s, (size_t)n + 1);
    else if (s) PyErr_NoMemory();
    return copy;
}

/* The kernel as it is loaded now: after a reset of a device it is another one there. */
static int load(traced *l, KernelObject *kernel, PyObject *devices) {
    if (!kernel_on_all(kernel, NULL, devices)) return -1;
    for (int i = 0; i < CUDAGO_MAX_DEVICES; i++) atomic_store_explicit(&l->on[i], kernel->on[i], memory_order_release);
    return 0;
}

static int read_addresses(traced *l, const cudago_kernel *k, PyObject *addresses, uint32_t n_arrays) {
    l->n_addresses = (uint32_t)PyTuple_Size(addresses);
    if (!(l->addresses = calloc(l->n_addresses + 1, sizeof *l->addresses))) return PyErr_NoMemory(), -1;
    for (uint32_t i = 0; i < l->n_addresses; i++) {
        unsigned parameter, array;
        PyObject *pair = PyTuple_GetItem(addresses, i);
        if (!PyTuple_Check(pair)) return PyErr_SetString(PyExc_TypeError, "an address is a tuple"), -1;
        if (!PyArg_ParseTuple(pair, "II", &parameter, &array)) return -1;
        if (parameter >= (unsigned)k->n || array >= n_arrays || k->params[parameter].size != 8)
            return PyErr_SetString(PyExc_ValueError, "an address of no parameter, or of no array"), -1;
        l->addresses[i] = (cudago_xla_address){k->params[parameter].offset, array};
    }
    return 0;
}

/* (kernel, config, values, addresses) */
static int read_launch(traced *l, PyObject *launch, PyObject *devices, uint32_t n_arrays) {
    PyObject *kernel, *config, *addresses;
    const char *values;
    Py_ssize_t size;
    if (!PyTuple_Check(launch)) return PyErr_SetString(PyExc_TypeError, "a launch is a tuple"), -1;
    if (!PyArg_ParseTuple(launch, "OOy#O!", &kernel, &config, &values, &size, &PyTuple_Type, &addresses)) return -1;
    if (cudago_expect(config, CLS_CONFIG, "config") || cudago_expect(kernel, CLS_KERNEL, "kernel") ||
        cudago_refuse_events((ConfigObject *)config, "a kernel that XLA launches"))
        return -1;
    cudago_kernel *k = kernel_on_all((KernelObject *)kernel, NULL, devices);
    if (!k || load(l, (KernelObject *)kernel, devices)) return -1;
    l->kernel = NEW_REF(kernel);
    if (size != (Py_ssize_t)k->size) return PyErr_SetString(PyExc_ValueError, "values of another kernel"), -1;
    if (!(l->name = copy_text(((KernelObject *)kernel)->name))) return -1;
    l->n = (uint32_t)k->n;
    l->size = k->size;
    l->values = calloc(1, k->size + 1u);
    l->offsets = calloc(l->n + 1, sizeof *l->offsets);
    if (!l->values || !l->offsets) return PyErr_NoMemory(), -1;
    memcpy(l->values, values, k->size);
    for (uint32_t i = 0; i < l->n; i++) l->offsets[i] = k->params[i].offset;
    if (read_addresses(l, k, addresses, n_arrays)) return -1;
    cudago_fill_config(&l->config, l->attributes, (ConfigObject *)config, 0);
    return 0;
}

static int read_array(cudago_xla_array *a, PyObject *array, uint32_t n_results) {
    unsigned long long count, nbytes;
    if (!PyTuple_Check(array)) return PyErr_SetString(PyExc_TypeError, "an array is a tuple"), -1;
    if (!PyArg_ParseTuple(array, "iKKi", &a->type, &count, &nbytes, &a->in)) return -1;
    if (a->in >= (int32_t)n_results) return PyErr_SetString(PyExc_ValueError, "in the memory of no result"), -1;
    a->count = count;
    a->nbytes = nbytes;
    return 0;
}

static int read_program(program *g, PyObject *arrays, PyObject *launches, PyObject *devices) {
    g->n_arrays = (uint32_t)PyTuple_Size(arrays);
    g->n_launches = (uint32_t)PyTuple_Size(launches);
    if (g->n_arguments > g->n_arrays) return PyErr_SetString(PyExc_ValueError, "more arguments than arrays"), -1;
    g->arrays = calloc(g->n_arrays + 1, sizeof *g->arrays);
    g->launches = calloc(g->n_launches + 1, sizeof *g->launches);
    if (!g->arrays || !g->launches) return PyErr_NoMemory(), -1;
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        if (read_array(&g->arrays[i], PyTuple_GetItem(arrays, i), g->n_arrays - g->n_arguments)) return -1;
        if (i >= g->n_arguments) g->arrays[i].in = -1;
    }
    for (uint32_t i = 0; i < g->n_launches; i++)
        if (read_launch(&g->launches[i], PyTuple_GetItem(launches, i), devices, g->n_arrays)) return -1;
    return 0;
}

void cudago_xla_free(program *g) {
    for (uint32_t i = 0; g->launches && i < g->n_launches; i++) {
        traced *l = &g->launches[i];
        Py_DecRef(l->kernel);
        free(l->name);
        free(l->values);
        free(l->offsets);
        free(l->addresses);
    }
    free(g->launches);
    free(g->arrays);
    free(g->name);
    free(g);
}

/* It was there already: its kernels are loaded again where a reset has destroyed them. Not the kernels that it was traced to
 * now, which are of the same code: on[] is the memory of those that it holds. */
static int reload(program *g, PyObject *devices) {
    for (uint32_t i = 0; i < g->n_launches; i++)
        if (load(&g->launches[i], (KernelObject *)g->launches[i].kernel, devices)) return -1;
    return 0;
}

static void give_capsule(PyObject *capsule) {
    program *g = PyCapsule_GetPointer(capsule, NULL);
    if (cudago_xla_enter()) cudago_xla_give(g);
    cudago_xla_leave();
}

/* Takes the caller's count. */
static PyObject *capsule_of(program *g) {
    PyObject *made = PyCapsule_New(g, NULL, give_capsule);
    if (!made) cudago_xla_give(g);
    return made;
}

static program *read_whole(const char *key, PyObject *name, int simulated, unsigned n_arguments, PyObject *arrays, PyObject *launches,
                           PyObject *devices) {
    program *g = calloc(1, sizeof *g);
    if (!g) return PyErr_NoMemory(), NULL;
    memcpy(g->key, key, XLA_KEY_SIZE);
    g->simulated = simulated;
    g->n_arguments = n_arguments;
    if (!(g->name = copy_text(name)) || read_program(g, arrays, launches, devices)) return cudago_xla_free(g), NULL;
    return g;
}

/* _xla_program(key, name, simulated, devices, n_arguments, arrays, launches) -> a capsule that holds it */
PyObject *cudago_xla_program_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *key;
    Py_ssize_t n;
    PyObject *name, *devices, *arrays, *launches;
    int simulated;
    unsigned n_arguments;
    if (!PyArg_ParseTuple(args, "s#UpO!IO!O!", &key, &n, &name, &simulated, &PyTuple_Type, &devices, &n_arguments, &PyTuple_Type, &arrays,
                          &PyTuple_Type, &launches))
        return NULL;
    if (n != XLA_KEY_SIZE) return PyErr_SetString(PyExc_ValueError, "a key has 64 characters"), NULL;
    program *g = cudago_xla_take(key, (size_t)n);
    if (!g) {
        program *made = read_whole(key, name, simulated, n_arguments, arrays, launches, devices);
        if (!made) return NULL;
        g = cudago_xla_publish(made); /* reading it may have run Python, which traced the same */
        if (g == made) return capsule_of(g);
        cudago_xla_free(made);
    }
    if (!reload(g, devices)) return capsule_of(g);
    cudago_xla_give(g);
    return NULL;
}
