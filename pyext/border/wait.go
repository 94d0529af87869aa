// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"errors"
	"time"

	"github.com/cudago/cudago/cuda"
)

// waiters are blocking waits of Python threads. Each wait runs in a goroutine,
// so that the Python thread can check for signals every few milliseconds; after
// Ctrl-C the goroutine continues alone.
var waiters = NewTable[*wait]("wait")

// wait is one of them: what it waits for, and how it ended.
type wait struct {
	kind C.int
	id   C.uint64_t
	end  chan error
}

// cudagoWaitBegin starts a wait; 0 if it is over already, which is not asked if the
// driver has to wait.
//
//export cudagoWaitBegin
func cudagoWaitBegin(kind C.int, id C.uint64_t, blocks C.int, st *C.cudago_status) (waiter C.uint64_t) {
	guard(st, func() error {
		done, block, err := waitable(kind, id)
		if err != nil {
			return err
		}
		before := abandoned.takeOf(kind, id)
		if done != nil && before == nil && blocks == 0 && !polledInC(kind) {
			if over, err := poll(done); err != nil {
				return err
			} else if over {
				return abandoned.finding()
			}
		}
		w := &wait{kind: kind, id: id, end: make(chan error, 1)}
		go func() {
			w.end <- abandoned.first(before, Contained(block))
		}()
		waiter = C.uint64_t(waiters.Put(w))
		return nil
	})
	return waiter
}

// cudagoWaitRefused is the error of a wait in a host callback. The device is
// waiting for the callback, so the wait would as a rule never end. CUDA forbids
// all calls in host functions, but does not recognise the thread that runs ours.
//
//export cudagoWaitRefused
func cudagoWaitRefused(kind C.int, st *C.cudago_status) {
	guard(st, func() error {
		op := map[C.int]string{
			C.WAIT_STREAM: "cuStreamSynchronize",
			C.WAIT_EVENT:  "cuEventSynchronize",
			C.WAIT_DEVICE: "cuCtxSynchronize",
		}[kind]
		return &cuda.Error{
			Op: op, Result: cuda.ErrorNotPermitted,
			Detail: "a host callback must not wait for the device, which waits for it",
		}
	})
}

// A Waitable looks up what is waited for: whether it is over, and a blocking
// wait for it.
type Waitable func(id uint64) (done func() (bool, error), block func() error, err error)

// waitables, by enum cudago_wait_kind; the device's is in this file. Only init
// functions write it.
var waitables [C.WAIT_DEVICE + 1]Waitable

// WaitStream and WaitEvent let later rooms register what a wait is for.
func WaitStream(of Waitable) { waitables[C.WAIT_STREAM] = of }

// WaitEvent is WaitStream for events.
func WaitEvent(of Waitable) { waitables[C.WAIT_EVENT] = of }

func waitable(kind C.int, id C.uint64_t) (done func() (bool, error), block func() error, err error) {
	if of := waitables[kind]; of != nil {
		return of(uint64(id))
	}
	c, err := ContextOf(int(id))
	if err != nil {
		return nil, nil, err
	}
	return nil, func() error { return explainCapture(c.Synchronize()) }, nil
}

func explainCapture(err error) error {
	if !errors.Is(err, cuda.ErrorStreamCaptureUnsupported) {
		return err
	}
	const why = "a device cannot be waited for while a stream is capturing: wait for the streams that do not"
	return &cuda.ArgumentError{Kind: cuda.WrongValue, Text: why}
}

// Relaxed returns wait in relaxed capture mode: a wait for something that is not
// being captured must not invalidate the capture of another thread.
func Relaxed(wait func() error) func() error {
	return func() (err error) {
		Driver.Load().Relaxed(func() { err = wait() })
		return err
	}
}

// RelaxedQuery is [Relaxed] for a query.
func RelaxedQuery(query func() (bool, error)) func() (bool, error) {
	return func() (done bool, err error) {
		Driver.Load().Relaxed(func() { done, err = query() })
		return done, err
	}
}

// cudagoWaitSlice waits up to ms milliseconds: 1 if it must be called again.
//
//export cudagoWaitSlice
func cudagoWaitSlice(waiter C.uint64_t, ms C.int, st *C.cudago_status) (again C.int) {
	guard(st, func() error {
		w, err := waiters.Get(uint64(waiter))
		if err != nil {
			return err
		}
		select {
		case err := <-w.end:
			waiters.Take(uint64(waiter))
			if err == nil {
				err = abandoned.finding()
			}
			return err
		case <-time.After(time.Duration(ms) * time.Millisecond):
			again = 1
			return nil
		}
	})
	return again
}

// cudagoWaitAbandon leaves an interrupted wait to continue alone.
//
//export cudagoWaitAbandon
func cudagoWaitAbandon(waiter C.uint64_t) {
	if w, ok := waiters.Take(uint64(waiter)); ok {
		abandoned.add(w)
	}
}
