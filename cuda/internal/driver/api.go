// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package driver is the seam between cudago and a CUDA driver: the ABI types,
// and the API interface that every driver implements.
//
// Names here are NVIDIA's, with only the first letter raised, so that a search
// for "CuStreamSynchronize" finds every layer. Nothing here returns a Go error:
// results are CUresult, as in cuda.h. The package imports nothing of ours.
//
// # Threads
//
// The current context and the capture mode belong to an OS thread, as in CUDA.
// A caller that depends on either must hold the thread (runtime.LockOSThread,
// or a call that came in from C) across the calls that belong together.
package driver

import "unsafe"

// API is one CUDA driver. Methods are safe for concurrent use, as far as
// CUDA's own calls are: calls on one graph need the caller's lock.
//
// A call that a driver does not implement returns CUDA_ERROR_NOT_SUPPORTED.
type API interface {
	DeviceAPI
	ContextAPI
	GreenContextAPI
	StreamAPI
	EventAPI
	ExternalAPI
	MemoryAPI
	VirtualMemoryAPI
	ModuleAPI
	TensorMapAPI
	TextureAPI
	GraphAPI
	GraphExecAPI

	// Name is "nvidia" or "sim"; a wrapping driver answers for what it wraps.
	Name() string

	// EntryPoint returns the address of a C function with the ABI of the named
	// driver call ("cuGraphLaunch"), for callers in C. It is zero if this
	// driver has none; the caller then calls through Go.
	EntryPoint(name string) uintptr

	// AllowHost says that device work may access the size bytes of host memory
	// at p, until DisallowHost was called as often as AllowHost with the same
	// range and readOnly. Only pageable memory needs it: the driver knows pinned
	// and managed memory. A kernel that writes what is readOnly faults. NVIDIA's
	// driver, which sees the page tables, ignores it.
	AllowHost(p uintptr, size uint64, readOnly bool)
	DisallowHost(p uintptr, size uint64, readOnly bool)

	// FaultReport describes the latest fault of a context in words: kernel,
	// block, thread, address, nearest allocation. It is empty if there is
	// nothing to add to the CUresult. After CUDAGO_CHECK_FAILED it returns the
	// findings, once; or, on the OS thread whose launch was refused, why.
	FaultReport(ctx CUcontext) string

	// Close releases what the driver object itself holds: libraries,
	// goroutines, mappings. No call may be running or follow.
	Close() error
}

// DeviceAPI is cuda.h's initialization, version and device management.
type DeviceAPI interface {
	CuInit(flags uint32) CUresult
	CuDriverGetVersion() (version int32, r CUresult)
	CuDeviceGetCount() (count int32, r CUresult)
	CuDeviceGet(ordinal int32) (CUdevice, CUresult)
	CuDeviceGetName(dev CUdevice) (string, CUresult)
	CuDeviceGetUuid(dev CUdevice) ([16]byte, CUresult)
	CuDeviceTotalMem(dev CUdevice) (bytes uint64, r CUresult)
	CuDeviceGetAttribute(attrib CUdevice_attribute, dev CUdevice) (value int32, r CUresult)
	CuDeviceGetPCIBusId(dev CUdevice) (string, CUresult)
	CuDeviceCanAccessPeer(dev, peer CUdevice) (can bool, r CUresult)
}

// ContextAPI is cuda.h's primary context and context management.
type ContextAPI interface {
	CuDevicePrimaryCtxRetain(dev CUdevice) (CUcontext, CUresult)
	CuDevicePrimaryCtxRelease(dev CUdevice) CUresult
	// CuDevicePrimaryCtxGetState reports in active, as 1 or 0, whether the
	// context has been retained since its last reset.
	CuDevicePrimaryCtxGetState(dev CUdevice) (flags uint32, active int32, r CUresult)
	// CuDevicePrimaryCtxReset destroys everything that the process has on dev,
	// including objects of other libraries. Whoever retained the context still
	// has to release it; the next retain makes the context usable again.
	CuDevicePrimaryCtxReset(dev CUdevice) CUresult
	CuCtxGetCurrent() (CUcontext, CUresult)
	CuCtxSetCurrent(ctx CUcontext) CUresult
	CuCtxPushCurrent(ctx CUcontext) CUresult
	CuCtxPopCurrent() (CUcontext, CUresult)
	// CuCtxGetId returns a number that no other context of the process ever has:
	// a primary context that is made anew can have the old one's handle.
	CuCtxGetId(ctx CUcontext) (id uint64, r CUresult)
	CuCtxGetDevice() (CUdevice, CUresult)
	CuCtxSynchronize() CUresult
	CuCtxGetStreamPriorityRange() (least, greatest int32, r CUresult)
	// CuCtxSetLimit asks for a limit, which the driver may round and clamp:
	// CuCtxGetLimit says what it has become. CUDA_ERROR_UNSUPPORTED_LIMIT if the
	// device or the driver does not have the limit; CUDA_ERROR_INVALID_VALUE for
	// a value that it cannot have, also for those of printf and malloc once a
	// kernel that uses them was launched.
	CuCtxSetLimit(limit CUlimit, value uint64) CUresult
	CuCtxGetLimit(limit CUlimit) (value uint64, r CUresult)
	// CuProfilerStart has a profiler that is attached to the process, and was told
	// to wait for this, begin to collect; CuProfilerStop ends that. Neither does
	// anything where there is no profiler, or where it does so already.
	CuProfilerStart() CUresult
	CuProfilerStop() CUresult
	// CuCtxEnablePeerAccess lets kernels of the current context access memory
	// of cuMemAlloc on the peer. Pools have their own access lists.
	CuCtxEnablePeerAccess(peer CUcontext, flags uint32) CUresult
	CuCtxDisablePeerAccess(peer CUcontext) CUresult
}

