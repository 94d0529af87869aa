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

// Arrays are those that somebody holds.
var Arrays = border.NewTable[*cuda.Array]("array")

// cudagoArrayNew makes an array on a device.
//
//export cudagoArrayNew
func cudagoArrayNew(ordinal C.int32_t, e *C.cudago_sizes, handle *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		ctx, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		var a *cuda.Array
		err = AfterReleases(func() error {
			a, err = ctx.NewArray(cuda.ArrayParams{
				Width: uint64(e.width), Height: uint64(e.height), Depth: uint64(e.depth), Format: uint32(e.format), Channels: uint32(e.channels),
				Layered: e.layered != 0, Surfaces: e.surfaces != 0,
			})
			return err
		})
		if err != nil {
			return err
		}
		*handle, id = C.uint64_t(a.Handle()), C.uint64_t(Arrays.Put(a))
		return nil
	})
	return id
}

// cudagoArrayRelease gives an array back as cudagoVirtualRelease does memory.
//
//export cudagoArrayRelease
func cudagoArrayRelease(id, on C.uint64_t, others, positions *C.uint64_t, n C.int) {
	if a, ok := Arrays.Take(uint64(id)); ok {
		afterUses(on, others, positions, n, a.Close)
	}
}

// cudagoArrayDiscard gives back an array that nothing has used.
//
//export cudagoArrayDiscard
func cudagoArrayDiscard(id C.uint64_t) {
	if a, ok := Arrays.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(a.Close))
	}
}
