// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
)

// mipmappedArray is an array and its levels, which lie in its allocation.
type mipmappedArray struct {
	*allocation
	texels descriptor.Texture // of level 0
	levels []driver.CUarray
}

// CuMipmappedArrayCreate leaves out what CuArray3DCreate does.
func (d *simulator) CuMipmappedArrayCreate(desc *driver.CUDA_ARRAY3D_DESCRIPTOR, levels uint32) (driver.CUmipmappedArray, driver.CUresult) {
	c, r := d.maker()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	t, r := texelsOf(desc)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if !t.Layered && !t.Cube && t.Rank < 3 && max(t.Width, t.Height) > mostMipmapped {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	n := int(min(max(levels, 1), uint32(t.MostLevels())))
	end := t.Level(n)
	m := &mipmappedArray{allocation: &allocation{kind: memDevice, maker: "cuMipmappedArrayCreate"}, texels: t}
	if r := d.allocate(c, end.Memory, m.allocation); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	m.texels.Memory = m.base
	for i := range n {
		m.levels = append(m.levels, d.arrays.add(&array{allocation: m.allocation, texels: m.texels.Level(i), flags: desc.Flags, isLevel: true}))
	}
	return d.mipmaps.add(m), driver.CUDA_SUCCESS
}

func (d *simulator) CuMipmappedArrayGetLevel(h driver.CUmipmappedArray, level uint32) (driver.CUarray, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	m := d.mipmaps.get(h)
	if m == nil {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	if uint64(level) >= uint64(len(m.levels)) {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return m.levels[level], m.ctx.result()
}

func (d *simulator) CuMipmappedArrayDestroy(h driver.CUmipmappedArray) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	m := d.mipmaps.take(h)
	if m == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	d.arrays.remove(m.levels...)
	d.release(m.allocation, "cuMipmappedArrayDestroy")
	return m.ctx.result()
}
