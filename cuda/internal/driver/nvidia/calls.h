// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// One trampoline per driver call: it takes the call's address, which Go looked
// up at run time, and calls it with its C prototype. Prototypes are those of
// cuda.h, CUDA 13.5, in the versions that entry.go asks for.
//
// Single results come back by value, so that no pointer to Go memory is passed
// and nothing escapes to Go's heap. Parameter structs travel as plain words:
// their layout is package driver's matter, and a copy in C memory may hold
// pointers to pinned Go memory without being subject to cgo's pointer checks.

#ifndef CUDAGO_NVIDIA_CALLS_H
#define CUDAGO_NVIDIA_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t CUresult;
#define RESULT_INVALID_VALUE 1
#define RESULT_NOT_SUPPORTED 801

// Handles are pointers in cuda.h; a uintptr_t is passed in the same register
// and is not mistaken for a Go pointer.
typedef int32_t CUdevice;
typedef uint64_t CUdeviceptr;
typedef uintptr_t CUcontext, CUstream, CUevent, CUmodule, CUfunction;
typedef uintptr_t CUmemoryPool, CUgraph, CUgraphNode, CUgraphExec;
typedef uint64_t CUmemGenericAllocationHandle, CUgraphConditionalHandle;
typedef uintptr_t CUhostFn, address;
typedef int32_t enumeration;

#define WORDS(n) struct { uint64_t word[n]; }
typedef WORDS(11) CUmemPoolProps;
typedef WORDS(4) CUmemAllocationProp;
typedef WORDS(7) CUlaunchConfig;
typedef WORDS(9) CUDA_KERNEL_NODE_PARAMS;
typedef WORDS(25) CUDA_MEMCPY3D;
typedef WORDS(5) CUDA_MEMSET_NODE_PARAMS;
typedef WORDS(2) CUDA_HOST_NODE_PARAMS;
typedef WORDS(15) CUDA_MEM_ALLOC_NODE_PARAMS;
typedef WORDS(32) CUgraphNodeParams;
typedef WORDS(4) CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef WORDS(3) CUgraphExecUpdateResultInfo;
typedef WORDS(1) CUgraphEdgeData;
#undef WORDS
typedef struct { int32_t word[3]; } CUmemAccessDesc;
typedef struct { int32_t type, id; } CUmemLocation;

typedef struct { CUresult r; uint64_t value; } out;
typedef struct { CUresult r; uint64_t first, second; } out_pair;
typedef struct { CUresult r; float value; } out_float;

#define CAST(params) ((CUresult(*) params)fn)
#define GUARD(result_type) \
	if (fn == 0) { \
		result_type missing = {RESULT_NOT_SUPPORTED}; \
		return missing; \
	}

// INn: n inputs, no output.
#define IN0(name) \
	static inline CUresult name(address fn) \
	{ return fn ? CAST((void))() : RESULT_NOT_SUPPORTED; }
#define IN1(name, A) \
	static inline CUresult name(address fn, A a) \
	{ return fn ? CAST((A))(a) : RESULT_NOT_SUPPORTED; }
#define IN2(name, A, B) \
	static inline CUresult name(address fn, A a, B b) \
	{ return fn ? CAST((A, B))(a, b) : RESULT_NOT_SUPPORTED; }
#define IN3(name, A, B, C) \
	static inline CUresult name(address fn, A a, B b, C c) \
	{ return fn ? CAST((A, B, C))(a, b, c) : RESULT_NOT_SUPPORTED; }
#define IN4(name, A, B, C, D) \
	static inline CUresult name(address fn, A a, B b, C c, D d) \
	{ return fn ? CAST((A, B, C, D))(a, b, c, d) : RESULT_NOT_SUPPORTED; }
#define IN5(name, A, B, C, D, E) \
	static inline CUresult name(address fn, A a, B b, C c, D d, E e) \
	{ return fn ? CAST((A, B, C, D, E))(a, b, c, d, e) : RESULT_NOT_SUPPORTED; }

