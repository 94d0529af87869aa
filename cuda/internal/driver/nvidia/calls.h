// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// One trampoline per driver call: it takes the call's address, which Go looked
// up at run time, and calls it with its C prototype. Prototypes are those of
// cuda.h, CUDA 13.5, in the versions that zentry.go asks for. Most are in
// zcalls.h; here are those of methods that do more than pass arguments on.
//
// Single results come back by value, so that no pointer to Go memory is passed
// and nothing escapes to Go's heap. Parameter structs are passed by value and
// have no pointers in C: a copy in C memory may hold pointers to pinned Go
// memory without being subject to cgo's pointer checks.

#ifndef CUDAGO_NVIDIA_CALLS_H
#define CUDAGO_NVIDIA_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "../zabi.h"

typedef uintptr_t address;
typedef struct { uint8_t bytes[16]; } CUuuid;

typedef struct { CUresult r; uint64_t value; } out;
typedef struct { CUresult r; uint64_t first, second; } out_pair;
typedef struct { CUresult r; float value; } out_float;

#define CAST(params) ((CUresult(*) params)fn)
#define GUARD(result_type) \
	if (fn == 0) { \
		result_type missing = {CUDA_ERROR_NOT_SUPPORTED}; \
		return missing; \
	}

#include "zcalls.h"

static inline CUresult cuDeviceGetName(address fn, char *name, int size, CUdevice dev)
{
	return fn ? CAST((char *, int, CUdevice))(name, size, dev) : CUDA_ERROR_NOT_SUPPORTED;
}

static inline CUresult cuDeviceGetPCIBusId(address fn, char *id, int size, CUdevice dev)
{
	return fn ? CAST((char *, int, CUdevice))(id, size, dev) : CUDA_ERROR_NOT_SUPPORTED;
}

// Without groups it counts those that there could be.
static inline CUresult cuDevSmResourceSplitByCount(address fn, CUdevResource *groups, unsigned *count, const CUdevResource *input,
	CUdevResource *left, unsigned flags, unsigned min_count)
{
	return fn ? CAST((CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned, unsigned))(groups, count, input,
		left, flags, min_count) : CUDA_ERROR_NOT_SUPPORTED;
}

static inline out cuDevResourceGenerateDesc(address fn, CUdevResource *resources, unsigned count)
{
	GUARD(out)
	CUdevResourceDesc desc = 0;
	CUresult r = CAST((CUdevResourceDesc *, CUdevResource *, unsigned))(&desc, resources, count);
	out o = {r, desc};
	return o;
}

// The driver wants its result aligned to 64 bytes, which Go's memory is not.
static inline CUresult cuTensorMapEncodeTiled(address fn, CUtensorMap *out, CUtensorMapDataType type, uint32_t rank, uint64_t tensor,
	const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	if (fn == 0) return CUDA_ERROR_NOT_SUPPORTED;
	CUtensorMap map __attribute__((aligned(64))) = {0};
	CUresult r = CAST((CUtensorMap *, CUtensorMapDataType, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
		const uint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill))(&map, type,
		rank, (void *)(uintptr_t)tensor, dims, strides, box, steps, interleave, swizzle, promotion, fill);
	*out = map;
	return r;
}

static inline CUresult cuTensorMapEncodeIm2col(address fn, CUtensorMap *out, CUtensorMapDataType type, uint32_t rank, uint64_t tensor,
	const uint64_t *dims, const uint64_t *strides, const int *lower, const int *upper, uint32_t channels, uint32_t pixels, const uint32_t *steps,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	if (fn == 0) return CUDA_ERROR_NOT_SUPPORTED;
	CUtensorMap map __attribute__((aligned(64))) = {0};
	CUresult r = CAST((CUtensorMap *, CUtensorMapDataType, uint32_t, void *, const uint64_t *, const uint64_t *, const int *, const int *,
		uint32_t, uint32_t, const uint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill))(&map,
		type, rank, (void *)(uintptr_t)tensor, dims, strides, lower, upper, channels, pixels, steps, interleave, swizzle, promotion, fill);
	*out = map;
	return r;
}

