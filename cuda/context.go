// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A Context is a device's primary context: the one that the CUDA runtime uses,
// and with it PyTorch and other libraries.
//
// There is no need to set a current context. Every method of this package that
// needs one makes it current for the length of the call and then restores the
// caller's.
//
// A Context lives until its [Driver] is closed or its device reset: see
// [Device.Reset]. Safe for concurrent use.
type Context struct {
	drv *Driver
	dev *Device
	h   driver.CUcontext

	calls uses // driver calls in c that are running; closed during and after a reset
	state atomic.Int32
	// settling is the wait of a reset for queued work, if one is under way.
	// Guarded by dev.making.
	settling chan driver.CUresult

	legacy    *Stream // handle 1, of all threads
	perThread *Stream // handle 2, of the calling thread

	// pop and unlock are what push returns, leavePop and leaveUnlock what Enter
	// does; made once, so that they allocate nothing.
	pop, unlock, leavePop, leaveUnlock func()

	deferred    deferred
	events      eventPool
	parked      parkedStreams
	parkedPools poolParking
	greens      atomic.Int64 // green contexts, which hold c too
	lessors     lessors      // pools that other processes can import
	guests      atomic.Int64 // see AddGuest
	broken      atomic.Bool  // a release has reported a sticky error
}

func newContext(dev *Device, h driver.CUcontext) *Context {
	c := &Context{drv: dev.drv, dev: dev, h: h}
	c.legacy = &Stream{ctx: c, h: driver.CU_STREAM_LEGACY, kind: defaultStream, name: "legacy default"}
	c.perThread = &Stream{ctx: c, h: driver.CU_STREAM_PER_THREAD, kind: defaultStream, name: "per-thread default"}
	c.unlock = runtime.UnlockOSThread
	c.pop = func() {
		c.drv.popContext(c.h)
		runtime.UnlockOSThread()
	}
	c.leavePop = func() { c.pop(); c.release() }
	c.leaveUnlock = func() { c.unlock(); c.release() }
	return c
}

// popContext undoes a push of h. cuCtxPopCurrent may report the failure of earlier
// work instead of doing its own; the caller's context comes back all the same.
func (d *Driver) popContext(h driver.CUcontext) {
	if _, r := d.api.CuCtxPopCurrent(); r != driver.CUDA_SUCCESS {
		if current, r := d.api.CuCtxGetCurrent(); r == driver.CUDA_SUCCESS && current == h {
			d.api.CuCtxPopCurrent()
		}
	}
}

// AddGuest counts what another context is about to have that has parts here: the
// driver crashes where such a thing is destroyed, or c is lost again, after c was
// lost. While there are any, c cannot be reset.
//
// Errors: [ErrLost] if the device was reset, or is being reset.
func (c *Context) AddGuest() error {
	if err := c.hold(); err != nil { // a reset that has begun counts before this or after it
		return err
	}
	defer c.release()
	c.guests.Add(1)
	return nil
}

// RemoveGuest undoes an AddGuest.
func (c *Context) RemoveGuest() { c.guests.Add(-1) }

// HasGuests reports whether there are any: see AddGuest.
func (c *Context) HasGuests() bool { return c.guests.Load() > 0 }

// Handle returns the CUcontext.
func (c *Context) Handle() uintptr { return uintptr(c.h) }

// Device returns the device that c belongs to.
func (c *Context) Device() *Device { return c.dev }

// Driver returns the driver that c belongs to.
func (c *Context) Driver() *Driver { return c.drv }

// Enter makes c current on this OS thread and locks the goroutine to it until
// leave is called, which restores the context that the caller had. Calls nest.
// leave must be called exactly once, by the same goroutine; it is nil if err is
// not.
//
// It calls cuCtxGetCurrent, and cuCtxPushCurrent if c is not current yet.
//
// Errors: [ErrLost] if the device was reset.
func (c *Context) Enter() (leave func(), err error) {
	if err := c.hold(); err != nil {
		return nil, err
	}
	pushed, err := c.push()
	if err != nil {
		c.release()
		return nil, err
	}
	if pushed {
		return c.leavePop, nil
	}
	return c.leaveUnlock, nil
}

// enterRelaxed is [Context.Enter] in relaxed capture mode, as what allocates, maps
// or registers memory needs it: in global mode a capture of any thread could
// forbid that.
func (c *Context) enterRelaxed() (leave func(), err error) {
	entered, err := c.Enter()
	if err != nil {
		return nil, err
	}
	restore := c.drv.relax()
	return func() { restore(); entered() }, nil
}

// push is the part of Enter that the driver sees. Where it pushed, pop undoes it,
// else unlock.
func (c *Context) push() (pushed bool, err error) {
	// The current context belongs to the OS thread; without the lock the
	// goroutine could move to another one between two calls.
	runtime.LockOSThread()
	current, r := c.drv.api.CuCtxGetCurrent()
	if r != driver.CUDA_SUCCESS {
		runtime.UnlockOSThread()
		return false, check("cuCtxGetCurrent", r)
	}
	if current == c.h {
		return false, nil
	}
	if r := c.drv.api.CuCtxPushCurrent(c.h); r != driver.CUDA_SUCCESS {
		runtime.UnlockOSThread()
		return false, c.fail("cuCtxPushCurrent", r, "")
	}
	return true, nil
}

// Do runs fn with c current and returns its error.
func (c *Context) Do(fn func() error) error {
	leave, err := c.Enter()
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}

// StreamPriorityRange returns the least and the greatest priority that streams
// of this device can have. Lower numbers are greater priorities, so greatest is
// at most least. It calls cuCtxGetStreamPriorityRange.
func (c *Context) StreamPriorityRange() (least, greatest int, err error) {
	leave, err := c.Enter()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	lo, hi, r := c.drv.api.CuCtxGetStreamPriorityRange()
	return int(lo), int(hi), c.check("cuCtxGetStreamPriorityRange", r)
}

// call runs one driver call with c current.
func (c *Context) call(op string, f func() driver.CUresult) error {
	leave, err := c.Enter()
	if err != nil {
		return err
	}
	defer leave()
	return c.check(op, f())
}
