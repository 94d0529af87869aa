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
	mostMipmapped    = 32768 // of arrays of one and two dimensions
	mostCube         = 32768
	mostCubeFaces    = 2046
)

// array is a CUDA array, or a level of a mipmapped one.
type array struct {
	*allocation
	texels  descriptor.Texture // its elements, in rows without gaps; no way to read them
	flags   uint32
	isLevel bool // of an array that has the allocation
}

// CuArray3DCreate leaves out everything that has no flag or format in this
// package.
func (d *simulator) CuArray3DCreate(desc *driver.CUDA_ARRAY3D_DESCRIPTOR) (driver.CUarray, driver.CUresult) {
	c, r := d.maker()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	a := &array{allocation: &allocation{kind: memDevice, maker: "cuArray3DCreate"}, flags: desc.Flags}
	if a.texels, r = texelsOf(desc); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if r := d.allocate(c, a.texels.Slice*a.texels.Depth, a.allocation); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	a.texels.Memory = a.base
	return d.arrays.add(a), driver.CUDA_SUCCESS
}

// texelsOf checks what cuda.h asks of arrays.
func texelsOf(desc *driver.CUDA_ARRAY3D_DESCRIPTOR) (t descriptor.Texture, r driver.CUresult) {
	const flags = driver.CUDA_ARRAY3D_LAYERED | driver.CUDA_ARRAY3D_SURFACE_LDST | driver.CUDA_ARRAY3D_CUBEMAP
	if desc.Flags&^flags != 0 {
		return t, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	t = descriptor.Texture{
		Format: uint8(desc.Format), Channels: uint8(desc.NumChannels), Rank: 3, Layered: desc.Flags&driver.CUDA_ARRAY3D_LAYERED != 0,
		Cube: desc.Flags&driver.CUDA_ARRAY3D_CUBEMAP != 0, Width: desc.Width, Height: max(desc.Height, 1), Depth: max(desc.Depth, 1),
	}
	switch {
	case desc.Height == 0:
		t.Rank = 1
	case desc.Depth == 0 || t.Layered || t.Cube:
		t.Rank = 2
	}
	known := descriptor.FormatSize(t.Format) != 0 && desc.Format>>8 == 0
	if !known || desc.NumChannels != 1 && desc.NumChannels != 2 && desc.NumChannels != 4 || !arrayFits(desc) {
		return t, driver.CUDA_ERROR_INVALID_VALUE
	}
	t.Pitch = t.Width * t.Size()
	t.Slice = t.Pitch * t.Height
	return t, driver.CUDA_SUCCESS
}

// arrayFits reports whether the sizes are within those of cuda.h, at
// cuArray3DCreate.
func arrayFits(desc *driver.CUDA_ARRAY3D_DESCRIPTOR) bool {
	within := func(width, height, depth uint64) bool {
		return desc.Width > 0 && desc.Width <= width && desc.Height <= height && desc.Depth <= depth
	}
	surface := desc.Flags&driver.CUDA_ARRAY3D_SURFACE_LDST != 0
	layered := desc.Flags&driver.CUDA_ARRAY3D_LAYERED != 0
	switch {
	case desc.Flags&driver.CUDA_ARRAY3D_CUBEMAP != 0:
		faces := desc.Depth == 6 || layered && desc.Depth > 0 && desc.Depth%6 == 0
		return faces && desc.Width == desc.Height && within(mostCube, mostCube, mostCubeFaces)
	case layered:
		return desc.Depth > 0 && within(mostArrayLayered, mostArrayLayered, mostArrayLayers)
	case desc.Height == 0 && surface:
		return within(mostSurface1D, 0, 0)
	case desc.Height == 0:
		return within(mostArray1D, 0, 0)
	case desc.Depth == 0:
		return within(mostArrayWidth, mostArrayHeight, 0)
	}
	return within(mostArray3D, mostArray3D, mostArray3D)
}

// CuArrayDestroy leaves a level to its array.
func (d *simulator) CuArrayDestroy(h driver.CUarray) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	if a := d.arrays.get(h); a == nil || a.isLevel {
		return driver.CUDA_ERROR_INVALID_HANDLE
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
		if a == nil || a.flags&driver.CUDA_ARRAY3D_SURFACE_LDST == 0 || res.Flags != 0 {
			return nil, driver.CUDA_ERROR_INVALID_VALUE
		}
		t := &a.texels
		s := descriptor.Surface{
			Rank: t.Rank, Layered: t.Layered || t.Cube, Memory: t.Memory, Width: t.Pitch, Height: t.Height, Depth: t.Depth, Pitch: t.Pitch, Slice: t.Slice,
		}
		b := s.Encode()
		return b[:], driver.CUDA_SUCCESS
	})
}

func (d *simulator) CuSurfObjectDestroy(h driver.CUsurfObject) driver.CUresult {
	return undescribe(d, &d.surfaces, h, "cuSurfObjectDestroy")
}
