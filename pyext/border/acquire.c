/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Where the address space is limited, threads share malloc's arenas: each of Go's would take one of 64 MiB, before the next
 * thread gets its stack. Go's first threads start when the library is loaded, after the constructors that have a priority. */
__attribute__((constructor(102))) static void share_arenas(void) {
    struct rlimit limit;
    if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 2);
}

static void *wait_for(void *lock) {
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Starts as many threads at once, up to n, as the system allows, and returns their number once they have ended. Unlike Go's
 * runtime it may be refused. */
int cudago_can_start(int n) {
    pthread_t *threads = malloc((size_t)n * sizeof *threads);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int started = 0;
    if (!threads) return 0;
    pthread_mutex_lock(&lock);
    while (started < n && !pthread_create(&threads[started], NULL, wait_for, &lock)) started++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    free(threads);
    return started;
}
