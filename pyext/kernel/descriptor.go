// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// cudagoTensorMap encodes a tensor map for kernels on a device into 128 bytes.
//
//export cudagoTensorMap
func cudagoTensorMap(ordinal C.int32_t, ptr C.uint64_t, t *C.cudago_tiles, out *C.uint8_t, st *C.cudago_status) {
	guard(st, func() error {
		dev, err := border.Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		if err := dev.NeedTensorMaps(); err != nil {
			return err
		}
		if t.columns == C.TILES_WIDE {
			if err := dev.NeedWideTensorMaps(); err != nil {
				return err
			}
		}
		ctx, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		b, err := ctx.EncodeTensorMap(tilesOf(uint64(ptr), t))
		copy(unsafe.Slice((*byte)(unsafe.Pointer(out)), cuda.TensorMapSize), b[:])
		return err
	})
}

func tilesOf(ptr uint64, t *C.cudago_tiles) cuda.TensorMapParams {
	p := cuda.TensorMapParams{
		Ptr: ptr, Type: int32(t._type), Interleave: int32(t.interleave), Swizzle: int32(t.swizzle), Promotion: int32(t.promotion), Beyond: int32(t.beyond),
	}
	for i := range int(t.rank) {
		p.Dims = append(p.Dims, uint64(t.dims[i]))
		p.Box, p.Steps = append(p.Box, uint32(t.box[i])), append(p.Steps, uint32(t.steps[i]))
		if i > 0 {
			p.Strides = append(p.Strides, uint64(t.strides[i-1]))
		}
	}
	if t.columns != C.TILES_BOX {
		p.Columns = &cuda.TensorMapColumns{Channels: uint32(t.channels), Pixels: uint32(t.pixels), Wide: t.columns == C.TILES_WIDE, Mode: int32(t.mode)}
		corners := max(int(t.rank)-2, 0)
		if p.Columns.Wide {
			corners = 1
		}
		for i := range corners {
			p.Columns.Lower, p.Columns.Upper = append(p.Columns.Lower, int32(t.lower[i])), append(p.Columns.Upper, int32(t.upper[i]))
		}
	}
	return p
}

// textures are the textures and surfaces whose Python objects are alive.
var textures = border.NewTable[interface{ Close() error }]("texture")

// cudagoTexture makes a texture for kernels on a device.
//
//export cudagoTexture
func cudagoTexture(ordinal C.int32_t, ptr C.uint64_t, t *C.cudago_texels, handle *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		ctx, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		made, err := ctx.NewTexture(texelsOf(uint64(ptr), t))
		if err != nil {
			return err
		}
		*handle, id = C.uint64_t(made.Handle()), C.uint64_t(textures.Put(made))
		return nil
	})
	return id
}

func texelsOf(ptr uint64, t *C.cudago_texels) cuda.TextureParams {
	p := cuda.TextureParams{
		Ptr: ptr, Format: uint32(t.format), Channels: uint32(t.channels), Width: uint64(t.width), Height: uint64(t.height), Pitch: uint64(t.pitch),
		Linear: t.linear != 0, Normalized: t.normalized != 0, Integer: t.integer != 0, SRGB: t.srgb != 0, Seamless: t.seamless != 0,
	}
	if t.array != 0 {
		p.Ptr, p.Array, p.Mipmapped = 0, ptr, t.mipmapped != 0
	}
	p.Levels = cuda.TextureLevels{Linear: t.between != 0, Bias: float32(t.bias), Least: float32(t.least), Greatest: float32(t.greatest)}
	for i, v := range t.address {
		p.Address[i] = int32(v)
	}
	for i, v := range t.border {
		p.Border[i] = float32(v)
	}
	return p
}

// cudagoSurface makes a surface of an array for kernels on a device.
//
//export cudagoSurface
func cudagoSurface(ordinal C.int32_t, array C.uint64_t, handle *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		ctx, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		made, err := ctx.NewSurface(uint64(array))
		if err != nil {
			return err
		}
		*handle, id = C.uint64_t(made.Handle()), C.uint64_t(textures.Put(made))
		return nil
	})
	return id
}

// cudagoTextureRelease leaves the texture or the surface to the reaper.
//
//export cudagoTextureRelease
func cudagoTextureRelease(id C.uint64_t) {
	if t, ok := textures.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(t.Close))
	}
}
