// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// After runs then once the work up to pos has completed: at once on the
// caller's goroutine if that is known, else on the reaper's. No lock is held
// meanwhile. If the reaper has stopped, then never runs: see [Live].
func (l *Line) After(pos uint64, then func()) {
	if !l.after(pos, then) {
		live.abandoned.Add(1)
	}
}

// after is After. It returns false if the reaper has stopped: then will not run.
func (l *Line) after(pos uint64, then func()) bool {
	if !l.Pending(pos) {
		then()
		return true
	}
	l.ask.Lock()
	if !l.Pending(pos) || l.closed {
		l.ask.Unlock()
		then()
		return true
	}
	defer l.ask.Unlock()
	l.waiters = append(l.waiters, waiter{pos, then})
	return l.step()
}

// AfterAll runs then once all work that is in the stream now has completed,
// including that of others. For threads that use the stream. In a shared stream
// it may block, as [Line.Marked] does. It reports whether it has taken a position,
// as it does unless the line is closed.
func (l *Line) AfterAll(then func()) (advanced bool) {
	l.ask.Lock()
	closed := l.closed
	l.ask.Unlock()
	if closed {
		then()
		return false
	}
	var pos uint64
	var err error
	if l.shared {
		pos, err = l.markedBy(l.event(), false)
	} else {
		pos, err = l.Marked()
	}
	// A failed mark is repeated later, and a failed device proves everything.
	if err != nil && !isGone(err) && !errors.Is(err, ErrLineCapturing) {
		warn(err)
	}
	l.After(pos, then)
	return true
}

// Join makes later work in the stream into wait for the work up to pos: through
// the mark that covers it, or one recorded now by this thread, which must be a
// user of the line's stream. Never creates an event.
//
// It records, waits for the line's lock, and so must not be called with the GIL
// while a Python callback exists.
//
// Errors: [ErrLineCapturing] if into is capturing, or if no mark covers pos and
// the stream is; those of [cuda.Stream.Wait]; otherwise an [*cuda.Error]. No
// work was ordered then.
func (l *Line) Join(pos uint64, into *cuda.Stream) error {
	if !l.Pending(pos) || (!l.perThread && into.Handle() == l.s.Handle() && into.Context() == l.s.Context()) {
		return nil
	}
	l.used()
	l.mu.Lock()
	defer l.unlock()
	l.takeLatest()
	events, ok := l.covering(pos)
	if !ok {
		marked, err := l.record((*cuda.Stream).RecordUncaptured)
		if err != nil && !isGone(err) {
			return err
		}
		if events, ok = l.covering(pos); !ok {
			return l.uncovered(marked)
		}
	}
	for _, e := range events {
		if waits, err := into.WaitUncaptured(e); err != nil {
			return err
		} else if !waits {
			return ErrLineCapturing
		}
	}
	return nil
}

// uncovered says why no mark covers a position.
func (l *Line) uncovered(marked bool) error {
	if marked {
		return badValue("position", "must be one of queued work, at most %d", l.queued.Load())
	}
	if capturing, err := l.raw.IsCapturing(); err != nil || capturing != cuda.CaptureNone {
		return ErrLineCapturing
	}
	return errUnmarked
}

// covering returns the events after which all work up to pos has completed.
//
// Preconditions: l.mu is held.
func (l *Line) covering(pos uint64) (events []*cuda.Event, ok bool) {
	if !l.Pending(pos) {
		return nil, true
	}
	if sl := l.oldest(pos); sl != nil {
		return []*cuda.Event{sl.event}, true
	}
	for _, m := range l.marks {
		if m.event == nil && !m.ended {
			return nil, false
		}
		if m.event != nil && (l.perThread || m.pos >= pos) {
			events = append(events, m.event)
		}
		if m.pos >= pos {
			return events, true
		}
	}
	return nil, false
}

// Close says that nothing will be queued any more. Once all work has completed,
// the line destroys its events, releases the handle and runs then on the
// reaper: then may destroy the stream. Close may be called again; each then
// runs.
//
// It marks the work in a stream of another library, and so waits as Mark does.
func (l *Line) Close(then func() error) {
	if l.shared { // now: a stream of another library may not exist later
		if err := l.Mark(); err != nil && !isGone(err) {
			warn(err)
		}
	}
	l.CloseUnmarked(then)
}

// CloseUnmarked is Close for a caller that must not wait. Work of another
// library's stream that has no mark, which is work whose mark has failed, ends
// with all work of the context.
func (l *Line) CloseUnmarked(then func() error) {
	l.ask.Lock()
	defer l.ask.Unlock()
	if l.closed {
		if then != nil && !l.reaper.Add(ending(then)) {
			live.abandoned.Add(1)
		}
		return
	}
	l.closing = true
	if then != nil {
		l.thens = append(l.thens, then)
	}
	if !l.step() {
		live.abandoned.Add(1)
	}
}

// ending is an item of the reaper that runs once.
type ending func() error

// Step implements [finalize.Item].
func (e ending) Step() (bool, error) { return true, e() }

// step has the reaper step l, and reports whether it does.
//
// Preconditions: l.ask is held.
func (l *Line) step() bool {
	if l.stepped {
		l.reaper.Wake()
		return true
	}
	l.stepped = l.reaper.Add((*lineItem)(l))
	return l.stepped
}

// lineItem is a Line as an item of the reaper, while somebody waits for it.
type lineItem Line

var _ finalize.Item = (*lineItem)(nil)

