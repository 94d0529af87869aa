// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* note.h: notes of exchanges, made while somebody traces them: what was exchanged, and where in the program.
 *
 * A note lasts until its exchange ends. An export ends on any thread, without the GIL, so that its deleter only marks
 * the note; whoever makes notes later, with the GIL, frees those that are marked. */
#pragma once
#include "exchange.h"

typedef struct cudago_note {
    struct cudago_note *next; /* made before this one */
    _Atomic int ended;
    uint64_t number;       /* from 1 on, in the order of making */
    const cudago_peer *of; /* whose tensor it was; NULL: ours, that is, an export */
    uint32_t way;          /* enum cudago_exchange_way */
    int32_t ordinal;       /* of the device, -1: host */
    cudago_cell *cell;     /* of an export: what its managed tensor held a count of */
    DLDataType dtype;
    int32_t ndim;
    size_t n_where; /* bytes */
    char *where;    /* lines of the program, "file:line", the innermost first; each ends with a 0. In this malloc */
    int64_t shape[];
} cudago_note;

/* Does anybody trace? GIL. */
extern int cudago_tracing;

/* The number of the newest note, 0 before the first. GIL. */
uint64_t cudago_note_last(void);

/* What a tracer knows of an exchange. */
typedef struct {
    const cudago_peer *of; /* NULL: an export */
    uint32_t way;          /* of an export; the cell of an import knows it */
    int32_t ordinal;
    const char *where;
    size_t n_where;
} cudago_exchange_facts;

/* Notes an export, whose deleter then marks the note, or an import, which its cell does. Without memory nothing is
 * noted. GIL; the caller holds the export or a count of the cell, which is of kind FOREIGN. A cell is noted once. */
void cudago_note_export(DLManagedTensorVersioned *m, const cudago_exchange_facts *f);
void cudago_note_export_legacy(DLManagedTensor *m, const cudago_exchange_facts *f);
void cudago_note_import(cudago_cell *c, const DLTensor *t, const cudago_exchange_facts *f);

/* The newest note, for a walk. No note is freed until the walk is over. GIL, which may be let go in between. */
const cudago_note *cudago_notes_walk(void);
void cudago_notes_walked(void);

/* --- for exchange.c ------------------------------------------------------------------------------------------------- */

/* A new note; NULL: no memory. GIL. */
cudago_note *cudago_note_new(const DLTensor *t, const cudago_exchange_facts *f);
/* Any thread; the note is gone for the caller. */
void cudago_note_end(cudago_note *n);
