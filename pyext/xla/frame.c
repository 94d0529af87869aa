/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "xla.h"

#include <stdarg.h>

/* Reads what XLA calls with, and believes none of it before it has looked. No Python here. */

void cudago_xla_say(cudago_xla_problem *p, int32_t code, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vsnprintf(p->text, sizeof p->text, format, rest);
    va_end(rest);
    p->code = code;
}

int cudago_xla_has_api(const xla_frame *f) {
    return f && f->size >= XLA_SIZE(xla_frame, api) && f->api && f->api->size >= XLA_SIZE(xla_api, error_create) &&
           f->api->error_create;
}

static int too_small(cudago_xla_problem *p, const char *what, size_t size, size_t least) {
    if (size >= least) return 0;
    cudago_xla_say(p, XLA_FAILED_PRECONDITION,
                   "cudago knows XLA's interface for functions up to version %d.%d: %s has %zu bytes, and needs %zu; update "
                   "cudago or JAX",
                   XLA_MAJOR, XLA_MINOR, what, size, least);
    return -1;
}

static int wrong_version(const xla_version *v, cudago_xla_problem *p) {
    if (v->major == XLA_MAJOR) return 0;
    cudago_xla_say(p, XLA_FAILED_PRECONDITION,
                   "cudago knows version %d of XLA's interface for functions, this XLA has version %d.%d: update cudago or JAX",
                   XLA_MAJOR, v->major, v->minor);
    return -1;
}

/* Says which version we were written for, of those that XLA has, and that we may be captured. XLA that has version 0.1 takes
 * no other, and asks without its table of functions (seen in jaxlib 0.5.3). */
static enum cudago_xla_frame_kind answer(const xla_frame *f, const xla_metadata_extension *e, cudago_xla_problem *p) {
    if (too_small(p, "the question about a function", e->base.size, XLA_SIZE(xla_metadata_extension, metadata)))
        return XLA_FRAME_BAD;
    xla_metadata *m = e->metadata;
    if (too_small(p, "the answer about a function", m ? m->size : 0, XLA_SIZE(xla_metadata, traits))) return XLA_FRAME_BAD;
    int32_t minor = cudago_xla_has_api(f) ? f->api->version.minor : XLA_OLDEST;
    if (minor > XLA_MINOR) minor = XLA_MINOR;
    m->version.major = XLA_MAJOR;
    m->version.minor = minor < XLA_OLDEST ? XLA_OLDEST : minor;
    m->traits = XLA_TRAIT_COMMAND_BUFFERS;
    return XLA_FRAME_QUERY;
}

enum cudago_xla_frame_kind cudago_xla_frame(const xla_frame *f, cudago_xla_problem *p) {
    const xla_api *api = cudago_xla_has_api(f) ? f->api : NULL;
    if (api && wrong_version(&api->version, p)) return XLA_FRAME_BAD;
    if (too_small(p, "a call", f ? f->size : 0, XLA_SIZE(xla_frame, attributes))) return XLA_FRAME_BAD;
    for (const xla_extension *e = f->extensions; e; e = e->next)
        if (e->type == XLA_EXTENSION_METADATA) return answer(f, (const xla_metadata_extension *)e, p);
    if (too_small(p, "the table of functions", api ? api->size : 0, XLA_SIZE(xla_api, stream_get))) return XLA_FRAME_BAD;
    if (f->stage == XLA_STAGE_EXECUTE) return XLA_FRAME_EXECUTE;
    if (f->stage != XLA_STAGE_INSTANTIATE) {
        cudago_xla_say(p, XLA_INVALID_ARGUMENT, "cudago launches kernels in the stage in which XLA executes, not in stage %d", f->stage);
        return XLA_FRAME_BAD;
    }
    return XLA_FRAME_INSTANTIATE;
}

const xla_text *cudago_xla_key(const xla_frame *f) {
    static const char name[] = "program";
    const xla_attributes *a = &f->attributes;
    if (a->size < XLA_SIZE(xla_attributes, items)) return NULL;
    for (int64_t i = 0; i < a->n; i++) {
        const xla_text *t = a->names[i];
        if (a->kinds[i] != XLA_ATTRIBUTE_STRING || t->n != sizeof name - 1 || memcmp(t->text, name, t->n)) continue;
        return a->items[i];
    }
    return NULL;
}

static int count_of(const xla_buffer *b, uint64_t *count) {
    *count = 1;
    for (int64_t i = 0; i < b->rank; i++)
        if (b->shape[i] < 0 || __builtin_mul_overflow(*count, (uint64_t)b->shape[i], count)) return -1;
    return 0;
}

static int read_array(const cudago_xla_program *g, uint32_t i, int32_t kind, const xla_buffer *b, void **data, cudago_xla_problem *p) {
    const cudago_xla_array *want = &g->arrays[i];
    int is_result = i >= g->n_arguments;
    const char *what = is_result ? "result" : "argument";
    uint32_t index = is_result ? i - g->n_arguments : i;
    uint64_t count = 0;
    if (kind != XLA_ITEM_BUFFER || !b) {
        cudago_xla_say(p, XLA_INVALID_ARGUMENT, "%s: %s %u is no array", g->name, what, index);
        return -1;
    }
    if (too_small(p, "an array", b->size, XLA_SIZE(xla_buffer, shape))) return -1;
    if (count_of(b, &count) || count != want->count || b->type != want->type) {
        cudago_xla_say(p, XLA_INVALID_ARGUMENT,
                       "%s: %s %u has %llu elements of type %d (XLA's number), and was traced with %llu of type %d", g->name, what,
                       index, (unsigned long long)count, b->type, (unsigned long long)want->count, want->type);
        return -1;
    }
    if (!b->data && want->nbytes) {
        cudago_xla_say(p, XLA_INVALID_ARGUMENT, "%s: %s %u has no memory", g->name, what, index);
        return -1;
    }
    *data = b->data;
    return 0;
}

static int read_items(const cudago_xla_program *g, const xla_items *items, const char *what, uint32_t first, uint32_t n, void **data,
                      cudago_xla_problem *p) {
    if (too_small(p, what, items->size, XLA_SIZE(xla_items, items))) return -1;
    if (items->n != n) {
        cudago_xla_say(p, XLA_INVALID_ARGUMENT, "%s was traced with %u %s, and is called with %lld", g->name, n, what, (long long)items->n);
        return -1;
    }
    for (uint32_t i = 0; i < n; i++)
        if (read_array(g, first + i, items->kinds[i], items->items[i], &data[first + i], p)) return -1;
    return 0;
}

int cudago_xla_arrays(const xla_frame *f, const cudago_xla_program *g, void **data, cudago_xla_problem *p) {
    if (read_items(g, &f->arguments, "arguments", 0, g->n_arguments, data, p)) return -1;
    if (read_items(g, &f->results, "results", g->n_arguments, g->n_arrays - g->n_arguments, data, p)) return -1;
    for (uint32_t i = 0; i < g->n_arguments; i++) {
        int32_t in = g->arrays[i].in;
        if (in < 0 || data[i] == data[g->n_arguments + (uint32_t)in]) continue;
        cudago_xla_say(p, XLA_INTERNAL, "%s: argument %u and result %d must be in the same memory, and XLA has put them into two places",
                       g->name, i, in);
        return -1;
    }
    return 0;
}