// GreenContextAPI is cuda.h's green contexts: parts of a device's
// multiprocessors (SMs), and streams whose kernels run on those alone.
type GreenContextAPI interface {
	// CuDeviceGetDevResource returns all of a device's SMs.
	// CUDA_ERROR_INVALID_RESOURCE_TYPE for a type that the driver does not know.
	CuDeviceGetDevResource(dev CUdevice, typ CUdevResourceType) (CUdevResource, CUresult)
	// CuDevSmResourceSplitByCount makes up to len(groups) disjoint groups of at
	// least minCount SMs each, and returns how many it made and what is left;
	// without groups it returns how many there can be. input must not be a group
	// itself, unless of CuGreenCtxGetDevResource.
	CuDevSmResourceSplitByCount(groups []CUdevResource, input *CUdevResource, flags, minCount uint32) (made uint32, left CUdevResource, r CUresult)
	// CuDevResourceGenerateDesc takes resources of one split of one device, else
	// CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION. Nothing releases a descriptor.
	CuDevResourceGenerateDesc(resources []CUdevResource) (CUdevResourceDesc, CUresult)
	// CuGreenCtxCreate retains the primary context until CuGreenCtxDestroy.
	// flags must be CU_GREEN_CTX_DEFAULT_STREAM.
	CuGreenCtxCreate(desc CUdevResourceDesc, dev CUdevice, flags uint32) (CUgreenCtx, CUresult)
	// CuGreenCtxDestroy destroys no streams: they must have been, and any call
	// with one afterwards returns CUDA_ERROR_CONTEXT_IS_DESTROYED.
	CuGreenCtxDestroy(g CUgreenCtx) CUresult
	CuGreenCtxGetDevResource(g CUgreenCtx, typ CUdevResourceType) (CUdevResource, CUresult)
	// CuGreenCtxStreamCreate does not need a current context. flags must be
	// CU_STREAM_NON_BLOCKING.
	CuGreenCtxStreamCreate(g CUgreenCtx, flags uint32, priority int32) (CUstream, CUresult)
}

// StreamAPI is cuda.h's stream management, stream capture included.
type StreamAPI interface {
	CuStreamCreateWithPriority(flags uint32, priority int32) (CUstream, CUresult)
	CuStreamDestroy(s CUstream) CUresult
	CuStreamSynchronize(s CUstream) CUresult
	CuStreamQuery(s CUstream) CUresult
	CuStreamWaitEvent(s CUstream, e CUevent, flags uint32) CUresult
	CuStreamGetPriority(s CUstream) (priority int32, r CUresult)
	CuStreamGetFlags(s CUstream) (flags uint32, r CUresult)
	CuStreamGetId(s CUstream) (id uint64, r CUresult)
	CuStreamGetCtx(s CUstream) (CUcontext, CUresult)
	// CuLaunchHostFunc enqueues fn(userData). fn is the address of a C
	// function of type CUhostFn.
	CuLaunchHostFunc(s CUstream, fn CUhostFn, userData uintptr) CUresult

	// CuStreamWaitValue32 makes what follows in s wait until the 4 bytes at p,
	// which flags says how to compare, satisfy value. p is aligned, and in device
	// or pinned memory; managed memory is refused. Captured as a
	// CU_GRAPH_NODE_TYPE_BATCH_MEM_OP node, as are the next three.
	CuStreamWaitValue32(s CUstream, p CUdeviceptr, value, flags uint32) CUresult
	CuStreamWaitValue64(s CUstream, p CUdeviceptr, value uint64, flags uint32) CUresult
	// CuStreamWriteValue32 writes 4 bytes once all earlier work in s is done and
	// its writes are visible.
	CuStreamWriteValue32(s CUstream, p CUdeviceptr, value, flags uint32) CUresult
	CuStreamWriteValue64(s CUstream, p CUdeviceptr, value uint64, flags uint32) CUresult
	CuStreamBeginCapture(s CUstream, mode CUstreamCaptureMode) CUresult
	CuStreamEndCapture(s CUstream) (CUgraph, CUresult)
	CuStreamIsCapturing(s CUstream) (CUstreamCaptureStatus, CUresult)
	// CuStreamGetCaptureInfo is not to be called while another thread ends the
	// capture, of which s may be a stream that has joined: driver 580.159 dies by
	// SIGSEGV, also if nothing but the number is asked for. With deps nobody may
	// capture into that graph either: nothing synchronizes what they are read from.
	// CuStreamIsCapturing is always allowed.
	CuStreamGetCaptureInfo(s CUstream, deps bool) (CaptureInfo, CUresult)
	// CuStreamUpdateCaptureDependencies changes what the next operation that s
	// captures depends on: by flags, nodes are added to it, or replace it. s must
	// be capturing, and the nodes be of the graph under capture. One that such a
	// change leaves out is not reported as unjoined.
	CuStreamUpdateCaptureDependencies(s CUstream, nodes []CUgraphNode, flags uint32) CUresult
	// CuThreadExchangeStreamCaptureMode sets the calling thread's mode and
	// returns the previous one.
	CuThreadExchangeStreamCaptureMode(mode CUstreamCaptureMode) (CUstreamCaptureMode, CUresult)
}

