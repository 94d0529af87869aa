// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"structs"
	"unsafe"
)

// Flags of cuStreamWaitValue32 and 64: how memory is compared with the value.
// From cuda.h, CUDA 12.4.
const (
	CU_STREAM_WAIT_VALUE_GEQ uint32 = 0 // (int)(*p - value) >= 0, in the width's signed type
	CU_STREAM_WAIT_VALUE_EQ  uint32 = 1 // *p == value
	CU_STREAM_WAIT_VALUE_AND uint32 = 2 // (*p & value) != 0
	CU_STREAM_WAIT_VALUE_NOR uint32 = 3 // ~(*p | value) != 0
)

// CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER does not order the write behind
// earlier ones. From cuda.h, CUDA 12.4.
const CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER uint32 = 1

// CUstreamBatchMemOpType is the kind of a memory operation. From cuda.h, CUDA
// 12.4.
type CUstreamBatchMemOpType int32

const (
	CU_STREAM_MEM_OP_WAIT_VALUE_32  CUstreamBatchMemOpType = 1
	CU_STREAM_MEM_OP_WRITE_VALUE_32 CUstreamBatchMemOpType = 2
	CU_STREAM_MEM_OP_WAIT_VALUE_64  CUstreamBatchMemOpType = 4
	CU_STREAM_MEM_OP_WRITE_VALUE_64 CUstreamBatchMemOpType = 5
)

// CUstreamBatchMemOpParams is a write or a wait; the union's other members are
// not described. From cuda.h, CUDA 12.4: 48 bytes.
type CUstreamBatchMemOpParams struct {
	_         structs.HostLayout
	Operation CUstreamBatchMemOpType
	_         [4]byte
	Address   CUdeviceptr
	Value     uint64
	Flags     uint32
	_         [4]byte
	_         CUdeviceptr // alias, the driver's own
	_         [8]byte
}

// CUDA_BATCH_MEM_OP_NODE_PARAMS describes memory operations of a node. From
// cuda.h, CUDA 12.4: 32 bytes (CUDA_BATCH_MEM_OP_NODE_PARAMS_v1).
type CUDA_BATCH_MEM_OP_NODE_PARAMS struct {
	_          structs.HostLayout
	Ctx        CUcontext
	Count      uint32
	_          [4]byte
	ParamArray unsafe.Pointer // of Count CUstreamBatchMemOpParams
	Flags      uint32         // 0
	_          [4]byte
}
