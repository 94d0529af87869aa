/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* memory.h: allocations and the objects over them. */
#pragma once
#include "stream/stream.h"

typedef struct BufferObject {
    PyObject_HEAD
    PyObject *weak;
    cudago_cell *cell; /* NULL once closed */
    uint64_t ptr, size;
    int32_t device;
    int32_t exports;   /* open exports of the buffer protocol */
    int32_t grows;     /* a whole allocation of virtual memory: see buffer_grow */
    int32_t readonly;  /* made from a read-only tensor; the memory may be so too: see cudago_buffer_readonly */
    int32_t told;      /* its end was told of: see cudago_set_dying */
    struct BufferObject *next, *prev;
} BufferObject;

typedef struct {
    PyObject_HEAD
    PyObject *buffer;  /* BufferObject */
    int64_t offset;    /* bytes from the buffer's start; 0 <= offset <= size */
} PointerObject;

/* host.c: host memory. */
typedef struct {
    uint64_t address, nbytes;
    DLDataType dtype; /* of its elements; bits 0: it is not one that we know */
    int32_t readonly;
} cudago_exported_bytes;
/* A memoryview of ours that holds the object's buffer export, and what it covers. NULL with BufferError, or TypeError if that
 * is references to Python objects. */
PyObject *cudago_export_of(PyObject *object, int writable, const char *what, cudago_exported_bytes *out);
/* The first of some letters in a format of the buffer protocol, or NULL, also for no format; letters in names of fields are
 * passed. If the field has a name, that is told; else name stays as it is. */
const char *cudago_format_find(const char *format, const char *letters, const char **name, int *length);
/* resize(refcheck=False) gives an array other memory and frees the first, whoever exports it; but not of an array to which
 * there is a weak reference: that it refuses. So *weak becomes one, if the memory is an array's. */
int cudago_forbid_resize(PyObject *object, PyObject **weak);
int cudago_is_array(PyObject *object); /* of NumPy's; before NumPy is loaded nothing is. -1 with an exception */
int cudago_refuse_masked(PyObject *object, const char *what); /* -1 with TypeError if it is an array of NumPy's with a mask */
int cudago_host_known(uint64_t address); /* the driver knows the host memory: pinned, managed or registered */

/* How long an allocation waits for earlier releases. */
enum { CUDAGO_PATIENCE_MS = 1000 };

enum { RESOURCE_POOL = 0,
       RESOURCE_PINNED = 1,
       RESOURCE_MANAGED = 2,
       RESOURCE_VIRTUAL = 3,
       RESOURCE_PYTHON = 4,
       RESOURCE_IMPORTED = 9 };
enum { SPACE_DEVICE,
       SPACE_PINNED,
       SPACE_MANAGED }; /* what a pool's memory is; _memory/resource.py has the same numbers */

/* reclaim.c, after an allocation has failed, on a stream or NULL. cudago_reclaim clears the exception, waits for the releases
 * under way and for the frees in streams that only cudago uses, and trims the pools: 1 if the allocation is to be tried again, 0 if this must not be done now and the exception stays, -1
 * with another exception. May run Python. cudago_explain_memory adds to the exception, if it is a MemoryError, who holds
 * what, and how many bytes were requested unless it has that or they are 0. */
int cudago_reclaim(const StreamObject *on);
void cudago_explain_memory(uint64_t size);

/* attached.c: who is told of allocations, or NULL; and telling, which returns the buffer, or NULL with what was raised. */
extern PyObject *cudago_allocated;
PyObject *cudago_tell_allocated(PyObject *buffer, PyObject *resource);

/* tally.c: how much memory of each kind without a pool is held, and at most was. Guarded by the GIL. */
enum { TALLY_PINNED,
       TALLY_REGISTERED, /* page-locked where it is */
       TALLY_MANAGED,
       TALLY_VIRTUAL,
       TALLY_ARRAY,
       TALLIES };
QUIET void cudago_tally_add(int kind, int64_t count, int64_t bytes);
PyObject *cudago_tallies(PyObject *module, PyObject *reset);

/* pool.c: what keeps a pool from being given to the next resource: its open resource, and each of its cells. See
 * cuda.DeviceMemoryResource. Guarded by the GIL. */
