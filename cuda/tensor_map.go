// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// TensorMapSize is the bytes of a tensor map, which a kernel takes by value.
const TensorMapSize = 128

// TensorMapParams describes a tensor in device memory, and the box of it that one
// copy of a kernel moves. Dimensions go from the innermost outwards, whose elements
// lie next to each other; the numbers of kinds are those of cuda.h
// (CU_TENSOR_MAP_…).
type TensorMapParams struct {
	Ptr  uint64
	Type int32
	// Dims are elements, one to five dimensions. Strides are bytes, of all dimensions
	// but the first.
	Dims, Strides []uint64
	// Box is what is traversed of each dimension, of which one element of so many
	// as Steps says is copied.
	Box, Steps                             []uint32
	Interleave, Swizzle, Promotion, Beyond int32
	Columns                                *TensorMapColumns // nil: tiles
}

// TensorMapColumns says how the copies of a map lay out the columns of a
// convolution, instead of boxes. The corners are offsets in the dimensions between
// the first, of channels, and the last, of images.
type TensorMapColumns struct {
	Lower, Upper     []int32
	Channels, Pixels uint32 // of each pixel, and of a column
	// Wide says that copies go along the width alone, of which the corners are; Mode
	// is the number of cuda.h (CU_TENSOR_MAP_IM2COL_WIDE_MODE_…) for how far.
	Wide bool
	Mode int32
}

// String returns all that the driver is told.
func (p *TensorMapParams) String() string {
	box := fmt.Sprintf("box %v", p.Box)
	if c := p.Columns; c != nil {
		box = fmt.Sprintf("corners %v and %v, %d channels, %d pixels", c.Lower, c.Upper, c.Channels, c.Pixels)
		if c.Wide {
			box += fmt.Sprintf(", wide mode %d", c.Mode)
		}
	}
	return fmt.Sprintf("type %d, dimensions %v, strides %v, %s, element strides %v, interleave %d, swizzle %d, L2 promotion %d, fill %d, at %#x",
		p.Type, p.Dims, p.Strides, box, p.Steps, p.Interleave, p.Swizzle, p.Promotion, p.Beyond, p.Ptr)
}

// NeedTensorMaps fails unless kernels on d can use tensor maps.
//
// Errors: [ErrorNotSupported] before compute capability 9.0.
func (d *Device) NeedTensorMaps() error {
	return d.need(TensorMapAccessSupported, "cuTensorMapEncodeTiled", "has no tensor maps, which need compute capability 9.0")
}

// NeedWideTensorMaps fails unless kernels on d can use maps of wide columns.
//
// Errors: [ErrorNotSupported] before compute capability 10.0.
func (d *Device) NeedWideTensorMaps() error {
	major, minor, err := d.ComputeCapability()
	if err == nil && major < 10 {
		err = &Error{
			Op: "cuTensorMapEncodeIm2colWide", Result: ErrorNotSupported,
			Detail: fmt.Sprintf("%v has compute capability %d.%d, and maps of wide columns need 10.0", d, major, minor),
		}
	}
	return err
}

// EncodeTensorMap returns the tensor map of p for kernels on c's device. It calls
// cuTensorMapEncodeTiled, or cuTensorMapEncodeIm2col, or for wide columns
// cuTensorMapEncodeIm2colWide.
//
// Lifetime: the map has the memory's address and does not keep the memory.
//
// Errors: an [*ArgumentError] if the lists are not of 1 to 5 dimensions, or wide
// columns have other corners than one number each;
// [ErrorInvalidValue] if a rule of CUDA's is broken; [ErrorNotSupported] if the
// driver has no tensor maps, or the simulated driver no such.
func (c *Context) EncodeTensorMap(p TensorMapParams) (b [TensorMapSize]byte, err error) {
	rank := len(p.Dims)
	if rank < 1 || rank > driver.TensorMapRank || len(p.Strides) != rank-1 || len(p.Box) != rank || len(p.Steps) != rank {
		return b, badValue("dims", "must be 1 to 5, with as many boxes and steps and one stride less, got %d, %d, %d and %d", rank, len(p.Box), len(p.Steps), len(p.Strides))
	}
	if k := p.Columns; k != nil && k.Wide && (len(k.Lower) != 1 || len(k.Upper) != 1) {
		return b, badValue("columns", "must have corners of one number, got %d and %d", len(k.Lower), len(k.Upper))
	}
	leave, err := c.Enter()
	if err != nil {
		return b, err
	}
	defer leave()
	op, m, r := p.encode(c.drv.api)
	if r != driver.CUDA_SUCCESS {
		return b, c.fail(op, r, p.String())
	}
	for i, word := range m.Opaque {
		binary.NativeEndian.PutUint64(b[8*i:], word)
	}
	return b, nil
}

func (p *TensorMapParams) encode(api driver.API) (op string, m driver.CUtensorMap, r driver.CUresult) {
	// Copies: what is passed to C is on the heap.
	dims, strides, steps := slices.Clone(p.Dims), slices.Clone(p.Strides), slices.Clone(p.Steps)
	typ, ptr := driver.CUtensorMapDataType(p.Type), driver.CUdeviceptr(p.Ptr)
	interleave, swizzle := driver.CUtensorMapInterleave(p.Interleave), driver.CUtensorMapSwizzle(p.Swizzle)
	promotion, fill := driver.CUtensorMapL2promotion(p.Promotion), driver.CUtensorMapFloatOOBfill(p.Beyond)
	if k := p.Columns; k != nil && k.Wide {
		m, r = api.CuTensorMapEncodeIm2colWide(typ, ptr, dims, strides, k.Lower[0], k.Upper[0], k.Channels, k.Pixels, steps, interleave,
			driver.CUtensorMapIm2ColWideMode(k.Mode), swizzle, promotion, fill)
		return "cuTensorMapEncodeIm2colWide", m, r
	}
	if k := p.Columns; k != nil {
		m, r = api.CuTensorMapEncodeIm2col(typ, ptr, dims, strides, slices.Clone(k.Lower), slices.Clone(k.Upper), k.Channels, k.Pixels, steps, interleave, swizzle, promotion, fill)
		return "cuTensorMapEncodeIm2col", m, r
	}
	m, r = api.CuTensorMapEncodeTiled(typ, ptr, dims, strides, slices.Clone(p.Box), steps, interleave, swizzle, promotion, fill)
	return "cuTensorMapEncodeTiled", m, r
}
