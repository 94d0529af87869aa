/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Memory of a stream that nobody holds any more, and that work in other streams may still use: it is late. It goes back once
 * that work has ended, and no stream waits for it. Meanwhile a stream that uses it keeps a cell in its place, as it keeps what
 * launches use.
 *
 * A host that is far ahead would let ever more memory wait. So of each device at most MOST allocations or MOST_BYTES are late,
 * whichever is more; and none are while there is not enough memory. The others go back at once, in their stream's order: it
 * then waits for their uses, the oldest first, which were queued long ago. */

enum { MOST = 8,
       MOST_BYTES = 1 << 30 };

typedef struct late {
    cudago_cell cell;     /* counts as live memory of the same kind */
    cudago_pool_cell *of; /* NULL once it has gone back */
    int32_t device;       /* of its stream */
    struct late *older, *newer;
} late;

static struct {
    late *oldest, *newest;
    int n;
    uint64_t bytes;
} lists[CUDAGO_MAX_DEVICES]; /* guarded by the GIL */

static QUIET void enlist(late *l) {
    l->older = lists[l->device].newest;
    l->newer = NULL;
    if (l->older) l->older->newer = l;
    else lists[l->device].oldest = l;
    lists[l->device].newest = l;
    lists[l->device].n++;
    lists[l->device].bytes += l->of->cell.size;
}

/* Takes the memory out, to be released. */
static QUIET cudago_pool_cell *delist(late *l) {
    cudago_pool_cell *c = l->of;
    if (l->older) l->older->newer = l->newer;
    else lists[l->device].oldest = l->newer;
    if (l->newer) l->newer->older = l->older;
    else lists[l->device].newest = l->older;
    lists[l->device].n--;
    lists[l->device].bytes -= c->cell.size;
    l->of = NULL;
    return c;
}

/* The work has ended. */
static void release_late(cudago_cell *cell) {
    late *l = (late *)cell;
    cudago_pool_cell *c = l->of ? delist(l) : NULL;
    free(l);
    if (c) c->cell.release(&c->cell);
}

QUIET const cudago_use *cudago_far_use(cudago_pool_cell *c) {
    cudago_use *use = cudago_uses_at(&c->cell.uses);
    for (uint32_t i = 0; i < c->cell.uses.n; i++)
        if (use[i].clock != c->stream->clock && cudago_pending(use[i].clock, use[i].position)) return &use[i];
    return NULL;
}

/* NULL: nobody can add to what it keeps. */
static QUIET cudago_stream *open_stream(const cudago_clock *clock) {
    cudago_stream *s = cudago_streams;
    while (s && s->clock != clock) s = s->next;
    return s && !cudago_stream_lost(s) && atomic_load(&s->refs) > 0 ? s : NULL;
}

/* Where an event is still to be recorded behind the work, returns the stream, retained. */
static QUIET cudago_stream *keep(late *l, const cudago_use *use) {
    uintptr_t ref = (uintptr_t)&l->cell | CUDAGO_REF_CELL;
    cudago_stream *s = open_stream(use->clock);
    if (s) cudago_keep_until(s, use->position, &ref, 1);
    else cudagoKeepLate(use->clock->id, use->position, ref);
    if (!s || !s->unmarked) return NULL;
    cudago_stream_retain(s);
    return s;
}

/* Nobody may ever use the stream again. */
static void mark(cudago_stream *s) {
    cudago_mark_kept(s);
    cudago_stream_release(s);
}

static void give_oldest(int32_t device) {
    cudago_pool_cell *c = delist(lists[device].oldest);
    c->at_once = 1;
    c->cell.release(&c->cell);
}

int cudago_is_late(cudago_pool_cell *c) {
    int at_once = c->at_once;
    int32_t device = c->stream->device;
    c->at_once = 0;
    const cudago_use *use = at_once ? NULL : cudago_far_use(c);
    late *l = use ? malloc(sizeof *l) : NULL;
    if (!l) return 0;
    cudago_cell_init(&l->cell, c->cell.kind, release_late);
    l->of = c;
    l->device = device;
    enlist(l);
    cudago_stream *unmarked = keep(l, use);
    if (unmarked) mark(unmarked);
    while (lists[device].n > MOST && lists[device].bytes > MOST_BYTES) give_oldest(device);
    return 1;
}

int cudago_late_give(int32_t device) {
    int n = lists[device].n;
    for (int left = n; left > 0 && lists[device].n; left--) give_oldest(device);
    return n;
}

/* _give_late(device): gives back what is late, in the order of its streams; was there any? */
PyObject *cudago_give_late(PyObject *module, PyObject *device) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    return PyBool_FromLong(cudago_late_give(((DeviceObject *)device)->ordinal));
}
