// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "structs"

// CUtensorMap describes a tensor to the bulk tensor copies of kernels, in a form
// that only the driver that encoded it knows. It is 64-byte aligned where a
// driver call or a kernel sees it. From cuda.h, CUDA 12.0 to 13.5.
type CUtensorMap struct {
	_      structs.HostLayout
	Opaque [16]uint64
}

// TensorMapRank is the greatest rank of a tensor map. From the text about
// cuTensorMapEncodeTiled in cuda.h, CUDA 13.5.
const TensorMapRank = 5

// CUtensorMapDataType is the type of a tensor map's elements. From cuda.h, CUDA
// 12.0; the last three from CUDA 12.8.
type CUtensorMapDataType int32

const (
	CU_TENSOR_MAP_DATA_TYPE_UINT8         CUtensorMapDataType = 0
	CU_TENSOR_MAP_DATA_TYPE_UINT16        CUtensorMapDataType = 1
	CU_TENSOR_MAP_DATA_TYPE_UINT32        CUtensorMapDataType = 2
	CU_TENSOR_MAP_DATA_TYPE_INT32         CUtensorMapDataType = 3
	CU_TENSOR_MAP_DATA_TYPE_UINT64        CUtensorMapDataType = 4
	CU_TENSOR_MAP_DATA_TYPE_INT64         CUtensorMapDataType = 5
	CU_TENSOR_MAP_DATA_TYPE_FLOAT16       CUtensorMapDataType = 6
	CU_TENSOR_MAP_DATA_TYPE_FLOAT32       CUtensorMapDataType = 7
	CU_TENSOR_MAP_DATA_TYPE_FLOAT64       CUtensorMapDataType = 8
	CU_TENSOR_MAP_DATA_TYPE_BFLOAT16      CUtensorMapDataType = 9
	CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ   CUtensorMapDataType = 10
	CU_TENSOR_MAP_DATA_TYPE_TFLOAT32      CUtensorMapDataType = 11
	CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ  CUtensorMapDataType = 12
	CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B  CUtensorMapDataType = 13
	CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B CUtensorMapDataType = 14
	CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B CUtensorMapDataType = 15
)

// Size is the bytes of an element; 0 for the packed types and unknown ones.
func (t CUtensorMapDataType) Size() uint64 {
	sizes := [...]uint64{1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4}
	if t < 0 || int(t) >= len(sizes) {
		return 0
	}
	return sizes[t]
}

// Float reports whether elements are floating-point numbers.
func (t CUtensorMapDataType) Float() bool {
	return t >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && t <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
}

// CUtensorMapInterleave is the layout of channels. From cuda.h, CUDA 12.0.
type CUtensorMapInterleave int32

const (
	CU_TENSOR_MAP_INTERLEAVE_NONE CUtensorMapInterleave = 0
	CU_TENSOR_MAP_INTERLEAVE_16B  CUtensorMapInterleave = 1
	CU_TENSOR_MAP_INTERLEAVE_32B  CUtensorMapInterleave = 2
)

// CUtensorMapSwizzle is the order of a box's bytes in shared memory. From cuda.h,
// CUDA 12.0; the last three from CUDA 12.8.
type CUtensorMapSwizzle int32

const (
	CU_TENSOR_MAP_SWIZZLE_NONE                  CUtensorMapSwizzle = 0
	CU_TENSOR_MAP_SWIZZLE_32B                   CUtensorMapSwizzle = 1
	CU_TENSOR_MAP_SWIZZLE_64B                   CUtensorMapSwizzle = 2
	CU_TENSOR_MAP_SWIZZLE_128B                  CUtensorMapSwizzle = 3
	CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B         CUtensorMapSwizzle = 4
	CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B CUtensorMapSwizzle = 5
	CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B         CUtensorMapSwizzle = 6
)

// CUtensorMapIm2ColWideMode is how many pixels of a row one copy of columns moves: as
// many as the map says, or 128. From cuda.h, CUDA 12.8.
type CUtensorMapIm2ColWideMode int32

const (
	CU_TENSOR_MAP_IM2COL_WIDE_MODE_W    CUtensorMapIm2ColWideMode = 0
	CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 CUtensorMapIm2ColWideMode = 1
)

// CUtensorMapL2promotion is how much the L2 cache fetches. From cuda.h, CUDA
// 12.0.
type CUtensorMapL2promotion int32

const (
	CU_TENSOR_MAP_L2_PROMOTION_NONE    CUtensorMapL2promotion = 0
	CU_TENSOR_MAP_L2_PROMOTION_L2_64B  CUtensorMapL2promotion = 1
	CU_TENSOR_MAP_L2_PROMOTION_L2_128B CUtensorMapL2promotion = 2
	CU_TENSOR_MAP_L2_PROMOTION_L2_256B CUtensorMapL2promotion = 3
)

// CUtensorMapFloatOOBfill is what elements outside of the tensor are read as.
// From cuda.h, CUDA 12.0.
type CUtensorMapFloatOOBfill int32

const (
	CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE                 CUtensorMapFloatOOBfill = 0
	CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA CUtensorMapFloatOOBfill = 1
)
