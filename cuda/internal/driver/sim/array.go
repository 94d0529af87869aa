// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
)

// What the attributes of textures and surfaces of arrays say, of every device. From
// the CUDA C++ Programming Guide, "Compute Capabilities: Technical
// Specifications".
const (
	mostArray1D      = 131072
	mostSurface1D    = 32768
	mostArrayWidth   = 131072
	mostArrayHeight  = 65536
	mostArray3D      = 16384
	mostArrayLayered = 32768
	mostArrayLayers  = 2048
)

// array is a CUDA array. Its elements lie in rows without gaps.
type array struct {
	*allocation
	desc    driver.CUDA_ARRAY3D_DESCRIPTOR
	element uint64 // bytes
}

// rank is the coordinates, without the layer.
func (a *array) rank() int {
	switch {
	case a.desc.Height == 0:
		return 1
	case a.desc.Depth == 0 || a.layered():
		return 2
	}
	return 3
}

func (a *array) layered() bool { return a.desc.Flags&driver.CUDA_ARRAY3D_LAYERED != 0 }

func (a *array) height() uint64 { return max(a.desc.Height, 1) }
func (a *array) depth() uint64  { return max(a.desc.Depth, 1) }
func (a *array) pitch() uint64  { return a.desc.Width * a.element }
func (a *array) slice() uint64  { return a.pitch() * a.height() }

// CuArray3DCreate leaves out cubes, and everything that has no flag or format in
// this package.
func (d *simulator) CuArray3DCreate(desc *driver.CUDA_ARRAY3D_DESCRIPTOR) (driver.CUarray, driver.CUresult) {
	c, r := d.maker()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	const flags = driver.CUDA_ARRAY3D_LAYERED | driver.CUDA_ARRAY3D_SURFACE_LDST
	if desc.Flags&^flags != 0 {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	size := descriptor.FormatSize(uint8(desc.Format))
	if size == 0 || desc.Format>>8 != 0 || desc.NumChannels != 1 && desc.NumChannels != 2 && desc.NumChannels != 4 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	a := &array{allocation: &allocation{kind: memDevice, maker: "cuArray3DCreate"}, desc: *desc, element: size * uint64(desc.NumChannels)}
	if !a.fits() {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if r := d.allocate(c, a.slice()*a.depth(), a.allocation); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return d.arrays.add(a), driver.CUDA_SUCCESS
}

// fits reports whether the sizes are within those of cuda.h, at cuArray3DCreate.
func (a *array) fits() bool {
	within := func(width, height, depth uint64) bool {
		return a.desc.Width > 0 && a.desc.Width <= width && a.desc.Height <= height && a.desc.Depth <= depth
	}
	surface := a.desc.Flags&driver.CUDA_ARRAY3D_SURFACE_LDST != 0
	switch {
	case a.layered():
		return a.desc.Depth > 0 && within(mostArrayLayered, mostArrayLayered, mostArrayLayers)
	case a.desc.Height == 0 && surface:
		return within(mostSurface1D, 0, 0)
	case a.desc.Height == 0:
		return within(mostArray1D, 0, 0)
	case a.desc.Depth == 0:
		return within(mostArrayWidth, mostArrayHeight, 0)
	}
	return within(mostArray3D, mostArray3D, mostArray3D)
}

func (d *simulator) CuArrayDestroy(h driver.CUarray) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	a := d.arrays.take(h)
	if a == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	d.release(a.allocation, "cuArrayDestroy")
	return a.ctx.result()
}

// CuSurfObjectCreate makes a descriptor of a whole array.
func (d *simulator) CuSurfObjectCreate(res *driver.CUDA_RESOURCE_DESC) (driver.CUsurfObject, driver.CUresult) {
	return describe(d, &d.surfaces, func() ([]byte, driver.CUresult) {
		a := d.arrays.get(res.Array())
		if a == nil || a.desc.Flags&driver.CUDA_ARRAY3D_SURFACE_LDST == 0 || res.Flags != 0 {
			return nil, driver.CUDA_ERROR_INVALID_VALUE
		}
		s := descriptor.Surface{
			Rank: a.rank(), Layered: a.layered(), Memory: a.base, Width: a.pitch(), Height: a.height(), Depth: a.depth(), Pitch: a.pitch(), Slice: a.slice(),
		}
		b := s.Encode()
		return b[:], driver.CUDA_SUCCESS
	})
}

func (d *simulator) CuSurfObjectDestroy(h driver.CUsurfObject) driver.CUresult {
	return undescribe(d, &d.surfaces, h, "cuSurfObjectDestroy")
}