// EventAPI is cuda.h's event management.
type EventAPI interface {
	CuEventCreate(flags uint32) (CUevent, CUresult)
	CuEventDestroy(e CUevent) CUresult
	CuEventRecord(e CUevent, s CUstream) CUresult
	CuEventQuery(e CUevent) CUresult
	CuEventSynchronize(e CUevent) CUresult
	CuEventElapsedTime(start, end CUevent) (ms float32, r CUresult)
	// CuIpcGetEventHandle takes an event that was created with
	// CU_EVENT_INTERPROCESS, else CUDA_ERROR_INVALID_HANDLE.
	CuIpcGetEventHandle(e CUevent) (handle CUipcEventHandle, r CUresult)
	// CuIpcOpenEventHandle opens an event of another process. It must not be used
	// after the other process has destroyed it.
	CuIpcOpenEventHandle(handle CUipcEventHandle) (CUevent, CUresult)
}

// ExternalAPI is cuda.h's interoperability with external resources.
type ExternalAPI interface {
	// CuImportExternalMemory owns the descriptor once it has succeeded.
	CuImportExternalMemory(desc *CUDA_EXTERNAL_MEMORY_HANDLE_DESC) (CUexternalMemory, CUresult)
	// CuExternalMemoryGetMappedBuffer maps a part. The address must be freed, by
	// CuMemFree, before the memory is destroyed.
	CuExternalMemoryGetMappedBuffer(m CUexternalMemory, desc *CUDA_EXTERNAL_MEMORY_BUFFER_DESC) (CUdeviceptr, CUresult)
	CuDestroyExternalMemory(m CUexternalMemory) CUresult
	// CuImportExternalSemaphore owns the descriptor once it has succeeded.
	CuImportExternalSemaphore(desc *CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) (CUexternalSemaphore, CUresult)
	// CuSignalExternalSemaphoresAsync signals once all earlier work in s is done.
	CuSignalExternalSemaphoresAsync(sems []CUexternalSemaphore, params []CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, s CUstream) CUresult
	// CuWaitExternalSemaphoresAsync holds back later work in s until a timeline has
	// at least the value, or another semaphore is signaled, which is thereby undone.
	CuWaitExternalSemaphoresAsync(sems []CUexternalSemaphore, params []CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, s CUstream) CUresult
	// CuDestroyExternalSemaphore must come after all work that uses it.
	CuDestroyExternalSemaphore(sem CUexternalSemaphore) CUresult
}

