// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "exported.h"

#include <stdlib.h>
#include <string.h>

/* By class. Their difference is what is open, so an export and its end cost one count each. */
static _Atomic int64_t exports_made[256], exports_released[256];
static int64_t imports_taken, imports_released; /* guarded by the GIL */
static int fail_in; /* allocations until one fails; 0: none does */

int64_t cudago_exports_open(uint32_t class) {
    int64_t released = atomic_load_explicit(&exports_released[class & 255], memory_order_acquire); /* first: never below 0 */
    return atomic_load_explicit(&exports_made[class & 255], memory_order_relaxed) - released;
}

/* An export has one count of its cell. Memory that is noted is exported with the GIL; only the allocator of the exchange
 * table exports without, and what it makes is not noted. */
static void begin(cudago_cell *c) {
    cudago_cell_retain(c);
    cudago_exported_note(c);
    atomic_fetch_add_explicit(&exports_made[c->class & 255], 1, memory_order_relaxed);
}
static void end(cudago_cell *c) {
    atomic_fetch_add_explicit(&exports_released[c->class & 255], 1, memory_order_release);
    cudago_cell_release(c);
}

static void *allocate(size_t size) {
    if (fail_in && --fail_in == 0) return NULL;
    return malloc(size);
}

void cudago_exchange_fail_at(int n) { fail_in = n; }

cudago_exchange_stats cudago_exchange_read_stats(void) {
    cudago_exchange_stats s = {.imports_taken = imports_taken, .imports_released = imports_released};
    for (int i = 0; i < 256; i++) {
        s.exports_released += atomic_load_explicit(&exports_released[i], memory_order_acquire);
        s.exports_made += atomic_load_explicit(&exports_made[i], memory_order_relaxed);
    }
    return s;
}

/* --- export ------------------------------------------------------------------------------------------------------ */

static void delete_versioned(DLManagedTensorVersioned *m) {
    cudago_cell *c = m->manager_ctx;
    free(m); /* before the count: whoever sees the last count gone sees the block gone */
    end(c);
}

static void delete_legacy(DLManagedTensor *m) {
    cudago_cell *c = m->manager_ctx;
    free(m);
    end(c);
}

/* Copies t to out with its shape and strides in the arrays that follow the managed struct. */
static void fill(DLTensor *out, const DLTensor *t, int64_t *arrays) {
    int n = t->ndim, empty = 0;
    *out = *t;
    out->shape = arrays;
    out->strides = arrays + n;
    int64_t next = 1; /* the row-major stride of this dimension */
    for (int i = n - 1; i >= 0; i--) {
        int64_t size = t->shape[i];
        arrays[i] = size;
        arrays[n + i] = size > 1 ? t->strides[i] : next;
        next *= size > 1 ? size : 1;
        empty |= size == 0;
    }
    out->data = empty ? NULL : (char *)t->data + t->byte_offset;
    out->byte_offset = 0;
}

DLManagedTensorVersioned *cudago_export(const DLTensor *t, cudago_cell *cell, uint64_t flags) {
    DLManagedTensorVersioned *m = allocate(sizeof *m + 2 * sizeof(int64_t) * (size_t)t->ndim);
    if (!m) return NULL;
    m->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m->manager_ctx = cell;
    m->deleter = delete_versioned;
    m->flags = flags;
    fill(&m->dl_tensor, t, (int64_t *)(m + 1));
    begin(cell);
    return m;
}

DLManagedTensor *cudago_export_legacy(const DLTensor *t, cudago_cell *cell) {
    DLManagedTensor *m = allocate(sizeof *m + 2 * sizeof(int64_t) * (size_t)t->ndim);
    if (!m) return NULL;
    m->manager_ctx = cell;
    m->deleter = delete_legacy;
    fill(&m->dl_tensor, t, (int64_t *)(m + 1));
    begin(cell);
    return m;
}

/* --- import ------------------------------------------------------------------------------------------------------ */

