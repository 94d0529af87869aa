// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// ErrStop is what the function of a finalizer returns to end [Registry.Shutdown]
// there and then. It is not reported.
var ErrStop = errors.New("stop the shutdown")

// A Registry holds finalizers strongly until they ran or were detached, as
// weakref.finalize does. Safe for concurrent use. Every operation takes
// constant time, [Registry.Shutdown] time in proportion to the finalizers alive,
// once more after each of its finalizers that added another one.
type Registry struct {
	report func(error)

	mu    sync.Mutex
	alive ring // guarded by mu; in order of registration
	// turns are those that Shutdown has yet to run, oldest first, as it last
	// looked; some may be dead by now. Guarded by mu.
	turns  []*Finalizer
	added  bool   // guarded by mu; something was registered since turns were made
	n      int    // guarded by mu; finalizers alive
	seq    uint64 // guarded by mu
	closed bool   // guarded by mu; Shutdown has ended
}

// NewRegistry returns an empty registry. The errors and panics of finalizers go
// to report, which may be nil; it must not panic.
func NewRegistry(report func(error)) *Registry {
	r := &Registry{report: report, added: true}
	r.alive.init()
	return r
}

// A Finalizer is a function that runs at most once. It is alive until it has
// been called or detached. Safe for concurrent use.
type Finalizer struct {
	r          *Registry
	id         uint64
	prev, next *Finalizer // guarded by r.mu; the ring it is in

	fn       func() error // guarded by r.mu; nil once taken
	info     any          // guarded by r.mu; nil once taken
	keepExit bool         // guarded by r.mu; see SetAtExit
}

// Add registers fn. It must not capture the object whose end it is for: the
// registry holds fn strongly, so that object would never end. info is what
// [Finalizer.Peek] and [Finalizer.Detach] return.
func (r *Registry) Add(fn func() error, info any) *Finalizer {
	if fn == nil {
		panic("BUG: finalizer without a function")
	}
	f := &Finalizer{r: r, fn: fn, info: info, keepExit: true}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	f.id = r.seq
	r.alive.append(f)
	r.added = true
	r.n++
	return f
}

// Len returns the number of finalizers that are alive.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// Shutdown runs the finalizers that are alive and whose exit flag is set,
// newest first, until none is left; those added meanwhile run too. It returns
// how many it ran.
//
// As weakref.finalize does, it looks at the flags when it begins, and again
// after something was added; in between, a flag that is changed changes nothing.
//
// After it, calling a finalizer takes it without running it, as for
// weakref.finalize: what such a finalizer would touch may be gone.
func (r *Registry) Shutdown() (ran int) {
	defer r.close()
	for f := r.next(); f != nil; f = r.next() {
		fn, _, _ := f.take()
		if fn == nil {
			continue
		}
		ran++
		if stop := r.run(f.id, fn); stop {
			break
		}
	}
	return ran
}

// next returns the finalizer whose turn it is in Shutdown. It closes the
// registry when there is none, under the lock that Add takes: one added earlier
// is run, one added later is not.
func (r *Registry) next() *Finalizer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.added {
		r.added = false
		r.turns = r.turns[:0]
		for f := r.alive.root.next; f != &r.alive.root; f = f.next {
			if f.keepExit {
				r.turns = append(r.turns, f)
			}
		}
	}
	for n := len(r.turns); n > 0; n = len(r.turns) {
		f := r.turns[n-1]
		r.turns[n-1], r.turns = nil, r.turns[:n-1]
		if f.fn != nil {
			return f
		}
	}
	r.closed = true
	return nil
}

func (r *Registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.turns = true, nil
}

// ID returns the number of f in order of registration, starting with 1.
func (f *Finalizer) ID() uint64 { return f.id }

// Alive reports whether f can still run.
func (f *Finalizer) Alive() bool {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return f.fn != nil
}

// Peek returns the info given to [Registry.Add] while f is alive.
func (f *Finalizer) Peek() (info any, alive bool) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return f.info, f.fn != nil
}

// AtExit reports whether f is alive and [Registry.Shutdown] is to run it.
func (f *Finalizer) AtExit() bool {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return f.fn != nil && f.keepExit
}

// SetAtExit says whether [Registry.Shutdown] runs f; it does unless told
// otherwise. It does nothing once f is dead.
func (f *Finalizer) SetAtExit(run bool) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	if f.fn != nil {
		f.keepExit = run
	}
}

// Detach kills f without running it and returns its info; false if it was dead.
func (f *Finalizer) Detach() (info any, detached bool) {
	fn, info, _ := f.take()
	return info, fn != nil
}

// Call runs f and reports whether it did: once, whoever calls first. A panic or
// an error of its function goes to the registry's report, never to the caller.
func (f *Finalizer) Call() (ran bool) {
	fn, _, late := f.take()
	if fn == nil || late {
		return false
	}
	f.r.run(f.id, fn)
	return true
}

// take is the one point that makes "at most once" true.
func (f *Finalizer) take() (fn func() error, info any, late bool) {
	r := f.r
	r.mu.Lock()
	defer r.mu.Unlock()
	fn, info = f.fn, f.info
	if fn != nil {
		f.fn, f.info = nil, nil
		f.unlink()
		r.n--
	}
	return fn, info, r.closed
}

// run reports whether fn said to stop.
func (r *Registry) run(id uint64, fn func() error) (stop bool) {
	defer func() {
		if p := recover(); p != nil {
			r.tell(fmt.Errorf("panic in finalizer %d: %v\n%s", id, p, debug.Stack()))
		}
	}()
	err := fn()
	if errors.Is(err, ErrStop) {
		return true
	}
	if err != nil {
		r.tell(fmt.Errorf("finalizer %d: %w", id, err))
	}
	return false
}

func (r *Registry) tell(err error) {
	if r.report != nil {
		r.report(err)
	}
}
