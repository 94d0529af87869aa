// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A covered stream is one of another library, whose users record one event behind
// each work, as the border does.
type covered struct {
	*Line
	t   *testing.T
	raw *cuda.Stream

	mu    sync.Mutex  // the reaper takes the event too
	pos   uint64      // guarded by mu
	event *cuda.Event // guarded by mu
}

func newCovered(t *testing.T, ctx *cuda.Context, s *cuda.Stream) *covered {
	c := &covered{t: t, raw: ctx.WrapStream(s.Handle())}
	l, err := NewLine(c.raw, LineOptions{Latest: func() (uint64, *cuda.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		pos, e := c.pos, c.event
		c.pos, c.event = 0, nil
		return pos, e
	}})
	require.NoError(t, err)
	c.Line = l
	t.Cleanup(func() { l.Close(nil) })
	return c
}

// work records the event in a stream, behind what was queued there.
func (c *covered) work(in *cuda.Stream) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.event == nil {
		e, err := c.raw.Context().TakeEvent(true)
		require.NoError(c.t, err)
		c.event = e
	}
	c.pos = c.Advance()
	require.NoError(c.t, in.Record(c.event))
	return c.pos
}

func TestLatestEventProves(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l := newCovered(t, ctx, s)
	gate := newGate(t)
	for range 3 {
		l.work(s)
	}
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	pos := l.work(s)
	require.NoError(t, l.Join(pos, newStream(t, ctx))) // taken, though nobody looked before
	require.Nil(t, l.event)
	ended := make(chan struct{})
	l.After(pos, func() { close(ended) })
	steps(t)
	require.True(t, l.Pending(pos))
	later := l.work(s)
	gate.open()
	<-ended
	l.After(later, func() {})
	eventually(t, "proven", func() bool { return !l.Pending(later) })
}

// The handle may be another stream's by now: what the event stands behind there
// comes before the marks that follow.
func TestLatestEventComesBeforeLaterMarks(t *testing.T) {
	ctx := open(t)
	s, gone := newStream(t, ctx), newStream(t, ctx)
	l := newCovered(t, ctx, s)
	gate := newGate(t)
	require.NoError(t, gone.LaunchHostFunc(gate.Fn, gate.UserData))
	pos := l.work(gone)
	next, err := l.Marked() // of a stream whose work has ended
	require.NoError(t, err)
	require.NoError(t, s.Synchronize())
	for range 3 {
		l.Prove()
	}
	require.True(t, l.Pending(pos))
	gate.open()
	eventually(t, "proven", func() bool { l.Prove(); return !l.Pending(next) })
}

// Also if it is handed over after a mark was made.
func TestEventBehindEarlierWorkIsKept(t *testing.T) {
	ctx := open(t)
	s, gone := newStream(t, ctx), newStream(t, ctx)
	l := newCovered(t, ctx, s)
	gate, held := newGate(t), newGate(t)
	require.NoError(t, gone.LaunchHostFunc(gate.Fn, gate.UserData))
	require.NoError(t, s.LaunchHostFunc(held.Fn, held.UserData))
	pos := l.work(gone)
	e := l.event
	l.event = nil
	next, err := l.Marked()
	require.NoError(t, err)
	l.Behind(pos, e)
	held.open()
	require.NoError(t, s.Synchronize())
	l.Prove()
	require.True(t, l.Pending(pos))
	gate.open()
	eventually(t, "proven", func() bool { l.Prove(); return !l.Pending(next) })
}
