// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "sync"

// eventPool keeps events that are not in use. Creating or destroying an event
// can wait for another thread's full launch queue, which a holder of a lock
// must not do; taking one from the pool cannot. For the same reason nothing is
// destroyed here: the pool holds as many as were ever in use at the same time.
type eventPool struct {
	mu   sync.Mutex
	idle []*Event // guarded by mu
}

// TakeEvent returns an event without timing, to be returned with
// [Context.PutEvent]. If none is idle it creates one, with create, or returns
// nil. It blocks only where [Context.NewEvent] does, so never without create.
func (c *Context) TakeEvent(create bool) (*Event, error) {
	c.events.mu.Lock()
	if n := len(c.events.idle); n > 0 {
		e := c.events.idle[n-1]
		c.events.idle = c.events.idle[:n-1]
		c.events.mu.Unlock()
		c.drv.live.events.Add(1)
		return e, nil
	}
	c.events.mu.Unlock()
	if !create {
		return nil, nil
	}
	return c.NewEvent(EventOptions{})
}

// PutEvent returns an event of TakeEvent to the pool. Device work may still
// wait for it. [Driver.Live] does not count idle events; they end with the
// context.
func (c *Context) PutEvent(e *Event) {
	c.drv.live.events.Add(-1)
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	c.events.idle = append(c.events.idle, e)
}

// Lend stops counting an event of TakeEvent as a live object while it lies ready
// for its next use. Regain counts it again, before PutEvent.
func (c *Context) Lend(*Event) { c.drv.live.events.Add(-1) }

// Regain ends [Context.Lend].
func (c *Context) Regain(*Event) { c.drv.live.events.Add(1) }

// OrderStreams makes work queued in then from now on wait for everything in
// first. It does nothing and reports false if one of them is capturing. It may
// create an event, and block where [Context.NewEvent] does.
//
// Errors: [ErrClosed] if a stream is closed; otherwise an [*Error].
func (c *Context) OrderStreams(first, then *Stream) (ordered bool, err error) {
	e, err := c.TakeEvent(true)
	if err != nil {
		return false, err
	}
	defer c.PutEvent(e) // the wait is for this record, whatever e is used for next
	if recorded, err := first.RecordUncaptured(e); err != nil || !recorded {
		return false, err
	}
	return then.WaitUncaptured(e)
}
