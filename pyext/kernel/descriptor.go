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
