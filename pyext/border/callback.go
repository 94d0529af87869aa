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
// NVIDIA's driver serializes some calls: while one is under way, others wait for
// it. Some of them wait for the device themselves (seen on driver 580, in the
// stacks of threads that hung: cuMemFreeHost). If the device then waits for a
// callback, the callback for the GIL, and the holder of the GIL for the driver,
// everything is stuck. So the reaper makes such calls only while no launch that
// may call Python is in flight, and such launches wait, without the GIL, until
// the call is over. An instantiation cannot wait for callbacks, because they may
// be waiting for what comes after it: see cudago_stall in border.h.
type CallbackGate struct {
	mu       sync.RWMutex // read by launches that may call Python, until they are counted; written by calls that wait
	inFlight atomic.Int64 // such launches not yet known to have ended
}

// Callbacks is the process's only gate.
var Callbacks CallbackGate

// Alone runs a call that may wait for the device. It returns false, without
// running it, if it must not run now.
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

// Enter is called before such a launch, without the GIL.
func (g *CallbackGate) Enter() { g.mu.RLock() }

// Leave is called after it. The function after, which is nil if the driver
// refused the launch, calls its argument when the launch has ended.
func (g *CallbackGate) Leave(after func(ended func())) {
	if after != nil {
		g.inFlight.Add(1)
		after(func() { g.inFlight.Add(-1) })
	}
	g.mu.RUnlock()
}
