// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// anArray is a [cuda.Array] or a [cuda.MipmappedArray].
type anArray interface {
	Handle() uint64
	Close() error
}

// arrays are those that somebody holds, those with levels among them.
var arrays = border.NewTable[anArray]("array")

// LiveArrays counts the arrays that somebody holds, and those of them with levels.
func LiveArrays() (all, mipmapped int) {
	mipmapped = arrays.Count(func(a anArray) bool {
		_, ok := a.(*cuda.MipmappedArray)
		return ok
	})
	return arrays.Len(), mipmapped
}

// cudagoArrayNew makes an array on a device.
//
//export cudagoArrayNew
func cudagoArrayNew(ordinal C.int32_t, e *C.cudago_sizes, handle *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		ctx, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		var a anArray
		err = AfterReleases(func() error {
			a, err = newArray(ctx, e)
			return err
		})
		if err != nil {
			return err
		}
		*handle, id = C.uint64_t(a.Handle()), C.uint64_t(arrays.Put(a))
		return nil
	})
	return id
}

func newArray(ctx *cuda.Context, e *C.cudago_sizes) (anArray, error) {
	p := cuda.ArrayParams{
		Width: uint64(e.width), Height: uint64(e.height), Depth: uint64(e.depth), Format: uint32(e.format), Channels: uint32(e.channels),
		Layered: e.layered != 0, Cubes: e.cubes != 0, Surfaces: e.surfaces != 0,
	}
	if e.levels == 0 {
		return ctx.NewArray(p)
	}
	return ctx.NewMipmappedArray(p, uint32(e.levels))
}

// cudagoArrayLevel is the handle of a level of a mipmapped array.
//
//export cudagoArrayLevel
func cudagoArrayLevel(id C.uint64_t, level C.uint32_t, st *C.cudago_status) (handle C.uint64_t) {
	guard(st, func() error {
		a, err := arrays.Get(uint64(id))
		if err != nil {
			return err
		}
		h, err := a.(*cuda.MipmappedArray).Level(uint32(level))
		handle = C.uint64_t(h)
		return err
	})
	return handle
}

// cudagoArrayRelease gives an array back as cudagoVirtualRelease does memory.
//
//export cudagoArrayRelease
func cudagoArrayRelease(id, on C.uint64_t, others, positions *C.uint64_t, n C.int) {
	if a, ok := arrays.Take(uint64(id)); ok {
		afterUses(on, others, positions, n, byReaper(a.Close))
	}
}

// cudagoArrayDiscard gives back an array that nothing has used.
//
//export cudagoArrayDiscard
func cudagoArrayDiscard(id C.uint64_t) {
	if a, ok := arrays.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(a.Close))
	}
}
