/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "xla.h"

#include "_cgo_export.h"

/* What XLA's threads call: to hold a program for an executable that calls it, and to make its launches, into XLA's stream.
 * For arrays of the host, which XLA has no stream for, on the simulated device: there the call returns when the kernels have
 * ended. */

static _Atomic int closed, inside;

static xla_error *report(const xla_frame *f, const char *message, int32_t code) {
    xla_error_create e = {.size = XLA_SIZE(xla_error_create, code), .message = message, .code = code};
    return f->api->error_create(&e);
}

/* What the driver said, with what is known of the fault. */
static void driver_problem(cudago_xla_problem *p, const cudago_xla_program *g, cudago_status *st) {
    cudago_xla_say(p, XLA_INTERNAL, "%s: %s", g->name, st->message ? st->message : "the driver failed");
    free(st->message);
    free(st->detail);
}

static void launch_problem(cudago_xla_problem *p, const cudago_xla_program *g, const cudago_xla_launch *l, const cudago_kernel *k, int32_t code) {
    const CUlaunchConfig *c = &l->config;
    char text[256];
    snprintf(text, sizeof text, "kernel %.100s, grid (%u, %u, %u), block (%u, %u, %u), %u bytes of dynamic shared memory, device %d",
             l->name, c->GridDimX, c->GridDimY, c->GridDimZ, c->BlockDimX, c->BlockDimY, c->BlockDimZ, c->SharedMemBytes, k->device);
    cudago_status st = {0};
    cudagoDetailError("cuLaunchKernelEx", code, k->device, text, &st);
    driver_problem(p, g, &st);
}

static int launch_one(const cudago_xla_program *g, const cudago_xla_launch *l, const cudago_kernel *k, void **data, uintptr_t stream,
                      cudago_xla_problem *p) {
    enum { SMALL_VALUES = 4096 }; /* what kernels could take up to CUDA 12.0 */
    uint8_t small[SMALL_VALUES] __attribute__((aligned(16))), *values = small;
    void *parameters[CUDAGO_MAX_PARAMS];
    if (l->size > sizeof small && !(values = malloc(l->size))) return cudago_xla_say(p, XLA_INTERNAL, "%s: out of memory", g->name), -1;
    memcpy(values, l->values, l->size);
    for (uint32_t i = 0; i < l->n_addresses; i++) memcpy(values + l->addresses[i].offset, &data[l->addresses[i].array], 8);
    for (uint32_t i = 0; i < l->n; i++) parameters[i] = values + l->offsets[i];
    CUlaunchConfig c = l->config;
    c.HStream = stream;
    uintptr_t pushed;
    int32_t code = cudago_ctx_enter(k->ctx, &pushed);
    if (!code) code = cu.cuLaunchKernelEx(&c, k->f, parameters, NULL);
    cudago_ctx_leave(pushed);
    if (values != small) free(values);
    if (code) launch_problem(p, g, l, k, code);
    return code ? -1 : 0;
}

/* The generation belongs to the GIL; a number that is read too early or too late is one of before or after the reset. */
static int is_lost(const cudago_kernel *k) {
    return __atomic_load_n(&cudago_generation[k->device], __ATOMIC_RELAXED) != k->generation;
}

static int launch_all(const cudago_xla_program *g, int32_t device, void **data, uintptr_t stream, cudago_xla_problem *p) {
    for (uint32_t i = 0; i < g->n_launches; i++) {
        const cudago_xla_launch *l = &g->launches[i];
        const cudago_kernel *k = atomic_load_explicit(&l->on[device], memory_order_acquire);
        if (!k || is_lost(k)) {
            cudago_xla_say(p, XLA_FAILED_PRECONDITION,
                           "%s: kernel %s is not loaded on device %d%s: jax.clear_caches() has the operator traced again", g->name, l->name,
                           device, k ? ", which was reset" : "");
            return -1;
        }
        if (launch_one(g, l, k, data, stream, p)) return -1;
    }
    return 0;
}

/* The device whose context XLA has made current for the stream. With one device there is no question. */
static int32_t device_of_call(const cudago_xla_program *g) {
    uintptr_t now = 0;
    int32_t found = 0, n = 0;
    int known = !cu.cuCtxGetCurrent(&now) && now;
    for (int32_t i = 0; i < CUDAGO_MAX_DEVICES; i++) {
        const cudago_kernel *k = atomic_load_explicit(&g->launches[0].on[i], memory_order_acquire);
        if (!k) continue;
        if (known && k->ctx == now) return i;
        found = i;
        n++;
    }
    return n == 1 ? found : -1;
}

static xla_error *run_on_stream(const xla_frame *f, const cudago_xla_program *g, void **data, cudago_xla_problem *p) {
    xla_stream_get s = {.size = XLA_SIZE(xla_stream_get, stream), .context = f->context};
    xla_error *e = f->api->stream_get(&s);
    if (e || !g->n_launches) return e;
    int32_t device = device_of_call(g);
    if (device < 0)
        cudago_xla_say(p, XLA_INTERNAL, "%s: the context that is current is of no device that the kernels are loaded on", g->name);
    else launch_all(g, device, data, (uintptr_t)s.stream, p);
    return NULL;
}

/* The arrays are the host's: the simulated device may use them during the call, and write to results alone. */
static void allow(const cudago_xla_program *g, void **data, int on) {
    for (uint32_t i = 0; i < g->n_arrays; i++) {
        const cudago_xla_array *a = &g->arrays[i];
        int is_argument = i < g->n_arguments;
        if (!a->nbytes || (is_argument && a->in >= 0)) continue;
        if (on) cudagoXlaAllow((uint64_t)(uintptr_t)data[i], a->nbytes, is_argument);
        else cudagoXlaDisallow((uint64_t)(uintptr_t)data[i], a->nbytes, is_argument);
    }
}

