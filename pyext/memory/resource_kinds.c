/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

/* Makes memory resources: one function for each kind. The Python face checks what each kind needs. */
#include "memory.h"
#include "_cgo_export.h"

typedef struct {
    PyObject *cls;
    int32_t kind;
    int32_t device; /* -1: host memory */
    int32_t home, host_visible;
    uint32_t generation;
    uintptr_t pool;
    int32_t space; /* of a pool: SPACE_... */
    int32_t gives_back; /* likewise, as in cudago_pool */
    uint32_t peers; /* of virtual memory */
    uint64_t id; /* Go's handle */
    int32_t tried;
    cudago_status st;
} making;

/* device is NULL for host memory, which any device may use and the first device's reset destroys. */
static int making_begin(making *m, PyObject *device) {
    if (device && cudago_expect(device, CLS_DEVICE, "device")) return -1;
    if (!PyType_Check(m->cls) || !PyType_IsSubtype((PyTypeObject *)m->cls, cudago_base[CLS_RESOURCE]))
        return PyErr_SetString(PyExc_TypeError, "not a memory resource class"), -1;
    if (cudago_open()) return -1;
    m->device = device ? ((DeviceObject *)device)->ordinal : -1;
    m->home = device ? m->device : 0;
    if (cudago_making(m->home, &m->generation)) return -1;
    Py_BEGIN_ALLOW_THREADS
    m->host_visible = cudagoHostVisible(m->home);
    Py_END_ALLOW_THREADS
    return 0;
}

/* Is Go to be asked once more? There is room for a number of pools, and those that were closed are pools until what they
 * were used for has ended. */
static int making_again(making *m) {
    if (!m->st.kind) return 0;
    cudago_raise(&m->st);
    m->st = (cudago_status){0};
    return !m->tried++ && PyErr_ExceptionMatches(PyExc_MemoryError) && cudago_reclaim(NULL) > 0;
}

/* Makes the object for what Go has made; the GIL was released meanwhile. */
static PyObject *making_end(making *m) {
    if (m->st.kind) return cudago_raise(&m->st), NULL;
    if (PyErr_Occurred()) return NULL; /* of making_again */
    PyTypeObject *type = (PyTypeObject *)m->cls;
    int lost = cudago_made("memory resource", m->home, m->generation);
    ResourceObject *self = lost ? NULL : (ResourceObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    cudago_pool *held = self && m->kind == RESOURCE_POOL ? cudago_pool_new(m->id) : NULL;
    if (!self || (m->kind == RESOURCE_POOL && !held)) {
        cudagoResourceRelease(m->id);
        if (self) Py_DECREF(self), PyErr_NoMemory();
        return NULL;
    }
    if (held) held->gives_back = m->gives_back;
    self->held = held;
    self->id = m->id;
    self->kind = m->kind;
    self->pool = m->pool;
    self->space = m->space;
    self->peers = m->peers;
    self->device = m->device;
    self->home = m->home;
    self->generation = m->generation;
    self->host_visible = m->host_visible;
    return (PyObject *)self;
}

/* _resource_python(cls): a resource whose class allocates. It holds nothing of ours and is of no device. */
PyObject *cudago_resource_python(PyObject *module, PyObject *cls) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, cudago_base[CLS_RESOURCE]))
        return PyErr_SetString(PyExc_TypeError, "not a memory resource class"), NULL;
    PyTypeObject *type = (PyTypeObject *)cls;
    ResourceObject *self = (ResourceObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    self->kind = RESOURCE_PYTHON;
    self->device = -1;
    return (PyObject *)self;
}

/* _resource_default_pool(cls, device) */
PyObject *cudago_resource_default_pool(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.kind = RESOURCE_POOL};
    PyObject *device;
    if (!PyArg_ParseTuple(args, "OO", &m.cls, &device) || making_begin(&m, device)) return NULL;
    do {
        Py_BEGIN_ALLOW_THREADS
        m.id = cudagoResourceDefaultPool(m.home, &m.pool, &m.st);
        Py_END_ALLOW_THREADS
    } while (making_again(&m));
    return making_end(&m);
}

