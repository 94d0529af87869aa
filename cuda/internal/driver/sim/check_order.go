// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"sync"

	"github.com/cudago/cudago/internal/ptxvm/check"
)

// clock is a vector clock: everything up to the number of each timeline happens
// before. A clock that others can see is no longer changed.
type clock map[*timeline]uint64

// joined returns a clock with the later of each. It changes neither.
func (c clock) joined(o clock) clock {
	out := maps.Clone(c)
	if out == nil {
		out = make(clock, len(o)+1)
	}
	for tl, seq := range o {
		out[tl] = max(out[tl], seq)
	}
	return out
}

// order is the happens-before relation of queued work, tracked while races are
// looked for. It follows from the calls alone and not from what has run: a wait
// for an event that completed long ago still orders what comes after it.
//
// The host is one more party: what it has waited for happens before everything
// that it queues later. All host threads count as one, so calls of different
// threads count as ordered.
type order struct {
	mu      sync.Mutex
	host    clock                  // guarded by mu
	changes uint64                 // guarded by mu; counts changes of host
	streams map[*timeline]*history // guarded by mu
	tasks   map[uint32]*task       // guarded by mu; those that work which has not ended is not after
	last    uint32                 // guarded by mu; number of the latest task
	ticks   uint64                 // guarded by mu; counts items and accesses of the host
	visits  []uint32               // guarded by mu; tasks that are the host's
}

// history is what the work of a stream waited for.
type history struct {
	joins   []join // by seq; what an item waits for, and with it all after it
	changes uint64 // order.changes at the latest item
	hasty   []lead // by seq; the items that overlap with those in front
}

type join struct {
	seq uint64
	clock
}

// lead is an item that only those up to ended have to precede in its stream.
type lead struct{ seq, ended uint64 }

// joinAt is the clock that an item waited for.
func (h *history) joinAt(seq uint64) clock {
	for i := len(h.joins) - 1; i >= 0; i-- {
		if h.joins[i].seq <= seq {
			return h.joins[i].clock
		}
	}
	return nil
}

// at is the clock of a point: all that happens before or at it.
//
// Preconditions: o.mu must be locked.
func (o *order) at(p point) clock {
	if p.tl == nil {
		return nil
	}
	p = p.tl.standsFor(p)
	var c clock
	if h := o.streams[p.tl]; h != nil {
		c = h.joinAt(p.seq)
	}
	return c.joined(clock{p.tl: p.seq})
}

// queued notes an item, and returns all that happens before it and when it was
// queued. In its own stream that is what has a number up to ended.
func (o *order) queued(p point, after []point, ended uint64) (before clock, tick uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticks++
	h := o.streams[p.tl]
	if h == nil {
		h = &history{}
		if o.streams == nil {
			o.streams = map[*timeline]*history{}
		}
		o.streams[p.tl] = h
	}
	if len(after) > 0 || h.changes != o.changes || len(h.joins) == 0 {
		c := o.host
		if n := len(h.joins); n > 0 {
			c = c.joined(h.joins[n-1].clock)
		}
		for _, a := range after {
			c = c.joined(o.at(a))
		}
		h.joins = append(h.joins, join{p.seq, c})
		h.changes = o.changes
	}
	if ended < p.seq-1 {
		h.hasty = append(h.hasty, lead{p.seq, ended})
	}
	return h.joins[len(h.joins)-1].joined(clock{p.tl: ended}), o.ticks
}

// hostWaited notes that the host knows a point to be reached, and forgets what
// now happens before everything. If that is all tasks up to a number, it returns
// the number: their traces can be forgotten.
func (o *order) hostWaited(p point) (last uint32, allDone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hostKnows(o.at(p))
}