static xla_error *run_simulated(const xla_frame *f, const cudago_xla_program *g, void **data, cudago_xla_problem *p) {
    (void)f;
    if (!g->n_launches) return NULL;
    cudago_status st = {0};
    allow(g, data, 1);
    launch_all(g, 0, data, 0, p);
    cudagoXlaWait(0, &st); /* whatever happened: nothing may use the arrays after the call */
    allow(g, data, 0);
    if (st.kind && !p->code) driver_problem(p, g, &st);
    else free(st.message), free(st.detail);
    return NULL;
}

enum { FEW_ARRAYS = 64 };

static xla_error *run(const xla_frame *f, const cudago_xla_program *g, cudago_xla_problem *p) {
    void *few[FEW_ARRAYS], **data = g->n_arrays <= FEW_ARRAYS ? few : malloc(g->n_arrays * sizeof *data);
    xla_error *e = NULL;
    if (!data) cudago_xla_say(p, XLA_INTERNAL, "%s: out of memory", g->name);
    else if (!cudago_xla_arrays(f, g, data, p)) e = (g->simulated ? run_simulated : run_on_stream)(f, g, data, p);
    if (data != few) free(data);
    return e;
}

/* The caller's count is given back with a problem. */
static cudago_xla_program *program_of(const xla_frame *f, int host, cudago_xla_problem *p) {
    const xla_text *key = cudago_xla_key(f);
    cudago_xla_program *g = key ? cudago_xla_take(key->text, key->n) : NULL;
    if (!g)
        cudago_xla_say(p, XLA_FAILED_PRECONDITION,
                       "this process has not traced the operator that launches these kernels of cudago, or has let go of what it traced: "
                       "a function that was exported, or compiled by another process, has to be traced here, and its operator kept");
    else if (!g->simulated != !host) {
        const char *text = host ? "%s: cudago uses NVIDIA's driver, whose kernels cannot use arrays of JAX's CPU backend: put them on a "
                                  "device of CUDA (jax.device_put), or choose the simulated driver (CUDAGO_DRIVER=sim)"
                                : "%s: cudago uses the simulated driver, whose kernels cannot use arrays of CUDA's devices: choose JAX's "
                                  "CPU backend (JAX_PLATFORMS=cpu), or NVIDIA's driver (CUDAGO_DRIVER=nvidia)";
        char message[400];
        snprintf(message, sizeof message, text, g->name);
        cudago_xla_say(p, XLA_FAILED_PRECONDITION, "%s", message);
        cudago_xla_give(g);
    } else return g;
    return NULL;
}

/* Nothing of ours can be closed while a call is inside, and none gets inside after that has begun. */
int cudago_xla_enter(void) {
    atomic_fetch_add(&inside, 1);
    return !atomic_load(&closed) && !cudago_forked;
}

void cudago_xla_leave(void) { atomic_fetch_sub(&inside, 1); }

static xla_error *execute(const xla_frame *f, cudago_xla_program *g, cudago_xla_problem *p) {
    xla_error *e = run(f, g, p);
    cudago_xla_give(g);
    return e;
}

static xla_error *act(const xla_frame *f, int host, enum cudago_xla_frame_kind kind, cudago_xla_problem *p) {
    xla_error *e = NULL;
    cudago_xla_program *g;
    if (!cudago_xla_enter())
        cudago_xla_say(p, XLA_UNAVAILABLE, "cudago cannot be used any more: %s", cudago_forked ? "the process was forked" : "the interpreter is exiting");
    else if ((g = program_of(f, host, p))) e = kind == XLA_FRAME_EXECUTE ? execute(f, g, p) : cudago_xla_hold(f, g);
    cudago_xla_leave();
    return e;
}

static xla_error *handle(const xla_frame *f, int host) {
    cudago_xla_problem p = {.code = 0};
    xla_error *e = NULL;
    enum cudago_xla_frame_kind kind = cudago_xla_frame(f, &p);
    if (kind == XLA_FRAME_EXECUTE || kind == XLA_FRAME_INSTANTIATE) e = act(f, host, kind, &p);
    if (e || !p.code) return e;
    if (cudago_xla_has_api(f)) return report(f, p.text, p.code);
    fprintf(stderr, "cudago: %s\n", p.text); /* XLA does not accept a function that has left its question unanswered */
    return NULL;
}

xla_error *cudago_xla_host(xla_frame *f) { return handle(f, 1); }
xla_error *cudago_xla_cuda(xla_frame *f) { return handle(f, 0); }

int cudago_xla_close(long limit_ms) {
    enum { SLICE_US = 200 };
    atomic_store(&closed, 1);
    for (long us = 0; atomic_load(&inside); us += SLICE_US) {
        if (us >= 1000 * limit_ms) return 0;
        cudago_nap(SLICE_US);
    }
    return 1;
}

/* _xla_handler("cpu" or "CUDA") -> a capsule of the function, which JAX takes for both stages */
PyObject *cudago_xla_handler(PyObject *module, PyObject *platform) {
    (void)module;
    CUDAGO_ENTER(NULL);
    Py_ssize_t n;
    const char *name = PyUnicode_AsUTF8AndSize(platform, &n);
    if (!name) return NULL;
    int host = !strcmp(name, "cpu");
    if (!host && strcmp(name, "CUDA")) return PyErr_Format(PyExc_ValueError, "no handler for %U", platform);
    return PyCapsule_New((void *)(uintptr_t)(host ? cudago_xla_host : cudago_xla_cuda), NULL, NULL);
}