// MemoryAPI is cuda.h's memory management.
type MemoryAPI interface {
	CuMemGetInfo() (free, total uint64, r CUresult)
	CuMemAlloc(size uint64) (CUdeviceptr, CUresult)
	CuMemFree(p CUdeviceptr) CUresult
	CuMemAllocAsync(size uint64, s CUstream) (CUdeviceptr, CUresult)
	CuMemAllocFromPoolAsync(size uint64, pool CUmemoryPool, s CUstream) (CUdeviceptr, CUresult)
	CuMemFreeAsync(p CUdeviceptr, s CUstream) CUresult
	CuMemHostAlloc(size uint64, flags uint32) (host uintptr, r CUresult)
	CuMemFreeHost(host uintptr) CUresult
	CuMemAllocManaged(size uint64, flags uint32) (CUdeviceptr, CUresult)
	// CuMemHostRegister pins memory that was allocated elsewhere. It must stay
	// mapped until CuMemHostUnregister with the same address.
	CuMemHostRegister(host uintptr, size uint64, flags uint32) CUresult
	CuMemHostUnregister(host uintptr) CUresult
	// CuMemAdvise and the two calls below take whole managed ranges, and widen
	// them to pages.
	CuMemAdvise(p CUdeviceptr, size uint64, advice CUmem_advise, location CUmemLocation) CUresult
	CuMemPrefetchAsync(p CUdeviceptr, size uint64, location CUmemLocation, flags uint32, s CUstream) CUresult
	// CuMemPrefetchBatchAsync makes len(ptrs) prefetches in any order. locations[i]
	// is that of the prefetches from first[i] on; first[0] is 0. s must not be the
	// legacy default stream.
	CuMemPrefetchBatchAsync(ptrs []CUdeviceptr, sizes []uint64, locations []CUmemLocation, first []uint64, flags uint64, s CUstream) CUresult
	// CuMemRangeGetAttribute fills data: one number, except for ACCESSED_BY,
	// which has one for each device and the host, followed by
	// CU_DEVICE_INVALID.
	CuMemRangeGetAttribute(data []int32, attribute CUmem_range_attribute, p CUdeviceptr, size uint64) CUresult

	CuDeviceGetDefaultMemPool(dev CUdevice) (CUmemoryPool, CUresult)
	CuMemPoolCreate(props *CUmemPoolProps) (CUmemoryPool, CUresult)
	CuMemPoolDestroy(pool CUmemoryPool) CUresult
	CuMemPoolTrimTo(pool CUmemoryPool, keep uint64) CUresult
	// CuMemPoolSetAttribute takes every attribute as 64 bits; the driver
	// narrows those that cuda.h declares as int.
	CuMemPoolSetAttribute(pool CUmemoryPool, attr CUmemPool_attribute, value uint64) CUresult
	CuMemPoolGetAttribute(pool CUmemoryPool, attr CUmemPool_attribute) (value uint64, r CUresult)
	// CuDeviceGraphMemTrim gives back what the device's graphs do not use now of the
	// memory that is reserved for their allocation nodes.
	CuDeviceGraphMemTrim(dev CUdevice) CUresult
	CuDeviceGetGraphMemAttribute(dev CUdevice, attr CUgraphMem_attribute) (value uint64, r CUresult)
	// CuDeviceSetGraphMemAttribute sets a maximum to what there is now: value must be
	// 0, and attr be a maximum.
	CuDeviceSetGraphMemAttribute(dev CUdevice, attr CUgraphMem_attribute, value uint64) CUresult
	// CuMemPoolSetAccess says which devices may access memory of the pool.
	CuMemPoolSetAccess(pool CUmemoryPool, desc []CUmemAccessDesc) CUresult
	CuMemPoolGetAccess(pool CUmemoryPool, location CUmemLocation) (flags CUmemAccess_flags, r CUresult)
	// CuMemPoolExportToShareableHandle returns a new file descriptor, the caller's
	// to close. typ must be CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, and the pool
	// created for it.
	CuMemPoolExportToShareableHandle(pool CUmemoryPool, typ CUmemAllocationHandleType, flags uint64) (fd int32, r CUresult)
	// CuMemPoolImportFromShareableHandle leaves fd open. Nothing can be allocated
	// from an imported pool.
	CuMemPoolImportFromShareableHandle(fd int32, typ CUmemAllocationHandleType, flags uint64) (CUmemoryPool, CUresult)
	// CuMemPoolExportPointer takes the start of an allocation of a pool that can be
	// exported.
	CuMemPoolExportPointer(p CUdeviceptr) (data CUmemPoolPtrExportData, r CUresult)
	// CuMemPoolImportPointer maps an allocation of another process. It must be
	// freed here before it is freed there.
	CuMemPoolImportPointer(pool CUmemoryPool, data *CUmemPoolPtrExportData) (CUdeviceptr, CUresult)

	// CuMemcpyAsync copies size bytes. Either side may be device, managed,
	// pinned or pageable host memory, by unified addressing.
	// Memory of a pool, or mapped, is out of reach unless its device and the
	// context's are one, or it was made accessible: CUDA_ERROR_INVALID_VALUE. What
	// cuMemAlloc gave is within reach of copies in each context.
	CuMemcpyAsync(dst, src CUdeviceptr, size uint64, s CUstream) CUresult
	// CuMemcpyPeerAsync copies between memory of two contexts, whatever access
	// their devices have. It cannot be captured: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	// and the capture is invalidated.
	CuMemcpyPeerAsync(dst CUdeviceptr, dstCtx CUcontext, src CUdeviceptr, srcCtx CUcontext, size uint64, s CUstream) CUresult
	// CuMemcpyBatchAsync makes len(dsts) copies in any order, none of which may
	// depend on another. attrs[i] is that of the copies from first[i] on; first[0]
	// is 0. s must not be the legacy default stream. Drivers before CUDA 13.0 have
	// it with other parameters, and so not at all.
	CuMemcpyBatchAsync(dsts, srcs []CUdeviceptr, sizes []uint64, attrs []CUmemcpyAttributes, first []uint64, s CUstream) CUresult
	// CuMemcpy3DAsync copies a box of bytes: rows of params.WidthInBytes, at
	// pitches of each side.
	CuMemcpy3DAsync(params *CUDA_MEMCPY3D, s CUstream) CUresult
	CuMemsetD8Async(dst CUdeviceptr, value uint8, n uint64, s CUstream) CUresult
	CuMemsetD16Async(dst CUdeviceptr, value uint16, n uint64, s CUstream) CUresult
	CuMemsetD32Async(dst CUdeviceptr, value uint32, n uint64, s CUstream) CUresult
	// CuPointerGetAttribute returns the attribute's value widened to 64 bits.
	CuPointerGetAttribute(attr CUpointer_attribute, p CUdeviceptr) (value uint64, r CUresult)
	// CuMemGetAddressRange returns the allocation that holds p.
	CuMemGetAddressRange(p CUdeviceptr) (base CUdeviceptr, size uint64, r CUresult)
}

