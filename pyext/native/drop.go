// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include "border.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// Everything that waits to end: Python references for the GIL, driver objects
// for the device, finalizers for their time.
var (
	drops = finalize.NewDropQueue(finalize.DropOptions[uintptr]{
		Drop:    dropReferences,
		Request: func() bool { return C.cudago_request_drain() == 0 },
		Pending: (*uint32)(unsafe.Pointer(C.cudago_drop_hint_address())),
	})
	reaper = finalize.NewReaper(finalize.ReaperOptions{
		// Relaxed: what the reaper queries and destroys must not spoil a capture.
		ThreadInit: func() error {
			if d := drv.Load(); d != nil {
				_, err := d.ExchangeCaptureMode(cuda.CaptureRelaxed)
				return err
			}
			return nil
		},
		Report: reportAside,
	})
	finalizers = finalize.NewRegistry(reportAside)
)

// dropReferences runs with the GIL.
func dropReferences(refs []uintptr) {
	C.cudago_drop_references((*C.uintptr_t)(unsafe.Pointer(&refs[0])), C.size_t(len(refs)))
}

//export cudagoDrain
func cudagoDrain() {
	drops.Drain()
	due.Drain()
}

//export cudagoDropClose
func cudagoDropClose() {
	due.Close()
	drops.Close()
}

// cudagoReaperFlush waits without the GIL until nothing is left to be reaped.
//
//export cudagoReaperFlush
func cudagoReaperFlush(ms C.long) C.int {
	if reaper.Flush(time.Duration(ms) * time.Millisecond) {
		return 1
	}
	return 0
}

// stepFunc is a reaper's item.
type stepFunc func() (bool, error)

func (f stepFunc) Step() (bool, error) { return f() }

// once is an item that is done with one step: work that may block elsewhere and
// so must not be done with the GIL held, nor while a callback is waited for.
func once(f func() error) finalize.Item {
	return stepFunc(func() (done bool, err error) {
		done = callbacks.alone(func() { err = f() })
		return done, err
	})
}

// cudagoCloseRest closes what is open besides graphs, newest first and streams
// last; not memory, which others may hold: what nobody holds has gone with its
// cell. It gives up after the time limit: unloading code waits for a kernel that
// may never end.
//
//export cudagoCloseRest
func cudagoCloseRest(ms C.long) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		closeAll(events)
		closeAll(kernels)
		closeAll(codes)
		closeAll(resources)
		closeAll(streams)
	}()
	select {
	case <-done:
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

func closeAll[T interface{ Close() error }](t *table[T]) {
	for _, id := range t.ids() {
		if v, ok := t.take(id); ok {
			if err := contained(v.Close); err != nil {
				reportAside(err)
			}
		}
	}
}
