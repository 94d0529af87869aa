// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm"
)

// canceler stops the running kernels of a device, and the loops of its graphs.
type canceler struct {
	mu     sync.Mutex
	now    *running // guarded by mu; what has begun since others were stopped
	closed bool     // guarded by mu; the driver ends, and so do its contexts
}

// running is the kernels and loops that are stopped together.
type running struct {
	canceler *canceler
	stop     chan struct{} // closed to stop them

	// What follows is guarded by canceler.mu.

	n     int           // how many have not ended
	reset bool          // they were stopped for a reset of the device, which then takes the reports back
	told  chan struct{} // somebody waits for the reports; closed when n is 0
	texts []string      // the reports, if somebody waits
}

// enter begins a kernel or loop, which watches stop, and leaves.
func (c *canceler) enter() *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current().n++
	return c.now
}

// current makes room for what begins now.
//
// Preconditions: c.mu must be locked.
func (c *canceler) current() *running {
	if c.now == nil {
		c.now = &running{canceler: c, stop: make(chan struct{})}
	}
	return c.now
}

func (r *running) leave() {
	r.canceler.mu.Lock()
	defer r.canceler.mu.Unlock()
	if r.n--; r.n == 0 && r.told != nil {
		close(r.told)
		r.told = nil
	}
}

// report hands on what is to be said of one that was stopped. It goes to who
// stopped it if he waits, else it is a finding.
func (r *running) report(ctx *context, text string) {
	r.canceler.mu.Lock()
	waits, reset := r.told != nil, r.reset
	if waits {
		r.texts = append(r.texts, text)
	}
	r.canceler.mu.Unlock()
	if waits {
		return
	}
	ctx.found(text, 0)
	if reset {
		ctx.mu.Lock()
		defer ctx.mu.Unlock()
		ctx.findings.reset = append(ctx.findings.reset, text)
	}
}

// end stops what runs. What begins later runs, unless for good.
func (c *canceler) end(forGood, forReset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.current().reset = forReset
	close(c.current().stop)
	if c.closed = forGood; !forGood {
		c.now = nil
	}
}

func (c *canceler) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// interrupt stops what runs, and returns where it was.
func (c *canceler) interrupt(patience time.Duration) []string {
	c.mu.Lock()
	r := c.now
	if r == nil || r.n == 0 || c.closed {
		c.mu.Unlock()
		return nil
	}
	all := make(chan struct{})
	r.told, c.now = all, nil
	close(r.stop)
	c.mu.Unlock()
	select {
	case <-all:
	case <-time.After(patience):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.told = nil
	return r.texts
}

// Cancel is documented at driver.Checker.
func (d *simulator) Cancel() {
	for _, dev := range d.devices {
		dev.cancel.end(false, false)
	}
}

// CancelDevice is documented at driver.Checker.
func (d *simulator) CancelDevice(dev driver.CUdevice) {
	if v, r := d.device(dev); r == driver.CUDA_SUCCESS {
		v.cancel.end(false, true)
	}
}

// Interrupt is documented at driver.Checker.
func (d *simulator) Interrupt(patience time.Duration) []string {
	texts := make([][]string, len(d.devices))
	var all sync.WaitGroup
	for i, dev := range d.devices {
		all.Go(func() { texts[i] = dev.cancel.interrupt(patience) })
	}
	all.Wait()
	return slices.Concat(texts...)
}

// wasCanceled tells of the end of a kernel by Cancel or Interrupt.
func (x *execution) wasCanceled(r *running, err error) bool {
	var fault *ptxvm.Fault
	if !errors.As(err, &fault) || fault.Kind != ptxvm.FaultCanceled || r.canceler.isClosed() {
		return false
	}
	if x.ctx.result() != driver.CUDA_ERROR_CONTEXT_IS_DESTROYED {
		r.report(x.ctx, fault.Error())
	}
	return true
}
