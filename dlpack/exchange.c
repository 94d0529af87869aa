// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "exported.h"
#include "note.h"

#include <stdlib.h>
#include <string.h>

/* By class and way. Their difference is what is open, so an export and its end cost one count each. */
enum { EXPORT_WAYS = CUDAGO_WAY_LEGACY + 1 };
static _Atomic int64_t exports_made[256][EXPORT_WAYS], exports_released[256][EXPORT_WAYS];
static int64_t interfaces_read; /* guarded by the GIL */
static int fail_in; /* allocations until one fails; 0: none does */

int64_t cudago_exports_open(uint32_t class) {
    int64_t open = 0;
    for (int way = 0; way < EXPORT_WAYS; way++) { /* released first: never below 0 */
        open -= atomic_load_explicit(&exports_released[class & 255][way], memory_order_acquire);
        open += atomic_load_explicit(&exports_made[class & 255][way], memory_order_relaxed);
    }
    return open;
}

/* An export has one count of its cell, which the caller gives it. Memory that is noted is exported with the GIL, and so is
 * counted without a locked instruction. Only the allocator of the exchange table exports without, and what it makes is host
 * memory, which is not noted; its class is 0, which no memory of a device has. */
static void begin(cudago_cell *c, enum cudago_exchange_way way) {
    cudago_exported_note(c);
    _Atomic int64_t *made = &exports_made[c->class & 255][way];
    if (!c->class) atomic_fetch_add_explicit(made, 1, memory_order_relaxed);
    else atomic_store_explicit(made, atomic_load_explicit(made, memory_order_relaxed) + 1, memory_order_relaxed);
}
static void end(cudago_cell *c, enum cudago_exchange_way way) {
    atomic_fetch_add_explicit(&exports_released[c->class & 255][way], 1, memory_order_release);
    cudago_cell_release(c);
}

static void *allocate(size_t size) {
    if (fail_in && --fail_in == 0) return NULL;
    return malloc(size);
}

void cudago_exchange_fail_at(int n) { fail_in = n; }

void cudago_exchange_count_interface(void) { interfaces_read++; }

cudago_exchange_stats cudago_exchange_read_stats(void) {
    cudago_exchange_stats s = {0};
    s.exports[CUDAGO_WAY_INTERFACE].made = s.exports[CUDAGO_WAY_INTERFACE].released = interfaces_read;
    for (int way = 0; way < EXPORT_WAYS; way++)
        for (int i = 0; i < 256; i++) {
            s.exports[way].released += atomic_load_explicit(&exports_released[i][way], memory_order_acquire);
            s.exports[way].made += atomic_load_explicit(&exports_made[i][way], memory_order_relaxed);
        }
    for (const cudago_peer *p = cudago_peers(); p; p = p->next)
        for (int way = 0; way < CUDAGO_WAY_INTERFACE; way++) {
            s.imports_taken += p->ways[way].taken;
            s.imports_released += p->ways[way].released;
        }
    return s;
}

/* --- export ------------------------------------------------------------------------------------------------------ */

/* Which deleter it is says which way the export went. */
static void delete_versioned(DLManagedTensorVersioned *m, enum cudago_exchange_way way) {
    cudago_cell *c = m->manager_ctx;
    free(m); /* before the count: whoever sees the last count gone sees the block gone */
    end(c, way);
}
static void delete_table(DLManagedTensorVersioned *m) { delete_versioned(m, CUDAGO_WAY_TABLE); }
static void delete_capsule(DLManagedTensorVersioned *m) { delete_versioned(m, CUDAGO_WAY_CAPSULE); }

static void delete_legacy(DLManagedTensor *m) {
    cudago_cell *c = m->manager_ctx;
    free(m);
    end(c, CUDAGO_WAY_LEGACY);
}

/* Those of exports that are noted: the note stands where the cell did. */
static void end_noted(void *m, cudago_note *n) {
    cudago_cell *c = n->cell;
    enum cudago_exchange_way way = n->way;
    free(m);
    cudago_note_end(n);
    end(c, way);
}
static void delete_noted(DLManagedTensorVersioned *m) { end_noted(m, m->manager_ctx); }
static void delete_noted_legacy(DLManagedTensor *m) { end_noted(m, m->manager_ctx); }

void cudago_note_export(DLManagedTensorVersioned *m, const cudago_exchange_facts *f) {
    cudago_note *n = cudago_note_new(&m->dl_tensor, f);
    if (!n) return;
    n->cell = m->manager_ctx;
    m->manager_ctx = n;
    m->deleter = delete_noted;
}

void cudago_note_export_legacy(DLManagedTensor *m, const cudago_exchange_facts *f) {
    cudago_note *n = cudago_note_new(&m->dl_tensor, f);
    if (!n) return;
    n->cell = m->manager_ctx;
    m->manager_ctx = n;
    m->deleter = delete_noted_legacy;
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
        next = cudago_product(next, size > 1 ? size : 1);
        empty |= size == 0;
    }
    out->data = empty ? NULL : (char *)t->data + t->byte_offset;
    out->byte_offset = 0;
}

DLManagedTensorVersioned *cudago_export_held(const DLTensor *t, cudago_cell *cell, uint64_t flags, enum cudago_exchange_way way) {
    DLManagedTensorVersioned *m = allocate(sizeof *m + 2 * sizeof(int64_t) * (size_t)t->ndim);
    if (!m) return NULL;
    m->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m->manager_ctx = cell;
    m->deleter = way == CUDAGO_WAY_TABLE ? delete_table : delete_capsule;
    m->flags = flags;
    fill(&m->dl_tensor, t, (int64_t *)(m + 1));
    begin(cell, way);
    return m;
}

