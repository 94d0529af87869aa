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
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// A Timeline is the line of a stream, with its counters in the stream's clock.
type Timeline struct {
	*graph.Line
	// Valid until the line has ended: for the reaper, and for who holds the block,
	// or the GIL.
	block *C.cudago_stream
}

// Lines holds each line under its stream's number.
var Lines = border.NewTable[*Timeline]("stream")

// newLine makes the line of s with the counters of b's clock, which it holds.
func newLine(s *cuda.Stream, b *C.cudago_stream) (*graph.Line, error) {
	clock := b.clock
	o := graph.LineOptions{
		Queued: counter(&clock.queued), Proven: counter(&clock.proven), Marked: counter(&clock.marked), Reaper: border.Reaper,
		Release: func() { C.cudago_clock_release(clock) },
	}
	if b.foreign != 0 {
		o.Latest = (&Timeline{block: b}).latest
	} else { // the launch budget is for streams of ours
		o.OnProven = func(n uint64) { provenTotal.Add(int64(n)) }
	}
	return graph.NewLine(s, o)
}

// counter lets Go use a counter of C.
func counter[T any](at *T) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(at)) }

var provenTotal = (*atomic.Int64)(unsafe.Pointer(C.cudago_proven_total_address()))

func init() {
	graph.UseReaper(border.Reaper) // also for lines that LineOf makes
	// Executables are destroyed while no thread is in a launch without the GIL.
	graph.DestroyApart(func(destroy func()) {
		if C.cudago_apart_begin() != 0 {
			defer C.cudago_apart_end()
			destroy()
		}
	})
}

// OnLine calls do with a stream's line. The line exists as long as something of
// it is pending or somebody holds the stream's block.
func OnLine(id uint64, do func(*graph.Line)) {
	if l, err := Lines.Get(id); err == nil {
		do(l.Line)
	}
}

// cudagoLineMarked runs without the GIL, on the thread that queued the work.
//
//export cudagoLineMarked
func cudagoLineMarked(id C.uint64_t) (pos C.uint64_t) {
	OnLine(uint64(id), func(l *graph.Line) {
		p, err := l.Marked()
		if err != nil && !errors.Is(err, graph.ErrLineCapturing) {
			border.ReportAside(err)
		}
		pos = C.uint64_t(p)
	})
	return pos
}

// cudagoLineProve is for launches, and the two below are for collections: the
// program has not asked.
//
//export cudagoLineProve
func cudagoLineProve(id C.uint64_t) { OnLine(uint64(id), (*graph.Line).ProveAside) }

//export cudagoLookAll
func cudagoLookAll() { graph.LookAll() }

//export cudagoProveAllAside
func cudagoProveAllAside() { graph.ProveAllAside() }

//export cudagoProveAll
func cudagoProveAll() { graph.ProveAll() }

// cudagoProveExposed marks the streams that the reaper must not touch. It runs
// without the GIL, on a thread that uses them.
//
//export cudagoProveExposed
func cudagoProveExposed() {
	for _, id := range Lines.IDs() {
		if l, err := Lines.Get(id); err == nil && l.Stream().IsExposed() {
			l.ProveAside()
		}
	}
}

//export cudagoLineProved
func cudagoLineProved(id, pos C.uint64_t) {
	OnLine(uint64(id), func(l *graph.Line) { l.Waited(uint64(pos)) })
}

// cudagoLineOwes runs with the GIL.
//
//export cudagoLineOwes
func cudagoLineOwes(id C.uint64_t) (owes C.int) {
	OnLine(uint64(id), func(l *graph.Line) {
		if l.Owes() {
			owes = 1
		}
	})
	return owes
}

// cudagoLineSettle runs without the GIL.
//
//export cudagoLineSettle
func cudagoLineSettle(id C.uint64_t) { OnLine(uint64(id), (*graph.Line).Settle) }

//export cudagoLineExpose
func cudagoLineExpose(id C.uint64_t) { OnLine(uint64(id), (*graph.Line).Expose) }

// cudagoLineJoin makes the stream into wait for position pos of stream id. It
// returns 1 if nothing stands behind the position yet because the stream is
// capturing.
//
//export cudagoLineJoin
func cudagoLineJoin(id, pos, into C.uint64_t, st *C.cudago_status) C.int {
	return join(id, pos, st, func() (*cuda.Stream, error) { return Streams.Get(uint64(into)) })
}

// cudagoLineJoinHandle is cudagoLineJoin for a stream of a device, by its handle.
//
//export cudagoLineJoinHandle
func cudagoLineJoinHandle(id, pos C.uint64_t, ordinal C.int32_t, handle C.uintptr_t, st *C.cudago_status) C.int {
	return join(id, pos, st, func() (*cuda.Stream, error) {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return nil, err
		}
		return c.WrapStream(uintptr(handle)), nil
	})
}

func join(id, pos C.uint64_t, st *C.cudago_status, into func() (*cuda.Stream, error)) (again C.int) {
	guard(st, func() error {
		l, err := Lines.Get(uint64(id))
		if err != nil {
			return nil //nolint:nilerr // closed, so all its work has ended
		}
		target, err := into()
		if err != nil {
			return err
		}
		err = l.Join(uint64(pos), target)
		if errors.Is(err, graph.ErrLineCapturing) {
			again, err = 1, nil
		}
		return err
	})
	return again
}

// cudagoStreamsOrder makes a stream wait for what is queued in another, both
// given by their handles. It returns 1 if one of them is capturing, and waits as
// cudagoEventRecord does.
//
//export cudagoStreamsOrder
func cudagoStreamsOrder(at C.int32_t, first C.uintptr_t, ordinal C.int32_t, then C.uintptr_t, st *C.cudago_status) (busy C.int) {
	guard(st, func() error {
		if at == ordinal && first == then {
			return nil
		}
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		theirs, err := border.ContextOf(int(at))
		if err != nil {
			return err
		}
		ordered, err := theirs.OrderStreams(theirs.WrapStream(uintptr(first)), c.WrapStream(uintptr(then)))
		if err == nil && !ordered {
			busy = 1
		}
		return err
	})
	return busy
}

// AfterAll runs then once everything that is in the stream now has ended. For
// the per-thread default stream it waits in the legacy one, which waits for the
// per-thread streams of all threads. It returns false if the stream is gone.
func AfterAll(id uint64, then func()) bool {
	l, err := Lines.Get(id)
	if err != nil {
		return false
	}
	c := l.Stream().Context()
	if l.Stream() == c.DefaultStream(cuda.PerThread) {
		graph.LineOf(c.DefaultStream(cuda.Legacy)).AfterAll(then)
		return true
	}
	if l.AfterAll(then) && !l.Stream().IsForeign() && !l.Stream().IsDefault() {
		provenTotal.Add(-1) // that is of a position that C does not count
	}
	return true
}

// cudagoLineAwait waits up to ms milliseconds for position pos of a stream that
// the caller holds. It runs without the GIL and returns 1 if it must be called
// again.
//
//export cudagoLineAwait
func cudagoLineAwait(id, pos C.uint64_t, ms C.int) (again C.int) {
	OnLine(uint64(id), func(l *graph.Line) {
		end := time.Now().Add(time.Duration(ms) * time.Millisecond)
		for nap := 20 * time.Microsecond; l.Pending(uint64(pos)); nap = min(2*nap, time.Millisecond) {
			if l.Prove(); !l.Pending(uint64(pos)) {
				return
			}
			if time.Now().After(end) {
				again = 1
				return
			}
			time.Sleep(nap)
		}
	})
	return again
}
