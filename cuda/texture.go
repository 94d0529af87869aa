// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// TextureParams says what a texture reads, and how. The numbers of kinds are those
// of cuda.h (CU_AD_FORMAT_…, CU_TR_…).
type TextureParams struct {
	Array            uint64 // the handle of an [Array]; then there are no Ptr, Format, Channels and sizes
	Mipmapped        bool   // Array is that of a [MipmappedArray]
	Ptr              uint64
	Format, Channels uint32
	// Width and Height are elements; of linear memory Height is 0. Pitch is the bytes
	// from one row to the next.
	Width, Height, Pitch uint64
	Address              [3]int32
	Linear, Normalized   bool // filtered; coordinates up to 1
	Integer              bool // integers are not promoted to numbers up to 1
	SRGB                 bool // promoted numbers are converted to linear ones
	Seamless             bool // filters go on beyond the edges of a cube's faces
	Border               [4]float32
	Levels               TextureLevels
}

// TextureLevels says how a texture of a [MipmappedArray] chooses a level.
type TextureLevels struct {
	Linear          bool    // means between two levels
	Bias            float32 // added to the level that a kernel asks for
	Least, Greatest float32 // bounds of the sum
}

// String returns all that the driver is told.
func (p *TextureParams) String() string {
	if p.Array != 0 {
		return fmt.Sprintf("address modes %v, of array %#x, levels %+v", p.Address, p.Array, p.Levels)
	}
	return fmt.Sprintf("format %d, %d channels, %d x %d, pitch %d, address modes %v, at %#x", p.Format, p.Channels, p.Width, p.Height, p.Pitch, p.Address, p.Ptr)
}

func (p *TextureParams) abi() (*driver.CUDA_RESOURCE_DESC, *driver.CUDA_TEXTURE_DESC) {
	res := &driver.CUDA_RESOURCE_DESC{
		ResType: driver.CU_RESOURCE_TYPE_PITCH2D, DevPtr: driver.CUdeviceptr(p.Ptr), Format: driver.CUarray_format(p.Format), NumChannels: p.Channels,
		Width: p.Width, Height: p.Height, PitchInBytes: p.Pitch,
	}
	if p.Height == 0 {
		res.ResType, res.Width, res.PitchInBytes = driver.CU_RESOURCE_TYPE_LINEAR, p.Pitch, 0
	}
	if p.Array != 0 {
		*res = driver.OfArray(driver.CUarray(p.Array))
	}
	tex := &driver.CUDA_TEXTURE_DESC{BorderColor: p.Border}
	if p.Mipmapped {
		*res = driver.OfMipmappedArray(driver.CUmipmappedArray(p.Array))
		tex.MipmapLevelBias, tex.MinMipmapLevelClamp, tex.MaxMipmapLevelClamp = p.Levels.Bias, p.Levels.Least, p.Levels.Greatest
	}
	if p.Levels.Linear {
		tex.MipmapFilterMode = driver.CU_TR_FILTER_MODE_LINEAR
	}
	for i, mode := range p.Address {
		tex.AddressMode[i] = driver.CUaddress_mode(mode)
	}
	if p.Linear {
		tex.FilterMode = driver.CU_TR_FILTER_MODE_LINEAR
	}
	if p.Normalized {
		tex.Flags |= driver.CU_TRSF_NORMALIZED_COORDINATES
	}
	if p.Integer {
		tex.Flags |= driver.CU_TRSF_READ_AS_INTEGER
	}
	if p.Seamless {
		tex.Flags |= driver.CU_TRSF_SEAMLESS_CUBEMAP
	}
	if p.SRGB {
		tex.Flags |= driver.CU_TRSF_SRGB
	}
	return res, tex
}

// A Texture reads memory for kernels, which take its handle.
//
// # Lifetime
//
// Close it when no kernel uses it any more. It does not keep the memory.
type Texture struct {
	*opaque[driver.CUtexObject]
}

var textureKind = opaqueKind[driver.CUtexObject]{
	name: "texture", create: "cuTexObjectCreate", destroy: "cuTexObjectDestroy", free: driver.API.CuTexObjectDestroy,
	count: func(l *liveCounts) *atomic.Int64 { return &l.textures },
}

// NewTexture makes a texture. It calls cuTexObjectCreate.
//
// Errors: [ErrorInvalidValue] if a rule of CUDA's is broken; [ErrorNotSupported]
// if the driver has no such textures.
func (c *Context) NewTexture(p TextureParams) (*Texture, error) {
	o, err := newOpaque(c, &textureKind, p.String, func(api driver.API) (driver.CUtexObject, driver.CUresult) {
		res, tex := p.abi()
		return api.CuTexObjectCreate(res, tex, nil)
	})
	if err != nil {
		return nil, err
	}
	return &Texture{o}, nil
}
