// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* peer.h: the libraries that tensors are taken from, each with its counts. All of it needs the GIL. */
#pragma once
#include <stdint.h>

/* How a tensor passes from one library to another. */
enum cudago_exchange_way {
    CUDAGO_WAY_TABLE,     /* DLPack's C exchange table */
    CUDAGO_WAY_CAPSULE,   /* a capsule with a version */
    CUDAGO_WAY_LEGACY,    /* a capsule from before DLPack 1.0 */
    CUDAGO_WAY_INTERFACE, /* __cuda_array_interface__, in which nobody owns anything */
    CUDAGO_WAYS
};

typedef struct {
    int64_t taken, released;
} cudago_imports;

/* A library lives for good, so that whoever holds a tensor of it can count without asking whether it does. */
typedef struct cudago_peer {
    cudago_imports ways[CUDAGO_WAYS];
    struct cudago_peer *next;
    char name[64];
} cudago_peer;

/* The library of a module: what stands before the first dot of its name. NULL or an empty name is "unknown", and so is
 * what comes after the first few hundred libraries, or finds no memory. */
cudago_peer *cudago_peer_named(const char *module);

/* The first of all libraries; each has the next. */
const cudago_peer *cudago_peers(void);
