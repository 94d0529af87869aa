/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "xla.h"

#include <pthread.h>

/* The programs by their keys, and how long they live: what JAX has traced counts as one use of a program, each place in an
 * executable that calls it as one, and so does each call. A use can end in XLA's threads, where no Python object may be
 * released: what the last of them leaves is freed by the next drain. */

typedef cudago_xla_program program;

enum { BUCKETS = 1024 };
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* guards the rest, and uses and next of every program */
static program *buckets[BUCKETS];
static program *ended; /* nobody finds them any more */

/* A key is a digest: its first characters are as good as any hash. */
static uint32_t bucket_of(const char *key) {
    uint32_t h = 0;
    for (int i = 0; i < 8; i++) h = h * 31 + (uint8_t)key[i];
    return h % BUCKETS;
}

/* Preconditions: mu is held. */
static program *counted(const char *key) {
    program *g = buckets[bucket_of(key)];
    while (g && memcmp(g->key, key, XLA_KEY_SIZE)) g = g->next;
    if (g) g->uses++;
    return g;
}

program *cudago_xla_take(const char *key, size_t n) {
    if (n != XLA_KEY_SIZE) return NULL;
    pthread_mutex_lock(&mu);
    program *g = counted(key);
    pthread_mutex_unlock(&mu);
    return g;
}

program *cudago_xla_publish(program *made) {
    program **bucket = &buckets[bucket_of(made->key)];
    pthread_mutex_lock(&mu);
    program *g = counted(made->key);
    if (!g) {
        made->uses = 1;
        made->next = *bucket;
        *bucket = g = made;
    }
    pthread_mutex_unlock(&mu);
    return g;
}

/* Preconditions: mu is held. */
static void end(program *g) {
    program **at = &buckets[bucket_of(g->key)];
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    g->next = ended;
    ended = g;
}

void cudago_xla_give(program *g) {
    pthread_mutex_lock(&mu);
    int last = !--g->uses;
    if (last) end(g);
    pthread_mutex_unlock(&mu);
    if (last) cudago_request_drain();
}

/* They are taken whole before any is freed: that may run Python, which drains again. */
void cudago_xla_sweep(void) {
    pthread_mutex_lock(&mu);
    program *g = ended;
    ended = NULL;
    pthread_mutex_unlock(&mu);
    for (program *next; g; g = next) {
        next = g->next;
        cudago_xla_free(g);
    }
}

/* --- the states of executables ---------------------------------------------------------------------------------------- */

/* XLA's threads call it when they like, also at the end of the process and in a forked child. */
static void destroy(void *state) {
    if (cudago_xla_enter()) cudago_xla_give(state);
    cudago_xla_leave();
}

/* Our type, as an XLA numbers it. A process has several: each plugin for devices is one. */
typedef struct known {
    const xla_api *api;
    xla_type type;
    struct known *next;
} known;
static known *all_known;
static pthread_mutex_t known_mu = PTHREAD_MUTEX_INITIALIZER; /* guards it, and is held while XLA registers the type, which calls nobody */

static xla_error *register_type(const xla_api *api, xla_type *type) {
    static const char name[] = "cudago_program";
    static const xla_type_info info = {.size = XLA_SIZE(xla_type_info, destroy), .destroy = destroy};
    xla_type_register r = {.size = api->version.minor < 2 ? XLA_SIZE(xla_type_register, type) : XLA_SIZE(xla_type_register, info),
                           .name = {name, sizeof name - 1},
                           .type = type,
                           .info = &info};
    return api->type_register(&r);
}

static xla_error *find_type(const xla_api *api, xla_type *type) {
    xla_error *e = NULL;
    pthread_mutex_lock(&known_mu);
    known *k = all_known;
    while (k && k->api != api) k = k->next;
    if (k) *type = k->type;
    else if (!(e = register_type(api, type)) && (k = malloc(sizeof *k))) {
        *k = (known){api, *type, all_known};
        all_known = k;
    }
    pthread_mutex_unlock(&known_mu);
    return e;
}

/* An XLA whose table has no states, by its size (jaxlib 0.5.3), never tells that an executable has ended: the program stays. */
xla_error *cudago_xla_hold(const xla_frame *f, program *g) {
    const xla_api *api = f->api;
    if (api->size < XLA_SIZE(xla_api, state_set)) return NULL;
    xla_type type = {0};
    xla_error *e = find_type(api, &type);
    xla_state_set_old old = {.size = api->version.minor < 2 ? XLA_SIZE(xla_state_set_old, destroy) : XLA_SIZE(xla_state_set_old, state),
                             .context = f->context,
                             .type = &type,
                             .state = g,
                             .destroy = destroy};
    xla_state_set now = {.size = XLA_SIZE(xla_state_set, state), .context = f->context, .stage = f->stage, .type = &type, .state = g};
    if (!e) e = api->state_set(api->version.minor < 3 ? (void *)&old : (void *)&now);
    if (e) cudago_xla_give(g);
    return e;
}