// FIRSTn: an output of type T in front of n inputs.
#define FIRST0(name, T) \
	static inline out name(address fn) \
	{ GUARD(out) T v = 0; CUresult r = CAST((T *))(&v); out o = {r, (uint64_t)v}; return o; }
#define FIRST1(name, T, A) \
	static inline out name(address fn, A a) \
	{ GUARD(out) T v = 0; CUresult r = CAST((T *, A))(&v, a); out o = {r, (uint64_t)v}; return o; }
#define FIRST2(name, T, A, B) \
	static inline out name(address fn, A a, B b) \
	{ GUARD(out) T v = 0; CUresult r = CAST((T *, A, B))(&v, a, b); out o = {r, (uint64_t)v}; return o; }
#define FIRST3(name, T, A, B, C) \
	static inline out name(address fn, A a, B b, C c) \
	{ GUARD(out) T v = 0; CUresult r = CAST((T *, A, B, C))(&v, a, b, c); out o = {r, (uint64_t)v}; return o; }
#define FIRST4(name, T, A, B, C, D) \
	static inline out name(address fn, A a, B b, C c, D d) \
	{ GUARD(out) T v = 0; CUresult r = CAST((T *, A, B, C, D))(&v, a, b, c, d); out o = {r, (uint64_t)v}; return o; }

// LASTn: an output of type T behind n inputs.
#define LAST1(name, A, T) \
	static inline out name(address fn, A a) \
	{ GUARD(out) T v = 0; CUresult r = CAST((A, T *))(a, &v); out o = {r, (uint64_t)v}; return o; }
#define LAST2(name, A, B, T) \
	static inline out name(address fn, A a, B b) \
	{ GUARD(out) T v = 0; CUresult r = CAST((A, B, T *))(a, b, &v); out o = {r, (uint64_t)v}; return o; }

// Initialization, version, devices.
IN1(cuInit, unsigned)
FIRST0(cuDriverGetVersion, int)
FIRST0(cuDeviceGetCount, int)
FIRST1(cuDeviceGet, CUdevice, int)
IN3(cuDeviceGetName, char *, int, CUdevice)
IN2(cuDeviceGetUuid, unsigned char *, CUdevice)
FIRST1(cuDeviceTotalMem, size_t, CUdevice)
FIRST2(cuDeviceGetAttribute, int, enumeration, CUdevice)
IN3(cuDeviceGetPCIBusId, char *, int, CUdevice)
FIRST2(cuDeviceCanAccessPeer, int, CUdevice, CUdevice)

// Contexts.
FIRST1(cuDevicePrimaryCtxRetain, CUcontext, CUdevice)
IN1(cuDevicePrimaryCtxRelease, CUdevice)
IN1(cuDevicePrimaryCtxReset, CUdevice)
FIRST0(cuCtxGetCurrent, CUcontext)
IN1(cuCtxSetCurrent, CUcontext)
IN1(cuCtxPushCurrent, CUcontext)
FIRST0(cuCtxPopCurrent, CUcontext)
FIRST0(cuCtxGetDevice, CUdevice)
IN0(cuCtxSynchronize)

static inline out_pair cuCtxGetStreamPriorityRange(address fn)
{
	GUARD(out_pair)
	int least = 0, greatest = 0;
	CUresult r = CAST((int *, int *))(&least, &greatest);
	out_pair o = {r, (uint64_t)least, (uint64_t)greatest};
	return o;
}

IN2(cuCtxEnablePeerAccess, CUcontext, unsigned)
IN1(cuCtxDisablePeerAccess, CUcontext)

// Streams.
FIRST2(cuStreamCreateWithPriority, CUstream, unsigned, int)
IN1(cuStreamDestroy, CUstream)
IN1(cuStreamSynchronize, CUstream)
IN1(cuStreamQuery, CUstream)
IN3(cuStreamWaitEvent, CUstream, CUevent, unsigned)
LAST1(cuStreamGetPriority, CUstream, int)
LAST1(cuStreamGetFlags, CUstream, unsigned)
LAST1(cuStreamGetId, CUstream, unsigned long long)
LAST1(cuStreamGetCtx, CUstream, CUcontext)
IN3(cuLaunchHostFunc, CUstream, CUhostFn, uintptr_t)
IN2(cuStreamBeginCapture, CUstream, enumeration)
LAST1(cuStreamEndCapture, CUstream, CUgraph)
LAST1(cuStreamIsCapturing, CUstream, enumeration)

