// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// awaiting is work that may wait for what no queue of this driver is known to
// bring: a value in memory, or an external semaphore.
type awaiting interface {
	work
	// mayWait reports whether the work can wait.
	mayWait() bool
	// ready reports whether the work would not wait, were it to begin now.
	ready(x *execution) (yes bool, f *failure)
}

var (
	_ awaiting = (*memOpWork)(nil)
	_ awaiting = (*semaphoreWork)(nil)
)

// How often a wait looks: soon at first, so that a handshake is quick, then
// seldom, so that a wait for the host costs nothing.
const (
	soonestLook = 2 * time.Microsecond
	latestLook  = time.Millisecond
)

// await returns when come says so, the work is canceled, or the context has
// failed. what is the end of "a wait for ...".
func (x *execution) await(come func() (bool, *failure), what func() string) *failure {
	if yes, f := come(); yes || f != nil {
		return f
	}
	if x.sim.shuffle != nil {
		// The goroutine that waits here may be the one that would run what is waited
		// for.
		done := make(chan struct{})
		defer close(done)
		x.sim.workers.Add(1)
		go x.sim.shuffle.standIn(&x.sim.workers, done)
	}
	running := x.ctx.dev.cancel.enter()
	defer running.leave()
	for pause := soonestLook; x.ctx.result() == driver.CUDA_SUCCESS; pause = min(2*pause, latestLook) {
		select {
		case <-running.stop:
			return running.canceledWait(x.ctx, what())
		case <-time.After(pause):
		}
		if yes, f := come(); yes || f != nil {
			return f
		}
	}
	return nil
}

// canceledWait is the end of a wait by Cancel, or by the end of the driver.
func (r *running) canceledWait(c *context, what string) *failure {
	text := "canceled in a wait for " + what
	if c.result() == driver.CUDA_ERROR_CONTEXT_IS_DESTROYED {
		return nil
	}
	if r.canceler.isClosed() {
		return &failure{driver.CUDA_ERROR_DEINITIALIZED, text}
	}
	r.report(c, text)
	return nil
}