typedef struct {
    int64_t holders;
    uint64_t id; /* Go's handle of the memory resource */
    uint64_t *streams;
    uint32_t n, cap;
    int32_t gives_back; /* freed memory beyond a threshold, when somebody waits */
} cudago_pool;
static inline QUIET int cudago_gives_back(uint64_t threshold) { return threshold < INT64_MAX; }
QUIET cudago_pool *cudago_pool_new(uint64_t id); /* NULL: no memory */
QUIET void cudago_pool_freed_on(cudago_pool *p, uint64_t stream); /* to be called before a free */
QUIET void cudago_pool_let_go(cudago_pool *p);

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    uintptr_t pool; /* CUmemoryPool of a pool resource */
    int32_t space;  /* of a pool resource: SPACE_... */
    cudago_pool *held; /* of a pool resource */
    int32_t kind, device, closed;
    int32_t host_visible; /* the driver's device memory has an address for the host */
    int32_t home;         /* the device whose reset destroys it */
    uint32_t generation;
    uint32_t peers;       /* of virtual memory: a bit for each other device that may use it, for good */
} ResourceObject;
/* Did a reset destroy it? One written in Python has nothing of a device's. */
static inline QUIET int cudago_resource_lost(const ResourceObject *r) {
    return r->kind != RESOURCE_PYTHON && cudago_lost(r->home, r->generation);
}
QUIET uint64_t cudago_resource_now(ResourceObject *r); /* Go's handle of an open resource; 0 with ClosedError */

/* Stream-ordered memory: C allocates and frees it without calling Go. */
typedef struct cudago_pool_cell {
    cudago_cell cell;
    cudago_stream *stream; /* the stream it was allocated on and will be freed on, in stream order: no use of the cell's */
    uint64_t resource;     /* Go's handle of the memory resource, which may be closed */
    cudago_pool *held;     /* NULL if the memory is of no pool of ours */
    int32_t home;          /* of CUDAGO_CELL_POOLED: the device whose reset would unmap it */
    uint64_t ordered, settled; /* marks of its stream up to which the legacy default stream and the host come after it */
    uint64_t awaited;      /* what its stream said of that when the memory was allocated: see cudago_stream_done */
    struct cudago_pool_cell *older, *newer; /* in the list of large.c */
    int32_t listed;        /* there */
    uint32_t site;         /* the line that made it, if it is: cudago_site */
    int32_t at_once;       /* the release function is to make the stream wait for uses elsewhere: late.c */
} cudago_pool_cell;

/* A cudago_pool_cell of CUDAGO_CELL_PINNED or CUDAGO_CELL_MANAGED: memory of a pool that the host can read. Host memory of
 * other kinds belongs to no stream. */
enum { CUDAGO_CELL_POOLED = 1u << 18 };

/* large.c */
enum { CUDAGO_LARGE_BYTES = 1 << 20 };
QUIET void cudago_large_add(cudago_pool_cell *c);
QUIET void cudago_large_remove(cudago_pool_cell *c);
PyObject *cudago_largest(PyObject *module, PyObject *count);

/* Fills in a new cell, which retains the stream; visible as cudagoHostVisible says. */
QUIET cudago_cell *cudago_pool_cell_fill(cudago_pool_cell *c, int32_t device, int visible, uint64_t ptr, uint64_t size, cudago_stream *s);
/* host.c. Makes a cell of device memory one of host memory, as which the simulated device's is shown to everybody else. */
QUIET void cudago_cell_show(cudago_cell *cell, int32_t device);
/* Makes it memory of a pool that the host can read, which the resource says: CUDAGO_CELL_POOLED. */
QUIET cudago_cell *cudago_pooled_cell_fill(ResourceObject *self, cudago_pool_cell *c);
/* Makes the memory's own stream wait for its uses on others: 0 if that must be tried later, see release.c. It may wait for
 * a callback if may_stick says so. */
QUIET int cudago_pool_cell_joined(cudago_pool_cell *c, int32_t *r);
QUIET int cudago_pool_cell_may_stick(cudago_pool_cell *c);
/* late.c: where work in other streams may use it. */
QUIET const cudago_use *cudago_far_use(cudago_pool_cell *c); /* pending in another stream than its own, or NULL */
/* For the release function, which is called again if it is late: 0 if it is not. May release the GIL. */
int cudago_is_late(cudago_pool_cell *c);
/* Gives back what is late in streams of a device, which these then make wait; returns how many. Runs Python. */
int cudago_late_give(int32_t device);
PyObject *cudago_give_late(PyObject *module, PyObject *device);
/* A cell without anything in it, and its end; NULL: no memory. Only with the GIL. */
QUIET cudago_pool_cell *cudago_pool_cell_new(void);
QUIET void cudago_pool_cell_free(cudago_pool_cell *c);
QUIET void cudago_pool_cell_forget(cudago_pool_cell *c); /* lets go of the stream */
void cudago_release_pool(cudago_cell *cell);             /* release functions of cells: release.c */
void cudago_release_virtual(cudago_cell *cell);
void cudago_release_go(cudago_cell *cell);
QUIET void cudago_put_off(cudago_cell *cell);            /* a later drain calls its release function again */

