// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
)

// What the texture attributes say, of every device. From the CUDA C++ Programming
// Guide, "Compute Capabilities: Technical Specifications".
const (
	textureAlignment      = 512
	texturePitchAlignment = 32
	mostTexture1DLinear   = 1 << 28
	mostTexture2DLinear   = 131072
	mostTexture2DHeight   = 65000
	mostTexture2DPitch    = 2097120
)

// CuTexObjectCreate leaves out arrays. The texture is some device memory, whose
// address is the handle: kernels read it there.
func (d *simulator) CuTexObjectCreate(res *driver.CUDA_RESOURCE_DESC, tex *driver.CUDA_TEXTURE_DESC, view *driver.CUDA_RESOURCE_VIEW_DESC) (driver.CUtexObject, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.behindLaunches()
	if res.ResType == driver.CU_RESOURCE_TYPE_ARRAY || res.ResType == driver.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	t, ok := textureOf(res, tex)
	if !ok || view != nil {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	a := &allocation{kind: memDevice}
	if r := d.allocate(c, descriptor.TextureSize, a); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	b := t.Encode()
	if c.dev.memory.Write(a.base, b[:]) != nil { // a reset has taken it
		return 0, c.result()
	}
	d.textures.put(driver.CUtexObject(a.base), a)
	return driver.CUtexObject(a.base), driver.CUDA_SUCCESS
}

func (d *simulator) CuTexObjectDestroy(h driver.CUtexObject) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	a := d.textures.take(h)
	if a == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.release(a, "cuTexObjectDestroy")
	return a.ctx.result()
}

// textureOf checks what cuda.h asks of textures of memory.
func textureOf(res *driver.CUDA_RESOURCE_DESC, tex *driver.CUDA_TEXTURE_DESC) (t descriptor.Texture, ok bool) {
	const flags = driver.CU_TRSF_READ_AS_INTEGER | driver.CU_TRSF_NORMALIZED_COORDINATES
	t = descriptor.Texture{
		Format: uint8(res.Format), Channels: uint8(res.NumChannels), Memory: uint64(res.DevPtr), Width: res.Width, Height: 1,
		Fetch: res.ResType == driver.CU_RESOURCE_TYPE_LINEAR, Integer: tex.Flags&driver.CU_TRSF_READ_AS_INTEGER != 0,
	}
	size := t.Size()
	if descriptor.FormatSize(t.Format) == 0 || res.Format>>8 != 0 || res.NumChannels != 1 && res.NumChannels != 2 && res.NumChannels != 4 {
		return t, false
	}
	if t.Memory == 0 || t.Memory%textureAlignment != 0 || res.Flags != 0 || tex.Flags&^flags != 0 || tex.FilterMode>>1 != 0 {
		return t, false
	}
	if t.Fetch {
		t.Width = res.Width / size
		return t, t.Width > 0 && t.Width <= mostTexture1DLinear
	}
	for i := range t.Address {
		if tex.AddressMode[i]>>2 != 0 {
			return t, false
		}
		t.Address[i] = descriptor.AddressMode(tex.AddressMode[i])
	}
	t.Linear, t.Normalized, t.Color = tex.FilterMode == driver.CU_TR_FILTER_MODE_LINEAR, tex.Flags&driver.CU_TRSF_NORMALIZED_COORDINATES != 0, tex.BorderColor
	t.Height, t.Pitch = res.Height, res.PitchInBytes
	sized := t.Width > 0 && t.Width <= mostTexture2DLinear && t.Height > 0 && t.Height <= mostTexture2DHeight
	pitched := t.Pitch%texturePitchAlignment == 0 && t.Pitch <= mostTexture2DPitch && t.Pitch >= t.Width*size
	return t, res.ResType == driver.CU_RESOURCE_TYPE_PITCH2D && sized && pitched && (!t.Linear || t.IsFloat())
}
