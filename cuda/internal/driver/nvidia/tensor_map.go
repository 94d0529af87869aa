// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuTensorMapEncodeTiled(
	dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, boxDim, elementStrides []uint32,
	interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle, promotion driver.CUtensorMapL2promotion, fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	rank := len(globalDim)
	if len(globalStrides) != max(rank-1, 0) || len(boxDim) != rank || len(elementStrides) != rank {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	if rank == 1 {
		globalStrides = []uint64{0} // never read, but not null
	}
	result := C.cuTensorMapEncodeTiled(d.fn[cuTensorMapEncodeTiled], (*C.CUtensorMap)(unsafe.Pointer(&m)), C.CUtensorMapDataType(dataType),
		C.uint32_t(rank), C.uint64_t(address), (*C.uint64_t)(unsafe.SliceData(globalDim)), (*C.uint64_t)(unsafe.SliceData(globalStrides)),
		(*C.uint32_t)(unsafe.SliceData(boxDim)), (*C.uint32_t)(unsafe.SliceData(elementStrides)), C.CUtensorMapInterleave(interleave),
		C.CUtensorMapSwizzle(swizzle), C.CUtensorMapL2promotion(promotion), C.CUtensorMapFloatOOBfill(fill))
	return m, driver.CUresult(result)
}

func (d *binding) CuTensorMapEncodeIm2col(
	dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, lower, upper []int32, channels, pixels uint32,
	elementStrides []uint32, interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle, promotion driver.CUtensorMapL2promotion,
	fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	rank := len(globalDim)
	between := max(rank-2, 0)
	if len(globalStrides) != max(rank-1, 0) || len(lower) != between || len(upper) != between || len(elementStrides) != rank {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	result := C.cuTensorMapEncodeIm2col(d.fn[cuTensorMapEncodeIm2col], (*C.CUtensorMap)(unsafe.Pointer(&m)), C.CUtensorMapDataType(dataType),
		C.uint32_t(rank), C.uint64_t(address), (*C.uint64_t)(unsafe.SliceData(globalDim)), (*C.uint64_t)(unsafe.SliceData(globalStrides)),
		(*C.int)(unsafe.SliceData(lower)), (*C.int)(unsafe.SliceData(upper)), C.uint32_t(channels), C.uint32_t(pixels),
		(*C.uint32_t)(unsafe.SliceData(elementStrides)), C.CUtensorMapInterleave(interleave), C.CUtensorMapSwizzle(swizzle),
		C.CUtensorMapL2promotion(promotion), C.CUtensorMapFloatOOBfill(fill))
	return m, driver.CUresult(result)
}

func (d *binding) CuTensorMapEncodeIm2colWide(
	dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, lower, upper int32, channels, pixels uint32,
	elementStrides []uint32, interleave driver.CUtensorMapInterleave, mode driver.CUtensorMapIm2ColWideMode, swizzle driver.CUtensorMapSwizzle,
	promotion driver.CUtensorMapL2promotion, fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	rank := len(globalDim)
	if len(globalStrides) != max(rank-1, 0) || len(elementStrides) != rank {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	result := C.cuTensorMapEncodeIm2colWide(d.fn[cuTensorMapEncodeIm2colWide], (*C.CUtensorMap)(unsafe.Pointer(&m)), C.CUtensorMapDataType(dataType),
		C.uint32_t(rank), C.uint64_t(address), (*C.uint64_t)(unsafe.SliceData(globalDim)), (*C.uint64_t)(unsafe.SliceData(globalStrides)),
		C.int(lower), C.int(upper), C.uint32_t(channels), C.uint32_t(pixels), (*C.uint32_t)(unsafe.SliceData(elementStrides)),
		C.CUtensorMapInterleave(interleave), C.CUtensorMapIm2ColWideMode(mode), C.CUtensorMapSwizzle(swizzle),
		C.CUtensorMapL2promotion(promotion), C.CUtensorMapFloatOOBfill(fill))
	return m, driver.CUresult(result)
}
