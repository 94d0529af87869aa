// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// An Event marks a point in a stream's work: [Stream.Record] sets it,
// [Stream.Wait] orders other work after it, and the host can query or wait for
// it. An event that was never recorded counts as completed.
//
// Close an event when done; existing waits are not affected. Safe for
// concurrent use.
type Event struct {
	ctx    *Context
	h      driver.CUevent // immutable
	timing bool           // immutable
	uses   uses

	shareable bool        // immutable; with other processes
	opened    bool        // immutable; another process created it
	exported  atomic.Bool // another process may use it

	recorded recordings
}

// EventOptions are the options of [Context.NewEvent]. The zero value is the
// cheapest: no timing, and waiting threads spin.
type EventOptions struct {
	// Timing makes [Event.ElapsedMS] possible.
	Timing bool
	// BlockingSync makes Synchronize sleep instead of spin.
	BlockingSync bool
	// Shareable makes [Event.Export] possible. Such an event has no timing.
	Shareable bool
}

// NewEvent creates an event. It calls cuEventCreate.
//
// Lifetime: the caller must Close it.
func (c *Context) NewEvent(o EventOptions) (*Event, error) {
	flags := driver.CU_EVENT_DEFAULT
	if !o.Timing {
		flags |= driver.CU_EVENT_DISABLE_TIMING
	}
	if o.BlockingSync {
		flags |= driver.CU_EVENT_BLOCKING_SYNC
	}
	if o.Shareable {
		if o.Timing {
			return nil, badValue("", "an event that processes share cannot have timing")
		}
		if err := c.dev.need(IPCEventSupported, "cuEventCreate", "shares no events with other processes"); err != nil {
			return nil, err
		}
		flags |= driver.CU_EVENT_INTERPROCESS
	}
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	h, r := c.drv.api.CuEventCreate(flags)
	if err := c.check("cuEventCreate", r); err != nil {
		return nil, err
	}
	c.drv.live.events.Add(1)
	return &Event{ctx: c, h: h, timing: o.Timing, shareable: o.Shareable}, nil
}

// Handle returns the CUevent. It must not be used after Close; [Event.Use] is
// the safe way.
func (e *Event) Handle() uintptr { return uintptr(e.h) }

// Context returns the context that e belongs to.
func (e *Event) Context() *Context { return e.ctx }

// Device returns the device that e belongs to.
func (e *Event) Device() *Device { return e.ctx.dev }

// Timing reports whether e records time.
func (e *Event) Timing() bool { return e.timing }

// String returns "event 0x55d0c8".
func (e *Event) String() string { return fmt.Sprintf("event %#x", uintptr(e.h)) }

// Use returns the handle and keeps it valid until done, which must be called
// exactly once. Close does not wait for done.
//
// Errors: [ErrClosed] after Close.
func (e *Event) Use() (handle uintptr, done func(), err error) {
	if err := e.begin(); err != nil {
		return 0, nil, err
	}
	return uintptr(e.h), e.end, nil
}

// UseAgain is Use beside another that is not done, after Close too.
func (e *Event) UseAgain() (handle uintptr, done func(), err error) {
	if err := e.count(e.uses.again); err != nil {
		return 0, nil, err
	}
	return uintptr(e.h), e.end, nil
}

func (e *Event) begin() error { return e.count(e.uses.begin) }

func (e *Event) count(one func() bool) error {
	if e.ctx.IsLost() {
		return e.ctx.lostError(e.String())
	}
	if !one() {
		return &ClosedError{e.String()}
	}
	return nil
}

func (e *Event) end() {
	if e.uses.end() {
		e.destroy()
	}
}

// call runs one driver call with e in use and its context current.
func (e *Event) call(f func(driver.API) driver.CUresult) (driver.CUresult, error) {
	if err := e.begin(); err != nil {
		return 0, err
	}
	defer e.end()
	leave, err := e.ctx.Enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	return f(e.ctx.drv.api), nil
}

