// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// The prototypes of nvJitLink.h, CUDA 13.0 (unchanged since 12.0, but for what was added). fn is the call's address, which
// was looked up.

#ifndef CUDAGO_NVJITLINK_CALLS_H
#define CUDAGO_NVJITLINK_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t nvJitLinkResult;
typedef uintptr_t nvJitLinkHandle, address;

#define CAST(params) ((nvJitLinkResult(*) params)fn)

static inline nvJitLinkResult nvJitLinkVersion(address fn, unsigned *major, unsigned *minor)
{ return CAST((unsigned *, unsigned *))(major, minor); }
static inline nvJitLinkResult nvJitLinkCreate(address fn, nvJitLinkHandle *handle, uint32_t count, char **options)
{ return CAST((nvJitLinkHandle *, uint32_t, const char **))(handle, count, (const char **)options); }
static inline nvJitLinkResult nvJitLinkDestroy(address fn, nvJitLinkHandle *handle)
{ return CAST((nvJitLinkHandle *))(handle); }
static inline nvJitLinkResult nvJitLinkAddData(address fn, nvJitLinkHandle handle, int32_t type, const void *data, size_t size, const char *name)
{ return CAST((nvJitLinkHandle, int32_t, const void *, size_t, const char *))(handle, type, data, size, name); }
static inline nvJitLinkResult nvJitLinkComplete(address fn, nvJitLinkHandle handle)
{ return CAST((nvJitLinkHandle))(handle); }

// The pairs nvJitLinkGetXxxSize and nvJitLinkGetXxx.
static inline nvJitLinkResult nvjitlink_size(address fn, nvJitLinkHandle handle, size_t *size)
{ return CAST((nvJitLinkHandle, size_t *))(handle, size); }
static inline nvJitLinkResult nvjitlink_bytes(address fn, nvJitLinkHandle handle, void *bytes)
{ return CAST((nvJitLinkHandle, void *))(handle, bytes); }

#endif