DLManagedTensorVersioned *cudago_export(const DLTensor *t, cudago_cell *cell, uint64_t flags, enum cudago_exchange_way way) {
    DLManagedTensorVersioned *m = cudago_export_held(t, cell, flags, way);
    if (m) cudago_cell_retain(cell);
    return m;
}

DLManagedTensor *cudago_export_legacy_held(const DLTensor *t, cudago_cell *cell) {
    DLManagedTensor *m = allocate(sizeof *m + 2 * sizeof(int64_t) * (size_t)t->ndim);
    if (!m) return NULL;
    m->manager_ctx = cell;
    m->deleter = delete_legacy;
    fill(&m->dl_tensor, t, (int64_t *)(m + 1));
    begin(cell, CUDAGO_WAY_LEGACY);
    return m;
}

DLManagedTensor *cudago_export_legacy(const DLTensor *t, cudago_cell *cell) {
    DLManagedTensor *m = cudago_export_legacy_held(t, cell);
    if (m) cudago_cell_retain(cell);
    return m;
}

/* --- import ------------------------------------------------------------------------------------------------------ */

typedef struct {
    cudago_cell cell; /* first: a foreign cell is its cell */
    DLManagedTensorVersioned *versioned; /* one of the three, once taken */
    DLManagedTensor *legacy;
    void *object, *memory;   /* what the tensor lasts as long as, and what its memory is in */
    void (*release)(void *); /* of both */
    cudago_imports *of;      /* that counts it, once taken */
    cudago_note *note;       /* NULL: none */
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
    if (m->deleter == delete_table || m->deleter == delete_capsule || m->deleter == delete_noted) m->deleter(m);
    else delete_guarded(run_versioned, m);
}

void cudago_dl_delete_legacy(DLManagedTensor *m) {
    if (!m || !m->deleter) return;
    if (m->deleter == delete_legacy || m->deleter == delete_noted_legacy) m->deleter(m);
    else delete_guarded(run_legacy, m);
}

static void foreign_release(cudago_cell *c) {
    foreign *f = (foreign *)c;
    cudago_cell_end_uses(c);
    if (f->of) f->of->released++;
    if (f->note) cudago_note_end(f->note);
    if (f->object) f->release(f->object);
    if (f->memory) f->release(f->memory);
    if (f->versioned) cudago_dl_delete(f->versioned);
    if (f->legacy) cudago_dl_delete_legacy(f->legacy);
    if (n_spare < SPARE) spare[n_spare++] = f;
    else free(f);
}

cudago_cell *cudago_foreign_new(void) {
    foreign *f = n_spare && !fail_in ? spare[--n_spare] : allocate(sizeof *f);
    if (!f) return NULL;
    /* Field by field: gcc would turn malloc and memset into calloc, which before glibc 2.41 bypasses the thread's cache. */
    f->versioned = NULL;
    f->legacy = NULL;
    f->object = f->memory = NULL;
    f->of = NULL;
    f->note = NULL;
    f->cell.ptr = f->cell.host = f->cell.size = 0;
    f->cell.device_type = f->cell.device_id = 0;
    cudago_cell_init(&f->cell, CUDAGO_CELL_FOREIGN, foreign_release);
    return &f->cell;
}

static void take(foreign *f, const DLTensor *t, const cudago_extent *e, cudago_imports *of) {
    cudago_cell *c = &f->cell;
    c->device_type = t->device.device_type;
    c->device_id = t->device.device_id;
    c->ordinal = c->device_type == kDLCUDA ? c->device_id : -1;
    c->size = (uint64_t)(e->high - e->low);
    if (c->size) c->ptr = (uint64_t)(uintptr_t)t->data + t->byte_offset + (uint64_t)e->low;
    if (c->device_type != kDLCUDA) c->host = c->ptr;
    f->of = of;
    of->taken++;
}

void cudago_foreign_take(cudago_cell *c, DLManagedTensorVersioned *m, const cudago_extent *e, cudago_imports *of) {
    take((foreign *)c, &m->dl_tensor, e, of);
    if (m->flags & DLPACK_FLAG_BITMASK_READ_ONLY) c->flags |= CUDAGO_CELL_READONLY;
    ((foreign *)c)->versioned = m;
}

void cudago_foreign_take_object(cudago_cell *c, const DLTensor *t, const cudago_extent *e, cudago_imports *of, void *object,
                                void (*release)(void *)) {
    take((foreign *)c, t, e, of);
    ((foreign *)c)->object = object;
    ((foreign *)c)->release = release;
}

void cudago_foreign_keep(cudago_cell *c, void *memory, void (*release)(void *)) {
    ((foreign *)c)->memory = memory;
    ((foreign *)c)->release = release;
}

void *cudago_foreign_memory(const cudago_cell *c) { return ((const foreign *)c)->memory; }

void cudago_foreign_take_legacy(cudago_cell *c, DLManagedTensor *m, const cudago_extent *e, cudago_imports *of) {
    take((foreign *)c, &m->dl_tensor, e, of);
    ((foreign *)c)->legacy = m;
}

void cudago_note_import(cudago_cell *c, const DLTensor *t, const cudago_exchange_facts *f) {
    foreign *held = (foreign *)c;
    if (held->note || !(held->note = cudago_note_new(t, f))) return;
    held->note->way = (uint32_t)(held->of - f->of->ways);
}