// VirtualMemoryAPI is cuda.h's virtual memory management: addresses are
// reserved, physical memory is created, and the second is mapped at the first.
type VirtualMemoryAPI interface {
	CuMemGetAllocationGranularity(prop *CUmemAllocationProp, option CUmemAllocationGranularity_flags) (bytes uint64, r CUresult)
	// CuMemAddressReserve takes addr as a hint: the range may start elsewhere.
	CuMemAddressReserve(size, alignment uint64, addr CUdeviceptr, flags uint64) (CUdeviceptr, CUresult)
	// CuMemAddressFree takes the address and the size of one reservation.
	CuMemAddressFree(p CUdeviceptr, size uint64) CUresult
	CuMemCreate(size uint64, prop *CUmemAllocationProp, flags uint64) (CUmemGenericAllocationHandle, CUresult)
	// CuMemRelease releases a handle; the memory is freed with its last
	// mapping.
	CuMemRelease(h CUmemGenericAllocationHandle) CUresult
	// CuMemMap maps all of h; offset must be zero. The mapping cannot be used
	// until CuMemSetAccess.
	CuMemMap(p CUdeviceptr, size, offset uint64, h CUmemGenericAllocationHandle, flags uint64) CUresult
	// CuMemUnmap takes whole mappings. It waits for no work that uses them.
	CuMemUnmap(p CUdeviceptr, size uint64) CUresult
	CuMemSetAccess(p CUdeviceptr, size uint64, desc []CUmemAccessDesc) CUresult
	// CuMemExportToShareableHandle returns a new file descriptor, the caller's to
	// close, which keeps the memory. typ must be
	// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, and h created for it.
	CuMemExportToShareableHandle(h CUmemGenericAllocationHandle, typ CUmemAllocationHandleType, flags uint64) (fd int32, r CUresult)
	// CuMemImportFromShareableHandle returns a handle of the same memory, which is
	// released like one of CuMemCreate. It leaves fd open.
	CuMemImportFromShareableHandle(fd int32, typ CUmemAllocationHandleType) (CUmemGenericAllocationHandle, CUresult)
}

// ModuleAPI is cuda.h's module management, occupancy and kernel launch.
type ModuleAPI interface {
	// CuModuleLoadDataEx loads image: PTX text (no trailing NUL needed), cubin or
	// fatbin. log is the JIT's error log, or why the image was refused.
	CuModuleLoadDataEx(image []byte) (m CUmodule, log string, r CUresult)
	CuModuleUnload(m CUmodule) CUresult
	CuModuleGetFunction(m CUmodule, name string) (CUfunction, CUresult)
	// CuModuleGetGlobal fails with NOT_FOUND, and with INVALID_VALUE if name is a
	// kernel's.
	CuModuleGetGlobal(m CUmodule, name string) (p CUdeviceptr, size uint64, r CUresult)
	// CuModuleFunctionNames lists the kernels of m. It stands for
	// cuModuleGetFunctionCount, cuModuleEnumerateFunctions and cuFuncGetName
	// (CUDA 12.4).
	CuModuleFunctionNames(m CUmodule) ([]string, CUresult)
	// CuFuncLoad loads f's code on its device, if it is not there yet: lazy
	// loading leaves that to the first launch, which then waits for other work.
	CuFuncLoad(f CUfunction) CUresult
	CuFuncGetAttribute(attrib CUfunction_attribute, f CUfunction) (value int32, r CUresult)
	CuFuncSetAttribute(f CUfunction, attrib CUfunction_attribute, value int32) CUresult
	// CuFuncGetParamInfo returns INVALID_VALUE for index past the last one.
	CuFuncGetParamInfo(f CUfunction, index uint64) (offset, size uint64, r CUresult)
	CuOccupancyMaxActiveBlocksPerMultiprocessor(f CUfunction, blockSize int32, dynamicSmem uint64) (blocks int32, r CUresult)
	// CuOccupancyMaxPotentialClusterSize ignores the cluster that config has. Its
	// stream tells the part of a device; it is not used otherwise.
	CuOccupancyMaxPotentialClusterSize(f CUfunction, config *CUlaunchConfig) (size int32, r CUresult)
	// CuOccupancyMaxActiveClusters needs the cluster in config, unless the kernel
	// has one of its own.
	CuOccupancyMaxActiveClusters(f CUfunction, config *CUlaunchConfig) (clusters int32, r CUresult)
	// CuLaunchKernelEx launches f. kernelParams has the C type void**: one
	// pointer per parameter. Parameter values are read before it returns. Go
	// memory behind it must be pinned.
	CuLaunchKernelEx(config *CUlaunchConfig, f CUfunction, kernelParams unsafe.Pointer) CUresult
}