typedef struct cudago_go_cell {
    cudago_cell cell;
    uint64_t id; /* Go's handle of the cuda.Buffer */
    int32_t device; /* the device whose reset destroys it */
    /* Of a graph's memory: */
    uint32_t peers;              /* a bit for each other device that may be able to use it */
    uint32_t in_use;             /* calls that use it now: graphuse.c */
    struct cudago_go_cell *next; /* that is in use */
} cudago_go_cell;

/* What a capture allocates, CUDAGO_CELL_GRAPH with CUDAGO_CELL_CAPTURED: a cell for the user's objects, and one that
 * graphs keep. When the first goes while the capture is open, a node of the capture frees the memory; the second keeps
 * the address reserved. So the operands of the capture do not keep its memory from being freed. */
enum { CUDAGO_CELL_CAPTURED = 1u << 17 };
typedef struct {
    cudago_go_cell go;
    const _Atomic int32_t *state; /* what has become of the capture: enum cudago_captured; written by Go */
    cudago_cell *kept;     /* the cell that graphs keep, counted; NULL in that one itself */
    cudago_stream *stream; /* that it was allocated on, retained; NULL there too */
    uint32_t closed_at;    /* the line that closed an object of the user's last: cudago_site */
} cudago_captured_cell;
enum cudago_captured { CAPTURED_OPEN,
                       CAPTURED_IN_GRAPH,
                       CAPTURED_GONE }; /* there is no graph, so the address means nothing */
static inline QUIET int cudago_captured_is(const cudago_cell *cell, int32_t state) {
    return cell->flags & CUDAGO_CELL_CAPTURED && atomic_load(((const cudago_captured_cell *)cell)->state) == state;
}
/* The user closes an object: the node that frees the memory, then or when what else refers to it is gone, has this line. An
 * object that is not closed ends wherever its last reference does, if only where the collector happens to run. */
static inline QUIET void cudago_note_closed(cudago_cell *cell) {
    if (cudago_captured_is(cell, CAPTURED_OPEN)) ((cudago_captured_cell *)cell)->closed_at = cudago_site();
}
/* The cell that a graph keeps for the memory of this one. */
static inline QUIET cudago_cell *cudago_cell_for_graphs(cudago_cell *cell) {
    cudago_cell *kept = cell->flags & CUDAGO_CELL_CAPTURED ? ((cudago_captured_cell *)cell)->kept : NULL;
    return kept ? kept : cell;
}

/* Virtual memory, CUDAGO_CELL_DEVICE: Go owns it, but it is released after the streams that used it, as a pool's memory
 * is. */
typedef struct {
    cudago_pool_cell pool;
    uint64_t id; /* Go's handle of the cuda.Buffer */
    uint32_t peers; /* those of its resource, which may be closed; 0 for what another process or API has allocated */
} cudago_virtual_cell;

void cudago_virtual_cell_release(cudago_cell *cell);
static inline QUIET int cudago_cell_grows(const cudago_cell *cell) { return cell->release == cudago_release_virtual; }
/* What Go releases, after the uses of the cell, and after what is in a stream now unless that is 0. */
typedef void cudago_releaser(uint64_t id, uint64_t stream, uint64_t *others, uint64_t *positions, int n);
void cudago_idle_release(cudago_virtual_cell *c, cudago_releaser *go);
void cudago_go_cell_release(cudago_go_cell *c, cudago_releaser *go); /* and frees the cell */

/* array.c: memory without an address, whose cell is a cudago_virtual_cell. A mipmapped array is one too, and its levels
 * hold its cell. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    cudago_cell *cell; /* NULL once closed */
    PyObject *facts;   /* what it is, a tuple for the Python face */
    uint64_t handle;   /* the CUarray, or the CUmipmappedArray */
    uint64_t nbytes;   /* of all elements */
    int32_t device;
} ArrayObject;

