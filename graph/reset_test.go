// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// asks are the ways to ask a line how far it is.
var asks = map[string]func(*Line){
	"Mark":     func(l *Line) { _ = l.Mark() },
	"Marked":   func(l *Line) { _, _ = l.Marked() },
	"Prove":    (*Line).Prove,
	"ProveAll": func(*Line) { ProveAll() },
	"AfterAll": func(l *Line) { l.AfterAll(func() {}) },
	"After":    func(*Line) {}, // the reaper asks
	"Close":    func(l *Line) { l.Close(nil) },
}

// streamsOf are the streams that a line can be of.
var streamsOf = map[string]func(*cuda.Context, *cuda.Stream) *cuda.Stream{
	"own":     func(_ *cuda.Context, own *cuda.Stream) *cuda.Stream { return own },
	"foreign": func(c *cuda.Context, own *cuda.Stream) *cuda.Stream { return c.WrapStream(own.Handle()) },
	"default": func(c *cuda.Context, _ *cuda.Stream) *cuda.Stream { return c.DefaultStream(cuda.Legacy) },
}

func forLines(t *testing.T, test func(t *testing.T, ctx *cuda.Context, l *Line, g *hostGate, pos uint64, ask func(*Line))) {
	for kind, make := range streamsOf {
		for name, ask := range asks {
			t.Run(kind+"/"+name, func(t *testing.T) {
				ctx := open(t)
				s := make(ctx, newStream(t, ctx))
				gate := newGate(t)
				l, err := NewLine(s, LineOptions{})
				require.NoError(t, err)
				require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
				<-gate.entered
				pos, err := l.Marked()
				require.NoError(t, err)
				require.True(t, l.Pending(pos))
				test(t, ctx, l, gate, pos, ask)
				l.Close(nil)
				require.NoError(t, s.Close())
			})
		}
	}
}

// A reset ends all work, so whoever asks first learns that.
func TestResetProvesEverything(t *testing.T) {
	forLines(t, func(t *testing.T, ctx *cuda.Context, l *Line, gate *hostGate, pos uint64, ask func(*Line)) {
		gate.open()
		require.NoError(t, ctx.Device().Reset())
		ended := make(chan struct{})
		ask(l)
		l.After(pos, func() { close(ended) })
		<-ended
		require.False(t, l.Pending(pos))
	})
}

// A reset that is under way may be given up: until it is done it proves nothing.
func TestPendingResetProvesNothing(t *testing.T) {
	forLines(t, func(t *testing.T, ctx *cuda.Context, l *Line, gate *hostGate, pos uint64, ask func(*Line)) {
		failing.Store(true)       // what is refused meanwhile is told
		leave, err := ctx.Enter() // a call under way
		require.NoError(t, err)
		stop, result := make(chan struct{}), make(chan error, 1)
		go func() { result <- ctx.Device().ResetUnless(stop) }()
		eventually(t, "the reset waits", ctx.IsLost)
		ended := make(chan struct{})
		ask(l)
		l.After(pos, func() { close(ended) })
		steps(t)
		require.True(t, l.Pending(pos))
		close(stop)
		require.ErrorIs(t, <-result, cuda.ErrStopped)
		leave()
		require.False(t, ctx.IsLost())
		require.True(t, l.Pending(pos))
		_ = l.Mark()
		gate.open()
		<-ended
	})
}

// What an executable kept goes with a reset, and so does the executable.
func TestResetReleasesOperands(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	keep := tokens(2)
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	_, err = g.Host(gate.HostParams, NodeOptions{Operands: operands(keep...)})
	require.NoError(t, err)
	x, err := g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, g.Close())
	require.NoError(t, x.Close())
	kept(t, keep...)
	gate.open()
	require.NoError(t, ctx.Device().Reset())
	eventuallyReleased(t, keep...)
}