// Step implements [finalize.Item].
func (i *lineItem) Step() (done bool, err error) {
	l := (*Line)(i)
	err = l.replace()
	ask := (*cuda.Event).QueryAside
	if l.reaper.Hurried() {
		ask = (*cuda.Event).Query
	}
	var ready []func()
	var over bool
	l.context().Driver().Relaxed(func() {
		l.mu.Lock()
		defer l.unlock()
		err = l.once(errors.Join(err, l.poll(ask), l.recordAsReaper()))
		l.ask.Lock()
		defer l.ask.Unlock()
		over = l.closing && !l.Pending(l.Queued())
		ready = l.takeReady(over)
		done = over || (len(l.waiters) == 0 && !l.closing)
		l.stepped = !done
	})
	l.run(ready)
	if over {
		err = errors.Join(err, l.end())
	}
	return done, err
}

// replace creates events that could not be created earlier, if they are needed.
func (l *Line) replace() error {
	l.mu.Lock()
	missing := !l.shared && l.spare() == nil && l.oldest(0) == nil
	l.unlock()
	if !missing {
		return nil
	}
	err := l.createEvents()
	if isGone(err) {
		l.Proved(l.queued.Load())
	}
	return err
}

// recordAsReaper marks work that is waited for and that no user of the stream has
// marked, where the reaper may record.
//
// Preconditions: l.mu is held.
func (l *Line) recordAsReaper() error {
	needed, closing := l.needed()
	if needed <= l.marked.Load() {
		return nil
	}
	if l.shared || (l.exposed && !closing) {
		// All that can be done is to check whether the device has failed, the
		// handle is dead, or a mark has failed: perhaps nobody uses the stream
		// again, and marks it.
		switch status, err := l.raw.IsCapturing(); {
		case isGone(err):
			l.advanceProven(l.queued.Load())
		case errors.Is(err, cuda.ErrorInvalidHandle), (closing || needed <= l.lacking) && err == nil && status == cuda.CaptureNone:
			l.awaitContext()
		}
		return nil
	}
	_, err := l.record((*cuda.Stream).RecordAside)
	return err
}

// needed returns up to where somebody waits.
func (l *Line) needed() (pos uint64, closing bool) {
	l.ask.Lock()
	defer l.ask.Unlock()
	queued := l.queued.Load()
	if l.closing {
		return queued, true
	}
	for _, w := range l.waiters {
		pos = max(pos, min(w.pos, queued))
	}
	return pos, false
}

// awaitContext waits for all work of the context, because the stream can no
// longer be queried: another library has destroyed it, or may do so. Not while
// a capture is open, which that would invalidate.
//
// Preconditions: l.mu is held.
func (l *Line) awaitContext() {
	if l.awaiting || l.context().Driver().Capturing() {
		return
	}
	l.awaiting = true
	pos := l.queued.Load()
	go func() {
		err := l.context().Synchronize()
		if err == nil || isGone(err) {
			l.Proved(pos)
		}
		l.mu.Lock()
		defer l.unlock()
		l.awaiting = false
	}()
}

// Settle runs what waits for work that is proven, unless another thread does so
// now: then it returns once that one has. So whoever has waited for the work finds
// nothing held any more that was held for it. It may block as what it runs, and
// waits for other goroutines: not with the GIL.
func (l *Line) Settle() {
	l.ask.Lock()
	ready := l.takeReady(false)
	l.ask.Unlock()
	if len(ready) > 0 { // in the mode that they have on the reaper
		l.context().Driver().Relaxed(func() { l.run(ready) })
	}
	l.ask.Lock()
	defer l.ask.Unlock()
	for l.moving > 0 {
		l.moved.Wait()
	}
}

// Owes reports whether [Line.Settle] has anything to do or to wait for.
func (l *Line) Owes() bool {
	l.ask.Lock()
	defer l.ask.Unlock()
	return l.moving > 0 || slices.ContainsFunc(l.waiters, func(w waiter) bool { return !l.Pending(w.pos) })
}

// Moving calls move, which takes what is held for work of the line from where
// [Line.Settle] cannot see it, and calls After: a Settle meanwhile waits for it.
// It must not block.
func (l *Line) Moving(move func()) {
	l.ask.Lock()
	l.moving++
	l.ask.Unlock()
	defer l.moveOver(1)
	move()
}

func (l *Line) moveOver(n int) {
	l.ask.Lock()
	defer l.ask.Unlock()
	if l.moving -= n; l.moving == 0 {
		l.moved.Broadcast()
	}
}

// run runs what takeReady has returned.
func (l *Line) run(ready []func()) {
	if len(ready) == 0 {
		return
	}
	defer l.moveOver(len(ready)) // also if one panics
	for _, then := range ready {
		then()
	}
}

// takeReady removes and returns the waiters whose work has completed, for run.
//
// Preconditions: l.ask is held.
func (l *Line) takeReady(all bool) (ready []func()) {
	left := l.waiters[:0]
	for _, w := range l.waiters {
		if all || !l.Pending(w.pos) {
			ready = append(ready, w.then)
		} else {
			left = append(left, w)
		}
	}
	clear(l.waiters[len(left):])
	l.waiters = left
	l.moving += len(ready)
	return ready
}

// end ends a line without pending work, on the reaper, since destroying its
// objects may have to wait.
func (l *Line) end() (err error) {
	l.mu.Lock()
	l.ask.Lock()
	slots, thens, done := l.slots, l.thens, l.done
	l.slots, l.thens, l.done, l.closed = [2]slot{}, nil, nil, true
	l.ask.Unlock()
	l.unlock()
	lines.mu.Lock()
	delete(lines.by, l)
	if l.s.Companion() == l {
		l.s.SetCompanion(nil)
	}
	lines.mu.Unlock()
	for _, sl := range slots {
		if sl.event != nil {
			err = errors.Join(err, sl.event.Close())
		}
	}
	if done != nil {
		done()
	}
	for _, then := range thens {
		err = errors.Join(err, then())
	}
	return err
}