typedef struct {
	CUresult r;
	enumeration status;
	uint64_t id;
	CUgraph graph;
	const CUgraphNode *deps; // the driver's; valid until the stream's next call
	size_t count;
} capture_info;

// cuStreamGetCaptureInfo_v3. With edges asked for, so that a programmatic edge
// is no CUDA_ERROR_LOSSY_QUERY.
static inline capture_info cuStreamGetCaptureInfo(address fn, CUstream s)
{
	GUARD(capture_info)
	capture_info o = {0};
	const CUgraphEdgeData *edges = NULL;
	o.r = CAST((CUstream, enumeration *, uint64_t *, CUgraph *, const CUgraphNode **,
		const CUgraphEdgeData **, size_t *))(s, &o.status, &o.id, &o.graph, &o.deps, &edges, &o.count);
	return o;
}

static inline out cuThreadExchangeStreamCaptureMode(address fn, enumeration mode)
{
	GUARD(out)
	CUresult r = CAST((enumeration *))(&mode);
	out o = {r, (uint64_t)mode};
	return o;
}

// Events.
FIRST1(cuEventCreate, CUevent, unsigned)
IN1(cuEventDestroy, CUevent)
IN2(cuEventRecord, CUevent, CUstream)
IN1(cuEventQuery, CUevent)
IN1(cuEventSynchronize, CUevent)

static inline out_float cuEventElapsedTime(address fn, CUevent start, CUevent end)
{
	GUARD(out_float)
	out_float o = {0, 0};
	o.r = CAST((float *, CUevent, CUevent))(&o.value, start, end);
	return o;
}

// Memory.
static inline out_pair cuMemGetInfo(address fn)
{
	GUARD(out_pair)
	size_t free_bytes = 0, total = 0;
	CUresult r = CAST((size_t *, size_t *))(&free_bytes, &total);
	out_pair o = {r, free_bytes, total};
	return o;
}

FIRST1(cuMemAlloc, CUdeviceptr, size_t)
IN1(cuMemFree, CUdeviceptr)
FIRST2(cuMemAllocAsync, CUdeviceptr, size_t, CUstream)
FIRST3(cuMemAllocFromPoolAsync, CUdeviceptr, size_t, CUmemoryPool, CUstream)
IN2(cuMemFreeAsync, CUdeviceptr, CUstream)
FIRST2(cuMemHostAlloc, uintptr_t, size_t, unsigned)
IN1(cuMemFreeHost, uintptr_t)
FIRST2(cuMemAllocManaged, CUdeviceptr, size_t, unsigned)
IN3(cuMemHostRegister, uintptr_t, size_t, unsigned)
IN1(cuMemHostUnregister, uintptr_t)
IN4(cuMemAdvise, CUdeviceptr, size_t, enumeration, CUmemLocation)
IN5(cuMemPrefetchAsync, CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream)
IN5(cuMemRangeGetAttribute, int32_t *, size_t, enumeration, CUdeviceptr, size_t)
FIRST1(cuDeviceGetDefaultMemPool, CUmemoryPool, CUdevice)
FIRST1(cuMemPoolCreate, CUmemoryPool, const CUmemPoolProps *)
IN1(cuMemPoolDestroy, CUmemoryPool)
IN2(cuMemPoolTrimTo, CUmemoryPool, size_t)

// The driver reads and writes an int for attributes 1 to 3 and 64 bits for the
// others (cuda.h, CUmemPool_attribute).
static inline CUresult cuMemPoolSetAttribute(address fn, CUmemoryPool pool, enumeration attr, uint64_t value)
{
	int narrow = (int)value;
	void *p = attr <= 3 ? (void *)&narrow : (void *)&value;
	return fn ? CAST((CUmemoryPool, enumeration, void *))(pool, attr, p) : RESULT_NOT_SUPPORTED;
}

