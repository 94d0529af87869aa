// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// What becomes of a Context.
const (
	contextLive      int32 = iota
	contextResetting       // calls are refused, and releases put off: the reset may fail
	contextLost            // the driver has taken everything away
)

// IsLost reports whether the device was reset since c was made, or is being reset
// now. All that was made in c is lost then: its use is [ErrLost], and closing it
// calls nothing.
func (c *Context) IsLost() bool { return c.state.Load() != contextLive }

func (c *Context) lostError(what string) error {
	return &LostError{What: what, Device: c.dev, Pending: c.state.Load() != contextLost}
}

// hold keeps a reset out until release. What calls the driver in c does so in
// between.
func (c *Context) hold() error {
	if !c.calls.begin() {
		return c.lostError("context of " + c.dev.String())
	}
	return nil
}

func (c *Context) release() { c.calls.end() }

// destroy makes a call that gives back what needs no capture to be over. It does
// nothing if c is lost, and is put off while that is being decided, or if the
// call could not be made for a reason that may pass.
func (c *Context) destroy(op, what string, f func(driver.API) driver.CUresult) error {
	p, err := c.attempt(op, f)
	if p == done {
		return err
	}
	c.putOff(func() progress {
		if c.state.Load() == contextLost {
			return done
		}
		p, err := c.attempt(op, f)
		if p == done && err != nil {
			c.drv.warn(what, err)
		}
		return p
	}, p)
	return nil
}

// attempt makes a driver call with c current. err is that of a call that is done.
func (c *Context) attempt(op string, f func(driver.API) driver.CUresult) (p progress, err error) {
	leave, err := c.Enter()
	switch {
	case errors.Is(err, ErrLost):
		return waits, nil // the reset may fail
	case mayPass(err):
		return soon, nil
	case err != nil:
		return done, err
	}
	defer leave()
	return done, c.check(op, f(c.drv.api))
}

// whenLost has then run once if c is lost, which it may be already or never.
func (c *Context) whenLost(then func()) {
	c.deferred.mu.Lock()
	lost := c.state.Load() == contextLost
	if !lost {
		c.deferred.onLost = append(c.deferred.onLost, then)
	}
	c.deferred.mu.Unlock()
	if lost {
		then()
	}
}

// forgetCapture notes that no capture is open in a stream that is lost.
func (c *Context) forgetCapture(s *Stream) {
	if c.state.Load() == contextLost {
		s.captureOver()
	}
}

// Reset ends all that this process has on d: work that runs or is queued, memory,
// streams, events, modules, graphs. It is how a device comes back after a
// [Result.Sticky] error without a new process, if the driver lets it. A device
// that nobody has used stays as it is. It calls cuDevicePrimaryCtxRelease and, once
// that has ended the context, cuDevicePrimaryCtxReset for what no context has.
//
// The [Context] of d and what was made in it are lost: see [Context.IsLost].
// Pinned and managed memory is unmapped, so that the host must not touch it any
// more. [Device.Context] and [Device.DefaultMemoryResource] return new ones.
//
// Blocks until calls under way have returned; new ones are refused. On the
// simulated driver kernels that they wait for are stopped, and the calls fail;
// on NVIDIA's all that is queued runs to its end. It must not be called with the context of d
// entered, nor while handles of d that [Stream.Use] and the like gave out are used.
//
// Errors: [ErrClosed] after the driver's Close; an [*ArgumentError] if other
// libraries hold the context too: it would be taken away under them, and threads
// of theirs would crash; an [*Error]. If it is refused,
// everything is as it was, but for calls that were refused meanwhile. If the
// device is broken for good, the error is the sticky one and says so: only a new
// process can use it.
func (d *Device) Reset() error { return d.ResetUnless(nil) }

// ErrStopped says that a [Device.ResetUnless] was stopped.
var ErrStopped = errors.New("the reset was stopped while calls under way were waited for")

// ResetUnless is [Device.Reset], which stop ends while it waits for calls under
// way: with [ErrStopped], and as if it had not begun.
func (d *Device) ResetUnless(stop <-chan struct{}) error {
	if d.drv.closed.Load() {
		return &ClosedError{"driver"}
	}
	broken, err := d.reset(stop)
	if err != nil || !broken {
		return err
	}
	return d.mended()
}

// reset makes the driver's calls. broken says that the context had a sticky
// error.
func (d *Device) reset(stop <-chan struct{}) (broken bool, err error) {
	d.making.Lock()
	defer d.making.Unlock()
	c := d.context.Load()
	if c == nil {
		return false, nil
	}
	if !c.refuse(stop) {
		c.reopen()
		return false, ErrStopped
	}
	if err := c.settle(stop); err != nil {
		c.reopen()
		return false, err
	}
	broken = c.isBroken()
	kept, err := c.letGo()
	if kept {
		c.reopen()
		return false, err
	}
	c.state.Store(contextLost)
	d.context.Store(nil)
	c.Drain()
	for _, then := range c.deferred.unstick() {
		then()
	}
	if err != nil {
		return false, err
	}
	// Pools and virtual memory are no context's.
	r := d.drv.api.CuDevicePrimaryCtxReset(d.h)
	if r != driver.CUDA_SUCCESS && !Result(r).Sticky() {
		return false, d.failed("cuDevicePrimaryCtxReset", r)
	}
	return broken || r != driver.CUDA_SUCCESS, nil
}

