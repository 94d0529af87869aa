// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A wait polls on the Python thread before it hands over to a goroutine, whose end
// wakes that thread some ten microseconds late. The simulated device needs the
// processors; a GPU does not, and NVIDIA's driver polls throughout a wait anyway.
const (
	pollSimulated = 20 * time.Microsecond
	pollGPU       = 500 * time.Microsecond
)

// poll asks for a while whether a wait is over. At first it asks all the time,
// later at the price of noticing the end late by a small part of the wait: the
// driver's lock, and the processor's other half, are for who has work.
func poll(done func() (bool, error)) (over bool, err error) {
	simulated, limit := Driver.Load().Name() == "sim", pollLimit()
	for began := time.Now(); ; {
		if over, err = done(); over || err != nil {
			return over, err
		}
		waited := time.Since(began)
		switch {
		case waited > limit:
			return false, nil
		case simulated:
			runtime.Gosched()
		default: // not Gosched: this thread is Python's, and giving it up and getting it back takes microseconds
			for pause := waited / 32; time.Since(began) < waited+pause; {
			}
		}
	}
}

func pollLimit() time.Duration {
	if Driver.Load().Name() == "sim" || runtime.GOMAXPROCS(0) < 4 {
		return pollSimulated
	}
	return pollGPU
}

// cPolls says that C polls streams, before it comes here. It is written once,
// while the driver is opened.
var cPolls atomic.Bool

func polledInC(kind C.int) bool { return kind == C.WAIT_STREAM && cPolls.Load() }

// cudagoPollLimit is for C, which asks if it can poll.
//
//export cudagoPollLimit
func cudagoPollLimit() C.int64_t {
	cPolls.Store(true)
	return C.int64_t(pollLimit())
}
