// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

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

// Everything that waits for its release: Python references for the GIL, driver
// objects for the device.
var (
	Drops = finalize.NewDropQueue(finalize.DropOptions[uintptr]{
		Drop:    dropReferences,
		Request: func() bool { return C.cudago_request_drain() == 0 },
		Pending: (*uint32)(unsafe.Pointer(C.cudago_drop_hint_address())),
	})
	Reaper = finalize.NewReaper(finalize.ReaperOptions{
		// Relaxed: what the reaper queries and destroys must not invalidate a
		// capture.
		ThreadInit: func() error {
			if d := Driver.Load(); d != nil {
				_, err := d.ExchangeCaptureMode(cuda.CaptureRelaxed)
				return err
			}
			return nil
		},
		Report: ReportAside,
	})
)

// dropReferences runs with the GIL.
func dropReferences(refs []uintptr) {
	C.cudago_drop_references((*C.uintptr_t)(unsafe.Pointer(&refs[0])), C.size_t(len(refs)))
}

//export cudagoDrain
func cudagoDrain() {
	Drops.Drain()
	for _, drain := range alsoDrained {
		drain()
	}
}

// cudagoReaperFlush waits without the GIL until nothing is left to be reaped.
//
//export cudagoReaperFlush
func cudagoReaperFlush(ms C.long) C.int {
	if Reaper.Flush(time.Duration(ms) * time.Millisecond) {
		return 1
	}
	return 0
}

// stepFunc is a reaper's item.
type stepFunc func() (bool, error)

func (f stepFunc) Step() (bool, error) { return f() }

// Once is an item of a single step: work that may block on something else, and
// so must not run with the GIL held or while a callback is waited for.
func Once(f func() error) finalize.Item {
	return stepFunc(func() (done bool, err error) {
		done = Callbacks.Alone(func() { err = f() })
		return done, err
	})
}

// alsoDrained are queues of later rooms. Only init functions add any.
var alsoDrained []func()

// AlsoDrain registers drain, which is called with the GIL after each drain of
// the drop queue.
func AlsoDrain(drain func()) { alsoDrained = append(alsoDrained, drain) }
