// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"syscall"

	"github.com/cudago/cudago/cuda"
)

// A slot is one of the two events of a line of our own stream.
type slot struct {
	event *cuda.Event // nil where it could not be created
	pos   uint64      // what it covers, if it is live
	live  bool        // recorded, and not yet known to have completed
}

// A mark follows work in a shared stream, or in one of our own that others have
// the handle of: see [Line.Behind].
type mark struct {
	pos    uint64
	event  *cuda.Event // nil: none could be recorded
	lent   bool        // the event is a later mark's
	ended  bool        // the work was waited for instead
	thread int         // that queued the work
}

// createEvents makes the events of l that are missing. It may block.
//
// Preconditions: l.mu is not held.
func (l *Line) createEvents() error {
	if l.shared {
		// One for a mark that comes when none may be created.
		e, err := l.context().TakeEvent(true)
		if err == nil {
			l.context().PutEvent(e)
		}
		return err
	}
	for i := range l.slots {
		l.mu.Lock()
		missing := l.slots[i].event == nil && !l.closed
		l.unlock()
		if !missing {
			continue
		}
		e, err := l.context().NewEvent(cuda.EventOptions{})
		if err != nil {
			return err
		}
		l.mu.Lock()
		if l.slots[i].event == nil && !l.closed {
			l.slots[i].event, e = e, nil
		}
		l.unlock()
		if e != nil {
			_ = e.Close()
		}
	}
	return nil
}

func (l *Line) context() *cuda.Context { return l.s.Context() }

// Mark records an event behind everything that is queued, unless that is marked
// already, the stream is capturing, or no event is free; in the last two cases
// the next Mark or Prove tries again. For threads that use the stream. Never
// creates an event and never blocks: fine with the GIL. In the per-thread
// default stream it makes up for a failed [Line.Marked] of this thread.
//
// Errors: an [*cuda.Error]. If the device has failed for good, all is proven.
func (l *Line) Mark() error {
	l.used()
	l.mu.Lock()
	defer l.unlock()
	_, err := l.record((*cuda.Stream).RecordUncaptured)
	return err
}

// recorder is a way to record an event: as a user of the stream, or not.
type recorder func(*cuda.Stream, *cuda.Event) (bool, error)

// record marks what is queued and unmarked, and reports whether everything is
// marked now.
//
// Preconditions: l.mu is held.
func (l *Line) record(call recorder) (marked bool, err error) {
	l.takeLatest()
	if l.queued.Load() <= l.marked.Load() || l.closed {
		return true, nil
	}
	if l.shared {
		marked, err = l.recordShared(call)
	} else {
		marked, err = l.recordOwn(call)
	}
	if isGone(err) {
		l.advanceProven(l.queued.Load())
		return true, err
	}
	return marked, err
}

func (l *Line) recordOwn(call recorder) (bool, error) {
	sl := l.spare()
	pos := l.queued.Load() // before the record: see Line
	if sl == nil {
		l.lacking = pos
		return false, nil
	}
	recorded, err := call(l.raw, sl.event)
	if err != nil {
		l.lacking = pos
		sl.live = false // it may no longer mark its old position
		l.recount()
		return false, err
	}
	if !recorded {
		return false, nil
	}
	sl.pos, sl.live = pos, true
	l.marked.Store(pos)
	return true, nil
}

// spare returns the event to record next: never the oldest mark.
//
// Preconditions: l.mu is held.
func (l *Line) spare() *slot {
	a, b := &l.slots[0], &l.slots[1]
	switch {
	case !a.live && a.event != nil:
		return a
	case !b.live && b.event != nil:
		return b
	case a.live && b.live && a.pos > b.pos:
		return a
	case a.live && b.live:
		return b
	}
	return nil
}

// oldest returns the live mark with the lowest position from pos on, or nil.
//
// Preconditions: l.mu is held.
func (l *Line) oldest(pos uint64) *slot {
	var best *slot
	for i := range l.slots {
		if sl := &l.slots[i]; sl.live && sl.pos >= pos && (best == nil || sl.pos < best.pos) {
			best = sl
		}
	}
	return best
}