/* What cuArray3DCreate is told, or with levels cuMipmappedArrayCreate. */
typedef struct {
    uint32_t format, channels;
    uint64_t width, height, depth;
    int layered, cubes, surfaces;
    uint32_t levels;
} cudago_sizes;
PyObject *cudago_array_new(PyObject *module, PyObject *args);
PyObject *cudago_array_level(PyObject *module, PyObject *args);
extern PyType_Spec cudago_array_spec, cudago_mipmapped_spec;

/* A cuda.PointerExport. */
#define CUDAGO_POOL_ID 16
typedef struct {
    uint8_t data[64];
    uint8_t pool[CUDAGO_POOL_ID];
    uint64_t size;
    int64_t slot;
} cudago_shared;

/* Memory that processes share: ipc.c. An exported allocation of a pool is freed after those who imported it have let go. An
 * imported one is a cudago_virtual_cell that does not grow, also if it is memory of a pool or the host can read it. */
enum { CUDAGO_CELL_EXPORTED = 1u << 19,
       CUDAGO_CELL_IMPORTED = 1u << 20 };
static inline QUIET int cudago_cell_of_their_pool(const cudago_cell *cell) {
    return cell->flags & CUDAGO_CELL_IMPORTED && ((const cudago_pool_cell *)cell)->resource;
}

/* ipcvirtual.c: a cuda.VirtualPiece. */
typedef struct {
    uint64_t size;
    int64_t fd;
} cudago_piece;

/* adopt.c: a part of other memory, which is of ours, or NULL. */
enum { CUDAGO_CELL_ADOPTED = 1u << 23 };
QUIET const cudago_cell *cudago_adopted_of(const cudago_cell *cell);

/* Memory of another API: external.c. A cudago_virtual_cell that does not grow, and that only its own device reaches. */
enum { CUDAGO_CELL_EXTERNAL = 1u << 21 };

/* Is the cell a cudago_pool_cell, or does it begin like one? Then it has a stream. */
static inline QUIET int cudago_cell_has_stream(const cudago_cell *cell) {
    return cell->kind == CUDAGO_CELL_POOL || cell->kind == CUDAGO_CELL_DEVICE || cell->flags & CUDAGO_CELL_POOLED;
}

/* Is it device memory that belongs to no stream, and was found, not allocated? Then it is a cudago_go_cell. */
static inline QUIET int cudago_cell_looked_up(const cudago_cell *cell) {
    return cell->kind == CUDAGO_CELL_GRAPH || cell->kind == CUDAGO_CELL_VARIABLE;
}

/* Is it device memory? Simulated memory has a host address too, but a program that used it would fail on a GPU. */
static inline QUIET int cudago_cell_on_device(const cudago_cell *cell) {
    return (cudago_cell_has_stream(cell) && !(cell->flags & CUDAGO_CELL_POOLED)) || cudago_cell_looked_up(cell);
}

/* A cell's: of a variable that the host accesses as well, although it is found as device memory is. */
enum { CUDAGO_CELL_MANAGED_VARIABLE = 1u << 24 };
/* May the host have a buffer of it, at cell->host? */
static inline QUIET int cudago_cell_for_host(const cudago_cell *cell) {
    return !cudago_cell_on_device(cell) || cell->flags & CUDAGO_CELL_MANAGED_VARIABLE;
}

QUIET int cudago_old_cell(const cudago_cell *cell, int32_t device);
/* Did a reset of its device destroy the memory? */
static inline QUIET int cudago_cell_lost(const cudago_cell *cell) {
    if (cudago_cell_has_stream(cell)) return cudago_stream_lost(((const cudago_pool_cell *)cell)->stream);
    if (cudago_captured_is(cell, CAPTURED_GONE)) return 1;
    if (cudago_cell_looked_up(cell)) return cudago_old_cell(cell, ((const cudago_go_cell *)cell)->device);
    if (cell->kind == CUDAGO_CELL_FOREIGN) return cell->device_type == kDLCUDA && cudago_old_cell(cell, cell->device_id);
    return 0; /* a device with open pinned or managed memory cannot be reset */
}
int cudago_raise_no_cell(const cudago_cell *cell, const char *what); /* ClosedError: closed (NULL) or lost; returns -1 */
/* Checks the cell of an object, which is NULL once closed: 0 if its memory is there, -1 with ClosedError "WHAT is
 * closed" if not. */
