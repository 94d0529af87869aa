// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

import (
	"sync"
	"sync/atomic"
)

// A CallbackGate keeps driver calls that wait for the device apart from Python
// callbacks that the device waits for.
//
// NVIDIA's driver makes some calls alone: while one is under way, others wait for
// it. Some of these wait for the device themselves (seen on driver 580, by the
// stacks of threads that hung: cuMemFreeHost). If the device then waits for a
// callback, the callback for the GIL, and who has the GIL for the driver, nobody
// goes on. So the reaper makes such calls only while no launch that may call
// Python is in flight, and such launches wait, without the GIL, until the call is
// over. Instantiating cannot wait for callbacks, which may wait for what comes
// after it: see cudago_stall in border.h.
type CallbackGate struct {
	mu       sync.RWMutex // read by launches that may call Python, until they are counted; written by calls that wait
	inFlight atomic.Int64 // such launches that are not known to have ended
}

// Callbacks is the one that there is.
var Callbacks CallbackGate

// Alone runs a call that may wait for the device. False if it must not now.
func (g *CallbackGate) Alone(call func()) bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.inFlight.Load() > 0 {
		return false
	}
	call()
	return true
}

// Enter comes before such a launch, without the GIL.
func (g *CallbackGate) Enter() { g.mu.RLock() }

// Leave comes after it. after calls its argument when the launch has ended; it
// is nil if the driver has refused it.
func (g *CallbackGate) Leave(after func(ended func())) {
	if after != nil {
		g.inFlight.Add(1)
		after(func() { g.inFlight.Add(-1) })
	}
	g.mu.RUnlock()
}
