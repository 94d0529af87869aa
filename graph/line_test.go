// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// Proof goes on while somebody marks all the time: the oldest mark stays.
func TestOldestMarkIsNeverRecordedAgain(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	first, second := newGate(t), newGate(t)
	l := LineOf(s)
	require.NoError(t, s.LaunchHostFunc(first.Fn, first.UserData))
	pos := l.Advance()
	require.NoError(t, l.Mark())
	for range 10 {
		require.NoError(t, s.LaunchHostFunc(second.Fn, second.UserData))
		l.Advance()
		require.NoError(t, l.Mark())
		require.Equal(t, l.Queued(), l.marked.Load())
	}
	first.open()
	<-second.entered
	// The second work is in the gate: only a mark before it can prove the first.
	eventually(t, "proven", func() bool { l.Prove(); return !l.Pending(pos) })
	require.Equal(t, pos, l.Proven())
	second.open()
	eventually(t, "proven", func() bool { l.Prove(); return !l.Pending(l.Queued()) })
}

// Once others have the handle the reaper leaves the stream alone: they may begin
// a capture in it at any time.
func TestReaperDoesNotRecordInExposedStreams(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	l.Expose()
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	pos := l.Advance()
	require.NoError(t, s.Synchronize())
	ended := make(chan struct{})
	l.After(pos, func() { close(ended) })
	steps(t)
	require.Zero(t, l.marked.Load())
	l.user.Store(-1) // as if by another thread
	ProveAll()
	require.Zero(t, l.marked.Load())
	l.Prove()
	require.Equal(t, pos, l.marked.Load())
	<-ended

	// Nobody queues any more, so nobody has it: the reaper may.
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	l.Advance()
	closed := make(chan struct{})
	l.Close(func() error { close(closed); return s.Close() })
	<-closed
	l.Close(nil)
	again := make(chan struct{})
	l.Close(func() error { close(again); return nil })
	<-again
}

// Events that users of an exposed stream record prove what is before them,
// without a call by a user.
func TestEventsOfUsersProve(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	l.Expose()
	gate := newGate(t)
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	pos := l.Advance()
	e, err := ctx.TakeEvent(true)
	require.NoError(t, err)
	require.NoError(t, s.Record(e))
	l.Behind(pos, e)
	require.Equal(t, pos, l.marked.Load())
	into := newStream(t, ctx)
	require.NoError(t, l.Join(pos, into)) // it covers
	idle, err := into.Done()
	require.NoError(t, err)
	require.False(t, idle)
	ended := make(chan struct{})
	l.After(pos, func() { close(ended) })
	steps(t)
	require.True(t, l.Pending(pos))
	gate.open()
	<-ended

	unrecorded, err := ctx.TakeEvent(true)
	require.NoError(t, err)
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	next := l.Advance()
	l.Behind(0, unrecorded)
	require.Equal(t, pos, l.marked.Load())
	l.Prove()
	eventually(t, "proven", func() bool { l.Prove(); return !l.Pending(next) })
}

// Recording an event can wait for a thread that instantiates a graph, and that
// one for a callback, which needs the GIL. So who may have the GIL does not wait
// for the one who records.
func TestNobodyWaitsForWhoIsInTheDriver(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	first := l.Advance()
	require.NoError(t, s.Synchronize())
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	second := l.Advance()

	l.mu.Lock() // as a thread inside cuEventRecord has it
	returned, ended, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(returned)
		l.Proved(first)
		LookAll()
		l.After(second, func() { close(ended) })
		l.Close(func() error { close(over); return nil })
	}()
	select {
	case <-returned:
	case <-time.After(patience):
		require.Fail(t, "they wait for the thread in the driver")
	}
	require.False(t, l.Pending(first))
	require.True(t, l.Pending(second))
	require.Zero(t, l.noted.Load())
	l.unlock()
	eventually(t, "noted by who was in the driver, or by the reaper", func() bool { return l.noted.Load() == first })
	gate.open()
	<-ended
	<-over
	require.Equal(t, second, l.Proven())
}

// LookAll learns what a mark knows, and has work marked that has none.
func TestLookAllHasWorkMarked(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l := LineOf(s)
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	pos := l.Advance()
	require.NoError(t, s.Synchronize())
	require.True(t, l.Pending(pos), "nobody has asked yet")
	LookAll()
	eventually(t, "the reaper has marked it", func() bool { return !l.Pending(pos) })
}

