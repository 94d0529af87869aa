// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "exported.h"

#include <stddef.h>

/* Cells whose last count is gone, newest first. Pushed by compare-and-swap, emptied by one exchange: nobody ever pops a
 * single cell, so there is no ABA problem. */
_Atomic(cudago_cell *) cudago_cells_dropped;
static _Atomic(int (*)(void)) wake;
static _Atomic uint64_t last_id, last_host_id;
static _Atomic int64_t live[CUDAGO_CELL_KINDS];

/* Host memory is also made without the GIL, by the allocator of the exchange table. All other cells come and go under it,
 * and so their counts need no locked instruction, of which each costs as much as a call. */
static void count(uint32_t kind, int64_t by) {
    _Atomic int64_t *n = &live[kind];
    if (kind == CUDAGO_CELL_HOST) atomic_fetch_add_explicit(n, by, memory_order_relaxed);
    else atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + by, memory_order_relaxed);
}

static uint64_t number(uint32_t kind) {
    if (kind == CUDAGO_CELL_HOST) return UINT64_C(1) << 63 | (atomic_fetch_add_explicit(&last_host_id, 1, memory_order_relaxed) + 1);
    uint64_t id = atomic_load_explicit(&last_id, memory_order_relaxed) + 1;
    atomic_store_explicit(&last_id, id, memory_order_relaxed);
    return id;
}

void cudago_cell_init(cudago_cell *c, uint32_t kind, void (*release)(cudago_cell *)) {
    atomic_init(&c->refs, 1);
    c->kind = kind < CUDAGO_CELL_KINDS ? kind : CUDAGO_CELL_HOST;
    c->flags = c->class = 0;
    c->ordinal = -1;
    c->release = release;
    c->next = NULL;
    c->uses.n = c->uses.cap = 0;
    c->id = number(c->kind);
    count(c->kind, 1);
}

/* 1 if that was the last count. Release so that what this holder did is seen by whoever frees, acquire for the one that
 * frees. */
static int drop(cudago_cell *c) {
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_release) != 1) return 0;
    atomic_thread_fence(memory_order_acquire);
    return 1;
}

static void (*told)(cudago_cell *);
void cudago_cells_tell(void (*ended)(cudago_cell *)) { told = ended; }

static void finish(cudago_cell *c) {
    count(c->kind, -1);
    if (c->flags & CUDAGO_CELL_NOTED) cudago_exported_forget(c); /* first: who is told runs code that may look for its memory */
    if (c->flags & CUDAGO_CELL_WATCHED) told(c);
    c->release(c);
}

void cudago_cell_release(cudago_cell *c) {
    if (!drop(c)) return;
    cudago_cell *head = atomic_load_explicit(&cudago_cells_dropped, memory_order_relaxed);
    do c->next = head;
    while (!atomic_compare_exchange_weak_explicit(&cudago_cells_dropped, &head, c, memory_order_release, memory_order_relaxed));
    if (head) return; /* whoever pushed on the empty stack has poked */
    int (*poke)(void) = atomic_load_explicit(&wake, memory_order_acquire);
    if (poke) poke(); /* if it fails, the next entry of the API drains */
}

void cudago_cell_release_gil(cudago_cell *c) {
    /* A count of 1 is the caller's own, and nobody can add to it without having one: no locked instruction is needed. */
    if (atomic_load_explicit(&c->refs, memory_order_acquire) == 1 || drop(c)) finish(c);
}

long cudago_cells_drain(void) {
    long n = 0;
    cudago_cell *c;
    /* The stack is taken whole before anything is released: a release may run Python code that drains again. */
    while ((c = atomic_exchange_explicit(&cudago_cells_dropped, NULL, memory_order_acquire)) != NULL) {
        while (c) {
            cudago_cell *next = c->next;
            finish(c);
            c = next;
            n++;
        }
    }
    return n;
}

void cudago_cells_set_poke(int (*poke)(void)) { atomic_store_explicit(&wake, poke, memory_order_release); }

static void (*uses_end)(cudago_uses *); /* guarded by the GIL */
void cudago_cells_set_uses_end(void (*end)(cudago_uses *)) { uses_end = end; }
void cudago_cell_end_uses(cudago_cell *c) {
    if (c->uses.n && uses_end) uses_end(&c->uses);
}

uint64_t cudago_cell_last_id(void) { return atomic_load_explicit(&last_id, memory_order_relaxed); }

int64_t cudago_cells_live(uint32_t kind) {
    return kind < CUDAGO_CELL_KINDS ? atomic_load_explicit(&live[kind], memory_order_relaxed) : 0;
}
