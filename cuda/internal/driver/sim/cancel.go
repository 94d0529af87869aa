// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/fault"
)

// canceler stops the running kernels of a device, and the loops of its graphs.
type canceler struct {
	mu     sync.Mutex
	now    *running // guarded by mu; the kernels and loops that began since the last stop
	closed bool     // guarded by mu; the driver and its contexts are ending
}

// running is a group of kernels and loops that are stopped together.
type running struct {
	canceler *canceler
	stop     chan struct{} // closed to stop them

	// What follows is guarded by canceler.mu.

	n     int           // how many have not ended
	told  chan struct{} // set if a caller waits for the reports; closed when n is 0
	reset bool          // they are stopped for a reset
	texts []string      // the reports, if a caller waits
}

// enter begins a kernel or loop, which watches stop, and leaves.
func (c *canceler) enter() *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current().n++
	return c.now
}

// current returns the group for a kernel or loop that begins now.
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

// report passes on the report about a stopped kernel: to the caller that
// stopped it, if that waits; otherwise it becomes a finding, unless a reset
// discards it.
func (r *running) report(ctx *context, text string) {
	r.canceler.mu.Lock()
	waits, reset := r.told != nil, r.reset
	if waits {
		r.texts = append(r.texts, text)
	}
	r.canceler.mu.Unlock()
	switch {
	case waits:
	case reset:
		ctx.withhold(text)
	default:
		ctx.found(text, 0)
	}
}

// end stops everything that is running, and nothing that begins later.
func (c *canceler) end() { c.stop(false) }

// endForReset is end for a reset, which may still be abandoned.
func (c *canceler) endForReset() { c.stop(true) }

func (c *canceler) stop(reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	r := c.current()
	r.reset = reset
	close(r.stop)
	c.now = nil
}

// close stops everything that is running or begins later.
func (c *canceler) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	close(c.current().stop)
}

func (c *canceler) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// interrupt stops everything that is running, and returns where it was.
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
		dev.cancel.end()
	}
}

// CancelDevice is documented at driver.Checker.
func (d *simulator) CancelDevice(dev driver.CUdevice) {
	if v, r := d.device(dev); r == driver.CUDA_SUCCESS {
		v.cancel.endForReset()
	}
}

// KeepDevice is documented at driver.Checker.
func (d *simulator) KeepDevice(dev driver.CUdevice) {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return
	}
	for _, c := range d.contexts.all() {
		if c.dev == v {
			c.admit()
		}
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

// wasCanceled describes a kernel that Cancel or Interrupt stopped.
func (x *execution) wasCanceled(r *running, err error) bool {
	var stopped *fault.Fault
	if !errors.As(err, &stopped) || stopped.Kind != fault.Canceled || r.canceler.isClosed() {
		return false
	}
	if x.ctx.result() != driver.CUDA_ERROR_CONTEXT_IS_DESTROYED {
		r.report(x.ctx, stopped.Error())
	}
	return true
}
