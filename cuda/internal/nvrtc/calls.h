// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// One trampoline per NVRTC call, with the prototypes of nvrtc.h, CUDA 13.0
// (unchanged since 12.0). fn is the call's address, which was looked up.

#ifndef CUDAGO_NVRTC_CALLS_H
#define CUDAGO_NVRTC_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t nvrtcResult;
typedef uintptr_t nvrtcProgram, address;

#define CAST(params) ((nvrtcResult(*) params)fn)

static inline nvrtcResult nvrtcVersion(address fn, int *major, int *minor)
{ return CAST((int *, int *))(major, minor); }
static inline nvrtcResult nvrtcGetNumSupportedArchs(address fn, int *count)
{ return CAST((int *))(count); }
static inline nvrtcResult nvrtcGetSupportedArchs(address fn, int *archs)
{ return CAST((int *))(archs); }

static inline nvrtcResult nvrtcCreateProgram(address fn, nvrtcProgram *program, const char *source,
	const char *name, int count, char **headers, char **include_names)
{
	return CAST((nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *))
		(program, source, name, count, (const char *const *)headers, (const char *const *)include_names);
}
static inline nvrtcResult nvrtcDestroyProgram(address fn, nvrtcProgram *program)
{ return CAST((nvrtcProgram *))(program); }
static inline nvrtcResult nvrtcAddNameExpression(address fn, nvrtcProgram program, const char *expression)
{ return CAST((nvrtcProgram, const char *))(program, expression); }
static inline nvrtcResult nvrtcCompileProgram(address fn, nvrtcProgram program, int count, char **options)
{ return CAST((nvrtcProgram, int, const char *const *))(program, count, (const char *const *)options); }
// The name belongs to the program.
static inline nvrtcResult nvrtcGetLoweredName(address fn, nvrtcProgram program, const char *expression, char **name)
{ return CAST((nvrtcProgram, const char *, const char **))(program, expression, (const char **)name); }

// The pairs nvrtcGetXxxSize and nvrtcGetXxx.
static inline nvrtcResult nvrtc_size(address fn, nvrtcProgram program, size_t *size)
{ return CAST((nvrtcProgram, size_t *))(program, size); }
static inline nvrtcResult nvrtc_bytes(address fn, nvrtcProgram program, char *bytes)
{ return CAST((nvrtcProgram, char *))(program, bytes); }

#endif