// Behind takes over an event of the context's pool that a user of the stream has
// recorded behind the work up to pos, or has not recorded if pos is 0. It is for
// streams of our own that others have the handle of.
func (l *Line) Behind(pos uint64, e *cuda.Event) {
	l.mu.Lock()
	defer l.unlock()
	if n := len(l.marks); !l.shared && n > 0 && l.marks[n-1].pos >= pos {
		pos = 0 // that one is in the same stream, and later
	}
	l.behind(pos, e)
}

// takeLatest makes a mark of the event that users of the stream have recorded.
//
// Preconditions: l.mu is held.
func (l *Line) takeLatest() {
	if l.latest == nil || l.closed || !l.Pending(l.Queued()) {
		return
	}
	if pos, e := l.latest(); e != nil {
		l.behind(pos, e)
	}
}

// behind is Behind. The marks stay in the order of their positions: two may be in
// different streams, so an earlier one is needed as well.
//
// Preconditions: l.mu is held.
func (l *Line) behind(pos uint64, e *cuda.Event) {
	if l.closed || !l.Pending(pos) {
		l.context().PutEvent(e)
		return
	}
	at := len(l.marks)
	for at > 0 && l.marks[at-1].pos >= pos {
		at--
	}
	if !l.shared {
		l.marks = slices.Insert(l.marks, at, mark{pos: pos, event: e})
	} else {
		l.marks = slices.Insert(l.marks, at, mark{pos: pos})
		l.fill(e, pos) // and those before it whose records failed
	}
	l.recount()
}

// recount recomputes Marked after a mark was lost or came out of order.
//
// Preconditions: l.mu is held.
func (l *Line) recount() {
	most := l.proven.Load()
	for _, sl := range l.slots {
		if sl.live {
			most = max(most, sl.pos)
		}
	}
	for _, m := range l.marks {
		if m.event == nil && !m.ended {
			break
		}
		most = max(most, m.pos)
	}
	l.marked.Store(most)
}

// advanceProven notes that all work up to pos has completed.
//
// Preconditions: l.mu is held.
func (l *Line) advanceProven(pos uint64) {
	pos = min(pos, l.queued.Load())
	old := l.noted.Load()
	if pos <= old {
		return
	}
	atLeast(l.proven, pos)
	l.noted.Store(pos)
	for i := range l.slots {
		l.slots[i].live = l.slots[i].live && l.slots[i].pos > pos
	}
	for len(l.marks) > 0 && l.marks[0].pos <= pos {
		if m := l.marks[0]; m.event != nil && !m.lent {
			l.context().PutEvent(m.event)
		}
		l.marks = l.marks[1:]
	}
	l.marked.Store(max(l.marked.Load(), pos))
	if l.onProven != nil {
		l.onProven(pos - old)
	}
	if !l.kept && pos == l.queued.Load() {
		l.delist()
	}
	l.ask.Lock()
	defer l.ask.Unlock()
	if l.stepped {
		l.reaper.Wake()
	}
}

// Proved says that a caller has waited for the work up to pos: it has
// completed. Never blocks: if another thread is inside the driver for the line,
// that one does what follows when it returns.
func (l *Line) Proved(pos uint64) {
	atLeast(l.proven, min(pos, l.queued.Load()))
	l.noteProven()
}

// Waited is [Line.Proved] for a thread that has waited for the stream. Of the
// per-thread default stream it has waited for its own work only, while the
// positions are those of all threads: there the marks tell.
func (l *Line) Waited(pos uint64) {
	if l.perThread {
		l.look()
		return
	}
	l.Proved(pos)
}

// Prove queries the marks, and records another one if there is unmarked work
// and recording is allowed. For any thread that uses the stream. Never creates
// an event and never blocks: fine with the GIL.
//
// To a driver that looks for races this is a wait of the program: see
// [Line.ProveAside].
func (l *Line) Prove() { l.prove(true, (*cuda.Event).Query) }

