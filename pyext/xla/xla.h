/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* xla.h: kernels that programs of XLA launch, which is what JAX makes of a function.
 *
 * A program is what an operator launches for arrays of certain shapes: kernels, configurations, values and the places of
 * the arrays' addresses, all known when JAX traced the operator. XLA's program has only its key. What JAX has traced holds a
 * program by a capsule, and each place in an executable of XLA's that calls it by a state, which XLA destroys with the
 * executable. When the last of them is gone, so is the program, with its kernels.
 *
 * XLA's threads run them, many at once, without the GIL, up to the end of the process. So no code here that they run touches
 * a Python object: what they read is written before a program is published, and never changed but for what is _Atomic. */
#pragma once
#include "abi.h"
#include "kernel/kernel.h"

enum { XLA_KEY_SIZE = 64 }; /* characters: a digest in hexadecimal */

/* An array as an operator was traced with it. */
typedef struct {
    int32_t type; /* XLA's number */
    int32_t in;   /* of an argument: the result that is in the same memory, or -1 */
    uint64_t count, nbytes;
} cudago_xla_array;

/* A parameter that is an array's address. */
typedef struct {
    uint32_t offset, array;
} cudago_xla_address;

typedef struct {
    cudago_kernel *_Atomic on[CUDAGO_MAX_DEVICES]; /* NULL where it is not loaded */
    CUlaunchConfig config;                         /* without a stream */
    CUlaunchAttribute attributes[CUDAGO_MAX_ATTRIBUTES];
    PyObject *kernel; /* on[] is its memory. GIL */
    char *name;
    uint8_t *values; /* size bytes: all parameters but the addresses */
    uint32_t *offsets;
    cudago_xla_address *addresses;
    uint32_t size, n, n_addresses;
} cudago_xla_launch;

typedef struct cudago_xla_program {
    char key[XLA_KEY_SIZE];
    char *name;        /* the operator's */
    int32_t simulated; /* made for the simulated driver: for arrays of the host */
    uint32_t n_arguments, n_arrays, n_launches;
    cudago_xla_array *arrays; /* arguments, then results */
    cudago_xla_launch *launches;
    int64_t uses;                    /* state.c's */
    struct cudago_xla_program *next; /* state.c's */
} cudago_xla_program;

/* state.c: the programs by their keys, and how long they live. Any thread, no GIL. */
cudago_xla_program *cudago_xla_take(const char *key, size_t n);     /* counted; NULL: there is none */
cudago_xla_program *cudago_xla_publish(cudago_xla_program *made);   /* counted: it, or the one that has its key already */
void cudago_xla_give(cudago_xla_program *g);                        /* takes a count back */
xla_error *cudago_xla_hold(const xla_frame *f, cudago_xla_program *g); /* the executable has the caller's count from now on */
void cudago_xla_sweep(void);                                        /* with the GIL: frees the programs that have ended */
void cudago_xla_free(cudago_xla_program *g);                        /* program.c; with the GIL */

/* frame.c: a frame that XLA calls with. Any thread, no GIL. */
typedef struct {
    char text[512];
    int32_t code; /* of absl's; 0: no error */
} cudago_xla_problem;
enum cudago_xla_frame_kind { XLA_FRAME_BAD,     /* the problem says why */
                             XLA_FRAME_QUERY,   /* was a question about us, and is answered */
                             XLA_FRAME_INSTANTIATE,
                             XLA_FRAME_EXECUTE };
/* Can an error be reported? */
int cudago_xla_has_api(const xla_frame *f);
enum cudago_xla_frame_kind cudago_xla_frame(const xla_frame *f, cudago_xla_problem *p);
const xla_text *cudago_xla_key(const xla_frame *f); /* NULL: there is none */
/* Are the arrays as they were when the operator was traced? Their addresses, in data, or -1 with a problem. */
int cudago_xla_arrays(const xla_frame *f, const cudago_xla_program *g, void **data, cudago_xla_problem *p);
void cudago_xla_say(cudago_xla_problem *p, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* run.c: what XLA calls, for arrays of the host and of CUDA's devices. */
xla_error *cudago_xla_host(xla_frame *f);
xla_error *cudago_xla_cuda(xla_frame *f);
/* These go around what XLA's threads do. enter: 0 if nothing is done any more. */
int cudago_xla_enter(void);
void cudago_xla_leave(void);
/* From now on nothing is run. Waits until nothing is being run, at most so long; 0 if something still is. GIL. */
int cudago_xla_close(long limit_ms);

PyObject *cudago_xla_pack(PyObject *module, PyObject *args);
PyObject *cudago_xla_program_new(PyObject *module, PyObject *args);
PyObject *cudago_xla_handler(PyObject *module, PyObject *platform);
int cudago_xla_room(PyObject *module); /* -1 with an exception */
