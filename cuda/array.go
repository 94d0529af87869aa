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
// layers of a layered array. The format's number is cuda.h's (CU_AD_FORMAT_…).
type ArrayParams struct {
	Width, Height, Depth uint64
	Format, Channels     uint32
	Layered, Surfaces    bool
}

// String returns all that the driver is told.
func (p *ArrayParams) String() string {
	text := fmt.Sprintf("%d x %d x %d, format %d, %d channels", p.Width, p.Height, p.Depth, p.Format, p.Channels)
	if p.Layered {
		text += ", layered"
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
	ctx    *Context
	h      driver.CUarray // immutable
	closed atomic.Bool
}

// NewArray allocates an array. It calls cuArray3DCreate. Not ordered by streams:
// the array can be used in every stream at once.
//
// Errors: [ErrorInvalidValue] if a rule of CUDA's is broken; [ErrorOutOfMemory];
// [ErrorNotSupported] if the driver has no such arrays.
func (c *Context) NewArray(p ArrayParams) (*Array, error) {
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	restore := c.drv.relax() // global mode would invalidate the captures of all threads
	defer restore()
	desc := driver.CUDA_ARRAY3D_DESCRIPTOR{
		Width: p.Width, Height: p.Height, Depth: p.Depth, Format: driver.CUarray_format(p.Format), NumChannels: p.Channels,
	}
	if p.Layered {
		desc.Flags |= driver.CUDA_ARRAY3D_LAYERED
	}
	if p.Surfaces {
		desc.Flags |= driver.CUDA_ARRAY3D_SURFACE_LDST
	}
	h, r := c.drv.api.CuArray3DCreate(&desc)
	if r != driver.CUDA_SUCCESS {
		return nil, c.fail("cuArray3DCreate", r, p.String())
	}
	c.drv.live.arrays.Add(1)
	return &Array{ctx: c, h: h}, nil
}

// Handle returns the CUarray.
func (a *Array) Handle() uint64 { return uint64(a.h) }

// Close ends the use of a. Closing twice is fine. It calls cuArrayDestroy.
func (a *Array) Close() error {
	if a.closed.Swap(true) {
		return nil
	}
	c := a.ctx
	c.dispose("cuArrayDestroy", "array", nil, &c.drv.live.arrays, func(api driver.API) driver.CUresult {
		return api.CuArrayDestroy(a.h)
	}, nil)
	return nil
}

// A Surface reads and writes an [Array] for kernels, which take its handle.
//
// # Lifetime
//
// Close it when no kernel uses it any more. It does not keep the array.
type Surface struct {
	ctx    *Context
	h      driver.CUsurfObject // immutable
	closed atomic.Bool
}

// NewSurface makes a surface of the array with a handle. It calls
// cuSurfObjectCreate.
//
// Errors: [ErrorInvalidValue] if the array was not made for surfaces.
func (c *Context) NewSurface(array uint64) (*Surface, error) {
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	restore := c.drv.relax()
	defer restore()
	res := driver.OfArray(driver.CUarray(array))
	h, r := c.drv.api.CuSurfObjectCreate(&res)
	if r != driver.CUDA_SUCCESS {
		return nil, c.fail("cuSurfObjectCreate", r, fmt.Sprintf("array %#x", array))
	}
	c.drv.live.surfaces.Add(1)
	return &Surface{ctx: c, h: h}, nil
}

// Handle returns the CUsurfObject.
func (s *Surface) Handle() uint64 { return uint64(s.h) }

// Close ends the use of s. Closing twice is fine. It calls cuSurfObjectDestroy.
func (s *Surface) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	c := s.ctx
	c.dispose("cuSurfObjectDestroy", "surface", nil, &c.drv.live.surfaces, func(api driver.API) driver.CUresult {
		return api.CuSurfObjectDestroy(s.h)
	}, nil)
	return nil
}
