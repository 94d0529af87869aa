// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"structs"
	"unsafe"
)

// Handles, from cuda.h, CUDA 12.4. A handle of zero is invalid, but for
// CUstream, where it is the legacy default stream.
type (
	CUdevice     int32
	CUdeviceptr  uint64
	CUcontext    uintptr
	CUstream     uintptr
	CUevent      uintptr
	CUmodule     uintptr
	CUfunction   uintptr
	CUmemoryPool uintptr
	CUgraph      uintptr
	CUgraphNode  uintptr
	CUgraphExec  uintptr
	CUuserObject uintptr
	// CUhostFn is the address of a C function void (*)(void *userData).
	CUhostFn uintptr
)

// Stream handles with a meaning of their own. From cuda.h, CUDA 12.4.
const (
	CU_STREAM_LEGACY     CUstream = 1
	CU_STREAM_PER_THREAD CUstream = 2
)

// Flags of user objects: CUuserObject_flags, CUuserObjectRetain_flags. From cuda.h, CUDA 12.4.
const (
	CU_USER_OBJECT_NO_DESTRUCTOR_SYNC uint32 = 1
	CU_GRAPH_USER_OBJECT_MOVE         uint32 = 1
)

// Flags. From cuda.h, CUDA 12.4.
const (
	CU_STREAM_DEFAULT      uint32 = 0
	CU_STREAM_NON_BLOCKING uint32 = 1

	CU_EVENT_DEFAULT        uint32 = 0
	CU_EVENT_BLOCKING_SYNC  uint32 = 1
	CU_EVENT_DISABLE_TIMING uint32 = 2
	CU_EVENT_INTERPROCESS   uint32 = 4

	CU_MEM_ATTACH_GLOBAL uint32 = 1

	CU_MEMHOSTALLOC_PORTABLE  uint32 = 1
	CU_MEMHOSTALLOC_DEVICEMAP uint32 = 2

	CU_MEMHOSTREGISTER_PORTABLE  uint32 = 1
	CU_MEMHOSTREGISTER_DEVICEMAP uint32 = 2
	CU_MEMHOSTREGISTER_READ_ONLY uint32 = 8
)

// Flags of cuStreamUpdateCaptureDependencies. From cuda.h, CUDA 12.4.
const (
	CU_STREAM_ADD_CAPTURE_DEPENDENCIES uint32 = 0
	CU_STREAM_SET_CAPTURE_DEPENDENCIES uint32 = 1
)

// CUstreamCaptureMode says which calls are refused during a capture. From
// cuda.h, CUDA 12.4.
type CUstreamCaptureMode int32

const (
	CU_STREAM_CAPTURE_MODE_GLOBAL       CUstreamCaptureMode = 0
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL CUstreamCaptureMode = 1
	CU_STREAM_CAPTURE_MODE_RELAXED      CUstreamCaptureMode = 2
)

// CUstreamCaptureStatus is a stream's capture state. From cuda.h, CUDA 12.4.
type CUstreamCaptureStatus int32

const (
	CU_STREAM_CAPTURE_STATUS_NONE        CUstreamCaptureStatus = 0
	CU_STREAM_CAPTURE_STATUS_ACTIVE      CUstreamCaptureStatus = 1
	CU_STREAM_CAPTURE_STATUS_INVALIDATED CUstreamCaptureStatus = 2
)

// CaptureInfo is the result of cuStreamGetCaptureInfo. Deps is a copy.
type CaptureInfo struct {
	Status CUstreamCaptureStatus
	ID     uint64
	Graph  CUgraph
	Deps   []CUgraphNode
}

// CUmemPoolProps describes a pool. From cuda.h, CUDA 12.4: 88 bytes.
type CUmemPoolProps struct {
	_                       structs.HostLayout
	AllocType               int32 // CU_MEM_ALLOCATION_TYPE_PINNED, MANAGED
	HandleTypes             int32
	LocationType            int32 // CUmemLocationType; 0 is no preferred location, of managed memory
	LocationID              int32
	Win32SecurityAttributes uintptr
	MaxSize                 uint64
	Usage                   uint16
	_                       [54]byte
}

// CUmemPool_attribute names an attribute of a pool. From cuda.h, CUDA 12.4.
type CUmemPool_attribute int32

const (
	CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES   CUmemPool_attribute = 1 // int
	CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC         CUmemPool_attribute = 2 // int
	CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES CUmemPool_attribute = 3 // int
	CU_MEMPOOL_ATTR_RELEASE_THRESHOLD                 CUmemPool_attribute = 4
	CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT              CUmemPool_attribute = 5
	CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH                 CUmemPool_attribute = 6
	CU_MEMPOOL_ATTR_USED_MEM_CURRENT                  CUmemPool_attribute = 7
	CU_MEMPOOL_ATTR_USED_MEM_HIGH                     CUmemPool_attribute = 8
)

// CUgraphMem_attribute names a size of the memory of a device's graphs. From
// cuda.h, CUDA 12.4.
type CUgraphMem_attribute int32

