// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// ArrayParams says what an array has: Width elements in a row, of so many
// channels. Height and Depth are 0 where there is no such dimension; Depth is the
// layers of a layered array, or the faces of cubes. The format's number is cuda.h's (CU_AD_FORMAT_…).
type ArrayParams struct {
	Width, Height, Depth uint64
	Format, Channels     uint32
	Layered, Surfaces    bool
	Cubes                bool // of 6 faces each; of several if also layered
}

// String returns all that the driver is told.
func (p *ArrayParams) String() string {
	text := fmt.Sprintf("%d x %d x %d, format %d, %d channels", p.Width, p.Height, p.Depth, p.Format, p.Channels)
	if p.Layered {
		text += ", layered"
	}
	if p.Cubes {
		text += ", cubes"
	}
	if p.Surfaces {
		text += ", for surfaces"
	}
	return text
}

// An Array is memory of a device in a layout that only the driver knows. Copies
// reach it, textures and surfaces.
//
// # Lifetime
//
// Close it when nothing uses it any more: no work, texture or surface.
type Array struct {
	*opaque[driver.CUarray]
}

var arrayKind = opaqueKind[driver.CUarray]{
	name: "array", create: "cuArray3DCreate", destroy: "cuArrayDestroy", free: driver.API.CuArrayDestroy,
	count: func(l *liveCounts) *atomic.Int64 { return &l.arrays },
}

func (p *ArrayParams) abi() *driver.CUDA_ARRAY3D_DESCRIPTOR {
	desc := &driver.CUDA_ARRAY3D_DESCRIPTOR{
		Width: p.Width, Height: p.Height, Depth: p.Depth, Format: driver.CUarray_format(p.Format), NumChannels: p.Channels,
	}
	if p.Layered {
		desc.Flags |= driver.CUDA_ARRAY3D_LAYERED
	}
	if p.Cubes {
		desc.Flags |= driver.CUDA_ARRAY3D_CUBEMAP
	}
	if p.Surfaces {
		desc.Flags |= driver.CUDA_ARRAY3D_SURFACE_LDST
	}
	return desc
}

// NewArray allocates an array. It calls cuArray3DCreate. Not ordered by streams:
// the array can be used in every stream at once.
//
// Errors: [ErrorInvalidValue] if a rule of CUDA's is broken; [ErrorOutOfMemory];
// [ErrorNotSupported] if the driver has no such arrays.
func (c *Context) NewArray(p ArrayParams) (*Array, error) {
	o, err := newOpaque(c, &arrayKind, p.String, func(api driver.API) (driver.CUarray, driver.CUresult) { return api.CuArray3DCreate(p.abi()) })
	if err != nil {
		return nil, err
	}
	return &Array{o}, nil
}

// A Surface reads and writes an [Array] for kernels, which take its handle.
//
// # Lifetime
//
// Close it when no kernel uses it any more. It does not keep the array.
type Surface struct {
	*opaque[driver.CUsurfObject]
}

var surfaceKind = opaqueKind[driver.CUsurfObject]{
	name: "surface", create: "cuSurfObjectCreate", destroy: "cuSurfObjectDestroy", free: driver.API.CuSurfObjectDestroy,
	count: func(l *liveCounts) *atomic.Int64 { return &l.surfaces },
}

// NewSurface makes a surface of the array with a handle. It calls
// cuSurfObjectCreate.
//
// Errors: [ErrorInvalidValue] if the array was not made for surfaces.
func (c *Context) NewSurface(array uint64) (*Surface, error) {
	what := func() string { return fmt.Sprintf("array %#x", array) }
	o, err := newOpaque(c, &surfaceKind, what, func(api driver.API) (driver.CUsurfObject, driver.CUresult) {
		res := driver.OfArray(driver.CUarray(array))
		return api.CuSurfObjectCreate(&res)
	})
	if err != nil {
		return nil, err
	}
	return &Surface{o}, nil
}
