// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "peer.h"

#include <stdlib.h>
#include <string.h>

/* A program that makes types in modules of ever new names must not make ever more libraries. */
enum { MOST = 256 };
static cudago_peer unknown = {.name = "unknown"};
static cudago_peer *last = &unknown;
static int n_peers = 1;

const cudago_peer *cudago_peers(void) { return &unknown; }

cudago_peer *cudago_peer_named(const char *module) {
    char name[sizeof unknown.name] = "";
    if (!module) return &unknown;
    size_t n = strcspn(module, ".");
    if (!n) return &unknown;
    /* A name is cut between two characters of UTF-8, never in one. */
    if (n >= sizeof name)
        for (n = sizeof name - 1; n && (module[n] & 0xC0) == 0x80;) n--;
    memcpy(name, module, n);
    for (cudago_peer *p = &unknown; p; p = p->next)
        if (!strcmp(p->name, name)) return p;
    cudago_peer *p = n_peers < MOST ? calloc(1, sizeof *p) : NULL;
    if (!p) return &unknown;
    memcpy(p->name, name, sizeof name);
    last->next = p;
    last = p;
    n_peers++;
    return p;
}
