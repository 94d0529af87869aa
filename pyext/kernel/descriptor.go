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
	return p
}

// textures are those whose Python objects are alive.
var textures = border.NewTable[*cuda.Texture]("texture")

// cudagoTexture makes a texture for kernels on a device.
//
//export cudagoTexture
func cudagoTexture(ordinal C.int32_t, ptr C.uint64_t, t *C.cudago_texels, handle *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		ctx, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		p := cuda.TextureParams{
			Ptr: uint64(ptr), Format: uint32(t.format), Channels: uint32(t.channels), Width: uint64(t.width), Height: uint64(t.height), Pitch: uint64(t.pitch),
			Address: [2]int32{int32(t.address[0]), int32(t.address[1])}, Linear: t.linear != 0, Normalized: t.normalized != 0, Integer: t.integer != 0,
		}
		for i, v := range t.border {
			p.Border[i] = float32(v)
		}
		made, err := ctx.NewTexture(p)
		if err != nil {
			return err
		}
		*handle, id = C.uint64_t(made.Handle()), C.uint64_t(textures.Put(made))
		return nil
	})
	return id
}

// cudagoTextureRelease leaves the texture to the reaper.
//
//export cudagoTextureRelease
func cudagoTextureRelease(id C.uint64_t) {
	if t, ok := textures.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(t.Close))
	}
}
