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
