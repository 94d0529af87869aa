/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* abi.h: what cudago uses of the binary interface between XLA and the functions that its programs call.
 *
 * The facts are those of xla/ffi/api/c_api.h, as jaxlib ships it: 0.5.3 and 0.8.0 (version 0.1 of the interface), 0.8.2 and
 * 0.9.0 (0.2), 0.10.2 (0.3). Version 0.1 is the oldest that XLA accepts. Later versions appended members to these structs;
 * what they changed is said where it is. Every
 * struct begins with its size in bytes as the other side knows it; one that is smaller than ours is of an interface that
 * we do not know. Enumerations are C's, which have 32 bits here. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { XLA_MAJOR = 0,
       XLA_OLDEST = 1,
       XLA_MINOR = 3 }; /* the newest version that was read */

enum { XLA_EXTENSION_METADATA = 1 };
enum { XLA_STAGE_INSTANTIATE = 0,
       XLA_STAGE_EXECUTE = 3 };
enum { XLA_ITEM_BUFFER = 1 };
enum { XLA_ATTRIBUTE_STRING = 4 };
enum { XLA_TRAIT_COMMAND_BUFFERS = 1 }; /* always the same work for the same addresses: may be captured and replayed */

/* Of absl's codes. */
enum { XLA_INVALID_ARGUMENT = 3,
       XLA_FAILED_PRECONDITION = 9,
       XLA_INTERNAL = 13,
       XLA_UNAVAILABLE = 14 };

typedef struct xla_error xla_error; /* XLA's own */

typedef struct {
    const char *text; /* without a NUL */
    size_t n;
} xla_text;

typedef struct xla_extension {
    size_t size;
    int32_t type;
    struct xla_extension *next;
} xla_extension;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int32_t major, minor;
} xla_version;

typedef struct {
    size_t size;
    xla_version version;
    uint32_t traits; /* version 0.3 has a member behind it, which is XLA's to set */
} xla_metadata;

typedef struct {
    xla_extension base;
    xla_metadata *metadata; /* to be filled in */
} xla_metadata_extension;

typedef struct {
    size_t size;
    xla_extension *extensions;
    const char *message; /* copied */
    int32_t code;
} xla_error_create;

typedef struct {
    size_t size;
    xla_extension *extensions;
    xla_error *error;
} xla_error_destroy;

typedef struct {
    size_t size;
    xla_extension *extensions;
    void *context;
    void *stream; /* answered: CUDA's */
} xla_stream_get;

/* What a state is made of, for XLA: by it alone a state is destroyed since version 0.2. */
typedef struct {
    int64_t id; /* 0: XLA answers with one */
} xla_type;

typedef struct {
    size_t size;
    xla_extension *extensions;
    void (*destroy)(void *state); /* any thread; together with the executable */
} xla_type_info;

typedef struct {
    size_t size;
    xla_extension *extensions;
    xla_text name; /* which a process uses once */
    xla_type *type;
    const xla_type_info *info; /* since version 0.2 */
} xla_type_register;

/* Up to version 0.2, which ends before destroy. */
typedef struct {
    size_t size;
    xla_extension *extensions;
    void *context;
    xla_type *type;
    void *state;
    void (*destroy)(void *state);
} xla_state_set_old;

typedef struct {
    size_t size;
    xla_extension *extensions;
    void *context;
    int32_t stage;
    xla_type *type;
    void *state;
} xla_state_set;

typedef struct {
    size_t size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_create *);
    void *error_get_message;
    void (*error_destroy)(xla_error_destroy *);
    void *handler_register;
    xla_error *(*stream_get)(xla_stream_get *);
    xla_error *(*type_register)(xla_type_register *);
    void *context_get;
    xla_error *(*state_set)(void *); /* xla_state_set, or xla_state_set_old */
} xla_api;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int32_t type;
    void *data;
    int64_t rank;
    int64_t *shape;
} xla_buffer;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int64_t n;
    int32_t *kinds;
    void **items;
} xla_items; /* arguments and results have the same layout */

typedef struct {
    size_t size;
    xla_extension *extensions;
    int64_t n;
    int32_t *kinds;
    xla_text **names;
    void **items; /* of a string: xla_text */
} xla_attributes;

typedef struct {
    size_t size;
    xla_extension *extensions;
    const xla_api *api;
    void *context;
    int32_t stage;
    xla_items arguments, results;
    xla_attributes attributes;
} xla_frame;

/* The size of a struct up to its last member that we use, without the padding behind. */
#define XLA_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "64 bits");
_Static_assert(offsetof(xla_api, stream_get) == 80, "the fifth function");
_Static_assert(offsetof(xla_api, state_set) == 104, "the eighth function");
_Static_assert(XLA_SIZE(xla_state_set_old, state) == 40 && sizeof(xla_state_set) == 48, "by its size XLA knows the old form");
_Static_assert(offsetof(xla_frame, arguments) == 40 && sizeof(xla_frame) == 168, "the frame holds its parts");
