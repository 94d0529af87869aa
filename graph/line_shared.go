// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"

	"github.com/cudago/cudago/cuda"
)

var errUnmarked = errors.New("no event could be recorded behind queued work, and its stream could not be waited for; " +
	"what the work uses is not released until an event follows it")

// Marked advances the line and marks the new position at once. It is for
// streams of other libraries and the default streams, on the OS thread that
// queued the work. It creates an event if necessary and may block: not with the
// GIL. If no event can be recorded, it waits for the stream.
//
// Positions of these lines complete one by one, oldest first: in the per-thread
// default stream, which differs for each thread, a mark says nothing about work
// that other threads have queued.
//
// Errors: [ErrLineCapturing] if the work was captured, and is not in flight, or
// if a capture has begun after it, whose end the next mark has to await;
// otherwise an [*cuda.Error], and nothing is pending any more.
func (l *Line) Marked() (pos uint64, err error) {
	if !l.shared {
		pos = l.Advance()
		return pos, l.Mark()
	}
	return l.markedBy(l.event(), true)
}

// event takes an event for markedBy, or returns nil if there is none.
func (l *Line) event() *cuda.Event {
	e, err := l.context().TakeEvent(true)
	if err != nil {
		return nil
	}
	return e
}

// markedBy is Marked with an event that the caller has taken, or nil. With now,
// the caller has just queued the work; otherwise the mark is for everything
// queued so far.
func (l *Line) markedBy(e *cuda.Event, now bool) (pos uint64, err error) {
	// For the whole call: the stream may be the thread's.
	leave, err := l.context().Enter()
	if err != nil {
		leave = func() {}
	}
	defer leave()
	l.used()
	l.mu.Lock()
	l.takeLatest()    // it may stand in another stream of this handle, and comes before
	pos = l.Advance() // before the record: see Line
	l.marks = append(l.marks, mark{pos: pos, thread: thread()})
	recorded := false
	if e != nil && err == nil {
		recorded, err = l.raw.RecordUncaptured(e)
	}
	if recorded {
		l.fill(e, pos)
	} else if e != nil {
		l.context().PutEvent(e)
	}
	capturing := e != nil && !recorded && err == nil
	if capturing && l.perThread && now {
		// Only this thread can have begun the capture, so it did so before the
		// work.
		l.marks[len(l.marks)-1].ended = true
	}
	l.recount()
	l.unlock()
	switch {
	case recorded:
		l.pollMarks()
		return pos, nil
	case capturing:
		return pos, ErrLineCapturing
	}
	return pos, l.waitInstead(pos)
}

// pollMarks queries the existing marks, so that they do not accumulate.
func (l *Line) pollMarks() {
	var err error
	l.context().Driver().Relaxed(func() {
		l.mu.Lock()
		defer l.unlock()
		err = l.once(l.poll((*cuda.Event).QueryAside))
	})
	if err != nil {
		warn(err)
	}
}

// waitInstead waits for the work at pos, which has no event behind it. If that
// fails too, nothing tells when the work completes: it is pending until a later
// mark covers it.
func (l *Line) waitInstead(pos uint64) error {
	err := l.raw.Synchronize()
	if isBeingReset(err) {
		return nil // the reset ends it; if it fails, a later mark will tell
	}
	if err != nil && !isGone(err) {
		warn(errUnmarked)
		return nil // the work itself was queued
	}
	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		l.advanceProven(l.queued.Load())
		return err
	}
	for i := range l.marks {
		if m := &l.marks[i]; m.pos == pos {
			m.ended = true
		}
	}
	l.recount()
	return nil
}

// recordShared marks positions without an event: those advanced without one,
// and those whose record failed earlier; in the per-thread default stream, the
// latter only for the thread that queued the work.
//
// Preconditions: l.mu is held.
func (l *Line) recordShared(call recorder) (bool, error) {
	pos := l.queued.Load() // before the record: see Line
	if l.perThread && !l.hasUnmarked(pos) {
		return false, nil
	}
	e, err := l.context().TakeEvent(false)
	if err != nil || e == nil {
		return false, err
	}
	recorded, err := call(l.raw, e)
	if !recorded {
		l.context().PutEvent(e)
		return false, err
	}
	if n := len(l.marks); !l.perThread && (n == 0 || l.marks[n-1].pos < pos) {
		l.marks = append(l.marks, mark{pos: pos, thread: thread()})
	}
	l.fill(e, pos)
	l.recount()
	return l.marked.Load() >= pos, nil
}

// covers reports whether an event that this thread records now is behind m.
func (l *Line) covers(m *mark, pos uint64) bool {
	return m.event == nil && !m.ended && m.pos <= pos && (!l.perThread || m.thread == thread())
}

func (l *Line) hasUnmarked(pos uint64) bool {
	for i := range l.marks {
		if l.covers(&l.marks[i], pos) {
			return true
		}
	}
	return false
}

// fill gives e, which was just recorded, to the marks without an event that it
// covers. The last of them owns it.
//
// Preconditions: l.mu is held; there is such a mark.
func (l *Line) fill(e *cuda.Event, pos uint64) {
	lent := false
	for i := len(l.marks) - 1; i >= 0; i-- {
		if m := &l.marks[i]; l.covers(m, pos) {
			m.event, m.lent = e, lent
			lent = true
		}
	}
}
