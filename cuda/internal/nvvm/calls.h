// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// The prototypes of nvvm.h, CUDA 13.0 (unchanged since 12.0). fn is the call's address, which was looked up.

#ifndef CUDAGO_NVVM_CALLS_H
#define CUDAGO_NVVM_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t nvvmResult;
typedef uintptr_t nvvmProgram, address;

#define CAST(params) ((nvvmResult(*) params)fn)

static inline nvvmResult nvvmVersion(address fn, int *major, int *minor)
{ return CAST((int *, int *))(major, minor); }
static inline nvvmResult nvvmCreateProgram(address fn, nvvmProgram *program)
{ return CAST((nvvmProgram *))(program); }
static inline nvvmResult nvvmDestroyProgram(address fn, nvvmProgram *program)
{ return CAST((nvvmProgram *))(program); }

// nvvmAddModuleToProgram and nvvmLazyAddModuleToProgram, which keep a copy.
static inline nvvmResult nvvm_add(address fn, nvvmProgram program, const void *buffer, size_t size, const char *name)
{ return CAST((nvvmProgram, const char *, size_t, const char *))(program, buffer, size, name); }

// nvvmVerifyProgram and nvvmCompileProgram.
static inline nvvmResult nvvm_work(address fn, nvvmProgram program, int count, char **options)
{ return CAST((nvvmProgram, int, const char **))(program, count, (const char **)options); }

// The pairs nvvmGetXxxSize and nvvmGetXxx.
static inline nvvmResult nvvm_size(address fn, nvvmProgram program, size_t *size)
{ return CAST((nvvmProgram, size_t *))(program, size); }
static inline nvvmResult nvvm_bytes(address fn, nvvmProgram program, void *bytes)
{ return CAST((nvvmProgram, char *))(program, bytes); }

#endif