// knows reports whether the host has waited for a point. What was queued before
// the order was tracked counts as known, and so does what prune has forgotten.
func (o *order) knows(p point) bool {
	p = p.tl.standsFor(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.streams[p.tl]
	return h == nil || p.seq <= o.host[p.tl] || p.seq < h.joins[0].seq
}

// hostKnows is hostWaited for all of a clock.
//
// Preconditions: o.mu must be locked.
func (o *order) hostKnows(c clock) (last uint32, allDone bool) {
	o.host = o.host.joined(c)
	o.changes++
	had := len(o.tasks) > len(o.visits)
	pending := o.pending()
	var kept []uint32
	maps.DeleteFunc(o.tasks, func(number uint32, t *task) bool {
		if t.isHost || o.host[t.at.tl] < t.at.seq {
			return false
		}
		if pending.after(t.at) {
			return true
		}
		kept = append(kept, number)
		return false
	})
	o.prune(o.latest(kept))
	// A visit is never seen to end: queued work that is not after it has to find it.
	allDone = had && len(o.tasks) == len(o.visits) && (len(o.visits) == 0 || len(pending) == 0)
	return o.last, allDone
}

// frontier has a clock for each stream with work that has not ended: what
// happens before all of that work.
type frontier []clock

// after reports whether none of the work can race with what is done at a point.
func (f frontier) after(p point) bool {
	for _, c := range f {
		if c[p.tl] < p.seq {
			return false
		}
	}
	return true
}

// pending returns the frontier. What the host has waited for is not before work
// that was queued, to another stream, ahead of the wait.
//
// Preconditions: o.mu must be locked.
func (o *order) pending() frontier {
	var f frontier
	for tl, h := range o.streams {
		ended := tl.done.Load()
		if ended >= tl.stream.last.Load() {
			h.hasty = nil
			continue
		}
		c := h.joinAt(ended + 1)
		h.hasty = slices.DeleteFunc(h.hasty, func(l lead) bool { return l.seq <= ended })
		for _, l := range h.hasty {
			ended = min(ended, l.ended)
		}
		f = append(f, c.joined(clock{tl: ended}))
	}
	return f
}

// mostEnded is how many tasks are remembered that the host has seen the end of: a
// stream that stays behind must not make memory grow, nor each wait take longer.
const mostEnded = 1024

// latest forgets the oldest of the tasks that the host has seen the end of if they
// are twice too many, and returns the timelines of the others.
//
// Preconditions: o.mu must be locked.
func (o *order) latest(ended []uint32) (needed map[*timeline]bool) {
	if len(ended) >= 2*mostEnded {
		slices.Sort(ended)
		most := len(ended) - mostEnded
		for _, number := range ended[:most] {
			delete(o.tasks, number)
		}
		ended = ended[most:]
	}
	for _, number := range ended {
		if needed == nil {
			needed = map[*timeline]bool{}
		}
		needed[o.tasks[number].at.tl] = true
	}
	return needed
}

// prune forgets what only orders work that happens before everything anyway:
// otherwise clocks would grow with every stream ever created. The host's clock
// has to go on saying that it knows tasks which are remembered.
//
// Preconditions: o.mu must be locked.
func (o *order) prune(needed map[*timeline]bool) {
	done := map[*timeline]bool{}
	for tl, h := range o.streams {
		known := o.host[tl]
		if tl.stream.last.Load() <= known && !needed[tl] {
			done[tl] = true
			delete(o.streams, tl)
			continue
		}
		keep := 0
		for i, j := range h.joins {
			if j.seq <= known {
				keep = i
			}
		}
		h.joins = h.joins[keep:]
	}
	if len(done) > 0 {
		o.host = maps.Clone(o.host)
		maps.DeleteFunc(o.host, func(tl *timeline, _ uint64) bool { return done[tl] })
	}
}

// hostKnowsContext is hostWaited for all work of a context, including that of
// destroyed streams.
func (o *order) hostKnowsContext(c *context) (last uint32, allDone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := clock{}
	for tl := range o.streams {
		if tl.stream != nil && tl.stream.ctx == c {
			all = all.joined(o.at(point{tl, tl.done.Load()}))
		}
	}
	return o.hostKnows(all)
}

// reset forgets everything, after a time in which the order was not tracked. It
// returns the number of the latest task.
func (o *order) reset() (last uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.host, o.streams, o.tasks, o.visits = nil, nil, nil, nil
	o.changes++
	return o.last
}

// add numbers a task and makes it known.
func (o *order) add(t *task) uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.number(t)
}

// number is add.
//
// Preconditions: o.mu must be locked.
func (o *order) number(t *task) uint32 {
	if o.tasks == nil {
		o.tasks = map[uint32]*task{}
	}
	o.last++
	o.tasks[o.last] = t
	return o.last
}

// forget drops tasks that later work cannot race with.
func (o *order) forget(tasks []uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range tasks {
		delete(o.tasks, t)
	}
}

// mostVisits is how many accesses of the host are remembered. Only work that
// was queued before one and has not run yet can still race with it.
const mostVisits = 64

// visit numbers an access of the host, which is one more task: before all that
// is queued later, and after what the host has waited for.
func (o *order) visit(t *task) uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticks++
	// Before others see it: as a task of no stream it would count as ended.
	t.isHost, t.tick, t.mark.before = true, o.ticks, o.host
	number := o.number(t)
	o.visits = append(o.visits, number)
	if len(o.visits) > mostVisits {
		delete(o.tasks, o.visits[0])
		o.visits = o.visits[1:]
	}
	return number
}

// unordered returns the Watch of an earlier task unless it happens before t.
func (o *order) unordered(t *task, earlier uint32) *check.Watch {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.tasks[earlier]
	if e == nil || e.before(t) {
		return nil
	}
	return e.watch
}
