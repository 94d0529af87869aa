// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A progress is how far a release has come.
type progress int

const (
	done  progress = iota
	waits          // for the end of a capture, or of a reset
	soon           // a call before it has failed, which may pass
)

// deferred holds what could not be given back yet because a stream capture is
// open: a free in a capturing stream would become a node of the graph or invalidate
// the capture.
type deferred struct {
	waiting atomic.Int64 // len(work), readable without the lock

	mu   sync.Mutex
	work []func() progress // guarded by mu
	// stuck is what the driver refused to take back because of an earlier fault:
	// the counts that have it until the device is reset. Guarded by mu.
	stuck []*atomic.Int64
	// onLost runs when the context is lost. Guarded by mu.
	onLost []func()
}

func (d *deferred) addStuck(count *atomic.Int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stuck = append(d.stuck, count)
}

// unstick corrects the counts: a reset has taken everything back. It returns what
// is to run then.
func (d *deferred) unstick() (then []func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, count := range d.stuck {
		count.Add(-1)
	}
	then, d.onLost, d.stuck = d.onLost, nil, nil
	return then
}

func (d *deferred) add(f func() progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work = append(d.work, f)
	d.waiting.Store(int64(len(d.work)))
}

// drain tries everything that waits and returns how much still has to. The
// driver is called without the lock. again is called if something is to be tried
// soon, when it is there to be tried.
func (d *deferred) drain(again func()) int {
	if d.waiting.Load() == 0 {
		return 0
	}
	d.mu.Lock()
	work := d.work
	d.work = nil
	d.waiting.Store(0)
	d.mu.Unlock()
	failed := false
	for _, f := range work {
		p := f()
		if p != done {
			d.add(f)
		}
		failed = failed || p == soon
	}
	if failed {
		again()
	}
	return int(d.waiting.Load())
}

// dispose gives something back with c current, in relaxed capture mode, so that
// it invalidates no capture of another thread. free reports how the driver call that
// it made went. While captured, if not nil, says that a capture is in the way, or
// the driver does, it is put off until [Context.Drain]. count goes down
// by one once the thing is gone, which with a reset it is without a call. then,
// if not nil, runs last, gone or not.
//
// What fails is reported to the driver's warning function: a release has no
// caller who could act on it. It is not tried again, since the driver may have
// reported an earlier failure and have done it; only what comes before it is.
func (c *Context) dispose(op, what string, captured func() (bool, error), count *atomic.Int64, free func(driver.API) driver.CUresult, then func()) {
	c.disposeSteps(what, captured, count, func(api driver.API) (string, driver.CUresult) { return op, free(api) }, then)
}

// disposeSteps is dispose for what takes several driver calls. free returns the
// one that failed, and goes on from there when it runs again: at a capture's end
// if that was in the way, soon if the result is notYet.
func (c *Context) disposeSteps(what string, captured func() (bool, error), count *atomic.Int64, free func(driver.API) (op string, r driver.CUresult), then func()) {
	if c.drv.closed.Load() {
		// The driver has gone and taken everything with it; objects may be closed
		// after it in any order.
		finish(then)
		return
	}
	try := func() progress {
		leave, err := c.Enter()
		if errors.Is(err, ErrLost) {
			if c.state.Load() != contextLost {
				return waits // the reset may fail
			}
			count.Add(-1)
			finish(then)
			return done
		}
		if err != nil {
			if mayPass(err) { // nothing was tried, so it can be
				return soon
			}
			c.deferred.addStuck(count)
			c.drv.warn(what, err)
			finish(then)
			return done
		}
		defer leave()
		if captured != nil {
			yes, err := captured()
			if yes {
				return waits
			}
			if mayPass(err) { // what fails for good is reported by what follows
				return soon
			}
		}
		restore := c.drv.relax()
		defer restore()
		op, r := free(c.drv.api)
		if isCaptureRefusal(r) {
			return waits
		}
		if r == notYet {
			return soon
		}
		if r != driver.CUDA_SUCCESS {
			// Once a context is broken each release fails; one warning says it all.
			c.deferred.addStuck(count)
			if !Result(r).Sticky() || !c.broken.Swap(true) {
				c.drv.warn(what, c.fail(op, r, ""))
			}
		} else {
			count.Add(-1)
		}
		finish(then)
		return done
	}
	if p := try(); p != done {
		c.putOff(try, p)
	}
}

// putOff has a release tried again that has come so far.
func (c *Context) putOff(try func() progress, so progress) {
	c.deferred.add(try)
	if c.state.Load() == contextLost {
		c.Drain() // the reset's own came too early
	} else if so == soon {
		c.drv.drainLater()
	}
}

// notYet is no code of the driver's. A release returns it that has not begun,
// because a call before it has failed: a wait for the work that uses the thing.
const notYet driver.CUresult = -1

// hasWaited reports whether a call that waits for work has done so if it returned
// r: also if that work, or the device, has failed.
func hasWaited(r driver.CUresult) bool {
	return r == driver.CUDA_SUCCESS || Result(r).persists() || Result(r) == ErrorCheckFailed
}

// mayPass reports whether a call that failed with err may succeed when it is made
// again.
func mayPass(err error) bool {
	var r Result
	return errors.As(err, &r) && !r.persists()
}

// drainLater asks for a [Driver.Drain] soon, of whoever gives back after a
// capture. If nobody does, the next Drain is the caller's.
func (d *Driver) drainLater() {
	if f := d.onCaptureEnd.Load(); f != nil {
		(*f)()
	}
}

func finish(then func()) {
	if then != nil {
		then()
	}
}

// isCaptureRefusal reports whether r says that a call has to wait for the end
// of a capture.
func isCaptureRefusal(r driver.CUresult) bool {
	return r >= driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= driver.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
}

// Drain gives back what had to wait for the end of a stream capture and returns
// how many things still have to. It is called by EndCapture, by allocations,
// and from outside by whoever reaps. Safe for concurrent use.
func (c *Context) Drain() int { return c.deferred.drain(c.drv.drainLater) }
