// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"fmt"
	"runtime"
	"runtime/debug"
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

	mu      sync.Mutex
	added   []Item        // guarded by mu; not yet seen by the goroutine
	pending int           // guarded by mu; added and not done
	idle    chan struct{} // guarded by mu; closed when pending falls to zero, nil if nobody waits
	running bool          // guarded by mu
	stopped bool          // guarded by mu
	ended   chan struct{} // closed when the goroutine has ended
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
	r.pending++
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

// Pending returns how many items are not done.
func (r *Reaper) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending
}

// Flush blocks until no item is pending or the timeout has passed, and reports
// which. It must not be called by an item.
func (r *Reaper) Flush(timeout time.Duration) bool {
	r.mu.Lock()
	if r.pending == 0 {
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
			wait = min(2*wait, pollMax)
		}
	}
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
	return left
}

// stepOne also counts: an item that is done is no longer pending.
func (r *Reaper) stepOne(it Item) (done bool) {
	defer func() {
		if p := recover(); p != nil {
			r.tell(fmt.Errorf("panic in the reaper: %v\n%s", p, debug.Stack()))
			done = true // it would panic again, at each poll
		}
		if done {
			r.finish()
		}
	}()
	done, err := it.Step()
	r.tell(err)
	return done
}

func (r *Reaper) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending--
	if r.pending == 0 && r.idle != nil {
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