// TensorMapAPI is cuda.h's tensor map object management.
type TensorMapAPI interface {
	// CuTensorMapEncodeTiled describes memory to the bulk tensor copies of
	// kernels. Dimensions go from the innermost outwards; there is one global
	// stride, in bytes, for each dimension but the innermost. It touches no
	// memory. CUDA_ERROR_INVALID_VALUE tells of every rule that is broken,
	// CUDA_ERROR_NOT_SUPPORTED of a driver without tensor maps, or without such.
	CuTensorMapEncodeTiled(
		dataType CUtensorMapDataType, address CUdeviceptr, globalDim, globalStrides []uint64, boxDim, elementStrides []uint32,
		interleave CUtensorMapInterleave, swizzle CUtensorMapSwizzle, promotion CUtensorMapL2promotion, fill CUtensorMapFloatOOBfill,
	) (m CUtensorMap, r CUresult)
	// CuTensorMapEncodeIm2col is the same for copies that lay out the columns of a
	// convolution, of 3 to 5 dimensions: channels, width, height, depth and images.
	// The corners are offsets in those between the first and the last.
	CuTensorMapEncodeIm2col(
		dataType CUtensorMapDataType, address CUdeviceptr, globalDim, globalStrides []uint64, lower, upper []int32, channels, pixels uint32,
		elementStrides []uint32, interleave CUtensorMapInterleave, swizzle CUtensorMapSwizzle, promotion CUtensorMapL2promotion, fill CUtensorMapFloatOOBfill,
	) (m CUtensorMap, r CUresult)
	// CuTensorMapEncodeIm2colWide is the same for copies that go along the width
	// alone, of which the corners are. With CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128
	// pixels mean nothing. It needs compute capability 10.0.
	CuTensorMapEncodeIm2colWide(
		dataType CUtensorMapDataType, address CUdeviceptr, globalDim, globalStrides []uint64, lower, upper int32, channels, pixels uint32,
		elementStrides []uint32, interleave CUtensorMapInterleave, mode CUtensorMapIm2ColWideMode, swizzle CUtensorMapSwizzle,
		promotion CUtensorMapL2promotion, fill CUtensorMapFloatOOBfill,
	) (m CUtensorMap, r CUresult)
}

// TextureAPI is cuda.h's management of arrays, and of the texture and surface
// objects that kernels read and write them by.
type TextureAPI interface {
	// CuArray3DCreate allocates an array in the current context, of one to three
	// dimensions as the sizes that are not 0 say. CUDA_ERROR_INVALID_VALUE tells of
	// every rule that is broken, CUDA_ERROR_NOT_SUPPORTED of a driver without such
	// arrays. Not ordered by streams.
	CuArray3DCreate(desc *CUDA_ARRAY3D_DESCRIPTOR) (a CUarray, r CUresult)
	// CuArrayDestroy must not be called while work uses a, or a texture or surface
	// of it.
	CuArrayDestroy(a CUarray) CUresult
	// CuMipmappedArrayCreate allocates as many levels as possible, and at most as many
	// as it is told. The first has the sizes of desc; each other one is half as wide,
	// high and deep as the one before. Codes are those of CuArray3DCreate.
	CuMipmappedArrayCreate(desc *CUDA_ARRAY3D_DESCRIPTOR, levels uint32) (a CUmipmappedArray, r CUresult)
	// CuMipmappedArrayGetLevel returns the same array each time, which lasts as long as
	// a. CUDA_ERROR_INVALID_VALUE tells that there is no such level.
	CuMipmappedArrayGetLevel(a CUmipmappedArray, level uint32) (l CUarray, r CUresult)
	// CuMipmappedArrayDestroy must not be called while work uses a or a level of it, or
	// a texture or surface of them.
	CuMipmappedArrayDestroy(a CUmipmappedArray) CUresult
	// CuSurfObjectCreate makes a surface of an array, which was created with
	// CUDA_ARRAY3D_SURFACE_LDST.
	CuSurfObjectCreate(res *CUDA_RESOURCE_DESC) (s CUsurfObject, r CUresult)
	// CuSurfObjectDestroy must not be called while kernels use s.
	CuSurfObjectDestroy(s CUsurfObject) CUresult
	// CuTexObjectCreate makes a texture of an array, or of memory whose address is a
	// multiple of CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, in the current context.
	// view must be nil unless the memory is an array. A mipmapped array needs
	// CU_TRSF_NORMALIZED_COORDINATES. Linear memory is read by whole
	// numbers alone: address and filter modes mean nothing there.
	CuTexObjectCreate(res *CUDA_RESOURCE_DESC, tex *CUDA_TEXTURE_DESC, view *CUDA_RESOURCE_VIEW_DESC) (t CUtexObject, r CUresult)
	// CuTexObjectDestroy must not be called while kernels use t.
	CuTexObjectDestroy(t CUtexObject) CUresult
}