func (d *Device) failed(op string, r driver.CUresult) error {
	return &Error{Op: op, Result: Result(r), Detail: d.String()}
}

// settle waits for what runs and is queued, unless the driver can stop it. With
// NVIDIA's (580.159) it goes on after its context's end, host functions too. What
// has failed is over.
//
// Preconditions: dev.making is held.
func (c *Context) settle(stop <-chan struct{}) error {
	if driver.CheckerOf(c.drv.api) != nil {
		return nil
	}
	if c.settling != nil { // by a reset that was stopped; work may have come since
		if err := c.settled(stop); err != nil {
			return err
		}
	}
	c.settling = make(chan driver.CUresult, 1)
	settling := c.settling
	go func() { settling <- c.synchronizeRefusing() }()
	return c.settled(stop)
}

// settled waits for the wait that is under way.
func (c *Context) settled(stop <-chan struct{}) error {
	select {
	case r := <-c.settling:
		c.settling = nil
		if r != driver.CUDA_SUCCESS && !Result(r).Sticky() {
			return c.dev.failed("cuCtxSynchronize", r)
		}
		return nil
	case <-stop:
		return ErrStopped
	}
}

// synchronizeRefusing waits while calls are refused.
func (c *Context) synchronizeRefusing() driver.CUresult {
	pushed, err := c.push()
	var r Result
	if err != nil {
		errors.As(err, &r)
		return driver.CUresult(r)
	}
	defer c.leavePush(pushed)
	return c.drv.api.CuCtxSynchronize()
}

// letGo gives up our hold of the context, which ends it. If it is kept, because
// others hold it or the driver refuses, it is ours again, and the error says why.
// An error where it is not kept: it was not to be had again.
//
// Preconditions: calls are refused, and none is under way.
func (c *Context) letGo() (kept bool, why error) {
	d, api := c.dev, c.drv.api
	id, r := api.CuCtxGetId(c.h)
	if r != driver.CUDA_SUCCESS && !Result(r).Sticky() {
		return true, d.failed("cuCtxGetId", r)
	}
	if r := api.CuDevicePrimaryCtxRelease(d.h); r != driver.CUDA_SUCCESS && !Result(r).Sticky() {
		return true, d.failed("cuDevicePrimaryCtxRelease", r)
	}
	_, active, r := api.CuDevicePrimaryCtxGetState(d.h)
	if r == driver.CUDA_SUCCESS && active == 0 {
		return false, nil
	}
	why = badValue("", "%v cannot be reset: another library of this process (PyTorch, CuPy, JAX) uses it too, in the same context", d)
	if r != driver.CUDA_SUCCESS {
		why = d.failed("cuDevicePrimaryCtxGetState", r)
	}
	if _, r := api.CuDevicePrimaryCtxRetain(d.h); r != driver.CUDA_SUCCESS {
		return false, d.failed("cuDevicePrimaryCtxRetain", r)
	}
	if again, _ := api.CuCtxGetId(c.h); again == id {
		return true, why
	}
	// The others let go in that moment, and this is a context that nobody knows.
	api.CuDevicePrimaryCtxRelease(d.h)
	return false, nil
}

// refuse refuses calls from now on and waits for those under way. It reports
// false if it was stopped before.
func (c *Context) refuse(stop <-chan struct{}) bool {
	c.state.Store(contextResetting)
	c.calls.close()
	for pause := 50 * time.Microsecond; c.calls.inUse(); pause = min(2*pause, 5*time.Millisecond) {
		// Again and again: the kernel that a call waits for may be behind others.
		c.dev.CancelKernels()
		select {
		case <-stop:
			return false
		case <-time.After(pause):
		}
	}
	return true
}

// reopen takes back refuse.
func (c *Context) reopen() {
	c.state.Store(contextLive)
	c.calls.reopen()
	c.dev.KeepKernels()
	c.Drain()
}

// isBroken asks the driver for a sticky error, while calls are refused. This
// question waits for nothing and invalidates no capture.
func (c *Context) isBroken() bool {
	pushed, err := c.push()
	var r Result
	if err != nil {
		return errors.As(err, &r) && r.Sticky()
	}
	defer c.leavePush(pushed)
	_, _, code := c.drv.api.CuMemGetInfo()
	return Result(code).Sticky()
}

func (c *Context) leavePush(pushed bool) {
	if pushed {
		c.pop()
	} else {
		c.unlock()
	}
}

// mended reports whether a context that is made now works. Some faults outlive
// every context of the process.
func (d *Device) mended() error {
	c, err := d.Context()
	if err == nil {
		err = c.Synchronize()
	}
	var e *Error
	if errors.As(err, &e) && e.Result.Sticky() {
		e.Detail = d.String() + " is still broken after its reset, only a new process can use it"
	}
	return err
}
