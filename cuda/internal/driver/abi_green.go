// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "structs"

// CUgreenCtx is a green context. From cuda.h, CUDA 12.4.
type CUgreenCtx uintptr

// CUdevResourceDesc describes what a green context is made of. From cuda.h,
// CUDA 12.4.
type CUdevResourceDesc uintptr

// CUdevResourceType is the kind of a CUdevResource. From cuda.h, CUDA 12.4.
type CUdevResourceType int32

const (
	CU_DEV_RESOURCE_TYPE_INVALID CUdevResourceType = 0
	CU_DEV_RESOURCE_TYPE_SM      CUdevResourceType = 1
)

// Flags of CuGreenCtxCreate and CuDevSmResourceSplitByCount. From cuda.h, CUDA
// 12.4 and 12.5.
const (
	CU_GREEN_CTX_DEFAULT_STREAM                     uint32 = 1
	CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING uint32 = 1
)

// CUdevResource is a part of a device; only the driver knows which. From cuda.h,
// CUDA 13.0: 144 bytes, as in 12.4, which leaves all of the SMs' union but SmCount
// zero. 13.1 took the last 8 bytes for a pointer to another resource, which is nil
// in what the calls here return.
type CUdevResource struct {
	_                      structs.HostLayout
	Type                   CUdevResourceType
	Internal               [92]byte
	SmCount                uint32
	MinSmPartitionSize     uint32
	SmCoscheduledAlignment uint32
	Rest                   [36]byte
}