static inline QUIET int cudago_cell_now(const cudago_cell *cell, const char *what) {
    return cell && !cudago_cell_lost(cell) ? 0 : cudago_raise_no_cell(cell, what);
}
static inline QUIET int cudago_cell_closed(const cudago_cell *cell) { return !cell || cudago_cell_lost(cell); }

/* Pinned and managed allocations that somebody holds, by the device whose reset would unmap them. */
extern int64_t cudago_host_allocations[CUDAGO_MAX_DEVICES];
/* The class of a cell's exports, by the device whose reset destroys the memory: see cudago_exports_open. */
static inline QUIET uint32_t cudago_exports_class(int32_t device) { return (uint32_t)device + 1; }
/* That device, or -1 if the memory is none of ours. */
static inline QUIET int32_t cudago_cell_home(const cudago_cell *cell) { return (int32_t)cell->class - 1; }
/* pending.c: memory of home, which its reset destroys, is used from another device; and waiting, with the GIL released, for all
 * that was queued on such devices. -1 with an exception. */
QUIET void cudago_is_used_from(int32_t home, int32_t device);
int cudago_wait_for_far_uses(int32_t device);

/* Takes over the caller's count of cell. */
PyObject *cudago_buffer_new(cudago_cell *cell, uint64_t ptr, uint64_t size, int32_t device);
/* A number of bytes that is called name in messages; -1 with an exception. */
int cudago_size(PyObject *number, const char *name, uint64_t *size);
PyObject *cudago_allocate(PyObject *resource, PyObject *const *args, Py_ssize_t n, PyObject *names);
/* The arguments of allocate(size, *, stream), by position and by name; *stream is NULL if there is none. */
int cudago_read_allocate(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **size, PyObject **stream);
QUIET int cudago_writable(int readonly, const char *what); /* -1 with BufferError if it is read-only */
QUIET void cudago_buffers_release(void); /* at exit: releases the memory of every open Buffer */
void cudago_free_put_off(void);          /* part of a drain: frees what waited for a capture to end */

/* A graph was given the memory. Its launches may use it but are not among the cell's uses, so that a launch pays
 * nothing for this. Set with the GIL, never cleared. */
enum { CUDAGO_CELL_IN_GRAPH = 1u << 16 };

/* An open buffer as a call uses it: close() takes away the wrapper's count, but not what is here. */
typedef struct {
    cudago_cell *cell; /* borrowed, unless the caller retains it */
    uint64_t ptr, size;
    int readonly;
} cudago_span;
static inline QUIET int cudago_buffer_readonly(const BufferObject *b) {
    return b->readonly || (b->cell && b->cell->flags & CUDAGO_CELL_READONLY);
}
static inline QUIET int cudago_buffer_now(BufferObject *b, cudago_span *out) { /* -1 with ClosedError */
    if (cudago_cell_now(b->cell, "buffer")) return -1;
    *out = (cudago_span){b->cell, b->ptr, b->size, cudago_buffer_readonly(b)};
    return 0;
}

/* Is memory of a graph allocated now? -1 with ValueError if not: NVIDIA's driver crashes in a copy of such memory, and a
 * kernel that used it would break the device. */
QUIET int cudago_cell_allocated(const cudago_cell *cell);
/* graphuse.c: cudago_cell_reserve and cudago_cell_note of such memory. */
QUIET int cudago_graph_memory_reserve(cudago_cell *cell);
QUIET void cudago_graph_memory_note(cudago_cell *cell);
/* Before a call that frees memory of graphs, by its addresses: is another thread's call about to use some of it? A QUIET function
 * then answers CUDAGO_IN_USE, and its caller waits a moment, and asks again. */
enum { CUDAGO_IN_USE = 4 };
QUIET int cudago_graph_memory_in_use(const uint64_t *at, int n);
/* Releases the GIL; new uses are refused meanwhile. -1 with a signal's exception, or with ValueError on the callback thread. */
int cudago_graph_memory_wait(const uint64_t *at, int n);
/* Around a call that frees it without the GIL. */
typedef struct cudago_frees {
    const uint64_t *at;
    int n;
    struct cudago_frees *next;
} cudago_frees;
QUIET void cudago_frees_begin(cudago_frees *f);
QUIET void cudago_frees_end(cudago_frees *f);
/* Reserve announces that the cell is about to be used on s; note says that it is, up to position (0: the driver
 * refused). So the cell of an allocation, of whatever kind and device, knows all streams that may be using it: its end comes
 * after them (release.c), and so does whoever is given the memory (pending.c). Its own stream needs no note, since both are
 * ordered behind that. Reserve returns -1 with an exception if the memory cannot be used in a stream now.
 *
 * Another library frees its memory in the order of its own streams, not of ours: so note keeps it until the stream has
 * passed the position. */
