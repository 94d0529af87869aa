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

// Reaper returns the default reaper of lines and executables. It starts its
// goroutine when something first has to be waited for.
func Reaper() *finalize.Reaper { return defaultReaper() }

// UseReaper makes r the default reaper, so that whoever waits for r waits for all
// lines. It must come before everything else.
func UseReaper(r *finalize.Reaper) { defaultReaper = func() *finalize.Reaper { return r } }

// OnWarning sets the function that receives failures which no caller can. It
// may run on any goroutine and must not call back into this package. Nil
// discards them.
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

// Close ends the use of x: it can no longer be launched, and launches under way
// complete. Once the last of them has completed its operands are released, in
// this call if that is already known, and the reaper destroys the executable.
// Closing twice is fine.
//
// It waits for an [Exec.Launch] that is inside the driver: call it with the GIL
// only while there is none. Whoever launches by [Exec.Handle] must keep such
// launches out.
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
	x.extra, x.spare = nil, nil
	x.watch.notify(nil, bundles)
	x.mu.Unlock()
	x.h.ending.Add(1)
	x.h.execs.Add(-1)
	f := x.retirement(bundles, true)
	done()
	f.start()
	return nil
}

// A retirement is what an executable gives up once its launches so far have
// completed.
type retirement struct {
	x       *Exec
	bundles []*bundle
	last    bool  // the executable itself goes too
	uses    []Use // what may be in flight
	left    atomic.Int64
}

// retirement prepares the release of bundles. This thread marks the work that
// may be in flight, so that its completion can be known, unless x is quiet.
//
// Preconditions: x.gate is shut; x.mu is not held.
func (x *Exec) retirement(bundles []*bundle, last bool) *retirement {
	f := &retirement{x: x, bundles: bundles, last: last}
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

// start waits for what may be in flight, and ends the retirement at once if
// there is nothing.
//
// Preconditions: no mutex of this package is held.
func (f *retirement) start() {
	// One more, for this call: nothing must end before everything is
	// registered.
	f.left.Store(int64(len(f.uses)) + 1)
	waits := true
	for _, u := range f.uses {
		waits = u.Line.after(u.Pos, f.countDown) && waits
	}
	if !waits {
		live.abandoned.Add(1) // at exit, on purpose: nobody is left to wait
	}
	f.countDown()
}

// countDown counts a completed use. The last one releases.
func (f *retirement) countDown() {
	if f.left.Add(-1) > 0 {
		return
	}
	f.x.releaseHold(f.bundles)
	if f.last && !f.x.reaper.Add((*closedExec)(f.x)) {
		live.abandoned.Add(1)
	}
}

// releaseHold releases x's hold of bundles, which no launch can use any more.
//
// Preconditions: no mutex of this package is held.
func (x *Exec) releaseHold(bundles []*bundle) {
	if x.o.OnReleased != nil && len(bundles) > 0 {
		x.o.OnReleased(retainersOf(bundles))
	}
	releaseAll(bundles)
}

// apart calls its argument, or not.
var apart = func(destroy func()) { destroy() }

// DestroyApart sets how executables are destroyed: keep calls destroy only while
// no thread can be stuck in a launch, since the driver makes destroy wait for it,
// and those that copy graphs wait for destroy. If keep does not call it, the
// reaper asks again. Call it before the first graph is made.
func DestroyApart(keep func(destroy func())) { apart = keep }

// closedExec is an Exec that is closed and not running, as an item of the
// reaper: destroying it can wait for another thread's full launch queue.
type closedExec Exec

// Step implements [finalize.Item]. It uses relaxed capture mode, since any
// other would invalidate every global capture in the process. If a capture is
// the reason for a failure it is tried again, otherwise not.
func (g *closedExec) Step() (done bool, err error) {
	x := (*Exec)(g)
	apart(func() {
		x.h.ctx.Driver().Relaxed(func() { done, err = x.h.ctx.TryExecDestroy(x.handle) })
	})
	if !done || isCaptureRefusal(err) {
		return false, nil
	}
	endVisits(x.visits)
	live.execs.Add(-1)
	x.h.ending.Add(-1)
	return true, errors.Join(err, x.h.drop())
}
