// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "structs"

// CUmemGenericAllocationHandle names physical memory. From cuda.h, CUDA 12.4.
type CUmemGenericAllocationHandle uint64

// CUmemLocationType is the kind of place that a CUmemLocation names. From
// cuda.h, CUDA 12.4.
type CUmemLocationType int32

const (
	CU_MEM_LOCATION_TYPE_INVALID   CUmemLocationType = 0
	CU_MEM_LOCATION_TYPE_DEVICE    CUmemLocationType = 1
	CU_MEM_LOCATION_TYPE_HOST      CUmemLocationType = 2
	CU_MEM_LOCATION_TYPE_HOST_NUMA CUmemLocationType = 3
)

// CUmemLocation is where memory is, or who accesses it. From cuda.h, CUDA 12.4:
// 8 bytes.
type CUmemLocation struct {
	_    structs.HostLayout
	Type CUmemLocationType
	ID   int32
}

// CUmemAllocationType is the kind of physical memory. From cuda.h, CUDA 12.4;
// MANAGED came with 13.0, for pools.
type CUmemAllocationType int32

const (
	CU_MEM_ALLOCATION_TYPE_PINNED  CUmemAllocationType = 1
	CU_MEM_ALLOCATION_TYPE_MANAGED CUmemAllocationType = 2
)

// CUmemAllocationProp describes physical memory. From cuda.h, CUDA 12.4: 32
// bytes.
type CUmemAllocationProp struct {
	_                    structs.HostLayout
	Type                 CUmemAllocationType
	RequestedHandleTypes int32
	Location             CUmemLocation
	Win32HandleMetaData  uintptr
	CompressionType      uint8
	GpuDirectRDMACapable uint8
	Usage                uint16
	_                    [4]byte
}

// CUmemAccess_flags say what a location may do with a mapping. From cuda.h,
// CUDA 12.4.
type CUmemAccess_flags int32

const (
	CU_MEM_ACCESS_FLAGS_PROT_NONE      CUmemAccess_flags = 0
	CU_MEM_ACCESS_FLAGS_PROT_READ      CUmemAccess_flags = 1
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE CUmemAccess_flags = 3
)

// CUmemAccessDesc gives one location access to a mapping. From cuda.h, CUDA
// 12.4: 12 bytes.
type CUmemAccessDesc struct {
	_        structs.HostLayout
	Location CUmemLocation
	Flags    CUmemAccess_flags
}

// CUmemAllocationGranularity_flags select a granularity. From cuda.h, CUDA
// 12.4.
type CUmemAllocationGranularity_flags int32

const (
	CU_MEM_ALLOC_GRANULARITY_MINIMUM     CUmemAllocationGranularity_flags = 0
	CU_MEM_ALLOC_GRANULARITY_RECOMMENDED CUmemAllocationGranularity_flags = 1
)

// CUmemcpySrcAccessOrder says when a copy of a batch may read its source. From
// cuda.h, CUDA 12.8.
type CUmemcpySrcAccessOrder int32

const (
	CU_MEMCPY_SRC_ACCESS_ORDER_STREAM          CUmemcpySrcAccessOrder = 1
	CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL CUmemcpySrcAccessOrder = 2
	CU_MEMCPY_SRC_ACCESS_ORDER_ANY             CUmemcpySrcAccessOrder = 3
)

// CUmemcpyAttributes are those of some copies of a batch. The hints are for
// managed and pageable memory. From cuda.h, CUDA 12.8: 24 bytes.
type CUmemcpyAttributes struct {
	_              structs.HostLayout
	SrcAccessOrder CUmemcpySrcAccessOrder
	SrcLocHint     CUmemLocation
	DstLocHint     CUmemLocation
	Flags          uint32
}