/* _resource_pool(cls, device, release_threshold, max_size, shared); max_size 0 means no limit */
PyObject *cudago_resource_pool(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.kind = RESOURCE_POOL};
    PyObject *device;
    long long threshold, max_size;
    int shared;
    if (!PyArg_ParseTuple(args, "OOLLp", &m.cls, &device, &threshold, &max_size, &shared) || making_begin(&m, device)) return NULL;
    m.gives_back = cudago_gives_back((uint64_t)threshold);
    do {
        Py_BEGIN_ALLOW_THREADS
        m.id = cudagoResourcePool(m.home, (uint64_t)threshold, (uint64_t)max_size, shared, &m.pool, &m.st);
        Py_END_ALLOW_THREADS
    } while (making_again(&m));
    return making_end(&m);
}

/* _resource_imported(cls, device, pinned, pool, leases): from two file descriptors; leases -1 means that there are none */
PyObject *cudago_resource_imported(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.kind = RESOURCE_IMPORTED};
    PyObject *device;
    int pinned, pool, leases;
    if (!PyArg_ParseTuple(args, "OOpii", &m.cls, &device, &pinned, &pool, &leases) || making_begin(&m, device)) return NULL;
    if (pinned) m.space = SPACE_PINNED, m.device = -1;
    uint64_t task, made[2] = {0};
    Py_BEGIN_ALLOW_THREADS
    task = cudagoResourceImportBegin(m.home, pinned, pool, leases, &m.st);
    Py_END_ALLOW_THREADS
    if (!m.st.kind && cudago_task(task, made)) return NULL;
    m.id = made[0];
    return making_end(&m);
}

/* _resource_host_pool(cls, device, release_threshold, max_size, managed, numa, shared): numa is -1 for any node */
PyObject *cudago_resource_host_pool(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.kind = RESOURCE_POOL};
    PyObject *device;
    long long threshold, max_size;
    int managed, numa, shared;
    if (!PyArg_ParseTuple(args, "OOLLpip", &m.cls, &device, &threshold, &max_size, &managed, &numa, &shared) ||
        making_begin(&m, device)) return NULL;
    m.space = managed ? SPACE_MANAGED : SPACE_PINNED;
    m.gives_back = cudago_gives_back((uint64_t)threshold);
    if (!managed) m.device = -1;
    do {
        Py_BEGIN_ALLOW_THREADS
        m.id = cudagoResourceHostPool(m.home, (uint64_t)threshold, (uint64_t)max_size, managed, numa, shared, &m.pool, &m.st);
        Py_END_ALLOW_THREADS
    } while (making_again(&m));
    return making_end(&m);
}

/* _resource_pinned(cls) */
PyObject *cudago_resource_pinned(PyObject *module, PyObject *cls) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.cls = cls, .kind = RESOURCE_PINNED};
    if (making_begin(&m, NULL)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    m.id = cudagoResourcePinned(m.home, &m.st);
    Py_END_ALLOW_THREADS
    return making_end(&m);
}

/* _resource_managed(cls, device) */
PyObject *cudago_resource_managed(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.kind = RESOURCE_MANAGED};
    PyObject *device;
    if (!PyArg_ParseTuple(args, "OO", &m.cls, &device) || making_begin(&m, device)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    m.id = cudagoResourceManaged(m.home, &m.st);
    Py_END_ALLOW_THREADS
    return making_end(&m);
}

/* _resource_virtual(cls, device, reserve, peers, shared); reserve 0 means as much as the device has, peers has a bit for each
 * device */
PyObject *cudago_resource_virtual(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    making m = {.kind = RESOURCE_VIRTUAL};
    PyObject *device;
    long long reserve, peers;
    int shared;
    if (!PyArg_ParseTuple(args, "OOLLp", &m.cls, &device, &reserve, &peers, &shared) || making_begin(&m, device)) return NULL;
    do {
        Py_BEGIN_ALLOW_THREADS
        m.peers = (uint32_t)peers;
        m.id = cudagoResourceVirtual(m.home, (uint64_t)reserve, (uint64_t)peers, shared, &m.st);
        Py_END_ALLOW_THREADS
    } while (making_again(&m));
    return making_end(&m);
}
