// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package finalizer

/*
#include "finalizer.h"
*/
import "C"

import (
	"sync"
	"time"

	"github.com/cudago/cudago/internal/finalize"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// A pyFinalizer is what Go knows of a Python Finalizer: its place in the order
// of the exit, and whether its stream's work has ended.
type pyFinalizer struct {
	*finalize.Finalizer

	mu   sync.Mutex
	over chan struct{} // guarded by mu; closed when the work has ended, nil until the wait begins
}

// A turn is the turn of a Python Finalizer, with a reference to it. The number
// is the registration's: a Finalizer that was initialised anew since then has
// another.
type turn struct {
	object C.uintptr_t
	id     C.uint64_t
}

// begin sets f.over, once.
func (f *pyFinalizer) begin(over chan struct{}) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over != nil {
		return false
	}
	f.over = over
	return true
}

var (
	registry = finalize.NewRegistry(border.ReportAside)
	// byFinalizer finds the registry's entry of a Python Finalizer.
	byFinalizer = border.NewTable[*pyFinalizer]("finalizer")
	// due are Python Finalizers whose stream's work has ended. Draining the drop
	// queue runs them.
	due = finalize.NewDropQueue(finalize.DropOptions[turn]{
		Drop: func(turns []turn) {
			for _, t := range turns {
				C.cudago_finalizer_due(t.object, t.id)
			}
		},
		Request: func() bool { return C.cudago_request_drain() == 0 },
	})
	// exitLeft is how much longer finalizers may wait for streams at exit, all
	// together; stuck are the streams that took longer. Only the thread that
	// ends the interpreter uses them.
	exitLeft time.Duration
	stuck    = map[C.uint64_t]bool{}
)

// glance is how long a finalizer still waits at exit when others have used up
// the time: long enough for the reaper to see that a stream is idle.
const glance = 100 * time.Millisecond

// cudagoFinalizerNew registers a Python Finalizer, which keeps itself alive
// until it is taken.
//
//export cudagoFinalizerNew
func cudagoFinalizerNew(object C.uintptr_t) C.uint64_t {
	f := &pyFinalizer{}
	f.Finalizer = registry.Add(func() error { // runs only at exit: in all other cases C takes the finalizer
		if C.cudago_finalizer_exit(object) != 0 {
			return finalize.ErrStop
		}
		return nil
	}, nil)
	return C.uint64_t(byFinalizer.Put(f))
}

// cudagoFinalizerTake forgets a Finalizer that C has taken.
//
//export cudagoFinalizerTake
func cudagoFinalizerTake(id C.uint64_t) {
	if f, ok := byFinalizer.Take(uint64(id)); ok {
		f.Detach()
	}
}

//export cudagoFinalizerAtExit
func cudagoFinalizerAtExit(id C.uint64_t, on C.int) {
	if f, err := byFinalizer.Get(uint64(id)); err == nil {
		f.SetAtExit(on != 0)
	}
}

// cudagoFinalizerWait begins to wait for what is queued on the stream, and then
// queues object. 0 if the wait was begun before or the Finalizer was taken
// meanwhile: the caller keeps its reference. It blocks and so runs without the
// GIL.
//
//export cudagoFinalizerWait
func cudagoFinalizerWait(id, on C.uint64_t, object C.uintptr_t) C.int {
	f, err := byFinalizer.Get(uint64(id))
	if err != nil {
		return 0
	}
	over := make(chan struct{})
	if !f.begin(over) {
		return 0
	}
	then := func() {
		close(over)
		due.Put(turn{object, id})
	}
	if !stream.AfterAll(uint64(on), then) {
		then() // closed, at exit
	}
	return 1
}

// cudagoFinalizerOver waits at exit, within its time limit, until the stream's
// work has ended; 0 if it has not. It blocks and so runs without the GIL.
//
//export cudagoFinalizerOver
func cudagoFinalizerOver(id, on C.uint64_t) C.int {
	f, err := byFinalizer.Get(uint64(id))
	if err != nil {
		return 1 // called meanwhile
	}
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	limit := exitLeft
	if !stuck[on] {
		limit = max(limit, glance)
	}
	defer border.Reaper.Hurry()()
	start := time.Now()
	defer func() { exitLeft -= time.Since(start) }()
	select {
	case <-over:
		return 1
	case <-time.After(limit):
		stuck[on] = true
	}
	select {
	case <-over: // both were true
		return 1
	default:
		return 0
	}
}

//export cudagoFinalizeAll
func cudagoFinalizeAll(ms C.long) {
	exitLeft = time.Duration(ms) * time.Millisecond
	registry.Shutdown()
}

func init() { border.AlsoDrain(func() { due.Drain() }) }

// CloseDue is for the exit: finalizers that become due from now on are not
// called.
func CloseDue() { due.Close() }

// Live counts the finalizers that are alive.
func Live() int { return registry.Len() }
