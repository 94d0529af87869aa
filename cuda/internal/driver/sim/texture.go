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

// CuTexObjectCreate leaves out views.
func (d *simulator) CuTexObjectCreate(res *driver.CUDA_RESOURCE_DESC, tex *driver.CUDA_TEXTURE_DESC, view *driver.CUDA_RESOURCE_VIEW_DESC) (driver.CUtexObject, driver.CUresult) {
	return describe(d, &d.textures, func() ([]byte, driver.CUresult) {
		ofArray := res.ResType == driver.CU_RESOURCE_TYPE_ARRAY || res.ResType == driver.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
		if ofArray && view != nil {
			return nil, driver.CUDA_ERROR_NOT_SUPPORTED
		}
		t, ok := d.textureOf(res, tex)
		if !ok || view != nil {
			return nil, driver.CUDA_ERROR_INVALID_VALUE
		}
		b := t.Encode()
		return b[:], driver.CUDA_SUCCESS
	})
}

func (d *simulator) CuTexObjectDestroy(h driver.CUtexObject) driver.CUresult {
	return undescribe(d, &d.textures, h, "cuTexObjectDestroy")
}

// textureOf checks what cuda.h asks of textures.
func (d *simulator) textureOf(res *driver.CUDA_RESOURCE_DESC, tex *driver.CUDA_TEXTURE_DESC) (t descriptor.Texture, ok bool) {
	const flags = driver.CU_TRSF_READ_AS_INTEGER | driver.CU_TRSF_NORMALIZED_COORDINATES | driver.CU_TRSF_SEAMLESS_CUBEMAP | driver.CU_TRSF_SRGB
	if res.Flags != 0 || tex.Flags&^flags != 0 || tex.FilterMode>>1 != 0 {
		return t, false
	}
	switch res.ResType {
	case driver.CU_RESOURCE_TYPE_ARRAY:
		if a := d.arrays.get(res.Array()); a != nil {
			t, ok = a.texels, true
		}
	case driver.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		t, ok = d.ofLevels(res.MipmappedArray(), tex)
	default:
		t, ok = ofMemory(res)
	}
	if t.Seamless = tex.Flags&driver.CU_TRSF_SEAMLESS_CUBEMAP != 0; t.Seamless && !t.Cube {
		return t, false
	}
	t.SRGB = tex.Flags&driver.CU_TRSF_SRGB != 0
	t.Integer = tex.Flags&driver.CU_TRSF_READ_AS_INTEGER != 0
	if !ok || t.Fetch {
		return t, ok
	}
	for i := range t.Rank {
		if tex.AddressMode[i]>>2 != 0 {
			return t, false
		}
		t.Address[i] = descriptor.AddressMode(tex.AddressMode[i])
	}
	t.Linear, t.Normalized, t.Color = tex.FilterMode == driver.CU_TR_FILTER_MODE_LINEAR, tex.Flags&driver.CU_TRSF_NORMALIZED_COORDINATES != 0, tex.BorderColor
	return t, !t.Linear && !t.Mips.Linear || t.IsFloat()
}

// ofLevels checks what cuda.h asks of textures of mipmapped arrays.
func (d *simulator) ofLevels(h driver.CUmipmappedArray, tex *driver.CUDA_TEXTURE_DESC) (t descriptor.Texture, ok bool) {
	m := d.mipmaps.get(h)
	if m == nil || tex.Flags&driver.CU_TRSF_NORMALIZED_COORDINATES == 0 || tex.MipmapFilterMode>>1 != 0 {
		return t, false
	}
	t = m.texels
	t.Mips = descriptor.Mips{
		Levels: len(m.levels), Linear: tex.MipmapFilterMode == driver.CU_TR_FILTER_MODE_LINEAR,
		Bias: tex.MipmapLevelBias, Least: tex.MinMipmapLevelClamp, Greatest: tex.MaxMipmapLevelClamp,
	}
	return t, true
}

// ofMemory checks linear and pitched memory.
func ofMemory(res *driver.CUDA_RESOURCE_DESC) (t descriptor.Texture, ok bool) {
	t = descriptor.Texture{
		Format: uint8(res.Format), Channels: uint8(res.NumChannels), Memory: uint64(res.DevPtr), Width: res.Width, Height: 1, Depth: 1, Rank: 1,
		Fetch: res.ResType == driver.CU_RESOURCE_TYPE_LINEAR,
	}
	size := t.Size()
	if descriptor.FormatSize(t.Format) == 0 || res.Format>>8 != 0 || res.NumChannels != 1 && res.NumChannels != 2 && res.NumChannels != 4 {
		return t, false
	}
	if t.Memory == 0 || t.Memory%textureAlignment != 0 {
		return t, false
	}
	if t.Fetch {
		t.Width = res.Width / size
		return t, t.Width > 0 && t.Width <= mostTexture1DLinear
	}
	t.Rank, t.Height, t.Pitch = 2, res.Height, res.PitchInBytes
	sized := t.Width > 0 && t.Width <= mostTexture2DLinear && t.Height > 0 && t.Height <= mostTexture2DHeight
	pitched := t.Pitch%texturePitchAlignment == 0 && t.Pitch <= mostTexture2DPitch && t.Pitch >= t.Width*size
	return t, res.ResType == driver.CU_RESOURCE_TYPE_PITCH2D && sized && pitched
}
