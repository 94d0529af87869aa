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
	soon           // an earlier call failed, for a reason that may pass
)

// deferred holds releases that have to wait because a stream capture is open: a
// free in a capturing stream would become a node of the graph or invalidate the
// capture.
type deferred struct {
	waiting atomic.Int64 // len(work), readable without the lock

	mu   sync.Mutex
	work []func() progress // guarded by mu
	// stuck are the live counts of objects that the driver refused to release
	// because of an earlier fault; a reset of the device releases them. Guarded
	// by mu.
	stuck []*atomic.Int64
	// onLost runs when the context is lost. Guarded by mu.
	onLost []func()
}

func (d *deferred) addStuck(count *atomic.Int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stuck = append(d.stuck, count)
}

// clearStuck corrects the counts after a reset, which has released everything. It
// returns the functions to run then.
func (d *deferred) clearStuck() (then []func()) {
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

// drain tries all waiting releases and returns how many still have to wait. The
// driver is called without the lock. again is called if some should be tried
// again soon, once they are back in the list.
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

// dispose releases an object with c current, in relaxed capture mode, so that
// it invalidates no capture of another thread. free makes the driver call and
// returns its result. While a capture is in the way, according to captured (if
// not nil) or to the driver, the release is postponed until [Context.Drain].
// count is decremented once the object is gone; a reset does that without a
// call. then, if not nil, runs last in any case.
//
// A failure is reported to the driver's warning function, since a release has
// no caller who could act on it. The release itself is not tried again, because
// the driver may have reported an earlier failure and released the object all
// the same; only the calls before it are.
func (c *Context) dispose(op, what string, captured func() (bool, error), count *atomic.Int64, free func(driver.API) driver.CUresult, then func()) {
	c.disposeSteps(what, captured, count, func(api driver.API) (string, driver.CUresult) { return op, free(api) }, then)
}

// disposeSteps is dispose for releases that take several driver calls. free
// returns the call that failed, and continues from there when it runs again:
// after the end of a capture if that was in the way, soon if the result is
// notYet.
func (c *Context) disposeSteps(what string, captured func() (bool, error), count *atomic.Int64, free func(driver.API) (op string, r driver.CUresult), then func()) {
	if c.drv.closed.Load() {
		// The driver is closed and has released everything; objects may be
		// closed after it in any order.
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
			if mayPass(err) { // nothing was tried yet
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
			if mayPass(err) { // a permanent failure is reported by the release
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
			// Once a context is broken every release fails; one warning is
			// enough.
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
		c.postpone(try, p)
	}
}

// postpone postpones the rest of a release.
func (c *Context) postpone(try func() progress, so progress) {
	c.deferred.add(try)
	if c.state.Load() == contextLost {
		c.Drain() // the reset's own came too early
	} else if so == soon {
		c.drv.drainLater()
	}
}

// notYet is not a code of the driver. A release returns it if it has not begun
// because an earlier call failed: the wait for the work that uses the object.
const notYet driver.CUresult = -1

// awaited returns what a release does after err of [Context.Synchronize]:
// success if it need not wait any more.
func awaited(err error) driver.CUresult {
	if errors.Is(err, ErrorStreamCaptureUnsupported) { // tried again after the capture, and not all the time
		return driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
	}
	if mayPass(err) && !errors.Is(err, ErrorCheckFailed) {
		return notYet
	}
	return driver.CUDA_SUCCESS
}

// hasWaited reports whether a waiting call that returned r has waited. It has,
// even if the work or the device failed.
func hasWaited(r driver.CUresult) bool {
	return r == driver.CUDA_SUCCESS || Result(r).persists() || Result(r) == ErrorCheckFailed
}

// mayPass reports whether a call that failed with err may succeed when it is made
// again.
func mayPass(err error) bool {
	var r Result
	return errors.As(err, &r) && !r.persists()
}

// drainLater requests a [Driver.Drain] soon from the function of
// [Driver.OnCaptureEnd]. Without one, the next Drain by a caller has to do.
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

// Drain makes the releases that had to wait for the end of a stream capture,
// and returns how many still have to wait. EndCapture and allocations call it,
// and so does the reaper of package graph. Safe for concurrent use.
func (c *Context) Drain() int { return c.deferred.drain(c.drv.drainLater) }