// GraphAPI is cuda.h's graph building. Not safe for concurrent use on one
// graph, its children included.
type GraphAPI interface {
	CuGraphCreate(flags uint32) (CUgraph, CUresult)
	CuGraphDestroy(g CUgraph) CUresult
	CuGraphClone(g CUgraph) (CUgraph, CUresult)
	// CuUserObjectCreate makes an object that graphs hold, with count references
	// of the caller's. destroy, the address of a C function, is called with p once
	// after the last reference is gone: on any thread, which must not call the
	// driver, and perhaps late. flags is CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.
	CuUserObjectCreate(p uintptr, destroy CUhostFn, count, flags uint32) (CUuserObject, CUresult)
	// CuGraphRetainUserObject gives references to g, which may be under capture.
	// Clones and executables of g hold as many of their own, and launches those of
	// their executable. With CU_GRAPH_USER_OBJECT_MOVE they are the caller's, who
	// has them no more.
	CuGraphRetainUserObject(g CUgraph, object CUuserObject, count, flags uint32) CUresult
	CuGraphNodeFindInClone(original CUgraphNode, clone CUgraph) (CUgraphNode, CUresult)
	// CuGraphAddKernelNode adds a kernel node. params.KernelParams follows the
	// rules of CuLaunchKernelEx.
	CuGraphAddKernelNode(g CUgraph, deps []CUgraphNode, params *CUDA_KERNEL_NODE_PARAMS) (CUgraphNode, CUresult)
	// CuGraphAddMemcpyNode adds a copy of params.SrcXxx to params.DstXxx.
	CuGraphAddMemcpyNode(g CUgraph, deps []CUgraphNode, params *CUDA_MEMCPY3D, ctx CUcontext) (CUgraphNode, CUresult)
	CuGraphAddMemsetNode(g CUgraph, deps []CUgraphNode, params *CUDA_MEMSET_NODE_PARAMS, ctx CUcontext) (CUgraphNode, CUresult)
	CuGraphAddHostNode(g CUgraph, deps []CUgraphNode, params *CUDA_HOST_NODE_PARAMS) (CUgraphNode, CUresult)
	CuGraphAddEmptyNode(g CUgraph, deps []CUgraphNode) (CUgraphNode, CUresult)
	// CuGraphAddChildGraphNode embeds a clone of child: CUDA_ERROR_INVALID_VALUE if that
	// is inside a node itself, unless it was cloned by CuGraphClone.
	CuGraphAddChildGraphNode(g CUgraph, deps []CUgraphNode, child CUgraph) (CUgraphNode, CUresult)
	CuGraphAddEventRecordNode(g CUgraph, deps []CUgraphNode, e CUevent) (CUgraphNode, CUresult)
	CuGraphAddEventWaitNode(g CUgraph, deps []CUgraphNode, e CUevent) (CUgraphNode, CUresult)
	// CuGraphAddBatchMemOpNode adds a node that makes the operations in
	// params.ParamArray one after another. The driver copies them.
	CuGraphAddBatchMemOpNode(g CUgraph, deps []CUgraphNode, params *CUDA_BATCH_MEM_OP_NODE_PARAMS) (CUgraphNode, CUresult)
	// CuGraphAddExternalSemaphoresSignalNode adds a node that signals semaphores.
	// The driver copies the arrays.
	CuGraphAddExternalSemaphoresSignalNode(g CUgraph, deps []CUgraphNode, params *CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) (CUgraphNode, CUresult)
	CuGraphAddExternalSemaphoresWaitNode(g CUgraph, deps []CUgraphNode, params *CUDA_EXT_SEM_WAIT_NODE_PARAMS) (CUgraphNode, CUresult)
	// CuGraphAddMemAllocNode sets params.Dptr, which is the same in all launches.
	CuGraphAddMemAllocNode(g CUgraph, deps []CUgraphNode, params *CUDA_MEM_ALLOC_NODE_PARAMS) (CUgraphNode, CUresult)
	CuGraphAddMemFreeNode(g CUgraph, deps []CUgraphNode, p CUdeviceptr) (CUgraphNode, CUresult)
	// CuGraphConditionalHandleCreate: a handle serves one conditional node.
	CuGraphConditionalHandleCreate(g CUgraph, ctx CUcontext, defaultLaunchValue, flags uint32) (CUgraphConditionalHandle, CUresult)
	// CuGraphAddNode adds a node of a kind that has no call of its own: a
	// conditional node, of which it returns the bodies, which belong to the node; or
	// a child graph that is moved (see [ChildGraphNode]).
	CuGraphAddNode(g CUgraph, deps []CUgraphNode, params *CUgraphNodeParams) (n CUgraphNode, bodies []CUgraph, r CUresult)
	// CuGraphAddDependencies makes to[i] depend on from[i], on what data[i] says
	// of it. CUDA_ERROR_INVALID_VALUE for an edge that exists, a node of another
	// graph, and data that the nodes cannot have.
	CuGraphAddDependencies(g CUgraph, from, to []CUgraphNode, data []CUgraphEdgeData) CUresult
	// CuGraphRemoveDependencies: CUDA_ERROR_INVALID_VALUE for an edge that does
	// not exist with that data.
	CuGraphRemoveDependencies(g CUgraph, from, to []CUgraphNode, data []CUgraphEdgeData) CUresult
	CuGraphDestroyNode(n CUgraphNode) CUresult

	CuGraphGetNodes(g CUgraph) ([]CUgraphNode, CUresult)
	CuGraphGetEdges(g CUgraph) (from, to []CUgraphNode, data []CUgraphEdgeData, r CUresult)
	CuGraphNodeGetType(n CUgraphNode) (CUgraphNodeType, CUresult)
	CuGraphNodeGetDependencies(n CUgraphNode) ([]CUgraphNode, CUresult)
	// CuGraphKernelNodeGetParams: KernelParams of the result is owned by the
	// node and valid until it is changed or destroyed.
	CuGraphKernelNodeGetParams(n CUgraphNode) (CUDA_KERNEL_NODE_PARAMS, CUresult)
	CuGraphMemcpyNodeGetParams(n CUgraphNode) (CUDA_MEMCPY3D, CUresult)
	CuGraphMemsetNodeGetParams(n CUgraphNode) (CUDA_MEMSET_NODE_PARAMS, CUresult)
	CuGraphHostNodeGetParams(n CUgraphNode) (CUDA_HOST_NODE_PARAMS, CUresult)
	CuGraphChildGraphNodeGetGraph(n CUgraphNode) (CUgraph, CUresult)
	// CuGraphKernelNodeGetAttribute returns an attribute of launches of n.
	CuGraphKernelNodeGetAttribute(n CUgraphNode, attr CUlaunchAttributeID) (CUlaunchAttributeValue, CUresult)
	// CuGraphKernelNodeSetAttribute: CUDA_ERROR_NOT_SUPPORTED for what the device
	// cannot do. A cooperative launch that does not fit the device is refused here
	// or when the graph is instantiated.
	CuGraphKernelNodeSetAttribute(n CUgraphNode, attr CUlaunchAttributeID, value *CUlaunchAttributeValue) CUresult
	CuGraphKernelNodeSetParams(n CUgraphNode, params *CUDA_KERNEL_NODE_PARAMS) CUresult
	CuGraphMemcpyNodeSetParams(n CUgraphNode, params *CUDA_MEMCPY3D) CUresult
	CuGraphMemsetNodeSetParams(n CUgraphNode, params *CUDA_MEMSET_NODE_PARAMS) CUresult
	CuGraphBatchMemOpNodeSetParams(n CUgraphNode, params *CUDA_BATCH_MEM_OP_NODE_PARAMS) CUresult
	CuGraphHostNodeSetParams(n CUgraphNode, params *CUDA_HOST_NODE_PARAMS) CUresult
	// CuGraphNodeSetParams gives a node of a kind that has no such call of its own,
	// a child graph node, other parameters. What was inside the node is destroyed.
	CuGraphNodeSetParams(n CUgraphNode, params *CUgraphNodeParams) CUresult
	CuGraphEventRecordNodeSetEvent(n CUgraphNode, e CUevent) CUresult
	CuGraphEventWaitNodeSetEvent(n CUgraphNode, e CUevent) CUresult
	CuGraphExternalSemaphoresSignalNodeSetParams(n CUgraphNode, params *CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) CUresult
	CuGraphExternalSemaphoresWaitNodeSetParams(n CUgraphNode, params *CUDA_EXT_SEM_WAIT_NODE_PARAMS) CUresult
}

