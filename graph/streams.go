// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda"
)

// A noted stream is one that an executable was launched on. Its use keeps the
// handle valid, so that an event can be recorded after the user's Close; the
// driver would crash on a destroyed handle, or hit another stream's.
type noted struct {
	s    *cuda.Stream
	raw  *cuda.Stream // the same handle, usable after s is closed
	done func()       // ends the use of s; once
}

// A mark is an event that was recorded right after a launch, on a stream that
// cannot be noted: see needsMark.
type mark struct {
	number uint64
	event  *cuda.Event // nil: it never ends
}

// needsMark reports whether a launch on s must be followed by an event of its
// own. The per-thread default stream is another stream for the reaper's thread,
// and a stream of another library may be gone by then: a raw handle proves
// nothing.
func needsMark(s *cuda.Stream) bool {
	return s.IsForeign() || s == s.Context().DefaultStream(cuda.PerThread)
}

// NoteStream says that x will be launched on s by someone who has its handle.
// It must be called before the first such launch on s; later calls do nothing.
// x keeps the handle of s valid, s may be closed at any time.
//
// Not for the per-thread default stream and streams of other libraries: launch
// on those with [Exec.Launch].
//
// Errors: [cuda.ErrClosed] if x or s is closed; an [*cuda.ArgumentError].
func (x *Exec) NoteStream(s *cuda.Stream) error {
	if needsMark(s) {
		return badValue("stream", "must be one that cudago owns, or the legacy default stream; got %v", s)
	}
	return x.note(s, true)
}

func (x *Exec) note(s *cuda.Stream, byHandle bool) error {
	_, done, err := s.Use()
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		done()
		return errClosedExec
	}
	x.byHandle = x.byHandle || byHandle
	if slices.ContainsFunc(x.streams, func(n *noted) bool { return n.s == s }) {
		done()
		return nil
	}
	for _, n := range slices.Clone(x.streams) {
		if n.s.IsClosed() {
			x.leave(n)
		}
	}
	n := &noted{s: s, raw: s.Context().WrapStream(s.Handle()), done: done}
	x.streams = append(x.streams, n)
	watching.add(s, x)
	return nil
}

// leave has the reaper wait for n one last time.
//
// Preconditions: x.mu is held.
func (x *Exec) leave(n *noted) {
	x.streams = slices.DeleteFunc(x.streams, func(m *noted) bool { return m == n })
	x.leaving = append(x.leaving, n)
	watching.remove(n.s, x)
	if x.o.OnForget != nil {
		x.o.OnForget(n.s)
	}
	x.queue()
}

// StreamClosed says that s was closed. Executables that were launched on it
// then let its handle go once their last launch on it has ended. Without this
// call they find out at their next launch on a new stream, or at their end.
func StreamClosed(s *cuda.Stream) {
	for _, x := range watching.of(s) {
		x.mu.Lock()
		for _, n := range slices.Clone(x.streams) {
			if n.s == s {
				x.leave(n)
			}
		}
		x.mu.Unlock()
	}
}

// watching says which executables have noted a stream.
var watching watchers

type watchers struct {
	mu sync.Mutex
	by map[*cuda.Stream]map[*Exec]struct{} // guarded by mu
}

func (w *watchers) add(s *cuda.Stream, x *Exec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[*cuda.Stream]map[*Exec]struct{})
	}
	if w.by[s] == nil {
		w.by[s] = make(map[*Exec]struct{})
	}
	w.by[s][x] = struct{}{}
}

func (w *watchers) remove(s *cuda.Stream, x *Exec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by[s], x)
	if len(w.by[s]) == 0 {
		delete(w.by, s)
	}
}

func (w *watchers) of(s *cuda.Stream) []*Exec {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]*Exec, 0, len(w.by[s]))
	for x := range w.by[s] {
		list = append(list, x)
	}
	return list
}

// launchMarked launches x on s and records an event behind it.
//
// Preconditions: x.api is held, the goroutine is locked to its OS thread.
func (x *Exec) launchMarked(s *cuda.Stream) error {
	// First, so that a launch never lacks its event.
	e, err := s.Context().NewEvent(cuda.EventOptions{})
	if err != nil {
		return err
	}
	if err := x.h.ctx.ExecLaunch(x.handle, s); err != nil {
		e.Close()
		return err
	}
	if s.Record(e) != nil {
		e.Close()
		if err := s.Synchronize(); err == nil || isGone(err) {
			return err // the launch has ended
		}
		// Nothing can tell when the launch ends: hold what it uses for good.
		e = nil
		warn(errUnmarked)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.marked++
	x.marks = append(x.marks, mark{x.marked, e})
	x.h.ctx.Driver().Relaxed(func() {
		err = x.pruneMarks()
	})
	if err != nil {
		warn(err) // the launch itself succeeded
	}
	return nil
}

var errUnmarked = errors.New("neither an event nor a synchronization of its stream follows the launch of a graph executable; " +
	"its operands will not be released")

// pruneMarks drops the oldest marks whose launches have ended. Launches of one
// executable run one after the other, so the first that has not ended stands
// for all later ones.
//
// Preconditions: relaxed capture mode; x.mu is held.
func (x *Exec) pruneMarks() error {
	for len(x.marks) > 0 && x.marks[0].event != nil {
		done, err := x.marks[0].event.Query()
		if err != nil && !isGone(err) {
			return err
		}
		if err == nil && !done {
			return nil
		}
		x.marks[0].event.Close()
		x.marks = x.marks[1:]
	}
	return nil
}

// MarkedPending reports whether a launch that had to be marked one by one, on
// the per-thread default stream or a stream of another library, may be under
// way. Does not block.
func (x *Exec) MarkedPending() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.h.ctx.Driver().Relaxed(func() {
		if err := x.pruneMarks(); err != nil {
			warn(err)
		}
	})
	return len(x.marks) > 0
}