// A private stream is marked by the reaper, but not while a capture is open that
// it may join.
func TestReaperRecordsInPrivateStreams(t *testing.T) {
	ctx := open(t)
	s, capturing := newStream(t, ctx), newStream(t, ctx)
	l := LineOf(s)
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	pos := l.Advance()
	c := begin(t, capturing, Options{})
	ended := make(chan struct{})
	l.After(pos, func() { close(ended) })
	steps(t)
	require.Zero(t, l.marked.Load())
	require.NoError(t, c.Abort())
	<-ended
	require.Equal(t, pos, l.Proven())
}

func TestProveAllProvesWhatIsPending(t *testing.T) {
	ctx := open(t)
	a, b := newStream(t, ctx), newStream(t, ctx)
	for _, s := range []*cuda.Stream{a, b} {
		require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
		LineOf(s).Advance()
		require.NoError(t, s.Synchronize())
	}
	eventually(t, "proven", func() bool {
		ProveAll()
		return LineOf(a).Proven() == 1 && LineOf(b).Proven() == 1
	})
}

// A line is looked at as long as something is pending, also if that was queued
// while the line was left out.
func TestLineIsListedWhilePending(t *testing.T) {
	ctx := open(t)
	l := LineOf(newStream(t, ctx))
	for range rounds(20_000) {
		l.Advance()
		var wg sync.WaitGroup
		wg.Go(func() { l.Proved(l.Queued()) })
		l.Advance()
		wg.Wait()
		if l.Pending(l.Queued()) {
			require.True(t, l.listed.Load())
		}
	}
	l.Proved(l.Queued())
	require.False(t, l.listed.Load())
}

// Somebody has begun a capture between work in a stream of another library and
// its mark: the work may be in flight until a mark can be recorded.
func TestMarkBehindACapture(t *testing.T) {
	ctx := open(t)
	own := newStream(t, ctx)
	s := ctx.WrapStream(own.Handle())
	gate := newGate(t)
	l := LineOf(s)
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	c := begin(t, own, Options{})
	pos, err := l.Marked()
	require.ErrorIs(t, err, ErrLineCapturing)
	require.ErrorIs(t, l.Join(pos, newStream(t, ctx)), ErrLineCapturing)
	l.Prove()
	require.Zero(t, l.marked.Load())
	require.NoError(t, c.Abort())
	require.NoError(t, l.Mark())
	require.Equal(t, pos, l.marked.Load())
	require.True(t, l.Pending(pos))
	gate.open()
	eventually(t, "proven", func() bool { l.Prove(); return !l.Pending(pos) })
	require.NoError(t, s.Close())
}

// What the per-thread default stream has captured is not in flight.
func TestCapturedWorkOfAThreadIsNotPending(t *testing.T) {
	ctx := open(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := ctx.DefaultStream(cuda.PerThread)
	l := LineOf(s)
	c := begin(t, s, Options{})
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 1))
	pos, err := l.Marked()
	require.ErrorIs(t, err, ErrLineCapturing)
	l.Prove()
	require.False(t, l.Pending(pos))
	require.NoError(t, c.Abort())
}

// A wait of one thread for its default stream says nothing about that of another.
func TestAThreadHasWaitedForItsOwnWork(t *testing.T) {
	ctx := open(t)
	s := ctx.DefaultStream(cuda.PerThread)
	l := LineOf(s)
	gate := newGate(t)
	queued, failed := make(chan uint64, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: it has a stream of its own
		launched := s.LaunchHostFunc(gate.Fn, gate.UserData)
		pos, marked := l.Marked()
		failed <- errors.Join(launched, marked)
		queued <- pos
	}()
	require.NoError(t, <-failed)
	theirs := <-queued
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, s.Synchronize())
	l.Waited(l.Queued())
	require.True(t, l.Pending(theirs))
	gate.open()
	eventually(t, "proven", func() bool { l.Waited(theirs); return !l.Pending(theirs) })
}

