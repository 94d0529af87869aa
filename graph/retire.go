// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

var (
	onWarning     atomic.Pointer[func(error)]
	defaultReaper = sync.OnceValue(func() *finalize.Reaper {
		return finalize.NewReaper(finalize.ReaperOptions{Report: warn})
	})
)

// Reaper returns the reaper of all executables that were given none of their
// own. It starts its goroutine when something first has to be waited for.
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

// A retirement is what the reaper knows of an executable. Only the reaper's
// goroutine touches it while the executable is queued.
type retirement struct {
	// batches wait for the device, oldest first. They end in that order: a later
	// one waits for later events of the same streams.
	batches []*batch
	spare   []*cuda.Event
	last    string // the latest error reported, so that polling reports it once
}

// A batch is what was retired between two polls, with the events after which
// no launch can use it.
type batch struct {
	bundles []*bundle
	waits   []*wait
	marks   uint64 // marks up to this number must have ended too
}

// A wait is one stream's part of a batch.
type wait struct {
	n       *noted
	leaving bool        // n is let go with this wait
	event   *cuda.Event // nil until recorded
	ended   bool
}

// queue has the reaper step x.
//
// Preconditions: x.mu is held.
func (x *Exec) queue() {
	if x.queued {
		x.reaper.Wake()
		return
	}
	if !x.reaper.Add((*reaped)(x)) {
		live.abandoned.Add(1) // at exit, on purpose: nobody is left to wait
		return
	}
	x.queued = true
}

// reaped is an Exec as an item of the reaper.
type reaped Exec

// Step implements [finalize.Item]: it gathers what was retired, records events
// behind the launches that may use it, and releases what those have passed.
//
// It runs in relaxed capture mode. In another mode, destroying an executable
// and asking for an event's state would spoil every global capture in the
// process.
func (r *reaped) Step() (done bool, err error) {
	x := (*Exec)(r)
	x.h.ctx.Driver().Relaxed(func() { done, err = x.step() })
	if err == nil {
		x.retirement.last = ""
	} else if err.Error() == x.retirement.last {
		err = nil
	} else {
		x.retirement.last = err.Error()
	}
	return done, err
}

func (x *Exec) step() (done bool, err error) {
	x.gather()
	err = x.record()
	freed, perr := x.poll()
	err = errors.Join(err, perr)
	done, destroy := x.finish()
	if destroy {
		refused, derr := x.destroy()
		if refused {
			done = x.stay()
		}
		// What failed for another reason is not tried again. It cannot be launched
		// any more either, so the operands can go.
		err = errors.Join(err, derr)
	}
	x.letGo(freed)
	return done, err
}

// gather puts what was retired in a batch; not while a launch is inside the
// driver, which may have read the old parameters and not yet have put its work
// into the stream, nor made its mark. Launches that begin later do not use what
// was retired.
func (x *Exec) gather() {
	r := &x.retirement
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.busy() {
		return
	}
	// An executable without operands may still have marks to wait for and close.
	last := x.closed && len(x.marks) > 0 && len(r.batches) == 0
	if len(x.retired)+len(x.leaving) > 0 || last {
		b := r.open()
		b.bundles = append(b.bundles, x.retired...)
		b.marks = x.marked
		for _, n := range x.leaving {
			b.waitFor(n, r).leaving = true
		}
		for _, n := range x.streams {
			b.waitFor(n, r)
		}
		x.retired, x.leaving = nil, nil
	}
}

// open returns the batch to add to: the newest if it still lacks an event, so
// that a stream which is capturing for long does not cost a batch per update.
func (r *retirement) open() *batch {
	if n := len(r.batches); n > 0 {
		if b := r.batches[n-1]; slices.ContainsFunc(b.waits, func(w *wait) bool { return w.event == nil && !w.ended }) {
			return b
		}
	}
	b := &batch{}
	r.batches = append(r.batches, b)
	return b
}

// waitFor makes b wait for all that is in n from now on.
func (b *batch) waitFor(n *noted, r *retirement) *wait {
	for _, w := range b.waits {
		if w.n == n {
			if w.event != nil {
				r.putBack(w.event) // recorded anew: it moves behind later launches
			}
			w.event, w.ended = nil, false
			return w
		}
	}
	w := &wait{n: n}
	b.waits = append(b.waits, w)
	return w
}