static inline out cuMemPoolGetAttribute(address fn, CUmemoryPool pool, enumeration attr)
{
	GUARD(out)
	int narrow = 0;
	uint64_t value = 0;
	void *p = attr <= 3 ? (void *)&narrow : (void *)&value;
	CUresult r = CAST((CUmemoryPool, enumeration, void *))(pool, attr, p);
	out o = {r, attr <= 3 ? (uint64_t)narrow : value};
	return o;
}

IN3(cuMemPoolSetAccess, CUmemoryPool, const CUmemAccessDesc *, size_t)

static inline out cuMemPoolGetAccess(address fn, CUmemoryPool pool, CUmemLocation location)
{
	GUARD(out)
	enumeration flags = 0;
	CUresult r = CAST((enumeration *, CUmemoryPool, CUmemLocation *))(&flags, pool, &location);
	out o = {r, (uint64_t)flags};
	return o;
}

IN4(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, size_t, CUstream)
IN4(cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream)
IN4(cuMemsetD16Async, CUdeviceptr, unsigned short, size_t, CUstream)
IN4(cuMemsetD32Async, CUdeviceptr, unsigned, size_t, CUstream)

// Attributes have 1, 4 or 8 bytes; the hosts that CUDA runs on are little
// endian, so that the zeroed rest widens the value. Only the device ordinal
// (9) is signed.
static inline out cuPointerGetAttribute(address fn, enumeration attr, CUdeviceptr p)
{
	GUARD(out)
	uint64_t value = 0;
	CUresult r = CAST((void *, enumeration, CUdeviceptr))(&value, attr, p);
	out o = {r, attr == 9 ? (uint64_t)(int64_t)(int32_t)value : value};
	return o;
}

static inline out_pair cuMemGetAddressRange(address fn, CUdeviceptr p)
{
	GUARD(out_pair)
	CUdeviceptr base = 0;
	size_t size = 0;
	CUresult r = CAST((CUdeviceptr *, size_t *, CUdeviceptr))(&base, &size, p);
	out_pair o = {r, base, size};
	return o;
}

// Virtual memory.
FIRST2(cuMemGetAllocationGranularity, size_t, const CUmemAllocationProp *, enumeration)
FIRST4(cuMemAddressReserve, CUdeviceptr, size_t, size_t, CUdeviceptr, unsigned long long)
IN2(cuMemAddressFree, CUdeviceptr, size_t)
FIRST3(cuMemCreate, CUmemGenericAllocationHandle, size_t, const CUmemAllocationProp *, unsigned long long)
IN1(cuMemRelease, CUmemGenericAllocationHandle)
IN5(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)
IN2(cuMemUnmap, CUdeviceptr, size_t)
IN4(cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)

// Modules, kernels, launches.
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

IN1(cuModuleUnload, CUmodule)
FIRST2(cuModuleGetFunction, CUfunction, CUmodule, const char *)

static inline out_pair cuModuleGetGlobal(address fn, CUmodule m, const char *name)
{
	GUARD(out_pair)
	CUdeviceptr p = 0;
	size_t size = 0;
	CUresult r = CAST((CUdeviceptr *, size_t *, CUmodule, const char *))(&p, &size, m, name);
	out_pair o = {r, p, size};
	return o;
}

FIRST1(cuModuleGetFunctionCount, unsigned, CUmodule)
IN3(cuModuleEnumerateFunctions, CUfunction *, unsigned, CUmodule)

typedef struct { CUresult r; const char *name; } function_name;

// The name belongs to the module.
static inline function_name cuFuncGetName(address fn, CUfunction f)
{
	GUARD(function_name)
	function_name o = {0, NULL};
	o.r = CAST((const char **, CUfunction))(&o.name, f);
	return o;
}

