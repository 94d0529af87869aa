// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "exported.h"

#include <search.h>
#include <stddef.h>
#include <string.h>

/* A search tree of cells. Live allocations do not overlap, so "overlaps" is what "equal" means in it. A cell enters at
 * its first export and not when it is allocated, which would cost every allocation. */
static void *tree;
/* Where the cells in the tree lie, those of page-locked memory and all others, which are far from each other: most of what
 * other libraries have is elsewhere, and need not be looked for. A range shrinks only when the tree becomes empty. */
static struct {
    uint64_t low, high;
} ranges[2];

/* As other libraries see the memory: the host's address where there is one. */
static uint64_t base(const cudago_cell *c) { return c->host ? c->host : c->ptr; }

static int compare(const void *a, const void *b) {
    const cudago_cell *x = a, *y = b;
    if (base(x) + x->size <= base(y)) return -1;
    return base(y) + y->size <= base(x) ? 1 : 0;
}

static int has_owner(const cudago_cell *c) {
    return c->kind != CUDAGO_CELL_HOST && c->kind != CUDAGO_CELL_FOREIGN && c->kind != CUDAGO_CELL_PYTHON;
}

/* At each export: the memory may have grown since the one before. */
static void widen(const cudago_cell *c) {
    int pinned = c->kind == CUDAGO_CELL_PINNED;
    uint64_t low = base(c), high = low + c->size;
    if (!ranges[pinned].high || low < ranges[pinned].low) ranges[pinned].low = low;
    if (high > ranges[pinned].high) ranges[pinned].high = high;
}
static int is_near(uint64_t at) {
    return (at >= ranges[0].low && at < ranges[0].high) || (at >= ranges[1].low && at < ranges[1].high);
}

void cudago_exported_note(cudago_cell *c) {
    if (c->flags & CUDAGO_CELL_NOTED) return widen(c);
    if (!c->size || !has_owner(c)) return;
    cudago_cell **node = tsearch(c, &tree, compare);
    /* Two cells may share memory: each look at a variable or at a graph's memory makes another. The first one stays. */
    if (!node || *node != c) return;
    c->flags |= CUDAGO_CELL_NOTED;
    widen(c);
}

void cudago_exported_forget(cudago_cell *c) {
    tdelete(c, &tree, compare);
    if (!tree) memset(ranges, 0, sizeof ranges);
    c->flags &= ~(uint32_t)CUDAGO_CELL_NOTED;
}

/* The walk of a tree has no argument, and must not change it: so it finds a few at a time. Guarded by the GIL. */
enum { FEW = 64 };
static struct {
    int (*is_gone)(const cudago_cell *);
    cudago_cell *found[FEW];
    int n;
} search;

static void look(const void *node, VISIT visit, int depth) {
    (void)depth;
    cudago_cell *c = *(cudago_cell *const *)node;
    if ((visit == postorder || visit == leaf) && search.n < FEW && search.is_gone(c)) search.found[search.n++] = c;
}

void cudago_exported_forget_gone(int (*is_gone)(const cudago_cell *)) {
    search.is_gone = is_gone;
    do {
        search.n = 0;
        twalk(tree, look);
        for (int i = 0; i < search.n; i++) cudago_exported_forget(search.found[i]);
    } while (search.n == FEW);
}

/* Can memory of c be described as being on that device? */
static int on(const cudago_cell *c, DLDevice device) {
    switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return c->host != 0;
    case kDLCUDA: return c->device_type == kDLCUDA ? c->device_id == device.device_id : c->device_type != kDLCPU;
    default: return c->device_type == device.device_type;
    }
}

/* A count, unless the last one has gone: then only its release is still to come. */
static int retain(cudago_cell *c) {
    int64_t n = atomic_load_explicit(&c->refs, memory_order_relaxed);
    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&c->refs, &n, n + 1, memory_order_relaxed, memory_order_relaxed)) return 1;
    return 0;
}

cudago_cell *cudago_exported_find(const DLTensor *t, const cudago_extent *e, uint64_t *ptr) {
    uint64_t first = (uint64_t)(uintptr_t)t->data + t->byte_offset;
    if (!is_near(first) || !e->size) return NULL;
    cudago_cell probe;
    probe.host = first + (uint64_t)e->low;
    probe.size = (uint64_t)(e->high - e->low);
    cudago_cell **node = tfind(&probe, &tree, compare);
    if (!node) return NULL;
    cudago_cell *c = *node;
    if (probe.host < base(c) || probe.host + probe.size > base(c) + c->size || !on(c, t->device) || !retain(c)) return NULL;
    *ptr = first - base(c) + c->ptr;
    return c;
}
