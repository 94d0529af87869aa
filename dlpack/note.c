// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "note.h"

#include <stdlib.h>
#include <string.h>

int cudago_tracing;

/* Guarded by the GIL, except for the mark in a note. */
static cudago_note *newest;
static uint64_t last_number;
static int64_t n_notes, clean_at; /* notes that are kept, and how many make cleaning worth it */
static int walks;

uint64_t cudago_note_last(void) { return last_number; }

/* Frees the notes of exchanges that have ended. */
static void clean(void) {
    enum { FEWEST = 64 };
    cudago_note **at = &newest;
    while (*at) {
        cudago_note *n = *at;
        if (!atomic_load_explicit(&n->ended, memory_order_acquire)) {
            at = &n->next;
            continue;
        }
        *at = n->next;
        free(n);
        n_notes--;
    }
    clean_at = n_notes < FEWEST ? FEWEST : 2 * n_notes; /* so that a note costs the same however many there are */
}

cudago_note *cudago_note_new(const DLTensor *t, const cudago_exchange_facts *f) {
    if (n_notes >= clean_at && !walks) clean();
    size_t shape = sizeof(int64_t) * (size_t)t->ndim;
    cudago_note *n = malloc(sizeof *n + shape + f->n_where);
    if (!n) return NULL;
    *n = (cudago_note){.next = newest, .number = ++last_number, .of = f->of, .way = f->way, .ordinal = f->ordinal};
    n->dtype = t->dtype;
    n->ndim = t->ndim;
    n->n_where = f->n_where;
    n->where = (char *)(n->shape + t->ndim);
    if (shape) memcpy(n->shape, t->shape, shape);
    if (f->n_where) memcpy(n->where, f->where, f->n_where);
    newest = n;
    n_notes++;
    return n;
}

void cudago_note_end(cudago_note *n) { atomic_store_explicit(&n->ended, 1, memory_order_release); }

const cudago_note *cudago_notes_walk(void) {
    walks++;
    return newest;
}

void cudago_notes_walked(void) {
    if (!--walks) clean();
}