// ProveAside is Prove for what the program has not asked for: it may learn of
// the end of work later, see [cuda.Event.QueryAside].
func (l *Line) ProveAside() { l.prove(true, (*cuda.Event).QueryAside) }

// asker is a way to query an event: as a wait of the program, or not.
type asker func(*cuda.Event) (bool, error)

// prove is Prove; unless user is set it records only if nobody else has the
// handle.
func (l *Line) prove(user bool, ask asker) {
	if !l.Pending(l.Queued()) {
		return
	}
	var err error
	l.context().Driver().Relaxed(func() {
		l.mu.Lock()
		defer l.unlock()
		err = l.poll(ask)
		if user || !l.shared && !l.exposed {
			_, rerr := l.record((*cuda.Stream).RecordUncaptured)
			err = errors.Join(err, rerr)
		}
		err = l.once(err)
	})
	if err != nil {
		warn(err)
	}
}

// look is ProveAside without a record, and without waiting for the lock: its holder
// is in the driver, and learns the same.
func (l *Line) look() {
	var err error
	unmarked := false
	l.context().Driver().Relaxed(func() {
		if !l.mu.TryLock() {
			return
		}
		defer l.unlock()
		err = l.once(l.poll((*cuda.Event).QueryAside))
		unmarked = !l.shared && !l.exposed && l.marked.Load() < l.queued.Load()
	})
	if err != nil {
		warn(err)
	}
	if needed, _ := l.needed(); unmarked && needed < l.Queued() {
		l.After(l.queued.Load(), func() {})
	}
}

// once returns err unless it was the last error reported.
//
// Preconditions: l.mu is held.
func (l *Line) once(err error) error {
	if err == nil || isGone(err) {
		l.last = ""
		return nil
	}
	if isBeingReset(err) {
		return nil // the reset ends the work; if it fails, the query is repeated
	}
	if text := err.Error(); text != l.last {
		l.last = text
		return err
	}
	return nil
}

// poll queries the marks, oldest first. A device that has failed for good is
// not an error here: it proves everything.
//
// Preconditions: relaxed capture mode; l.mu is held.
func (l *Line) poll(ask asker) error {
	l.takeLatest()
	for {
		pos, event, ended := l.next()
		if event == nil && !ended {
			return nil
		}
		if !ended {
			var err error
			if ended, err = ask(event); err != nil {
				return l.refused(err, event)
			}
		}
		if !ended {
			return nil
		}
		l.advanceProven(pos)
	}
}

// next returns the oldest mark; its event is nil if there is none to query.
//
// Preconditions: l.mu is held.
func (l *Line) next() (pos uint64, event *cuda.Event, ended bool) {
	sl := l.oldest(0)
	if len(l.marks) > 0 && (sl == nil || l.marks[0].pos <= sl.pos) {
		m := l.marks[0]
		return m.pos, m.event, m.ended
	}
	if sl != nil {
		return sl.pos, sl.event, false
	}
	return 0, nil, false
}

// refused handles the error of a query.
//
// Preconditions: l.mu is held.
func (l *Line) refused(err error, event *cuda.Event) error {
	switch {
	case isGone(err):
		l.advanceProven(l.queued.Load())
		return nil
	case errors.Is(err, cuda.ErrorCapturedEvent):
		// Other code has recorded it by its handle. It no longer proves
		// anything, and its work has to be marked again.
		for i := range l.slots {
			l.slots[i].live = l.slots[i].live && l.slots[i].event != event
		}
		for i := range l.marks {
			if m := &l.marks[i]; m.event == event {
				if !m.lent {
					l.context().PutEvent(event) // usable again once it is recorded anew
				}
				m.event = nil
			}
		}
		l.recount()
		return err
	case isCaptureRefusal(err), isBeingReset(err):
		return nil // asked again
	}
	return err
}

// thread returns the calling OS thread, which owns its per-thread default
// stream.
func thread() int { return syscall.Gettid() }
