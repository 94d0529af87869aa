// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include <stdlib.h>
#include "stream.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// Streams are the open streams.
var Streams = border.NewTable[*cuda.Stream]("stream")

func init() {
	border.WaitStream(func(id uint64) (func() (bool, error), func() error, error) {
		s, err := Streams.Get(id)
		if err != nil {
			return nil, nil, err
		}
		if s == s.Context().DefaultStream(cuda.PerThread) {
			return threadsWait(s)
		}
		return border.RelaxedQuery(s.Done), border.Relaxed(s.Synchronize), nil
	})
}

// threadsWait is a wait for the per-thread default stream of the calling OS
// thread. It may go on in a goroutine, for whose thread the handle means another
// stream, and so it is a wait for an event.
func threadsWait(s *cuda.Stream) (done func() (bool, error), block func() error, err error) {
	e, err := s.Context().TakeEvent(true)
	if err != nil {
		return nil, nil, err
	}
	over := sync.OnceFunc(func() { s.Context().PutEvent(e) })
	if recorded, err := s.RecordUncaptured(e); err != nil || !recorded {
		over()
		return border.RelaxedQuery(s.Done), border.Relaxed(s.Synchronize), err
	}
	query := func() (bool, error) {
		ended, err := e.Query()
		if ended || err != nil {
			over()
		}
		return ended, err
	}
	wait := func() error {
		defer over()
		return e.Synchronize()
	}
	return border.RelaxedQuery(query), border.Relaxed(wait), nil
}

// newStreamBlock registers s and makes its block and its line.
func newStreamBlock(s *cuda.Stream, ordinal C.int32_t) (*C.cudago_stream, error) {
	b := (*C.cudago_stream)(C.calloc(1, C.sizeof_cudago_stream))
	b.foreign = border.Bool[C.int32_t](s.IsForeign() || s.IsDefault())
	b.clock = (*C.cudago_clock)(C.calloc(1, C.sizeof_cudago_clock))
	l, err := newLine(s, b)
	if err != nil {
		C.free(unsafe.Pointer(b.clock))
		C.free(unsafe.Pointer(b))
		return nil, err
	}
	id := Streams.Put(s)
	b.id, b.clock.id, b.clock.refs = C.uint64_t(id), C.uint64_t(id), 2 // the block's, and the line's
	b.h = C.uintptr_t(s.Handle())
	b.ctx = C.uintptr_t(s.Context().Handle())
	b.device = ordinal
	b.refs = 1
	b.clock.exposed = border.Bool[C.int32_t](s.IsExposed())
	Lines.Set(id, &Timeline{l, b})
	return b, nil
}

//export cudagoStreamNew
func cudagoStreamNew(ordinal, priority C.int32_t, blocking C.int, st *C.cudago_status) (b *C.cudago_stream) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		s, err := c.NewStream(cuda.StreamOptions{Priority: int(priority), Blocking: blocking != 0})
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

// defaults are the blocks of the default streams, one for each stream no matter
// who wraps it. They live until their device is reset. The lock is taken with the
// GIL too, so it is never held in the driver.
var defaults struct {
	sync.Mutex
	by map[*cuda.Stream]*C.cudago_stream // guarded by Mutex
}

// cudagoStreamWrap returns a block with a reference for the caller.
//
//export cudagoStreamWrap
func cudagoStreamWrap(ordinal C.int32_t, handle C.uint64_t, st *C.cudago_status) (b *C.cudago_stream) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		s := c.WrapStream(uintptr(handle))
		if !s.IsDefault() {
			b, err = newStreamBlock(s, ordinal)
			return err
		}
		b, err = defaultBlock(s, ordinal)
		return err
	})
	return b
}

// cudagoStreamDevice asks the driver which device a stream is of. 0 where it does
// not say, as for everything that tells no device.
//
//export cudagoStreamDevice
func cudagoStreamDevice(handle C.uint64_t) (ordinal C.int32_t) {
	_ = border.Contained(func() error {
		d := border.Driver.Load()
		if d == nil || d.DeviceCount() < 2 {
			return nil
		}
		dev, err := d.StreamDevice(uintptr(handle))
		if err == nil {
			ordinal = C.int32_t(dev.Ordinal())
		}
		return err
	})
	return ordinal
}

// cudagoConsumerDevice returns the device of another library's stream, which may
// be given as that of a default stream: -1 if that number does not say whose.
//
//export cudagoConsumerDevice
func cudagoConsumerDevice(handle C.uintptr_t) C.int32_t {
	ordinal := -1
	_ = border.Contained(func() error {
		d := border.Driver.Load()
		if d == nil {
			return nil
		}
		if d.DeviceCount() == 1 {
			ordinal = 0
			return nil
		}
		if handle == C.CU_STREAM_LEGACY || handle == C.CU_STREAM_PER_THREAD {
			return nil
		}
		dev, err := d.StreamDevice(uintptr(handle))
		if err == nil {
			ordinal = dev.Ordinal()
		}
		return err
	})
	return C.int32_t(ordinal)
}

