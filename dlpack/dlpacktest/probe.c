// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "probe.h"

#include <pthread.h>
#include <stdlib.h>

static _Atomic int64_t released, pokes, deleted;

static void release(cudago_cell *c) {
    atomic_fetch_add(&released, 1);
    free((void *)(uintptr_t)c->host);
    free(c);
}

cudago_cell *probe_cell(uint64_t size) {
    cudago_cell *c = calloc(1, sizeof *c);
    cudago_cell_init(c, CUDAGO_CELL_HOST, release);
    c->device_type = kDLCPU;
    c->size = size;
    c->ptr = c->host = (uint64_t)(uintptr_t)calloc(1, size ? size : 1);
    return c;
}
static void release_noted(cudago_cell *c) { free(c); }

cudago_cell *probe_noted(uint64_t ptr, uint64_t host, uint64_t size) {
    cudago_cell *c = calloc(1, sizeof *c);
    cudago_cell_init(c, CUDAGO_CELL_PINNED, release_noted);
    c->device_type = kDLCUDAHost;
    c->ptr = ptr;
    c->host = host;
    c->size = size;
    cudago_exported_note(c);
    return c;
}
int64_t probe_cells_released(void) { return atomic_load(&released); }

static void *release_one(void *c) { return cudago_cell_release(c), NULL; }

int probe_release_on_threads(cudago_cell *c, int n) {
    pthread_t threads[64];
    int started = 0;
    while (started < n && started < 64 && !pthread_create(&threads[started], NULL, release_one, c)) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return started == n ? 0 : -1;
}

static int poke(void) { return atomic_fetch_add(&pokes, 1), 0; }
void probe_poke(int on) { cudago_cells_set_poke(on ? poke : NULL); }
int64_t probe_pokes(void) { return atomic_load(&pokes); }

static void *delete_one(void *m) { return cudago_dl_delete(m), NULL; }
int probe_delete_on_thread(DLManagedTensorVersioned *m) {
    pthread_t t;
    if (pthread_create(&t, NULL, delete_one, m)) return -1;
    return pthread_join(t, NULL);
}

static int64_t shape[] = {4};
static float data[4];
static const DLTensor four = {
    .data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape};

static void deleter(DLManagedTensorVersioned *m) {
    atomic_fetch_add(&deleted, 1);
    free(m);
}
static void deleter_legacy(DLManagedTensor *m) {
    atomic_fetch_add(&deleted, 1);
    free(m);
}
DLManagedTensorVersioned *probe_foreign(int without_deleter) {
    static DLManagedTensorVersioned for_good;
    DLManagedTensorVersioned *m = without_deleter ? &for_good : calloc(1, sizeof *m);
    m->version = (DLPackVersion){1, 0};
    m->dl_tensor = four;
    m->deleter = without_deleter ? NULL : deleter;
    return m;
}
DLManagedTensor *probe_foreign_legacy(int without_deleter) {
    static DLManagedTensor for_good;
    DLManagedTensor *m = without_deleter ? &for_good : calloc(1, sizeof *m);
    m->dl_tensor = four;
    m->deleter = without_deleter ? NULL : deleter_legacy;
    return m;
}
int64_t probe_deleted(void) { return atomic_load(&deleted); }
