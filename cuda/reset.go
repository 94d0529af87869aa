// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// States of a Context.
const (
	contextLive      int32 = iota
	contextResetting       // calls are refused, and releases postponed: the reset may fail
	contextLost            // the driver has released everything
)

// IsLost reports whether the device was reset since c was made, or is being
// reset now. Everything made in c is lost then: using it is [ErrLost], and
// closing it makes no driver call.
func (c *Context) IsLost() bool { return c.state.Load() != contextLive }

func (c *Context) lostError(what string) error {
	return &LostError{What: what, Device: c.dev, Pending: c.state.Load() != contextLost}
}

// hold keeps a reset out until release. All driver calls in c are made between
// the two.
func (c *Context) hold() error {
	if !c.calls.begin() {
		return c.lostError("context of " + c.dev.String())
	}
	return nil
}

func (c *Context) release() { c.calls.end() }

// destroyRelated makes a release call that need not wait for captures, of what shares
// state with graphs: the caller has locked Driver.related, or nothing is related to
// it. It does nothing if c is lost, and is postponed during a reset, or if the call
// could not be made for a reason that may pass.
func (c *Context) destroyRelated(op, what string, f func(driver.API) driver.CUresult) error {
	p, err := c.attempt(op, f)
	if p == done {
		return err
	}
	c.postpone(func() progress {
		if c.state.Load() == contextLost {
			return done
		}
		if !c.drv.related.TryLock() {
			return soon
		}
		defer c.drv.related.Unlock()
		p, err := c.attempt(op, f)
		if p == done && err != nil {
			c.drv.warn(what, err)
		}
		return p
	}, p)
	return nil
}

// tryDestroy is destroyRelated for a caller that tries again by itself, which it has to if it
// reports false.
func (c *Context) tryDestroy(op string, f func(driver.API) driver.CUresult) (ended bool, err error) {
	p, err := c.attempt(op, f)
	return p == done || c.state.Load() == contextLost, err
}

// attempt makes a driver call with c current. err is the call's, if it was
// made.
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

// whenLost makes then run once c is lost: now, later or never.
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

// forgetCapture notes that the capture of a lost stream is over.
func (c *Context) forgetCapture(s *Stream) {
	if c.state.Load() == contextLost {
		s.allCapturesOver()
	}
}

// Reset ends everything that this process has on d: running and queued work,
// memory, streams, events, modules, graphs. It makes a device usable again
// after a [Result.Sticky] error without a new process, if the driver can. It
// does not affect a device that was not used. It calls
// cuDevicePrimaryCtxRelease and, once that has ended the context,
// cuDevicePrimaryCtxReset for what belongs to no context.
//
// The [Context] of d and everything made in it are lost: see [Context.IsLost].
// Pinned and managed memory is unmapped: the host must no longer access it.
// [Device.Context] and [Device.DefaultMemoryResource] return new ones.
//
// Blocks until calls under way have returned; new ones are refused. On the
// simulated driver kernels that they wait for are stopped, and the calls fail;
// on NVIDIA's all queued work completes. It must not be called with the context
// of d entered, nor while handles from [Stream.Use] and the like are in use.
//
// Errors: [ErrClosed] after the driver's Close; an [*ArgumentError] if other
// libraries hold the context too, since their threads would crash, if other
// processes have imported memory of d, or if executables of graphs of other
// devices have nodes there; an [*Error].
// If the reset is refused nothing has changed, except that calls were refused
// meanwhile. If the device is broken for good, the error is the sticky one and
// says so: only a new process can use it.
func (d *Device) Reset() error { return d.ResetUnless(nil) }

// ErrStopped says that a [Device.ResetUnless] was stopped.
var ErrStopped = errors.New("the reset was stopped while it waited for calls under way")