// defaultBlock returns the block of a default stream, with a reference.
func defaultBlock(s *cuda.Stream, ordinal C.int32_t) (*C.cudago_stream, error) {
	making.Lock()
	defer making.Unlock()
	if b := knownDefault(s, nil); b != nil {
		return b, nil
	}
	b, err := newStreamBlock(s, ordinal)
	if err != nil {
		return nil, err
	}
	return knownDefault(s, b), nil
}

// making is held while a default stream's block is made, which can wait for a
// full launch queue: never taken with the GIL.
var making sync.Mutex

// knownDefault returns the block of a default stream with a reference: made, if
// that is not nil.
func knownDefault(s *cuda.Stream, made *C.cudago_stream) *C.cudago_stream {
	defaults.Lock()
	defer defaults.Unlock()
	if made != nil {
		if defaults.by == nil {
			defaults.by = map[*cuda.Stream]*C.cudago_stream{}
		}
		defaults.by[s] = made
	}
	b := defaults.by[s]
	if b != nil {
		C.cudago_stream_retain(b)
	}
	return b
}

// Open counts the streams that somebody holds, except the default ones, which
// are as permanent as their device.
func Open() int {
	defaults.Lock()
	defer defaults.Unlock()
	return Streams.Len() - len(defaults.by) - int(C.cudago_idle_count())
}

// cudagoStreamRelease takes over the last reference to a stream's block. Nobody
// can queue work on the stream any more: once all its work has ended the reaper
// destroys it, and a drain frees the block. Of another library's stream the block
// may be taken up again: see idle.c. It needs the GIL.
//
//export cudagoStreamRelease
func cudagoStreamRelease(id C.uint64_t) {
	l, err := Lines.Get(uint64(id))
	if err != nil {
		return
	}
	b := l.block
	if owner := b.owner; owner != nil { // its end runs Python
		b.owner = nil
		border.Drops.Put(uintptr(unsafe.Pointer(owner)))
		b = C.cudago_idle_keep(b)
	}
	if b != nil {
		endBlock(uint64(b.id))
	}
}

func endBlock(id uint64) {
	s, ok := Streams.Take(id)
	l, err := Lines.Get(id) // stays in Lines: others look it up until all has ended
	if !ok || err != nil {
		return
	}
	end := l.Close
	if C.cudago_callbacks_alive > 0 {
		end = l.CloseUnmarked
	}
	end(func() error {
		Lines.Take(id)
		if b := l.takeBatch(); b != nil { // nobody adds any more, and all work has ended
			l.markBehind(b)
			border.Drops.Put(b.refs...)
		}
		l.dropCover()
		err := s.Close()
		C.cudago_stream_ended(l.block)
		return err
	})
}

//export cudagoStreamDone
func cudagoStreamDone(id C.uint64_t, st *C.cudago_status) (done C.int) {
	guard(st, func() error {
		s, err := Streams.Get(uint64(id))
		if err != nil {
			return err
		}
		over, err := border.RelaxedQuery(s.Done)()
		if over {
			done = 1
		}
		return err
	})
	return done
}

// cudagoStreamIdle is cudagoStreamDone for who only looks: a check's finding,
// which the driver reports once, is kept for the program's next wait.
//
//export cudagoStreamIdle
func cudagoStreamIdle(id C.uint64_t, st *C.cudago_status) (idle C.int) {
	guard(st, func() error {
		s, err := Streams.Get(uint64(id))
		if err != nil {
			return err
		}
		over, err := border.RelaxedQuery(s.Done)()
		if border.HoldFinding(err) {
			over, err = true, nil // it is reported instead of success
		}
		if over {
			idle = 1
		}
		return err
	})
	return idle
}

//export cudagoStreamPriority
func cudagoStreamPriority(id C.uint64_t, st *C.cudago_status) (priority C.int32_t) {
	guard(st, func() error {
		s, err := Streams.Get(uint64(id))
		if err != nil {
			return err
		}
		p, err := s.Priority()
		priority = C.int32_t(p)
		return err
	})
	return priority
}

// cudagoDefaultStreamsForget releases the blocks of a device's default streams,
// which a reset has replaced. It needs the GIL.
//
//export cudagoDefaultStreamsForget
func cudagoDefaultStreamsForget(ordinal C.int32_t) {
	C.cudago_defaults_forget(ordinal)
	defaults.Lock()
	var lost []*C.cudago_stream
	for s, b := range defaults.by {
		if b.device == ordinal && s.Context().IsLost() {
			delete(defaults.by, s)
			lost = append(lost, b)
		}
	}
	defaults.Unlock()
	for _, b := range lost {
		C.cudago_stream_release(b)
	}
	for b := C.cudago_idle_of(ordinal); b != nil; b = C.cudago_idle_of(ordinal) {
		endBlock(uint64(b.id))
	}
}
