// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// givingWay is the interval at which a launch that gives way looks again.
	givingWay = 20 * time.Microsecond
	// stalled is how long the other launch may start no block before this one goes
	// on: the other could be waiting for something that this one writes.
	stalled = 50 * time.Millisecond
)

// priorities are the running launches that others give way to. CUDA C++
// Programming Guide, "Stream Priorities": blocks that wait go first if their
// stream has the higher priority; blocks that run are left alone.
type priorities struct {
	count atomic.Int32 // of launches
	mu    sync.Mutex
	list  []*execution // guarded by mu
}

// enter adds r to the running launches; leave removes it.
func (p *priorities) enter(r *execution) (leave func()) {
	if r.priority <= 0 {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, r)
	p.count.Add(1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.list = slices.DeleteFunc(p.list, func(o *execution) bool { return o == r })
		p.count.Add(-1)
	}
}

// giveWay waits while a launch of a higher priority has blocks to hand out.
func (p *priorities) giveWay(r *execution) {
	if p.count.Load() == 0 {
		return
	}
	var first *execution
	var from uint64
	var since time.Time
	for !r.stop.Load() {
		o := p.before(r)
		if o == nil {
			return
		}
		if next := o.next.Load(); o != first || next != from {
			first, from, since = o, next, time.Now()
		} else if time.Since(since) > stalled {
			return
		}
		time.Sleep(givingWay)
	}
}

// before returns a launch that takes precedence over r, or nil.
func (p *priorities) before(r *execution) *execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.list {
		if o.priority > r.priority && o.next.Load() < o.total {
			return o
		}
	}
	return nil
}