typedef struct {
    cudago_cell cell; /* first: a foreign cell is its cell */
    DLManagedTensorVersioned *versioned; /* one of the three, once taken */
    DLManagedTensor *legacy;
    void *object;
    void (*release)(void *); /* of object */
} foreign;

enum { SPARE = 32 };
static foreign *spare[SPARE]; /* to be used again; guarded by the GIL */
static int n_spare;

static void (*deleter_guard)(void (*run)(void *), void *m); /* guarded by the GIL */

void cudago_exchange_set_guard(void (*guard)(void (*run)(void *), void *m)) { deleter_guard = guard; }

static void delete_guarded(void (*run)(void *), void *m) {
    if (deleter_guard) deleter_guard(run, m);
    else run(m);
}

static void run_versioned(void *m) { ((DLManagedTensorVersioned *)m)->deleter(m); }
static void run_legacy(void *m) { ((DLManagedTensor *)m)->deleter(m); }

/* The guard is for code of others: a deleter of ours needs no lock, and runs no Python. */
void cudago_dl_delete(DLManagedTensorVersioned *m) {
    if (!m || !m->deleter) return;
    if (m->deleter == delete_versioned) delete_versioned(m);
    else delete_guarded(run_versioned, m);
}

void cudago_dl_delete_legacy(DLManagedTensor *m) {
    if (!m || !m->deleter) return;
    if (m->deleter == delete_legacy) delete_legacy(m);
    else delete_guarded(run_legacy, m);
}

static void foreign_release(cudago_cell *c) {
    foreign *f = (foreign *)c;
    if (f->versioned || f->legacy || f->object) imports_released++;
    if (f->object) delete_guarded(f->release, f->object);
    cudago_dl_delete(f->versioned);
    cudago_dl_delete_legacy(f->legacy);
    if (n_spare < SPARE) spare[n_spare++] = f;
    else free(f);
}

cudago_cell *cudago_foreign_new(void) {
    foreign *f = n_spare && !fail_in ? spare[--n_spare] : allocate(sizeof *f);
    if (!f) return NULL;
    /* Field by field: gcc would turn malloc and memset into calloc, which before glibc 2.41 bypasses the thread's cache. */
    f->versioned = NULL;
    f->legacy = NULL;
    f->object = NULL;
    f->cell.ptr = f->cell.host = f->cell.size = 0;
    f->cell.device_type = f->cell.device_id = 0;
    cudago_cell_init(&f->cell, CUDAGO_CELL_FOREIGN, foreign_release);
    return &f->cell;
}

static void take(cudago_cell *c, const DLTensor *t, const cudago_extent *e) {
    c->device_type = t->device.device_type;
    c->device_id = t->device.device_id;
    c->ordinal = c->device_type == kDLCUDA ? c->device_id : -1;
    c->size = (uint64_t)(e->high - e->low);
    if (c->size) c->ptr = (uint64_t)(uintptr_t)t->data + t->byte_offset + (uint64_t)e->low;
    if (c->device_type != kDLCUDA) c->host = c->ptr;
    imports_taken++;
}

void cudago_foreign_take(cudago_cell *c, DLManagedTensorVersioned *m, const cudago_extent *e) {
    take(c, &m->dl_tensor, e);
    if (m->flags & DLPACK_FLAG_BITMASK_READ_ONLY) c->flags |= CUDAGO_CELL_READONLY;
    ((foreign *)c)->versioned = m;
}

void cudago_foreign_take_object(cudago_cell *c, const DLTensor *t, const cudago_extent *e, void *object, void (*release)(void *)) {
    take(c, t, e);
    ((foreign *)c)->object = object;
    ((foreign *)c)->release = release;
}

void cudago_foreign_take_legacy(cudago_cell *c, DLManagedTensor *m, const cudago_extent *e) {
    take(c, &m->dl_tensor, e);
    ((foreign *)c)->legacy = m;
}