FIRST2(cuFuncGetAttribute, int, enumeration, CUfunction)
IN3(cuFuncSetAttribute, CUfunction, enumeration, int)

static inline out_pair cuFuncGetParamInfo(address fn, CUfunction f, size_t index)
{
	GUARD(out_pair)
	size_t offset = 0, size = 0;
	CUresult r = CAST((CUfunction, size_t, size_t *, size_t *))(f, index, &offset, &size);
	out_pair o = {r, offset, size};
	return o;
}

FIRST3(cuOccupancyMaxActiveBlocksPerMultiprocessor, int, CUfunction, int, size_t)

static inline CUresult cuLaunchKernelEx(address fn, CUlaunchConfig config, CUfunction f, uintptr_t params)
{
	return fn ? CAST((const CUlaunchConfig *, CUfunction, void **, void **))(&config, f, (void **)params, NULL)
		: RESULT_NOT_SUPPORTED;
}

// Graphs.
FIRST1(cuGraphCreate, CUgraph, unsigned)
IN1(cuGraphDestroy, CUgraph)
FIRST1(cuGraphClone, CUgraph, CUgraph)
FIRST2(cuGraphNodeFindInClone, CUgraphNode, CUgraphNode, CUgraph)

#define NODE_TYPES CUgraphNode *, CUgraph, const CUgraphNode *, size_t
#define NODE_PARAMS address fn, CUgraph g, const CUgraphNode *deps, size_t count
#define ADDED(call) \
	{ GUARD(out) CUgraphNode v = 0; CUresult r = call; out o = {r, (uint64_t)v}; return o; }

static inline out cuGraphAddKernelNode(NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS p)
ADDED(CAST((NODE_TYPES, const CUDA_KERNEL_NODE_PARAMS *))(&v, g, deps, count, &p))
static inline out cuGraphAddMemcpyNode(NODE_PARAMS, CUDA_MEMCPY3D p, CUcontext ctx)
ADDED(CAST((NODE_TYPES, const CUDA_MEMCPY3D *, CUcontext))(&v, g, deps, count, &p, ctx))
static inline out cuGraphAddMemsetNode(NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS p, CUcontext ctx)
ADDED(CAST((NODE_TYPES, const CUDA_MEMSET_NODE_PARAMS *, CUcontext))(&v, g, deps, count, &p, ctx))
static inline out cuGraphAddHostNode(NODE_PARAMS, CUDA_HOST_NODE_PARAMS p)
ADDED(CAST((NODE_TYPES, const CUDA_HOST_NODE_PARAMS *))(&v, g, deps, count, &p))
static inline out cuGraphAddEmptyNode(NODE_PARAMS)
ADDED(CAST((NODE_TYPES))(&v, g, deps, count))
static inline out cuGraphAddChildGraphNode(NODE_PARAMS, CUgraph child)
ADDED(CAST((NODE_TYPES, CUgraph))(&v, g, deps, count, child))
static inline out cuGraphAddEventRecordNode(NODE_PARAMS, CUevent e)
ADDED(CAST((NODE_TYPES, CUevent))(&v, g, deps, count, e))
static inline out cuGraphAddEventWaitNode(NODE_PARAMS, CUevent e)
ADDED(CAST((NODE_TYPES, CUevent))(&v, g, deps, count, e))

static inline out cuGraphAddMemFreeNode(NODE_PARAMS, CUdeviceptr p)
ADDED(CAST((NODE_TYPES, CUdeviceptr))(&v, g, deps, count, p))
static inline out cuGraphAddMemAllocNode(NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS *p)
ADDED(CAST((NODE_TYPES, CUDA_MEM_ALLOC_NODE_PARAMS *))(&v, g, deps, count, p))

FIRST4(cuGraphConditionalHandleCreate, CUgraphConditionalHandle, CUgraph, CUcontext, unsigned, unsigned)