static inline CUresult cuTensorMapEncodeIm2colWide(address fn, CUtensorMap *out, CUtensorMapDataType type, uint32_t rank, uint64_t tensor,
	const uint64_t *dims, const uint64_t *strides, int lower, int upper, uint32_t channels, uint32_t pixels, const uint32_t *steps,
	CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
	CUtensorMapFloatOOBfill fill)
{
	if (fn == 0) return CUDA_ERROR_NOT_SUPPORTED;
	CUtensorMap map __attribute__((aligned(64))) = {0};
	CUresult r = CAST((CUtensorMap *, CUtensorMapDataType, uint32_t, void *, const uint64_t *, const uint64_t *, int, int, uint32_t, uint32_t,
		const uint32_t *, CUtensorMapInterleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle, CUtensorMapL2promotion,
		CUtensorMapFloatOOBfill))(&map, type, rank, (void *)(uintptr_t)tensor, dims, strides, lower, upper, channels, pixels, steps, interleave,
		mode, swizzle, promotion, fill);
	*out = map;
	return r;
}

typedef struct {
	CUresult r;
	CUstreamCaptureStatus status;
	uint64_t id;
	CUgraph graph;
	const CUgraphNode *deps; // the driver's; valid until the stream's next call
	size_t count;
} capture_info;

// cuStreamGetCaptureInfo_v3. With edges asked for, so that a programmatic edge
// is no CUDA_ERROR_LOSSY_QUERY.
static inline capture_info cuStreamGetCaptureInfo(address fn, CUstream s, int with_deps)
{
	GUARD(capture_info)
	capture_info o = {0};
	const CUgraphEdgeData *edges = NULL;
	o.r = CAST((CUstream, CUstreamCaptureStatus *, uint64_t *, CUgraph *, const CUgraphNode **,
		const CUgraphEdgeData **, size_t *))(s, &o.status, &o.id, &o.graph, with_deps ? &o.deps : NULL,
		with_deps ? &edges : NULL, with_deps ? &o.count : NULL);
	return o;
}

static inline out cuThreadExchangeStreamCaptureMode(address fn, CUstreamCaptureMode mode)
{
	GUARD(out)
	CUresult r = CAST((CUstreamCaptureMode *))(&mode);
	out o = {r, (uint64_t)mode};
	return o;
}

// The driver reads and writes an int for attributes 1 to 3 and 64 bits for the
// others (cuda.h, CUmemPool_attribute).
static inline CUresult cuMemPoolSetAttribute(address fn, CUmemoryPool pool, CUmemPool_attribute attr, uint64_t value)
{
	int narrow = (int)value;
	void *p = attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? (void *)&narrow : (void *)&value;
	return fn ? CAST((CUmemoryPool, CUmemPool_attribute, void *))(pool, attr, p) : CUDA_ERROR_NOT_SUPPORTED;
}

static inline out cuMemPoolGetAttribute(address fn, CUmemoryPool pool, CUmemPool_attribute attr)
{
	GUARD(out)
	int narrow = 0;
	uint64_t value = 0;
	void *p = attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? (void *)&narrow : (void *)&value;
	CUresult r = CAST((CUmemoryPool, CUmemPool_attribute, void *))(pool, attr, p);
	out o = {r, attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? (uint64_t)narrow : value};
	return o;
}

// All attributes are 64 bits (cuda.h, CUgraphMem_attribute).
static inline CUresult cuDeviceSetGraphMemAttribute(address fn, CUdevice dev, CUgraphMem_attribute attr, uint64_t value)
{
	return fn ? CAST((CUdevice, CUgraphMem_attribute, void *))(dev, attr, &value) : CUDA_ERROR_NOT_SUPPORTED;
}

static inline out cuDeviceGetGraphMemAttribute(address fn, CUdevice dev, CUgraphMem_attribute attr)
{
	GUARD(out)
	uint64_t value = 0;
	CUresult r = CAST((CUdevice, CUgraphMem_attribute, void *))(dev, attr, &value);
	out o = {r, value};
	return o;
}

// A file descriptor is an int at the given address on the way out, and the
// pointer itself on the way in (cuda.h, CUmemAllocationHandleType).
static inline out cuMemPoolExportToShareableHandle(address fn, CUmemoryPool pool, CUmemAllocationHandleType type, uint64_t flags)
{
	GUARD(out)
	union { int fd; char fabric[64]; } handle = {-1}; // room for the largest kind
	CUresult r = CAST((void *, CUmemoryPool, CUmemAllocationHandleType, unsigned long long))(&handle, pool, type, flags);
	out o = {r, (uint64_t)(int64_t)handle.fd};
	return o;
}

static inline out cuMemPoolImportFromShareableHandle(address fn, int fd, CUmemAllocationHandleType type, uint64_t flags)
{
	GUARD(out)
	CUmemoryPool pool = 0;
	CUresult r = CAST((CUmemoryPool *, void *, CUmemAllocationHandleType, unsigned long long))(&pool, (void *)(intptr_t)fd, type, flags);
	out o = {r, (uint64_t)pool};
	return o;
}

