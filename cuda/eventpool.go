// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "sync"

// eventPool keeps events that nobody uses right now. To create or to destroy
// one can wait for another thread's full launch queue, which who holds a lock
// that others need must not do; to take one out of the pool cannot. Hence
// nothing is destroyed here either: the pool holds as many as were ever out at
// the same time.
type eventPool struct {
	mu   sync.Mutex
	idle []*Event // guarded by mu
}

// TakeEvent returns an event without timing, for [Context.PutEvent]. If none is
// idle it creates one, if that is asked for, or returns nil. It blocks only where
// [Context.NewEvent] does, so never without create.
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

// PutEvent gives back what TakeEvent returned. Who waits for the event on the
// device may still do so. Idle events are the driver's: [Driver.Live] does not
// count them, and they end with the context.
func (c *Context) PutEvent(e *Event) {
	c.drv.live.events.Add(-1)
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	c.events.idle = append(c.events.idle, e)
}