// GraphExecAPI is cuda.h's executable graphs.
type GraphExecAPI interface {
	// CuGraphInstantiateWithParams can fail in params.Result_out even if the
	// CUresult is CUDA_SUCCESS.
	CuGraphInstantiateWithParams(g CUgraph, params *CUDA_GRAPH_INSTANTIATE_PARAMS) (CUgraphExec, CUresult)
	CuGraphExecDestroy(x CUgraphExec) CUresult
	CuGraphLaunch(x CUgraphExec, s CUstream) CUresult
	CuGraphUpload(x CUgraphExec, s CUstream) CUresult
	CuGraphExecUpdate(x CUgraphExec, g CUgraph) (CUgraphExecUpdateResultInfo, CUresult)
	CuGraphExecKernelNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_KERNEL_NODE_PARAMS) CUresult
	CuGraphExecMemcpyNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_MEMCPY3D, ctx CUcontext) CUresult
	CuGraphExecMemsetNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_MEMSET_NODE_PARAMS, ctx CUcontext) CUresult
	// CuGraphExecBatchMemOpNodeSetParams can change addresses, values and how a
	// wait compares, but neither the context nor the number and types of the
	// operations.
	CuGraphExecBatchMemOpNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_BATCH_MEM_OP_NODE_PARAMS) CUresult
	CuGraphExecHostNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_HOST_NODE_PARAMS) CUresult
	// CuGraphExecChildGraphNodeSetParams gives the nodes inside n the parameters of
	// those of child, which must have the same nodes and edges, made in the same
	// order.
	CuGraphExecChildGraphNodeSetParams(x CUgraphExec, n CUgraphNode, child CUgraph) CUresult
	CuGraphExecEventRecordNodeSetEvent(x CUgraphExec, n CUgraphNode, e CUevent) CUresult
	CuGraphExecEventWaitNodeSetEvent(x CUgraphExec, n CUgraphNode, e CUevent) CUresult
	// CuGraphExecExternalSemaphoresSignalNodeSetParams can change everything but the
	// number of semaphores.
	CuGraphExecExternalSemaphoresSignalNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) CUresult
	CuGraphExecExternalSemaphoresWaitNodeSetParams(x CUgraphExec, n CUgraphNode, params *CUDA_EXT_SEM_WAIT_NODE_PARAMS) CUresult
	CuGraphNodeSetEnabled(x CUgraphExec, n CUgraphNode, enabled bool) CUresult
	CuGraphNodeGetEnabled(x CUgraphExec, n CUgraphNode) (enabled bool, r CUresult)
}