// The second of two lines of one stream has positions of its own; the first is
// the one that LineOf returns.
func TestTwoLinesOfOneStream(t *testing.T) {
	ctx := open(t)
	legacy := ctx.DefaultStream(cuda.Legacy)
	first, err := NewLine(legacy, LineOptions{})
	require.NoError(t, err)
	second, err := NewLine(legacy, LineOptions{})
	require.NoError(t, err)
	require.Same(t, first, LineOf(legacy))
	pos, err := second.Marked()
	require.NoError(t, err)
	require.Equal(t, uint64(1), pos)
	require.Zero(t, first.Queued())
	for _, l := range []*Line{first, second} {
		closed := make(chan struct{})
		l.Close(func() error { close(closed); return nil })
		<-closed
	}
	require.NotSame(t, first, LineOf(legacy))
	require.NotSame(t, second, LineOf(legacy))
}

func TestLineOfAClosedStream(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	require.NoError(t, s.Close())
	_, err := NewLine(s, LineOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
	l := LineOf(s)
	ran := false
	l.AfterAll(func() { ran = true })
	require.True(t, ran)
	require.NoError(t, l.Mark())
}

// A lineHammer is what everybody does to one line at once.
type lineHammer struct {
	l                      *Line
	into                   *cuda.Stream
	work                   cuda.HostParams
	launched, ended, early atomic.Int64
	queueing               sync.RWMutex // what is queued during a capture would not run
}

func (h *lineHammer) queue(rnd *rand.Rand) error {
	h.queueing.RLock()
	defer h.queueing.RUnlock()
	if err := h.l.Stream().LaunchHostFunc(h.work.Fn, h.work.UserData); err != nil {
		return err
	}
	least := h.launched.Add(1) // works are not told apart: so many were queued before
	pos := h.l.Advance()
	switch rnd.IntN(3) {
	case 0:
		return h.l.Mark()
	case 1:
		h.l.AfterAll(func() {
			if h.ended.Load() < least {
				h.early.Add(1)
			}
		})
	case 2:
		return h.l.Join(pos, h.into)
	}
	return nil
}

func (h *lineHammer) prove(*rand.Rand) error {
	h.l.Prove()
	ProveAll()
	return nil
}

func (h *lineHammer) capture(*rand.Rand) error {
	h.queueing.Lock()
	defer h.queueing.Unlock()
	c, err := Begin(h.l.Stream(), cuda.CaptureRelaxed, Options{})
	if err != nil {
		return err
	}
	if err := recordHost(c, h.l.Stream(), "", h.work, nil); err != nil {
		return err
	}
	g, err := c.End()
	if err != nil {
		return err
	}
	return g.Close()
}

// Everybody uses one line at once, while it is captured again and again. What
// runs after a position runs after its work.
func TestHammerOneLine(t *testing.T) {
	ctx := open(t)
	l, err := NewLine(newStream(t, ctx), LineOptions{})
	require.NoError(t, err)
	h := &lineHammer{l: l, into: newStream(t, ctx)}
	h.work = hostFunc(func() { h.ended.Add(1) })
	var wg sync.WaitGroup
	for i, do := range []func(*rand.Rand) error{h.queue, h.queue, h.prove, h.capture} {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 4))
			for range rounds(1000) {
				if err := do(rnd); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closed := make(chan struct{})
	l.Close(func() error { close(closed); return nil })
	<-closed
	require.Equal(t, h.launched.Load(), h.ended.Load())
	require.Zero(t, h.early.Load())
	require.NoError(t, h.into.Synchronize())
}

func BenchmarkLine(b *testing.B) {
	ctx := open(b)
	s := newStream(b, ctx)
	l := LineOf(s)
	b.Run("Advance", func(b *testing.B) {
		for b.Loop() {
			l.Advance()
		}
	})
	b.Run("Pending", func(b *testing.B) {
		for b.Loop() {
			l.Pending(1)
		}
	})
	b.Run("Mark", func(b *testing.B) {
		for b.Loop() {
			l.Advance()
			_ = l.Mark()
		}
	})
	b.Run("Prove", func(b *testing.B) {
		for b.Loop() {
			l.Advance()
			l.Prove()
		}
	})
	require.NoError(b, s.Synchronize())
	l.Proved(l.Queued())
}

// A closed line takes no position for work that it need not wait for.
func TestAfterAllSaysWhetherItTookAPosition(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	ran := make(chan struct{}, 2)
	require.True(t, l.AfterAll(func() { ran <- struct{}{} }))
	<-ran
	require.Equal(t, uint64(1), l.Queued())
	closed := make(chan struct{})
	l.Close(func() error { close(closed); return nil })
	<-closed
	require.False(t, l.AfterAll(func() { ran <- struct{}{} }))
	<-ran
	require.Equal(t, uint64(1), l.Queued())
}