const (
	CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT     CUgraphMem_attribute = 0
	CU_GRAPH_MEM_ATTR_USED_MEM_HIGH        CUgraphMem_attribute = 1
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT CUgraphMem_attribute = 2
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH    CUgraphMem_attribute = 3
)

// CUlimit names a limit of a context. From cuda.h, CUDA 12.4.
type CUlimit int32

const (
	CU_LIMIT_STACK_SIZE                       CUlimit = 0
	CU_LIMIT_PRINTF_FIFO_SIZE                 CUlimit = 1
	CU_LIMIT_MALLOC_HEAP_SIZE                 CUlimit = 2
	CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH           CUlimit = 3
	CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT CUlimit = 4
	CU_LIMIT_MAX_L2_FETCH_GRANULARITY         CUlimit = 5
	CU_LIMIT_PERSISTING_L2_CACHE_SIZE         CUlimit = 6
)

// CUmemorytype is the kind of memory behind a pointer. From cuda.h, CUDA 12.4.
type CUmemorytype uint32

const (
	CU_MEMORYTYPE_HOST    CUmemorytype = 1
	CU_MEMORYTYPE_DEVICE  CUmemorytype = 2
	CU_MEMORYTYPE_ARRAY   CUmemorytype = 3
	CU_MEMORYTYPE_UNIFIED CUmemorytype = 4
)

// CUpointer_attribute names an attribute of a pointer. From cuda.h, CUDA 12.4.
type CUpointer_attribute int32

const (
	CU_POINTER_ATTRIBUTE_CONTEXT        CUpointer_attribute = 1
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE    CUpointer_attribute = 2
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER CUpointer_attribute = 3
	CU_POINTER_ATTRIBUTE_HOST_POINTER   CUpointer_attribute = 4
	CU_POINTER_ATTRIBUTE_BUFFER_ID      CUpointer_attribute = 7
	CU_POINTER_ATTRIBUTE_IS_MANAGED     CUpointer_attribute = 8
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL CUpointer_attribute = 9
)

// CUfunction_attribute names an attribute of a kernel. From cuda.h, CUDA 12.4.
type CUfunction_attribute int32

const (
	CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK            CUfunction_attribute = 0
	CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES                CUfunction_attribute = 1
	CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES                 CUfunction_attribute = 2
	CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES                 CUfunction_attribute = 3
	CU_FUNC_ATTRIBUTE_NUM_REGS                         CUfunction_attribute = 4
	CU_FUNC_ATTRIBUTE_PTX_VERSION                      CUfunction_attribute = 5
	CU_FUNC_ATTRIBUTE_BINARY_VERSION                   CUfunction_attribute = 6
	CU_FUNC_ATTRIBUTE_CACHE_MODE_CA                    CUfunction_attribute = 7
	CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES    CUfunction_attribute = 8
	CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT CUfunction_attribute = 9
)

// CUlaunchAttributeID names a launch attribute. From cuda.h, CUDA 12.4.
type CUlaunchAttributeID int32

const (
	CU_LAUNCH_ATTRIBUTE_COOPERATIVE                       CUlaunchAttributeID = 2
	CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION                 CUlaunchAttributeID = 4
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION CUlaunchAttributeID = 6
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT                CUlaunchAttributeID = 7 // of launches, not of nodes: CUlaunchEvent
	CU_LAUNCH_ATTRIBUTE_PRIORITY                          CUlaunchAttributeID = 8
	CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT           CUlaunchAttributeID = 12 // as above
)

// CUlaunchAttribute is one launch attribute. From cuda.h, CUDA 12.4: 72 bytes.
type CUlaunchAttribute struct {
	_     structs.HostLayout
	ID    CUlaunchAttributeID
	_     [4]byte
	Value [64]byte
}

// CUlaunchEvent begins the value of an attribute that records an event with a
// launch. From cuda.h, CUDA 12.4, CUlaunchAttributeValue: programmaticEvent, and
// launchCompletionEvent without its last member.
type CUlaunchEvent struct {
	_                   structs.HostLayout
	Event               CUevent
	Flags               int32 // of cuEventRecordWithFlags, without CU_EVENT_RECORD_EXTERNAL
	TriggerAtBlockStart int32
}

// CUlaunchAttributeValue is the value of one attribute, a union, of which kernel
// nodes are given and asked: there CUkernelNodeAttrValue. From cuda.h, CUDA
// 12.4: 64 bytes.
type CUlaunchAttributeValue struct {
	_     structs.HostLayout
	Value [64]byte
}

// CUlaunchConfig is the shape of a launch. From cuda.h, CUDA 12.4: 56 bytes.
type CUlaunchConfig struct {
	_              structs.HostLayout
	GridDimX       uint32
	GridDimY       uint32
	GridDimZ       uint32
	BlockDimX      uint32
	BlockDimY      uint32
	BlockDimZ      uint32
	SharedMemBytes uint32
	_              [4]byte
	HStream        CUstream
	Attrs          unsafe.Pointer // *CUlaunchAttribute, pinned or C memory
	NumAttrs       uint32
	_              [4]byte
}