static inline QUIET int cudago_cell_at_home(const cudago_cell *cell, const cudago_stream *s) {
    return cudago_cell_has_stream(cell) && ((const cudago_pool_cell *)cell)->stream == s;
}
QUIET int cudago_cell_reserve_next(cudago_cell *cell, cudago_stream *s);
static inline QUIET int cudago_cell_reserve(cudago_cell *cell, cudago_stream *s) {
    if (cudago_cell_at_home(cell, s)) return 0;
    cudago_use *first = cudago_uses_at(&cell->uses);
    if (cell->kind == CUDAGO_CELL_GRAPH || !cell->uses.n || first->clock != s->clock) return cudago_cell_reserve_next(cell, s);
    first->reserved++;
    return 0;
}
QUIET void cudago_cell_keep(cudago_cell *cell, cudago_stream *s, uint64_t position);
/* Of a cell that the caller keeps itself, if it is another library's. */
static inline QUIET void cudago_cell_note_kept(cudago_cell *cell, cudago_stream *s, uint64_t position) {
    if (cudago_cell_at_home(cell, s)) return;
    if (cell->kind == CUDAGO_CELL_GRAPH) {
        cudago_graph_memory_note(cell);
        cell = cudago_cell_for_graphs(cell);
    }
    cudago_uses_note(&cell->uses, s, position);
}
static inline QUIET void cudago_cell_note(cudago_cell *cell, cudago_stream *s, uint64_t position) {
    if (cell->kind != CUDAGO_CELL_FOREIGN) cudago_cell_note_kept(cell, s, position);
    else if (position) cudago_cell_keep(cell, s, position);
}

/* managed.c: METH_FASTCALL and METH_NOARGS. A location is a device's ordinal, or one of these; _memory/buffer.py has the same
 * numbers. */
enum { LOCATION_HOST = -1,
       LOCATION_NONE = -2 };
