// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include "stream.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// Greens are the open green contexts.
var Greens = border.NewTable[*cuda.GreenContext]("green context")

// cudagoGreenNew makes a green context of count resources of 144 bytes each.
//
//export cudagoGreenNew
func cudagoGreenNew(ordinal C.int32_t, resources unsafe.Pointer, count C.int32_t, made *C.cudago_green, st *C.cudago_status) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		parts := make([]cuda.Partition, count)
		for i := range parts {
			b := C.GoBytes(unsafe.Add(resources, i*C.CUDAGO_RESOURCE_BYTES), C.CUDAGO_RESOURCE_BYTES)
			if parts[i], err = c.Device().PartitionOf(b); err != nil {
				return err
			}
		}
		g, err := c.NewGreenContext(parts...)
		if err != nil {
			return err
		}
		made.id, made.h, made.sm_count = C.uint64_t(Greens.Put(g)), C.uintptr_t(g.Handle()), C.int32_t(g.SMCount())
		return nil
	})
}

//export cudagoGreenStream
func cudagoGreenStream(green C.uint64_t, ordinal, priority C.int32_t, st *C.cudago_status) (b *C.cudago_stream) {
	guard(st, func() error {
		g, err := Greens.Get(uint64(green))
		if err != nil {
			return err
		}
		s, err := g.NewStream(cuda.StreamOptions{Priority: int(priority)})
		if err != nil {
			return err
		}
		if b, err = newStreamBlock(s, ordinal); err != nil {
			return border.JoinClose(err, s.Close)
		}
		return nil
	})
	return b
}

// cudagoGreenRelease leaves the green context to the reaper, as streams are.
//
//export cudagoGreenRelease
func cudagoGreenRelease(id C.uint64_t) {
	if g, ok := Greens.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(g.Close))
	}
}