// Query reports whether the work that e marks has completed. It calls
// cuEventQuery, and does not block.
//
// Errors: [ErrClosed]; [ErrorCapturedEvent] if e was last recorded in a
// capture; otherwise an [*Error], which may report a fault in earlier work.
func (e *Event) Query() (bool, error) {
	r, err := e.call(func(api driver.API) driver.CUresult { return api.CuEventQuery(e.h) })
	if err != nil || r == driver.CUDA_ERROR_NOT_READY {
		return false, err
	}
	return r == driver.CUDA_SUCCESS, e.ctx.check("cuEventQuery", r)
}

// QueryAside is Query for a caller that the program knows nothing of. While the
// driver looks for races, Query counts as a wait of the program if it reports
// true. So QueryAside then reports false until the program has waited for the
// work itself, or the work ended a second ago.
func (e *Event) QueryAside() (bool, error) {
	if c := e.ctx.drv.checks; c != nil && !c.MayQuery(e.h) {
		return false, nil
	}
	return e.Query()
}

// Synchronize blocks until the work that e marks has completed. It calls
// cuEventSynchronize.
//
// Errors: as for [Event.Query].
func (e *Event) Synchronize() error {
	r, err := e.call(func(api driver.API) driver.CUresult { return api.CuEventSynchronize(e.h) })
	if err != nil {
		return err
	}
	return e.ctx.waited("cuEventSynchronize", r)
}

// ObserveAside tells the driver that the host knows what QueryAside reported, so
// that [DeviceMemoryResource.Trim] gives back what was freed before e. Queries do
// not do that (H200, driver 580.159: cuMemPoolTrimTo kept all until
// cuEventSynchronize). A driver with checks, for which this would be a wait of the
// program, needs none.
func (e *Event) ObserveAside() error {
	if e.ctx.drv.checks != nil {
		return nil
	}
	return e.Synchronize()
}

// ElapsedMS returns the time from start to e in milliseconds, with a resolution
// of about half a microsecond. Both must have been created with Timing and have
// completed. It calls cuEventElapsedTime.
//
// Errors: [ErrClosed]; an [*ArgumentError] if an event has no time or they
// belong to different devices; [ErrorNotReady] if one has not completed.
func (e *Event) ElapsedMS(start *Event) (float64, error) {
	switch {
	case !e.timing:
		return 0, badValue("", "the end event was created without timing")
	case !start.timing:
		return 0, badValue("", "the start event was created without timing")
	case e.ctx != start.ctx:
		return 0, badValue("start", "must be of %v, as the end event is, got one of %v", e.ctx.dev, start.ctx.dev)
	}
	if err := start.begin(); err != nil {
		return 0, err
	}
	defer start.end()
	var ms float32
	r, err := e.call(func(api driver.API) (r driver.CUresult) {
		ms, r = api.CuEventElapsedTime(start.h, e.h)
		return r
	})
	if err != nil {
		return 0, err
	}
	switch r {
	case driver.CUDA_SUCCESS:
		return float64(ms), nil
	case driver.CUDA_ERROR_NOT_READY:
		return 0, e.ctx.fail("cuEventElapsedTime", r, "synchronize with the later event first")
	case driver.CUDA_ERROR_INVALID_HANDLE:
		return 0, e.ctx.fail("cuEventElapsedTime", r, "has either event never been recorded?")
	}
	return 0, e.ctx.fail("cuEventElapsedTime", r, "")
}

// IsClosed reports whether Close was called.
func (e *Event) IsClosed() bool { return e.uses.closed() }

// Close ends the use of e. Closing twice is fine. It calls cuEventDestroy
// unless e is still in use; then the last user does. An event recorded in a
// capture is destroyed after its end, or with the context if another library
// began the capture. Does not block.
func (e *Event) Close() error {
	if e.uses.close() {
		e.destroy()
	}
	return nil
}

func (e *Event) destroy() {
	captured := func() (bool, error) { return e.recorded.underWay(&e.ctx.drv.open), nil }
	e.ctx.dispose("cuEventDestroy", e.String(), captured, &e.ctx.drv.live.events, func(api driver.API) driver.CUresult {
		if e.recorded.isForeign() || e.exported.Load() {
			return driver.CUDA_SUCCESS
		}
		return api.CuEventDestroy(e.h)
	}, nil)
}
