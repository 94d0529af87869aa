// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include <stdlib.h>
#include "stream.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/cudago/cudago/cuda"
)

var streams = newTable[*cuda.Stream]("stream")

// contained runs fn and turns a panic into an error.
func contained(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// newStreamBlock registers s and makes its block and its line.
func newStreamBlock(s *cuda.Stream, ordinal C.int32_t) (*C.cudago_stream, error) {
	b := (*C.cudago_stream)(C.calloc(1, C.sizeof_cudago_stream))
	b.foreign = boolInt(s.IsForeign() || s.IsDefault())
	b.clock = (*C.cudago_clock)(C.calloc(1, C.sizeof_cudago_clock))
	l, err := newLine(s, b)
	if err != nil {
		C.free(unsafe.Pointer(b.clock))
		C.free(unsafe.Pointer(b))
		return nil, err
	}
	id := streams.put(s)
	b.id, b.clock.id, b.clock.refs = C.uint64_t(id), C.uint64_t(id), 1
	b.h = C.uintptr_t(s.Handle())
	b.ctx = C.uintptr_t(s.Context().Handle())
	b.device = ordinal
	b.refs = 1
	lines.set(id, &timeline{l, b})
	return b, nil
}

//export cudagoStreamNew
func cudagoStreamNew(ordinal, priority C.int32_t, st *C.cudago_status) (b *C.cudago_stream) {
	guard(st, func() error {
		c, err := contextOf(ordinal)
		if err != nil {
			return err
		}
		s, err := c.NewStream(cuda.StreamOptions{Priority: int(priority)})
		if err != nil {
			return err
		}
		if b, err = newStreamBlock(s, ordinal); err != nil {
			return joinClose(err, s.Close)
		}
		return nil
	})
	return b
}

// defaults are the blocks of the default streams, which live until their device
// is reset: one for each, whoever wraps it.
var defaults struct {
	sync.Mutex
	by map[*cuda.Stream]*C.cudago_stream // guarded by Mutex
}

// cudagoStreamWrap returns a block with a reference for the caller.
//
//export cudagoStreamWrap
func cudagoStreamWrap(ordinal C.int32_t, handle C.uint64_t, st *C.cudago_status) (b *C.cudago_stream) {
	guard(st, func() error {
		c, err := contextOf(ordinal)
		if err != nil {
			return err
		}
		s := c.WrapStream(uintptr(handle))
		if !s.IsDefault() {
			b, err = newStreamBlock(s, ordinal)
			return err
		}
		defaults.Lock()
		defer defaults.Unlock()
		if b = defaults.by[s]; b == nil {
			if b, err = newStreamBlock(s, ordinal); err != nil {
				return err
			}
			if defaults.by == nil {
				defaults.by = map[*cuda.Stream]*C.cudago_stream{}
			}
			defaults.by[s] = b
		}
		C.cudago_stream_retain(b)
		return nil
	})
	return b
}

// openStreams counts those that somebody holds.
func openStreams() int {
	n := streams.len()
	defaults.Lock()
	defer defaults.Unlock()
	for _, b := range defaults.by {
		if b.refs == 1 { // its own
			n--
		}
	}
	return n
}

// cudagoStreamRelease takes the last reference of a stream's block. Nobody can
// queue any more: when all has ended the reaper destroys the stream, and a drain
// frees the block. It needs the GIL.
//
//export cudagoStreamRelease
func cudagoStreamRelease(id C.uint64_t) {
	s, ok := streams.take(uint64(id))
	l, err := lines.get(uint64(id)) // others ask for it until all has ended
	if !ok || err != nil {
		return
	}
	l.Close(func() error {
		lines.take(uint64(id))
		err := s.Close()
		C.cudago_stream_ended(l.block)
		return err
	})
}

// joinClose closes something after err, which stays the first.
func joinClose(err error, closeIt func() error) error {
	if second := closeIt(); err == nil {
		return second
	}
	return err
}

//export cudagoStreamDone
func cudagoStreamDone(id C.uint64_t, st *C.cudago_status) (done C.int) {
	guard(st, func() error {
		s, err := streams.get(uint64(id))
		if err != nil {
			return err
		}
		over, err := relaxedQuery(s.Done)()
		if over {
			done = 1
		}
		return err
	})
	return done
}

//export cudagoStreamPriority
func cudagoStreamPriority(id C.uint64_t, st *C.cudago_status) (priority C.int32_t) {
	guard(st, func() error {
		s, err := streams.get(uint64(id))
		if err != nil {
			return err
		}
		p, err := s.Priority()
		priority = C.int32_t(p)
		return err
	})
	return priority
}