typedef struct {
    int32_t read_mostly, preferred, prefetched;
    int32_t accessed; /* the length of accessed_by */
    int32_t accessed_by[CUDAGO_MAX_DEVICES + 1];
} cudago_advice;
PyObject *cudago_buffer_advise(BufferObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_buffer_prefetch(BufferObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_buffer_range(BufferObject *self, PyObject *unused);
typedef struct {
    uint64_t ptr, size;
    int32_t at;
} cudago_prefetch;

/* adopt.c: is this device memory that the device can use? -1 with an exception */
int cudago_adopt_check(int32_t device, uint64_t ptr, uint64_t size);

/* peer.c: may kernels on a device touch the cell's memory? The memory is on owner, or on no device if that is -1. 1 if
 * they may, 0 if not, -1 with an exception. Of memory of which only others know what they have allowed the driver is asked, if an
 * address in it is given, which is not 0 then: copies do without access to some, and so give none. */
QUIET int cudago_reachable(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device);
/* The end of a message about memory that is not reachable. */
#define CUDAGO_HAS_NO_ACCESS \
    "which has no access to that memory: see peer_accessible_by of DeviceMemoryResource, and peers of VirtualMemoryResource " \
    "and Graph.allocate"
/* For what is called so, and used by what is called who, on device: 0, or -1 with an exception. */
QUIET int cudago_reaches(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device, const char *what, const char *who);
/* The same of a stream, that copies, or that does what needs access to the address. */
QUIET int cudago_stream_reaches(const cudago_cell *cell, int32_t owner, int32_t device, const char *what);
QUIET int cudago_stream_accesses(const cudago_cell *cell, uint64_t address, int32_t owner, int32_t device, const char *what);
/* The device of memory of which only an address is known, or -1 if any may use it, as far as the driver tells. */
int32_t cudago_address_device(uint64_t address);
PyObject *cudago_buffer_reach(PyObject *self, PyObject *args);
PyObject *cudago_peer_access(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_resource_peers(PyObject *self, PyObject *unused);
PyObject *cudago_resource_set_peer(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* The room of graphs fills these in, with QUIET functions.
 * An allocation on a stream that is capturing: a node of its graph. If another library began the capture nothing is
 * allocated, and *others is set without an exception. */
typedef cudago_cell *cudago_allocate_captured(ResourceObject *self, uint64_t size, cudago_stream *s, int32_t *others);
extern cudago_allocate_captured *cudago_captured_allocate;
/* Has the graph of a capture that another library began keep the cell; nothing, if there is no such capture. -1 with an
 * exception. */
typedef int cudago_hold_for_capture(cudago_cell *cell, cudago_stream *s);
extern cudago_hold_for_capture *cudago_captured_hold;

/* pending.c: who must wait for whom. Whoever gives memory to somebody else asks here, for memory of every kind.
 * Makes consumer wait for all work of ours that is pending on the cell. consumer is a CUstream number: 1 is the legacy
 * and 2 the per-thread default stream, those of the device. Where the device is not known (CUDAGO_ANYWHERE) and the number does
 * not say it either, which it does if it is a handle, or there is only one device, the host waits, for all of them. consumer 0
 * is the host, which blocks with the GIL released: the caller holds a count of the cell. -1 with an exception. */
enum { CUDAGO_ANYWHERE = -1 };
int cudago_cell_order(cudago_cell *cell, int32_t device, intptr_t consumer);
/* The same for a consumer of the buffer protocol, which may come to use the memory at any time, and so does not wait: the checks
 * are told of it. */
void cudago_cell_viewed(const cudago_cell *cell);

PyObject *cudago_pointer_new(PyObject *buffer, int64_t offset);

/* Go functions for later rooms. */
int32_t cudagoHostVisible(int32_t ordinal);
uint64_t cudagoHostAddress(int32_t ordinal, uint64_t ptr);

/* --- what room.c adds to the module, and types -------------------------------------------------------------------- */

PyObject *cudago_device_new(PyObject *module, PyObject *ordinal);
PyObject *cudago_resource_default_pool(PyObject *module, PyObject *args);
PyObject *cudago_resource_pool(PyObject *module, PyObject *args);
PyObject *cudago_resource_host_pool(PyObject *module, PyObject *args);
PyObject *cudago_resource_pinned(PyObject *module, PyObject *cls);
PyObject *cudago_resource_managed(PyObject *module, PyObject *args);
PyObject *cudago_resource_virtual(PyObject *module, PyObject *args);
PyObject *cudago_resource_python(PyObject *module, PyObject *cls);
PyObject *cudago_resource_imported(PyObject *module, PyObject *args);
PyObject *cudago_prefetch_batch(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_files_own(int first, int second); /* takes both over, also if it fails; see file.c */
PyObject *cudago_files_take(PyObject *module, PyObject *args);
PyObject *cudago_files_in_memory(PyObject *module, PyObject *args);
PyObject *cudago_files_numbers(PyObject *module, PyObject *capsule);
PyObject *cudago_files_copy(PyObject *module, PyObject *capsule);
PyObject *cudago_files_join(PyObject *module, PyObject *args);
PyObject *cudago_files_close(PyObject *module, PyObject *capsule);
PyObject *cudago_pool_export(PyObject *module, PyObject *resource);
PyObject *cudago_buffer_export(PyObject *module, PyObject *buffer);
PyObject *cudago_buffer_import(PyObject *module, PyObject *args);
PyObject *cudago_virtual_export(PyObject *module, PyObject *buffer);
PyObject *cudago_virtual_import(PyObject *module, PyObject *args);
PyObject *cudago_buffer_attach(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_given(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_set_allocated(PyObject *module, PyObject *callable);
PyObject *cudago_buffers(PyObject *module, PyObject *unused);
PyObject *cudago_set_dying(PyObject *module, PyObject *callable);
PyObject *cudago_pin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_buffer_adopt(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_buffer_reach(PyObject *self, PyObject *args);
PyObject *cudago_peer_access(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_device_reset(DeviceObject *self, PyObject *unused); /* METH_NOARGS */
PyObject *cudago_external_import(PyObject *module, PyObject *const *args, Py_ssize_t n);
extern PyType_Spec cudago_device_spec, cudago_resource_spec, cudago_buffer_spec, cudago_pointer_spec, cudago_external_spec;
int cudago_memory_room(PyObject *module); /* -1 with an exception */
