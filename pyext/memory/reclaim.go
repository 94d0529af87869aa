// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// freesWait waits for the frees that are queued in some streams. It runs in a
// goroutine, so that the Python thread hears Ctrl-C.
type freesWait struct {
	over chan struct{}
	stop atomic.Bool
}

var freesWaits = border.NewTable[*freesWait]("wait for frees")

// cudagoFreesBegin starts a wait for what is in n streams now.
//
//export cudagoFreesBegin
func cudagoFreesBegin(streams *C.uint64_t, n C.int) C.uint64_t {
	var in []*cuda.Stream
	for _, id := range unsafe.Slice(streams, int(n)) {
		if l, err := stream.Lines.Get(uint64(id)); err == nil {
			in = append(in, l.Stream().OnAnyThread())
		}
	}
	w := &freesWait{over: make(chan struct{})}
	go func() {
		defer close(w.over)
		_ = border.Contained(border.Relaxed(func() error { w.await(in); return nil }))
	}()
	return C.uint64_t(freesWaits.Put(w))
}

// await returns when what is in the streams has ended. A stream that fails, or
// is capturing, is not waited for.
func (w *freesWait) await(in []*cuda.Stream) {
	var events []*cuda.Event
	for _, s := range in {
		e, err := s.Context().TakeEvent(true)
		if err != nil {
			continue
		}
		defer s.Context().PutEvent(e)
		if recorded, err := s.RecordAside(e); err == nil && recorded {
			events = append(events, e)
		}
	}
	for _, e := range events {
		for nap := 20 * time.Microsecond; !w.stop.Load(); nap = min(2*nap, time.Millisecond) {
			// Aside: a program that races must not be saved by a lack of memory.
			done, err := e.QueryAside()
			if done {
				_ = e.ObserveAside() // a fault of the device is told by the allocation
			}
			if done || err != nil {
				break
			}
			time.Sleep(nap)
		}
	}
}

// cudagoFreesSlice waits up to ms milliseconds: 1 if the wait is over.
//
//export cudagoFreesSlice
func cudagoFreesSlice(wait C.uint64_t, ms C.int) C.int {
	w, err := freesWaits.Get(uint64(wait))
	if err != nil {
		return 1
	}
	select {
	case <-w.over:
		return 1
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return 0
	}
}

//export cudagoFreesEnd
func cudagoFreesEnd(wait C.uint64_t) {
	if w, ok := freesWaits.Take(uint64(wait)); ok {
		w.stop.Store(true)
	}
}