// ResetUnless is [Device.Reset], but stop ends it while it waits for calls
// under way: it then returns [ErrStopped], and nothing has changed.
func (d *Device) ResetUnless(stop <-chan struct{}) error {
	if d.drv.closed.Load() {
		return &ClosedError{"driver"}
	}
	broken, err := d.reset(stop)
	if err != nil || !broken {
		return err
	}
	return d.probe()
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
	if n := c.greens.Load(); n > 0 {
		c.reopen()
		return false, badValue("", "%v cannot be reset while it has green contexts (%d): close them, their streams, and graphs that were "+
			"captured in these", d, n)
	}
	if err := c.settle(stop); err != nil {
		c.reopen()
		return false, err
	}
	broken = c.isBroken()
	kept, err := c.releaseUnlessImported()
	if kept {
		c.reopen()
		return false, err
	}
	c.state.Store(contextLost)
	d.context.Store(nil)
	c.Drain()
	for _, then := range c.deferred.clearStuck() {
		then()
	}
	if err != nil {
		return false, err
	}
	// Pools and virtual memory belong to no context.
	r := d.drv.api.CuDevicePrimaryCtxReset(d.h)
	if r != driver.CUDA_SUCCESS && !Result(r).Sticky() {
		return false, d.failed("cuDevicePrimaryCtxReset", r)
	}
	return broken || r != driver.CUDA_SUCCESS, nil
}

func (d *Device) failed(op string, r driver.CUresult) error {
	return &Error{Op: op, Result: Result(r), Detail: d.String()}
}

// settle waits for running and queued work, unless the driver can stop it. On
// NVIDIA's (580.159) work continues after the end of its context, host
// functions included. Failed work counts as complete.
//
// Preconditions: dev.making is held.
func (c *Context) settle(stop <-chan struct{}) error {
	if c.drv.checks != nil {
		return nil
	}
	if c.settling != nil { // of a stopped reset; work may have been queued since
		if err := c.settled(stop); err != nil {
			return err
		}
	}
	c.settling = make(chan driver.CUresult, 1)
	settling := c.settling
	go func() { settling <- c.synchronizeRefusing() }()
	return c.settled(stop)
}

// settled waits until the wait that is under way is over.
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
	defer c.drv.waits.begin()()
	pushed, err := c.push()
	var r Result
	if err != nil {
		errors.As(err, &r)
		return driver.CUresult(r)
	}
	defer c.leavePush(pushed)
	return c.drv.api.CuCtxSynchronize()
}

// releaseUnlessImported is releaseContext, unless other processes have imported
// memory of the device, see [lessor], or others have parts there: see AddGuest.
func (c *Context) releaseUnlessImported() (kept bool, why error) {
	if n := c.guests.Load(); n > 0 {
		return true, badValue("", "%v cannot be reset: %d executable(s) of graphs of other devices have nodes or allocate memory there; "+
			"close them first", c.dev, n)
	}
	letGo, imported := c.lessors.claim()
	if imported > 0 {
		return true, badValue("", "%v cannot be reset: other processes have imported %d allocation(s) of its memory; they must let go of it "+
			"first, or end", c.dev, imported)
	}
	kept, why = c.releaseContext()
	letGo(!kept)
	return kept, why
}

// releaseContext releases our hold of the context, which ends it. If the context
// survives, because others hold it or the driver refuses, releaseContext retains it
// again and the error says why. An error without that means that retaining it
// failed.
//
// Preconditions: calls are refused, and none is under way.
func (c *Context) releaseContext() (kept bool, why error) {
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
	// The others released it meanwhile, so this is a new context that is in
	// nobody's use.
	api.CuDevicePrimaryCtxRelease(d.h)
	return false, nil
}

// refuse refuses calls from now on and waits for those under way. It reports
// false if it was stopped before they returned.
func (c *Context) refuse(stop <-chan struct{}) bool {
	c.state.Store(contextResetting)
	c.calls.close()
	for pause := 50 * time.Microsecond; c.calls.inUse(); pause = min(2*pause, 5*time.Millisecond) {
		// Repeatedly: the kernel that a call waits for may be queued behind
		// others.
		c.dev.CancelKernels()
		select {
		case <-stop:
			return false
		case <-time.After(pause):
		}
	}
	return true
}

// reopen undoes refuse.
func (c *Context) reopen() {
	c.state.Store(contextLive)
	c.calls.reopen()
	c.dev.KeepKernels()
	c.Drain()
}

// isBroken asks the driver for a sticky error, while calls are refused. The
// query does not wait and invalidates no capture.
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

// probe reports whether a new context works. Some faults outlive every context
// of the process.
func (d *Device) probe() error {
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
