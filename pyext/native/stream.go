// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include <stdlib.h>
#include "native.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

var (
	streams = newTable[*cuda.Stream]("stream")
	// blocks are the C blocks of streams, freed with them.
	blocks = newTable[*C.cudago_stream]("stream")
	// marks are the events that the launch budget records.
	marks = newTable[*cuda.Event]("stream")
)

// contained runs fn and turns a panic into an error.
func contained(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// newStreamBlock registers s and makes its block.
func newStreamBlock(s *cuda.Stream, ordinal C.int32_t, foreign bool, mark *cuda.Event) *C.cudago_stream {
	b := (*C.cudago_stream)(C.calloc(1, C.sizeof_cudago_stream))
	id := streams.put(s)
	b.id = C.uint64_t(id)
	b.h = C.uintptr_t(s.Handle())
	b.ctx = C.uintptr_t(s.Context().Handle())
	b.device = ordinal
	b.refs = 1
	if foreign {
		b.foreign = 1
	}
	if mark != nil {
		b.mark = C.uintptr_t(mark.Handle())
		marks.set(id, mark)
	}
	blocks.set(id, b)
	return b
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
		// Made now: cuEventCreate can wait for another thread's full launch queue.
		mark, err := c.NewEvent(cuda.EventOptions{})
		if err != nil {
			return joinClose(err, s.Close)
		}
		b = newStreamBlock(s, ordinal, false, mark)
		return nil
	})
	return b
}

//export cudagoStreamWrap
func cudagoStreamWrap(ordinal C.int32_t, handle C.uint64_t, st *C.cudago_status) (b *C.cudago_stream) {
	guard(st, func() error {
		c, err := contextOf(ordinal)
		if err != nil {
			return err
		}
		b = newStreamBlock(c.WrapStream(uintptr(handle)), ordinal, true, nil)
		return nil
	})
	return b
}

// cudagoStreamRelease takes the last reference of a stream's block. Any thread.
// Destroying the stream is the reaper's: it may have to wait.
//
//export cudagoStreamRelease
func cudagoStreamRelease(id C.uint64_t) {
	s, ok := streams.take(uint64(id))
	if !ok {
		return
	}
	b, _ := blocks.take(uint64(id))
	mark, _ := marks.take(uint64(id))
	end := func() error {
		C.free(unsafe.Pointer(b))
		err := s.Close()
		graph.StreamClosed(s) // executables that were launched on it record their last event now
		if mark != nil {
			err = joinClose(err, mark.Close)
		}
		return err
	}
	reaper.Add(once(end))
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

// cudagoStreamJoin makes stream id wait for what is queued on another stream.
// It serves releases, which have nobody to tell: what cannot be ordered any
// more has been given up.
//
//export cudagoStreamJoin
func cudagoStreamJoin(id, other C.uint64_t) {
	if err := contained(func() error { return joinStreams(uint64(id), uint64(other)) }); err != nil {
		reportAside(err)
	}
}

func joinStreams(id, other uint64) error {
	s, err := streams.get(id)
	if err != nil {
		return err
	}
	o, err := streams.get(other)
	if err != nil {
		return nil // closed: its last reference is gone, and so is who could use the memory
	}
	if status, err := o.IsCapturing(); err != nil || status != cuda.CaptureNone {
		return err
	}
	e, err := o.Context().NewEvent(cuda.EventOptions{})
	if err != nil {
		return err
	}
	err = o.Record(e)
	if err == nil {
		err = s.Wait(e)
	}
	return joinClose(err, e.Close)
}

// cudagoKeepUntilDone keeps the references of a launch until the work queued on
// the stream so far has ended. It takes the references over in any case.
//
//export cudagoKeepUntilDone
func cudagoKeepUntilDone(id C.uint64_t, refs *C.uintptr_t, n C.int, st *C.cudago_status) {
	list := make([]uintptr, int(n))
	for i, r := range unsafe.Slice(refs, int(n)) {
		list[i] = uintptr(r)
	}
	guard(st, func() error {
		s, err := streams.get(uint64(id))
		if err != nil {
			drops.Put(list...)
			return err
		}
		item, err := afterWork(s, func() { drops.Put(list...) })
		if err == nil {
			reaper.Add(item)
			return nil
		}
		reaper.Add(once(func() error { // unknown when the work ends: wait for all of it
			err := s.Synchronize()
			drops.Put(list...)
			return err
		}))
		return nil
	})
}

// afterWork records an event on s and returns an item that runs then once the
// event has completed.
func afterWork(s *cuda.Stream, then func()) (stepFunc, error) {
	e, err := s.Context().NewEvent(cuda.EventOptions{})
	if err != nil {
		return nil, err
	}
	if err := s.Record(e); err != nil {
		return nil, joinClose(err, e.Close)
	}
	return func() (bool, error) {
		over, err := e.Query()
		if !over && err == nil {
			return false, nil
		}
		then()
		return true, joinClose(err, e.Close)
	}, nil
}

// cudagoStreamOrder makes a stream of another library wait for what is queued
// on stream id, and on the stream last if that is not 0.
//
//export cudagoStreamOrder
func cudagoStreamOrder(id, last, consumer C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := streams.get(uint64(id))
		if err != nil {
			return err
		}
		if last != 0 {
			if err := joinStreams(uint64(id), uint64(last)); err != nil {
				return err
			}
		}
		e, err := s.Context().NewEvent(cuda.EventOptions{})
		if err != nil {
			return err
		}
		if err = s.Record(e); err == nil {
			err = s.Context().WrapStream(uintptr(consumer)).Wait(e)
		}
		return joinClose(err, e.Close)
	})
}