static inline out cuMemExportToShareableHandle(address fn, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, uint64_t flags)
{
	GUARD(out)
	union { int fd; char fabric[64]; } handle = {-1}; // room for the largest kind
	CUresult r = CAST((void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long))(&handle, h, type, flags);
	out o = {r, (uint64_t)(int64_t)handle.fd};
	return o;
}

static inline out cuMemImportFromShareableHandle(address fn, int fd, CUmemAllocationHandleType type)
{
	GUARD(out)
	CUmemGenericAllocationHandle h = 0;
	CUresult r = CAST((CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType))(&h, (void *)(intptr_t)fd, type);
	out o = {r, h};
	return o;
}

// Attributes have 1, 4 or 8 bytes; the hosts that CUDA runs on are little
// endian, so that the zeroed rest widens the value. Only the device ordinal
// is signed.
static inline out cuPointerGetAttribute(address fn, CUpointer_attribute attr, CUdeviceptr p)
{
	GUARD(out)
	uint64_t value = 0;
	CUresult r = CAST((void *, CUpointer_attribute, CUdeviceptr))(&value, attr, p);
	out o = {r, attr == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)(int64_t)(int32_t)value : value};
	return o;
}

typedef struct {
	CUresult r;
	CUmodule module;
	uint32_t log_size; // bytes of the log that the driver wrote
} loaded;

// log may be memory of Go: the array that points at it is C's.
static inline loaded cuModuleLoadDataEx(address fn, const void *image, char *log, uint32_t log_size)
{
	GUARD(loaded)
	enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
	int options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[2] = {log, (void *)(uintptr_t)log_size};
	loaded o = {0, 0, 0};
	o.r = CAST((CUmodule *, const void *, unsigned, int *, void **))(&o.module, image, 2, options, values);
	o.log_size = (uint32_t)(uintptr_t)values[1];
	return o;
}

static inline out cuModuleGetFunctionCount(address fn, CUmodule m)
{
	GUARD(out)
	unsigned count = 0;
	CUresult r = CAST((unsigned *, CUmodule))(&count, m);
	out o = {r, count};
	return o;
}

static inline CUresult cuModuleEnumerateFunctions(address fn, CUfunction *functions, unsigned count, CUmodule m)
{
	return fn ? CAST((CUfunction *, unsigned, CUmodule))(functions, count, m) : CUDA_ERROR_NOT_SUPPORTED;
}

typedef struct { CUresult r; const char *name; } function_name;

// The name belongs to the module.
static inline function_name cuFuncGetName(address fn, CUfunction f)
{
	GUARD(function_name)
	function_name o = {0, NULL};
	o.r = CAST((const char **, CUfunction))(&o.name, f);
	return o;
}

static inline CUresult cuLaunchKernelEx(address fn, CUlaunchConfig config, CUfunction f, uintptr_t params)
{
	return fn ? CAST((const CUlaunchConfig *, CUfunction, void **, void **))(&config, f, (void **)params, NULL)
		: CUDA_ERROR_NOT_SUPPORTED;
}

// Bodies are copied out: the array is the node's.
static inline out cuGraphAddNode(address fn, CUgraph g, const CUgraphNode *deps, size_t count, CUgraphNodeParams p,
	CUgraph *bodies, uint32_t size)
{
	GUARD(out)
	CUgraphNode v = 0;
	CUresult r = CAST((CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUgraphNodeParams *))
		(&v, g, deps, NULL, count, &p);
	const CUgraph *made = (const CUgraph *)p.Conditional.PhGraph_out;
	for (uint32_t i = 0; r == 0 && i < size; i++)
		bodies[i] = made[i];
	out o = {r, (uint64_t)v};
	return o;
}

static inline CUresult cuGraphGetNodes(address fn, CUgraph g, CUgraphNode *nodes, size_t *count)
{
	return fn ? CAST((CUgraph, CUgraphNode *, size_t *))(g, nodes, count) : CUDA_ERROR_NOT_SUPPORTED;
}

// The _v2 calls, with edges asked for: see cuStreamGetCaptureInfo.
static inline CUresult cuGraphGetEdges(address fn, CUgraph g, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edges, size_t *count)
{
	return fn ? CAST((CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *))
		(g, from, to, edges, count) : CUDA_ERROR_NOT_SUPPORTED;
}

static inline CUresult cuGraphNodeGetDependencies(address fn, CUgraphNode n, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
	return fn ? CAST((CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *))(n, nodes, edges, count) : CUDA_ERROR_NOT_SUPPORTED;
}

#endif
