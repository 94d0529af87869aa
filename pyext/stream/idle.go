// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include "stream.h"
*/
import "C"

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda"
)

// idle are blocks of other libraries' streams that nobody holds. A launch may be
// given such a stream as it is, again and again: then it takes up the block, and
// the line with its events, of the launch before.
//
// Nothing here touches the handle, which may be another stream's by now, or
// nobody's: an event stands behind all the work of an idle block. The lock is
// taken with the GIL too, so it is never held in the driver.
var idle struct {
	sync.Mutex
	blocks []*C.cudago_stream // guarded by Mutex; the latest is the last
}

// mostIdle is more than the streams that one loop uses.
const mostIdle = 8

// keepIdle takes over the block of a stream that nobody holds. It returns the one
// that is to end, or nil: the block itself, if it is of a stream of ours or has
// work without an event behind it, or the oldest idle one.
func keepIdle(s *cuda.Stream, b *C.cudago_stream) (end *C.cudago_stream) {
	if !s.IsForeign() || counter(&b.clock.marked).Load() < counter(&b.clock.queued).Load() || s.Context().IsLost() {
		return b
	}
	idle.Lock()
	defer idle.Unlock()
	idle.blocks = append(idle.blocks, b)
	if len(idle.blocks) <= mostIdle {
		return nil
	}
	end = idle.blocks[0]
	idle.blocks = slices.Delete(idle.blocks, 0, 1)
	return end
}

// takeIdle returns the block of a foreign stream with a reference, or nil.
func takeIdle(c *cuda.Context, handle uintptr) *C.cudago_stream {
	idle.Lock()
	defer idle.Unlock()
	for i, b := range slices.Backward(idle.blocks) {
		if uintptr(b.h) != handle {
			continue
		}
		if s, err := Streams.Get(uint64(b.id)); err != nil || s.Context() != c {
			continue
		}
		idle.blocks = slices.Delete(idle.blocks, i, i+1)
		C.cudago_stream_retain(b)
		return b
	}
	return nil
}

// forgetIdle ends the idle blocks of a device that was reset.
func forgetIdle(ordinal C.int32_t) {
	idle.Lock()
	var lost []*C.cudago_stream
	idle.blocks = slices.DeleteFunc(idle.blocks, func(b *C.cudago_stream) bool {
		s, err := Streams.Get(uint64(b.id))
		gone := b.device == ordinal && (err != nil || s.Context().IsLost())
		if gone {
			lost = append(lost, b)
		}
		return gone
	})
	idle.Unlock()
	for _, b := range lost {
		endBlock(uint64(b.id))
	}
}
