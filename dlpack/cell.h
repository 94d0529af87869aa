// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* cell.h: the owner cell, the one counted thing behind every buffer, view, tensor, DLPack export and graph operand.
 *
 * Who may call what: cudago_cell_retain and cudago_cell_release need no lock, no GIL and no driver, and may run on any
 * thread, in a CUDA host callback, during a capture, after Python has gone and in a forked child. Everything that frees
 * runs in cudago_cells_drain or cudago_cell_release_gil, with the GIL held. */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

enum cudago_cell_flags {
    CUDAGO_CELL_READONLY = 1u << 0, /* nobody may write through this cell */
    CUDAGO_CELL_CLOSED = 1u << 1,   /* the memory is gone before its holders; set by its owner only */
    CUDAGO_CELL_NOTED = 1u << 2,    /* is found by its address: exported.h */
    CUDAGO_CELL_WATCHED = 1u << 3,  /* somebody is told of its end: cudago_cells_tell */
    /* bits 16 to 31 belong to whoever embeds the cell */
};

/* What kind of thing a cell stands for; the index of its statistics. */
enum cudago_cell_kind {
    CUDAGO_CELL_POOL,    /* stream-ordered device memory */
    CUDAGO_CELL_DEVICE,  /* device memory outside a pool, virtual memory included */
    CUDAGO_CELL_PINNED,  /* page-locked or mapped host memory */
    CUDAGO_CELL_MANAGED, /* managed memory */
    CUDAGO_CELL_HOST,    /* pageable host memory that is ours */
    CUDAGO_CELL_FOREIGN, /* memory of a DLPack producer */
    CUDAGO_CELL_PYTHON,  /* memory of a Python object */
    CUDAGO_CELL_GRAPH,   /* device memory that a node of a graph allocates */
    CUDAGO_CELL_VARIABLE, /* a variable of loaded code */
    CUDAGO_CELL_KINDS
};

/* A stream, and the position up to which it uses something; the clock, held, says what positions mean. This package makes
 * room for uses in each cell, and nothing else: pyext/stream/uses.c notes them, under the GIL. */
struct cudago_clock;
typedef struct {
    struct cudago_clock *clock;
    uint64_t position;
    uint32_t reserved; /* calls that are about to use it or are in the driver with it */
} cudago_use;
enum { CUDAGO_USES_INLINE = 2 };
/* A set of uses, one for each stream. */
typedef struct {
    uint32_t n, cap; /* cap 0: they are in some */
    union {
        cudago_use some[CUDAGO_USES_INLINE];
        cudago_use *many;
    };
} cudago_uses;

/* One allocation or foreign object, counted. C memory; Go and Python refer to it, it refers to neither except through
 * its kind's release function. Everything but refs and next is constant after cudago_cell_init and the maker's own
 * assignments; the size of virtual memory may grow, under the GIL. */
typedef struct cudago_cell {
    _Atomic int64_t refs;
    int32_t device_type, device_id; /* DLPack numbers; simulated device memory says CPU */
    uint32_t flags;                 /* enum cudago_cell_flags */
    uint32_t kind;                  /* enum cudago_cell_kind */
    uint32_t class;                 /* that its open exports are counted in, below 256: the maker's */
    int32_t ordinal;                /* of the device that the memory belongs to, -1 if to none: the maker's */
    uint64_t ptr;                   /* device address as kernels see it; 0 if they cannot */
    uint64_t host;                  /* address for the host, 0 if none; simulated device memory has one too */
    uint64_t size;                  /* bytes */
    /* Runs once, with the GIL, on a draining thread; gives the memory back and frees the struct. */
    void (*release)(struct cudago_cell *);
    struct cudago_cell *next; /* drop stack */
    uint64_t id;              /* never 0, never used twice */
    /* By streams whose order its end does not follow by itself: who is given the memory comes after them, and so does its
     * end. Empty once the release function frees the struct. */
    cudago_uses uses;
} cudago_cell;

/* Sets refs to 1, takes a new id and counts the cell as live. The caller fills in the rest. Needs the GIL, except for
 * CUDAGO_CELL_HOST. */
void cudago_cell_init(cudago_cell *c, uint32_t kind, void (*release)(cudago_cell *));

/* The caller must hold a count already. */
static inline void cudago_cell_retain(cudago_cell *c) { atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed); }

/* Gives one count back. The last one pushes the cell on the drop stack, lock-free, and pokes if the stack was empty. */
void cudago_cell_release(cudago_cell *c);

/* Gives one count back; the last one releases at once. GIL held, and none of the caller's own locks: the release
 * function may run Python code. */
void cudago_cell_release_gil(cudago_cell *c);

/* The drop stack, newest first. Only here so that the test below is part of its callers. */
extern _Atomic(cudago_cell *) cudago_cells_dropped;
/* Is anything on the drop stack? One relaxed load. */
static inline int cudago_cells_pending(void) {
    return atomic_load_explicit(&cudago_cells_dropped, memory_order_relaxed) != (cudago_cell *)0;
}

/* Releases what is on the drop stack and returns how many cells that were. GIL held. Release functions may run Python
 * code and may re-enter; a pending exception is the caller's to save. */
long cudago_cells_drain(void);

/* What wakes a draining thread: Py_AddPendingCall in practice. Called without the GIL from any thread, at most once
 * until the next drain unless it returned non-zero. NULL, at interpreter exit and before the first use: cells stay on
 * the stack. */
void cudago_cells_set_poke(int (*poke)(void));

/* What is told of a cell with CUDAGO_CELL_WATCHED when its last holder has let go, before its release function runs. It
 * may run Python code. */
void cudago_cells_tell(void (*ended)(cudago_cell *));

/* Frees the uses of a cell in its release function, by the function that was set; GIL held. In a forked child, where that
 * function is not to be called, they are left. */
void cudago_cell_end_uses(cudago_cell *c);
void cudago_cells_set_uses_end(void (*end)(cudago_uses *));

/* The id of the cell that was initialised last, host memory aside. */
uint64_t cudago_cell_last_id(void);

/* Cells of a kind that were initialised and whose release function has not begun. */
int64_t cudago_cells_live(uint32_t kind);
