// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"structs"
	"unsafe"
)

// CUexternalSemaphore is a semaphore of another API. From cuda.h, CUDA 12.4.
type CUexternalSemaphore uintptr

// CUexternalMemory is memory of another API. From cuda.h, CUDA 12.4.
type CUexternalMemory uintptr

// CUexternalSemaphoreHandleType is what names a semaphore. From cuda.h, CUDA
// 12.4; of those that Linux has.
type CUexternalSemaphoreHandleType int32

const (
	CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD             CUexternalSemaphoreHandleType = 1
	CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD CUexternalSemaphoreHandleType = 9
)

// CUexternalMemoryHandleType is what names memory. From cuda.h, CUDA 12.4; of
// those that Linux has.
type CUexternalMemoryHandleType int32

const CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD CUexternalMemoryHandleType = 1

// CUDA_EXTERNAL_MEMORY_DEDICATED says that the other API allocated the memory
// for one resource. From cuda.h, CUDA 12.4.
const CUDA_EXTERNAL_MEMORY_DEDICATED uint32 = 1

// CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC names a semaphore to import; of the union
// only the descriptor is described. From cuda.h, CUDA 12.4: 96 bytes.
type CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC struct {
	_     structs.HostLayout
	Type  CUexternalSemaphoreHandleType
	_     [4]byte
	Fd    int32
	_     [12]byte
	Flags uint32 // 0
	_     [64]byte
	_     [4]byte
}

// CUDA_EXTERNAL_MEMORY_HANDLE_DESC names memory to import; of the union only the
// descriptor is described. From cuda.h, CUDA 12.4: 104 bytes.
type CUDA_EXTERNAL_MEMORY_HANDLE_DESC struct {
	_     structs.HostLayout
	Type  CUexternalMemoryHandleType
	_     [4]byte
	Fd    int32
	_     [12]byte
	Size  uint64
	Flags uint32 // CUDA_EXTERNAL_MEMORY_DEDICATED
	_     [64]byte
	_     [4]byte
}

// CUDA_EXTERNAL_MEMORY_BUFFER_DESC is a part of imported memory. From cuda.h,
// CUDA 12.4: 88 bytes.
type CUDA_EXTERNAL_MEMORY_BUFFER_DESC struct {
	_      structs.HostLayout
	Offset uint64
	Size   uint64
	Flags  uint32 // 0
	_      [64]byte
	_      [4]byte
}

// CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS is what a semaphore is signaled with;
// only params.fence is described. From cuda.h, CUDA 12.4: 144 bytes.
type CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS struct {
	_     structs.HostLayout
	Value uint64
	_     [64]byte
	Flags uint32 // 0
	_     [64]byte
	_     [4]byte
}

// CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS is what a semaphore is waited for to have;
// only params.fence is described. From cuda.h, CUDA 12.4: 144 bytes.
type CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS struct {
	_     structs.HostLayout
	Value uint64
	_     [64]byte
	Flags uint32 // 0
	_     [64]byte
	_     [4]byte
}

// CUDA_EXT_SEM_SIGNAL_NODE_PARAMS describes a node that signals semaphores. From
// cuda.h, CUDA 12.4: 24 bytes (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1).
type CUDA_EXT_SEM_SIGNAL_NODE_PARAMS struct {
	_           structs.HostLayout
	ExtSemArray unsafe.Pointer // of NumExtSems CUexternalSemaphore
	ParamsArray unsafe.Pointer // of NumExtSems CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS
	NumExtSems  uint32
	_           [4]byte
}

// CUDA_EXT_SEM_WAIT_NODE_PARAMS describes a node that waits for semaphores. From
// cuda.h, CUDA 12.4: 24 bytes (CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1).
type CUDA_EXT_SEM_WAIT_NODE_PARAMS struct {
	_           structs.HostLayout
	ExtSemArray unsafe.Pointer // of NumExtSems CUexternalSemaphore
	ParamsArray unsafe.Pointer // of NumExtSems CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS
	NumExtSems  uint32
	_           [4]byte
}
