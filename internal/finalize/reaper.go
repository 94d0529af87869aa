// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The reaper polls this often: at first, and once nothing has moved for a
// while. Polling costs 4 % of a core while something is in flight, and unlike
// waiting for one event after the other it has no head-of-line blocking.
const (
	pollMin = 50 * time.Microsecond
	pollMax = time.Millisecond
)

// An Item is something that has to wait before it can end.
type Item interface {
	// Step does what can be done now without waiting, and reports whether the
	// item is done: then it is not called again. An error is reported; it does
	// not end the item. All items of a reaper are stepped by one goroutine.
	Step() (done bool, err error)
}

// A Standing item stays with the reaper where there is nothing to do, because it is
// about to get more: to be woken costs the caller of [Reaper.Add] some 50 us.
type Standing interface {
	Item
	// Busy reports whether there is something to do. Only then is the item pending.
	// It may be called on any goroutine, with a lock held: it must not block.
	Busy() bool
	// Patience is how long the next step can wait, if all other items are Standing
	// ones that can wait too.
	Patience() time.Duration
}

// ReaperOptions are the owner's part of a [Reaper].
type ReaperOptions struct {
	// ThreadInit runs first on the reaper's OS thread. An error is reported.
	ThreadInit func() error
	// Report receives the errors and panics of items, and must not panic. Nil
	// drops them.
	Report func(error)
}

// A Reaper steps items until they are done, on one goroutine that is locked to
// an OS thread of its own. That goroutine starts with the first item, sleeps
// while there is none, and ends with [Reaper.Stop]. Safe for concurrent use.
type Reaper struct {
	options ReaperOptions
	wake    chan struct{} // capacity 1: an item came, Flush waits, or Stop

	hurries atomic.Int32 // how many Hurry are not over

	mu       sync.Mutex
	added    []Item        // guarded by mu; not yet seen by the goroutine
	pending  int           // guarded by mu; added and not done, or a Standing item in a step
	standing []Standing    // guarded by mu; added and not done
	idle     chan struct{} // guarded by mu; closed when nothing is pending, nil if nobody waits
	running  bool          // guarded by mu
	stopped  bool          // guarded by mu
	ended    chan struct{} // closed when the goroutine has ended
}

// NewReaper returns a reaper that has started nothing yet.
func NewReaper(o ReaperOptions) *Reaper {
	return &Reaper{options: o, wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Add hands over it; it is stepped at once. False after [Reaper.Stop]: then
// nobody steps it, and the caller keeps what it holds.
func (r *Reaper) Add(it Item) bool {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return false
	}
	r.added = append(r.added, it)
	if s, ok := it.(Standing); ok {
		r.standing = append(r.standing, s)
	} else {
		r.pending++
	}
	if !r.running {
		r.running = true
		go r.loop()
	}
	r.mu.Unlock()
	r.Wake()
	return true
}

// Wake has every item stepped at once, without waiting for the next poll.
func (r *Reaper) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // a wake-up is under way already
	}
}

// Hurry says that somebody waits for items, until over is called, once.
func (r *Reaper) Hurry() (over func()) {
	r.hurries.Add(1)
	r.Wake()
	return func() { r.hurries.Add(-1) }
}

// Hurried reports whether somebody waits, in Flush or after Hurry. What an item
// could do now, it must not put off then.
func (r *Reaper) Hurried() bool { return r.hurries.Load() > 0 }

// Pending returns how many items are not done, without those that stand by.
func (r *Reaper) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count()
}

// count is Pending.
//
// Preconditions: r.mu is held.
func (r *Reaper) count() int {
	n := r.pending
	for _, s := range r.standing {
		if s.Busy() {
			n++
		}
	}
	return n
}

// Flush blocks until no item is pending or the timeout has passed, and reports
// which. It must not be called by an item.
func (r *Reaper) Flush(timeout time.Duration) bool {
	r.mu.Lock()
	if r.count() == 0 {
		r.mu.Unlock()
		return true
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	defer r.Hurry()()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

// Stop ends the reaper's goroutine and blocks until the step it is in returns,
// or the timeout has passed. Items that are not done are not stepped again:
// [Reaper.Flush] first. It returns how many these are.
func (r *Reaper) Stop(timeout time.Duration) (abandoned int) {
	r.mu.Lock()
	r.stopped = true
	running := r.running
	r.mu.Unlock()
	if running {
		r.Wake()
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-r.ended:
		case <-timer.C:
		}
	}
	return r.Pending()
}

func (r *Reaper) loop() {
	// No UnlockOSThread: a thread whose capture mode was changed must not run
	// other goroutines, and one that is still locked ends with its goroutine.
	runtime.LockOSThread()
	defer close(r.ended)
	if r.options.ThreadInit != nil {
		r.tell(r.options.ThreadInit())
	}
	var items []Item
	for wait := pollMin; ; {
		added, stop := r.takeAdded()
		if stop {
			return
		}
		before := len(items) + len(added)
		items = r.step(append(items, added...))
		if len(added) > 0 || len(items) < before {
			wait = pollMin
		}
		if r.sleep(wait, len(items) == 0) {
			wait = pollMin
		} else {
			wait = min(2*wait, longest(items))
		}
	}
}

// longest is how long the next step of items can wait.
func longest(items []Item) time.Duration {
	most := time.Duration(math.MaxInt64)
	for _, it := range items {
		s, ok := it.(Standing)
		if !ok {
			return pollMax
		}
		most = min(most, s.Patience())
	}
	return most
}

func (r *Reaper) takeAdded() (added []Item, stop bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added, r.added = r.added, nil
	return added, r.stopped
}

// step steps each of items once and returns those that are not done.
func (r *Reaper) step(items []Item) []Item {
	left := items[:0]
	for _, it := range items {
		if !r.stepOne(it) {
			left = append(left, it)
		}
	}
	clear(items[len(left):]) // done items must not stay reachable
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tellIdle() // a Standing item has become idle without an end
	return left
}

// stepOne also counts: an item that is done is no longer pending.
func (r *Reaper) stepOne(it Item) (done bool) {
	s, stands := it.(Standing)
	if stands {
		r.mu.Lock()
		r.pending++ // what it has in its hands is in no item yet
		r.mu.Unlock()
	}
	defer func() {
		if p := recover(); p != nil {
			r.tell(fmt.Errorf("panic in the reaper: %v\n%s", p, debug.Stack()))
			done = true // it would panic again, at each poll
		}
		if done || stands {
			r.finish(s, done)
		}
	}()
	done, err := it.Step()
	r.tell(err)
	return done
}

// finish ends an item, or the step of s, which stands by if it is not done.
func (r *Reaper) finish(s Standing, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending--
	if s != nil && done {
		r.standing = slices.DeleteFunc(r.standing, func(it Standing) bool { return it == s })
	}
	r.tellIdle()
}

// tellIdle tells those who wait in Flush.
//
// Preconditions: r.mu is held.
func (r *Reaper) tellIdle() {
	if r.idle != nil && r.count() == 0 {
		close(r.idle)
		r.idle = nil
	}
}

// sleep waits for the next poll, or for a wake-up only if there is nothing to
// poll; it reports whether it was woken.
func (r *Reaper) sleep(wait time.Duration, nothing bool) (woken bool) {
	if nothing {
		<-r.wake
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-r.wake:
		return true
	case <-timer.C:
		return false
	}
}

func (r *Reaper) tell(err error) {
	if err != nil && r.options.Report != nil {
		r.options.Report(err)
	}
}