// Bodies are copied out: the array is the node's.
static inline out cuGraphAddNode(NODE_PARAMS, CUgraphNodeParams p, CUgraph *bodies, uint32_t size)
{
	GUARD(out)
	CUgraphNode v = 0;
	CUresult r = CAST((CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUgraphNodeParams *))
		(&v, g, deps, NULL, count, &p);
	const CUgraph *made = (const CUgraph *)(uintptr_t)p.word[4]; // conditional.phGraph_out
	for (uint32_t i = 0; r == 0 && i < size; i++)
		bodies[i] = made[i];
	out o = {r, (uint64_t)v};
	return o;
}

IN4(cuGraphAddDependencies, CUgraph, const CUgraphNode *, const CUgraphNode *, size_t)
IN4(cuGraphRemoveDependencies, CUgraph, const CUgraphNode *, const CUgraphNode *, size_t)
IN1(cuGraphDestroyNode, CUgraphNode)
IN3(cuGraphGetNodes, CUgraph, CUgraphNode *, size_t *)
LAST1(cuGraphNodeGetType, CUgraphNode, enumeration)

// The _v2 calls, with edges asked for: see cuStreamGetCaptureInfo.
static inline CUresult cuGraphGetEdges(address fn, CUgraph g, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edges, size_t *count)
{
	return fn ? CAST((CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *))
		(g, from, to, edges, count) : RESULT_NOT_SUPPORTED;
}
IN4(cuGraphNodeGetDependencies, CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *)

IN2(cuGraphKernelNodeGetParams, CUgraphNode, CUDA_KERNEL_NODE_PARAMS *)
IN2(cuGraphMemcpyNodeGetParams, CUgraphNode, CUDA_MEMCPY3D *)
IN2(cuGraphMemsetNodeGetParams, CUgraphNode, CUDA_MEMSET_NODE_PARAMS *)
IN2(cuGraphHostNodeGetParams, CUgraphNode, CUDA_HOST_NODE_PARAMS *)
LAST1(cuGraphChildGraphNodeGetGraph, CUgraphNode, CUgraph)

// PARAMS: a call whose params struct is handed over by address.
#define PARAMS(name, P) \
	static inline CUresult name(address fn, CUgraphNode n, P p) \
	{ return fn ? CAST((CUgraphNode, const P *))(n, &p) : RESULT_NOT_SUPPORTED; }
#define EXEC_PARAMS(name, P) \
	static inline CUresult name(address fn, CUgraphExec x, CUgraphNode n, P p) \
	{ return fn ? CAST((CUgraphExec, CUgraphNode, const P *))(x, n, &p) : RESULT_NOT_SUPPORTED; }
#define EXEC_PARAMS_CTX(name, P) \
	static inline CUresult name(address fn, CUgraphExec x, CUgraphNode n, P p, CUcontext c) \
	{ return fn ? CAST((CUgraphExec, CUgraphNode, const P *, CUcontext))(x, n, &p, c) : RESULT_NOT_SUPPORTED; }

PARAMS(cuGraphKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS)
PARAMS(cuGraphMemcpyNodeSetParams, CUDA_MEMCPY3D)
PARAMS(cuGraphMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS)
PARAMS(cuGraphHostNodeSetParams, CUDA_HOST_NODE_PARAMS)

// Executable graphs.
FIRST2(cuGraphInstantiateWithParams, CUgraphExec, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *)
IN1(cuGraphExecDestroy, CUgraphExec)
IN2(cuGraphLaunch, CUgraphExec, CUstream)
IN2(cuGraphUpload, CUgraphExec, CUstream)
IN3(cuGraphExecUpdate, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *)
EXEC_PARAMS(cuGraphExecKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS)
EXEC_PARAMS_CTX(cuGraphExecMemcpyNodeSetParams, CUDA_MEMCPY3D)
EXEC_PARAMS_CTX(cuGraphExecMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS)
EXEC_PARAMS(cuGraphExecHostNodeSetParams, CUDA_HOST_NODE_PARAMS)
IN3(cuGraphNodeSetEnabled, CUgraphExec, CUgraphNode, unsigned)
LAST2(cuGraphNodeGetEnabled, CUgraphExec, CUgraphNode, unsigned)

#endif
