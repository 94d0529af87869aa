// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"sync"

	"github.com/cudago/cudago/internal/ptxvm"
)

// canceler stops running kernels.
type canceler struct {
	mu     sync.Mutex
	stop   chan struct{} // guarded by mu; closed to stop the kernels that got it
	closed bool          // guarded by mu; the driver ends, and so do its contexts
}

// channel is what a kernel that starts now is to watch.
func (c *canceler) channel() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		c.stop = make(chan struct{})
	}
	return c.stop
}

// end stops the running kernels. Those that start later run, unless for good.
func (c *canceler) end(forGood bool) {
	c.channel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	close(c.stop)
	c.closed = forGood
	if !forGood {
		c.stop = nil
	}
}

func (c *canceler) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Cancel is documented at driver.Checker.
func (d *simulator) Cancel() { d.cancel.end(false) }

// wasCanceled turns the end of a kernel by Cancel into a finding.
func (x *execution) wasCanceled(err error) bool {
	var fault *ptxvm.Fault
	if !errors.As(err, &fault) || fault.Kind != ptxvm.FaultCanceled || x.sim.cancel.isClosed() {
		return false
	}
	x.ctx.found(fault.Error(), 0)
	return true
}
