/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

static QUIET int may_reach(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device) {
    for (const cudago_cell *of = cell; of && (of = cudago_adopted_of(of));) cell = of;
    if (cell && cell->kind == CUDAGO_CELL_MANAGED) return 1;
    if (cell && cell->kind == CUDAGO_CELL_DEVICE) return ((const cudago_virtual_cell *)cell)->peers >> device & 1;
    if (cell && cell->kind == CUDAGO_CELL_GRAPH && !(((const cudago_go_cell *)cell)->peers & 1u << device)) return 0;
    /* NVIDIA's driver (580.159) says of graphs' memory that others have no access, where they do. */
    if (cell && cell->kind == CUDAGO_CELL_GRAPH) address = 0;
    cudago_status st = {0};
    uint64_t resource = cell && cudago_cell_has_stream(cell) ? ((const cudago_pool_cell *)cell)->resource : 0;
    int can = cudagoReachable(owner, device, resource, address, &st);
    return st.kind ? cudago_raise(&st) : can;
}

QUIET int cudago_reachable(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device) {
    if (owner < 0 || owner == device) return 1;
    int can = may_reach(cell, address, owner, device);
    if (can > 0) cudago_is_used_from(owner, device);
    return can;
}

QUIET int cudago_reaches(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device, const char *what, const char *who) {
    int can = cudago_reachable(cell, address, owner, device);
    if (can) return can < 0 ? -1 : 0;
    PyErr_Format(PyExc_ValueError, "%s is on device %d, the %s on device %d, " CUDAGO_HAS_NO_ACCESS, what, owner, who, device);
    return -1;
}

QUIET int cudago_stream_reaches(const cudago_cell *cell, int32_t owner, int32_t device, const char *what) {
    return cudago_reaches(cell, 0, owner, device, what, "stream");
}
QUIET int cudago_stream_accesses(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device, const char *what) {
    return cudago_reaches(cell, address, owner, device, what, "stream");
}

int32_t cudago_address_device(uint64_t address) { return cudagoAddressDevice(address); }

/* _reach(device, what, who): raises what a copy or a fill would, for which a kernel of ours will be launched. */
PyObject *cudago_buffer_reach(PyObject *buffer, PyObject *args) {
    CUDAGO_ENTER(NULL);
    BufferObject *self = (BufferObject *)buffer;
    cudago_span b;
    int device;
    const char *what, *who;
    if (!PyArg_ParseTuple(args, "iss", &device, &what, &who)) return NULL;
    if (cudago_buffer_now(self, &b) || cudago_reaches(b.cell, b.ptr, self->device, device, what, who)) return NULL;
    Py_RETURN_NONE;
}

/* _peer_access(device, peer, what): what is 0 to ask whether access is possible, 1 to enable it, 2 to disable it. */
PyObject *cudago_peer_access(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "_peer_access(device, peer, what)"), NULL;
    if (cudago_expect(args[0], CLS_DEVICE, "device") || cudago_expect(args[1], CLS_DEVICE, "peer")) return NULL;
    long what = PyLong_AsLong(args[2]);
    if (what == -1 && PyErr_Occurred()) return NULL;
    cudago_status st = {0};
    int32_t device = ((DeviceObject *)args[0])->ordinal, peer = ((DeviceObject *)args[1])->ordinal, can;
    Py_BEGIN_ALLOW_THREADS
    can = cudagoPeerAccess(device, peer, (int)what, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBool_FromLong(can);
}

static QUIET int peers_now(ResourceObject *self, uint32_t *mask) {
    cudago_status st = {0};
    uint64_t id = cudago_resource_now(self);
    if (!id) return -1;
    *mask = cudagoResourcePeers(id, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

/* _peers() -> the ordinals of the other devices that may touch the pool's memory */
PyObject *cudago_resource_peers(PyObject *resource, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint32_t mask;
    if (peers_now((ResourceObject *)resource, &mask)) return NULL;
    PyObject *list = PyList_New(0);
    for (long i = 0; list && i < CUDAGO_MAX_DEVICES; i++) {
        if (!(mask & 1u << i)) continue;
        PyObject *number = PyLong_FromLong(i);
        if (!number || PyList_Append(list, number)) Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

/* _set_peer(device, allowed) */
PyObject *cudago_resource_set_peer(PyObject *resource, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    ResourceObject *self = (ResourceObject *)resource;
    if (!cudago_resource_now(self) || n != 2 || cudago_expect(args[0], CLS_DEVICE, "peer")) return NULL;
    int allowed = PyObject_IsTrue(args[1]);
    uint64_t id = allowed < 0 ? 0 : cudago_resource_now(self);
    if (!id) return NULL;
    cudago_status st = {0};
    int32_t peer = ((DeviceObject *)args[0])->ordinal;
    Py_BEGIN_ALLOW_THREADS
    cudagoResourceSetPeer(id, peer, allowed, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}
