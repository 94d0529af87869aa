// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
)

// CuTensorMapEncodeTiled checks what cuda.h asks for, and leaves out interleaved
// layouts, the packed types, numbers that copies change, and swizzles of more than
// 16 bytes or of rows that do not fill the span.
func (d *simulator) CuTensorMapEncodeTiled(
	dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, boxDim, elementStrides []uint32,
	interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle, promotion driver.CUtensorMapL2promotion, fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return m, r
	}
	rank := len(globalDim)
	if rank < 1 || rank > driver.TensorMapRank || len(globalStrides) != rank-1 || len(boxDim) != rank || len(elementStrides) != rank {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	if !tensorMapFields(dataType, interleave, swizzle, promotion, fill) || interleave != driver.CU_TENSOR_MAP_INTERLEAVE_NONE && rank < 3 {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	if tensorMapLeftOut(dataType, interleave, swizzle) {
		return m, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	t := descriptor.TensorMap{
		Address: uint64(address), Rank: rank, ElementSize: dataType.Size(), Swizzle: descriptor.Swizzle(swizzle),
		NaN: fill == driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
	}
	for i := range rank {
		t.Size[i], t.Box[i], t.Step[i], t.Stride[i] = globalDim[i], uint64(boxDim[i]), uint64(elementStrides[i]), t.ElementSize
		if i > 0 {
			t.Stride[i] = globalStrides[i-1]
		}
	}
	row := t.Box[0] * t.ElementSize
	if !tensorMapSound(&t) || t.Swizzle != descriptor.Plain && row > t.Swizzle.Span() {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	if t.Swizzle != descriptor.Plain && row != t.Swizzle.Span() {
		return m, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	t.Step[0] = 1 // cuda.h: ignored
	b := t.Encode()
	for i := range m.Opaque {
		m.Opaque[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return m, driver.CUDA_SUCCESS
}

// CuTensorMapEncodeIm2col checks what cuda.h asks for, and leaves out what
// CuTensorMapEncodeTiled does. No copy uses such a map here.
func (d *simulator) CuTensorMapEncodeIm2col(
	dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, lower, upper []int32, channels, pixels uint32,
	elementStrides []uint32, interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle, promotion driver.CUtensorMapL2promotion,
	fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return m, r
	}
	rank := len(globalDim)
	if rank < 3 || rank > driver.TensorMapRank || len(globalStrides) != rank-1 || len(elementStrides) != rank {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	columns, ok := columnsOf(rank, lower, upper, channels, pixels)
	if !ok || !tensorMapFields(dataType, interleave, swizzle, promotion, fill) {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	return columnsMap(&columns, dataType, address, globalDim, globalStrides, elementStrides, interleave, swizzle, fill)
}

// CuTensorMapEncodeIm2colWide is CuTensorMapEncodeIm2col with the rules of its own in
// cuda.h.
func (d *simulator) CuTensorMapEncodeIm2colWide(
	dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, lower, upper int32, channels, pixels uint32,
	elementStrides []uint32, interleave driver.CUtensorMapInterleave, mode driver.CUtensorMapIm2ColWideMode, swizzle driver.CUtensorMapSwizzle,
	promotion driver.CUtensorMapL2promotion, fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return m, r
	}
	rank := len(globalDim)
	if rank < 3 || rank > driver.TensorMapRank || len(globalStrides) != rank-1 || len(elementStrides) != rank || mode>>1 != 0 {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	if mode == driver.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 {
		pixels = 128
	}
	columns, ok := columnsOf(3, []int32{lower}, []int32{upper}, channels, pixels) // corners as of images of one dimension
	columns.Wide = uint8(mode) + 1
	if !ok || !tensorMapFields(dataType, interleave, swizzle, promotion, fill) {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	switch swizzle {
	case driver.CU_TENSOR_MAP_SWIZZLE_64B, driver.CU_TENSOR_MAP_SWIZZLE_128B, driver.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
	default:
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	return columnsMap(&columns, dataType, address, globalDim, globalStrides, elementStrides, interleave, swizzle, fill)
}

// columnsMap makes a map of columns.
func columnsMap(
	columns *descriptor.Im2col, dataType driver.CUtensorMapDataType, address driver.CUdeviceptr, globalDim, globalStrides []uint64, elementStrides []uint32,
	interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle, fill driver.CUtensorMapFloatOOBfill,
) (m driver.CUtensorMap, r driver.CUresult) {
	rank := len(globalDim)
	if tensorMapLeftOut(dataType, interleave, swizzle) {
		return m, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	t := descriptor.TensorMap{
		Address: uint64(address), Rank: rank, ElementSize: dataType.Size(), Swizzle: descriptor.Swizzle(swizzle),
		NaN: fill == driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
	}
	for i := range rank {
		t.Size[i], t.Box[i], t.Step[i], t.Stride[i] = globalDim[i], 1, uint64(elementStrides[i]), t.ElementSize
		if i > 0 {
			t.Stride[i] = globalStrides[i-1]
		}
	}
	t.Box[0] = uint64(columns.Channels)
	if !tensorMapSound(&t) || t.Swizzle != descriptor.Plain && t.Box[0]*t.ElementSize > t.Swizzle.Span() {
		return m, driver.CUDA_ERROR_INVALID_VALUE
	}
	b := t.EncodeIm2col(columns)
	for i := range m.Opaque {
		m.Opaque[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return m, driver.CUDA_SUCCESS
}

// columnsOf checks the numbers of a map of columns: how far a corner may lie from
// the bounds depends on the rank.
func columnsOf(rank int, lower, upper []int32, channels, pixels uint32) (c descriptor.Im2col, ok bool) {
	if len(lower) != rank-2 || len(upper) != rank-2 || channels == 0 || channels > 256 || pixels == 0 || pixels > 1024 {
		return c, false
	}
	most := []int32{1 << 15, 1 << 7, 1 << 4}[rank-3]
	for i := range lower {
		if lower[i] < -most || lower[i] >= most || upper[i] < -most || upper[i] >= most {
			return c, false
		}
		c.Lower[i], c.Upper[i] = int16(lower[i]), int16(upper[i])
	}
	c.Channels, c.Pixels = uint16(channels), uint16(pixels)
	return c, true
}

// tensorMapFields reports whether the numbers of the kinds are known.
func tensorMapFields(
	dataType driver.CUtensorMapDataType, interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle,
	promotion driver.CUtensorMapL2promotion, fill driver.CUtensorMapFloatOOBfill,
) bool {
	known := dataType >= 0 && dataType <= driver.CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
		interleave >= 0 && interleave <= driver.CU_TENSOR_MAP_INTERLEAVE_32B &&
		swizzle >= 0 && swizzle <= driver.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
		promotion >= 0 && promotion <= driver.CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
		fill >= 0 && fill <= driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
	return known && (fill == driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || dataType.Float())
}

func tensorMapLeftOut(dataType driver.CUtensorMapDataType, interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle) bool {
	switch dataType {
	case driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, driver.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, driver.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
		return true
	}
	return dataType.Size() == 0 || interleave != driver.CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle > driver.CU_TENSOR_MAP_SWIZZLE_128B
}

// tensorMapSound checks the numbers of a map without interleaving.
func tensorMapSound(t *descriptor.TensorMap) bool {
	if t.Address%16 != 0 || t.Address == 0 || t.Box[0]*t.ElementSize%16 != 0 {
		return false
	}
	for i := range t.Rank {
		if t.Size[i] == 0 || t.Size[i] > 1<<31 || t.Box[i] == 0 || t.Box[i] > 256 || t.Step[i] == 0 || t.Step[i] > 8 {
			return false
		}
		if i > 0 && (t.Stride[i]%16 != 0 || t.Stride[i] >= 1<<40) {
			return false
		}
	}
	return true
}
