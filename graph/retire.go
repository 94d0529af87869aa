// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/internal/finalize"
)

var (
	onWarning     atomic.Pointer[func(error)]
	defaultReaper = sync.OnceValue(func() *finalize.Reaper {
		return finalize.NewReaper(finalize.ReaperOptions{Report: warn})
	})
)

// Reaper returns the reaper of all lines and executables that were given none of
// their own. It starts its goroutine when something first has to be waited for.
func Reaper() *finalize.Reaper { return defaultReaper() }

// OnWarning sets the function that is told of failures that no caller could be
// told of. It may run on any goroutine and must not call back into this package.
// Nil discards them.
func OnWarning(f func(error)) {
	if f == nil {
		onWarning.Store(nil)
		return
	}
	onWarning.Store(&f)
}

func warn(err error) {
	if f := onWarning.Load(); f != nil {
		(*f)(err)
	}
}

// Close ends the use of x: it cannot be launched any more, and launches under
// way run to their end. After the last of them its operands are released, here
// if that is known to be over, and the executable is destroyed, by the reaper.
// Closing twice is fine.
//
// It waits for a [Exec.Launch] that is inside the driver: with the GIL only while
// there is none. Someone who launches by [Exec.Handle] keeps launches out.
func (x *Exec) Close() error {
	done := x.gate.change()
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		done()
		return nil
	}
	x.closed = true
	bundles := x.bundles()
	for _, n := range x.nodes {
		n.bundle = nil
	}
	x.extra = nil
	x.watch.tell(nil, bundles)
	x.mu.Unlock()
	f := x.farewell(bundles, true)
	done()
	f.start()
	return nil
}

// A farewell is what an executable lets go of once its launches so far have
// ended.
type farewell struct {
	x       *Exec
	bundles []*bundle
	last    bool  // the executable itself goes too
	uses    []Use // what may be in flight
	left    atomic.Int64
}

// farewell begins to say goodbye to bundles. What may be in flight is marked, by
// this thread, so that its end can be known; unless x is quiet.
//
// Preconditions: x.gate is shut; x.mu is not held.
func (x *Exec) farewell(bundles []*bundle, last bool) *farewell {
	f := &farewell{x: x, bundles: bundles, last: last}
	x.mu.Lock()
	uses := append([]Use(nil), x.uses...)
	x.mu.Unlock()
	if x.o.Uses != nil {
		uses = append(uses, x.o.Uses()...)
	}
	for _, u := range uses {
		if u.Pending() && !x.o.Quiet {
			u.Line.Prove()
		}
		if u.Pending() {
			f.uses = append(f.uses, u)
		}
	}
	return f
}

// start waits for what may be in flight, here if there is nothing.
//
// Preconditions: no mutex of this package is held.
func (f *farewell) start() {
	// One more, for this call: so nothing ends before all is registered.
	f.left.Store(int64(len(f.uses)) + 1)
	waits := true
	for _, u := range f.uses {
		waits = u.Line.after(u.Pos, f.one) && waits
	}
	if !waits {
		live.abandoned.Add(1) // at exit, on purpose: nobody is left to wait
	}
	f.one()
}

// one counts an end. The last lets go.
func (f *farewell) one() {
	if f.left.Add(-1) > 0 {
		return
	}
	f.x.letGo(f.bundles)
	if f.last && !f.x.reaper.Add((*grave)(f.x)) {
		live.abandoned.Add(1)
	}
}

// letGo ends x's hold of bundles: no launch can use them any more.
//
// Preconditions: no mutex of this package is held.
func (x *Exec) letGo(bundles []*bundle) {
	if x.o.OnReleased != nil && len(bundles) > 0 {
		x.o.OnReleased(retainersOf(bundles))
	}
	releaseAll(bundles)
}

// grave is an Exec that is closed and does not run, as an item of the reaper:
// to destroy it can wait for another thread's full launch queue.
type grave Exec

// Step implements [finalize.Item]: in relaxed capture mode, since in another
// one it would spoil every global capture in the process. Where it is refused
// because of a capture it is tried again; what failed for another reason is not.
func (g *grave) Step() (done bool, err error) {
	x := (*Exec)(g)
	x.h.ctx.Driver().Relaxed(func() { err = x.h.ctx.ExecDestroy(x.handle) })
	if isCaptureRefusal(err) {
		return false, nil
	}
	live.execs.Add(-1)
	return true, errors.Join(err, x.h.drop())
}