// record records events, where that is possible now.
func (x *Exec) record() error {
	r := &x.retirement
	var err error
	for _, b := range r.batches {
		for _, w := range b.waits {
			if w.event == nil && !w.ended {
				err = errors.Join(err, r.recordOne(w))
			}
		}
	}
	return err
}

// recordOne records w's event, unless its stream is capturing: the record would
// become part of the capture, and the event would be useless.
func (r *retirement) recordOne(w *wait) error {
	s := w.n.raw
	if ok, err := isRecordable(s); err != nil || !ok {
		return w.endIfGone(err)
	}
	e, err := r.takeEvent(s.Context())
	if err != nil {
		return w.endIfGone(err)
	}
	if err := s.Record(e); err != nil {
		e.Close()
		if isCaptureRefusal(err) {
			return nil
		}
		return w.endIfGone(err)
	}
	// A capture may have begun between the question and the record. To ask such
	// an event for its state would spoil that capture, so ask the stream again.
	if ok, err := isRecordable(s); err != nil || !ok {
		e.Close()
		return w.endIfGone(err)
	}
	w.event = e
	return nil
}

// isRecordable reports whether s is not capturing. Asking about the legacy
// default stream is an error while a stream that it waits for is capturing.
func isRecordable(s *cuda.Stream) (bool, error) {
	st, err := s.IsCapturing()
	if err != nil {
		if isCaptureRefusal(err) {
			err = nil
		}
		return false, err
	}
	return st == cuda.CaptureNone, nil
}

// endIfGone ends the wait if err says that the device has stopped for good.
func (w *wait) endIfGone(err error) error {
	if err != nil && isGone(err) {
		w.ended = true
		return nil
	}
	return err
}

// poll takes out the batches that are over and returns their bundles.
func (x *Exec) poll() (freed []*bundle, err error) {
	r := &x.retirement
	for len(r.batches) > 0 {
		b := r.batches[0]
		over, err := x.isOver(b)
		if err != nil || !over {
			return freed, err
		}
		for _, w := range b.waits {
			if w.leaving {
				w.n.done()
			}
		}
		freed = append(freed, b.bundles...)
		r.batches = r.batches[1:]
	}
	return freed, nil
}

func (x *Exec) isOver(b *batch) (bool, error) {
	for _, w := range b.waits {
		if w.ended {
			continue
		}
		if w.event == nil {
			return false, nil
		}
		done, err := w.event.Query()
		if errors.Is(err, cuda.ErrorCapturedEvent) {
			// Both questions in recordOne missed a short capture.
			w.event.Close()
			w.event = nil
			return false, nil
		}
		if err != nil && !isGone(err) {
			return false, err
		}
		if err == nil && !done {
			return false, nil
		}
		x.retirement.putBack(w.event)
		w.event, w.ended = nil, true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.pruneMarks(); err != nil {
		return false, err
	}
	return len(x.marks) == 0 || x.marks[0].number > b.marks, nil
}

// finish reports whether the reaper has nothing more to do for x, and whether
// it is to destroy it now.
func (x *Exec) finish() (done, destroy bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.retirement.batches)+len(x.retired)+len(x.leaving) > 0 {
		return false, false
	}
	if x.closed && x.busy() {
		return false, false
	}
	x.queued = false
	x.retirement.trim(keepEvents)
	return true, x.closed
}

// stay keeps x with the reaper after all.
func (x *Exec) stay() (done bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queued = true
	return false
}

func (r *retirement) takeEvent(ctx *cuda.Context) (*cuda.Event, error) {
	if n := len(r.spare); n > 0 && r.spare[n-1].Context() == ctx {
		e := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return e, nil
	}
	return ctx.NewEvent(cuda.EventOptions{})
}

func (r *retirement) putBack(e *cuda.Event) { r.spare = append(r.spare, e) }

// keepEvents is how many events an executable keeps for its next update.
const keepEvents = 4

func (r *retirement) trim(keep int) {
	for len(r.spare) > keep {
		r.spare[len(r.spare)-1].Close()
		r.spare = r.spare[:len(r.spare)-1]
	}
}
