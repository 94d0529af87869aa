// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

func TestStreamClosedFirst(t *testing.T) {
	ctx := open(t)
	gate := newGate(t)
	k := tokens(2)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	s, err := ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, s.Close())
	require.Equal(t, 1, ctx.Driver().Live()["Stream"]) // the executable keeps the handle
	require.NoError(t, x.Node("call").UpdateHost(gate.HostParams, operands(k[1])))
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	gate.open()
	eventuallyReleased(t, k...)
	require.True(t, Reaper().Flush(patience))
	require.Zero(t, ctx.Driver().Live()["Stream"])
}

func TestStreamClosedLetsItsHandleGo(t *testing.T) {
	ctx := open(t)
	gate := newGate(t)
	k := tokens(2)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	var forgotten []*cuda.Stream
	x := instantiate(t, g, ExecOptions{OnForget: func(s *cuda.Stream) { forgotten = append(forgotten, s) }})
	require.NoError(t, g.Close())
	s, err := ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, s.Close())
	StreamClosed(s)
	StreamClosed(s)
	require.Equal(t, []*cuda.Stream{s}, forgotten)
	// The set no longer has the stream, but its last launch still counts.
	require.NoError(t, x.Node("call").UpdateHost(gate.HostParams, operands(k[1])))
	steps(t)
	kept(t, k...)
	gate.open()
	eventuallyReleased(t, k[0])
	require.True(t, Reaper().Flush(patience))
	require.Zero(t, ctx.Driver().Live()["Stream"])
	kept(t, k[1])
	require.NoError(t, x.Close())
	released(t, k[1]) // nothing was launched since
}

func TestManyStreamsOneAfterTheOther(t *testing.T) {
	ctx := open(t)
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(tokens(1)...))
	x := instantiate(t, g, ExecOptions{})
	for range 50 {
		s, err := ctx.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, x.Launch(s))
		require.NoError(t, s.Close())
		require.True(t, Reaper().Flush(patience))
	}
	require.LessOrEqual(t, ctx.Driver().Live()["Stream"], 2)
}

func TestStreamsThatCannotBeNoted(t *testing.T) {
	ctx := open(t)
	own := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(2)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	foreign := ctx.WrapStream(own.Handle())
	perThread := ctx.DefaultStream(cuda.PerThread)
	for _, s := range []*cuda.Stream{foreign, perThread} {
		require.ErrorContains(t, x.NoteStream(s), "stream must be one that cudago owns")
	}
	require.NoError(t, x.Launch(foreign))
	<-gate.entered
	// On a thread that ends with its goroutine: only an event of that thread can
	// tell when this launch ends.
	launched := make(chan error)
	go func() {
		runtime.LockOSThread()
		launched <- x.Launch(perThread)
	}()
	require.NoError(t, <-launched)
	require.NoError(t, x.Node("call").UpdateHost(gate.HostParams, operands(k[1])))
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	gate.open()
	eventuallyReleased(t, k...)
}

func TestMarksArePruned(t *testing.T) {
	ctx := open(t)
	own := newStream(t, ctx)
	g := hostGraph(t, ctx, hostFunc(func() {}), nil)
	x := instantiate(t, g, ExecOptions{})
	foreign := ctx.WrapStream(own.Handle())
	for range 100 {
		require.NoError(t, x.Launch(foreign))
		require.NoError(t, own.Synchronize())
	}
	require.LessOrEqual(t, ctx.Driver().Live()["Event"], 2)
	require.NoError(t, x.Close()) // no operands, but events to close
	require.True(t, Reaper().Flush(patience))
	require.Zero(t, ctx.Driver().Live()["Event"])
}

// While a stream is capturing no event is recorded in it: that would spoil the
// capture. The operands wait for its end.
func TestReleaseWaitsForTheEndOfACapture(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	k := tokens(2)
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())

	c := begin(t, s, Options{})
	require.NoError(t, x.Node("call").UpdateHost(hostFunc(func() {}), operands(k[1])))
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	require.NoError(t, recordHost(c, s, "a", hostFunc(func() {}), nil))
	captured, err := c.End()
	require.NoError(t, err)
	require.Len(t, captured.Nodes(), 1)
	require.NoError(t, captured.Close())
	eventuallyReleased(t, k...)
}

// What this package destroys spoils no global capture of another thread.
func TestGlobalCaptureSurvivesOurTeardown(t *testing.T) {
	ctx := open(t)
	s, capturing := newStream(t, ctx), newStream(t, ctx)
	gate := newGate(t)
	k := tokens(1)
	g := hostGraph(t, ctx, gate.HostParams, operands(k...))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	<-gate.entered

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := Begin(capturing, cuda.CaptureGlobal, Options{})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		y, err := g.Instantiate(ExecOptions{})
		if err == nil {
			err = y.Close()
		}
		if err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	<-done
	gate.open()
	eventuallyReleased(t, k...)
	require.True(t, Reaper().Flush(patience))
	captured, err := c.End()
	require.NoError(t, err)
	require.NoError(t, captured.Close())
}

// A launcher by handle is C code that makes the launches itself.
func TestLaunchesByHandle(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(4)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	var busy atomic.Bool
	var launches atomic.Uint64
	x := instantiate(t, g, ExecOptions{Busy: busy.Load, Launches: launches.Load})
	require.NoError(t, g.Close())
	call := x.Node("call")

	// Busy, but the stream has not got the launch yet.
	require.NoError(t, x.NoteStream(s))
	busy.Store(true)
	launches.Add(1)
	require.NoError(t, call.UpdateHost(gate.HostParams, operands(k[1])))
	steps(t)
	kept(t, k[0])
	require.Zero(t, ctx.Driver().RawGraphLaunch(uintptr(x.Handle()), s.Handle()))
	busy.Store(false)
	<-gate.entered
	steps(t)
	kept(t, k[0])
	// op1 came while a launch was inside the driver, which may have got it.
	require.NoError(t, call.UpdateHost(gate.HostParams, operands(k[2])))
	kept(t, k[1])
	// op2 did not, and nothing was launched since.
	require.NoError(t, call.UpdateHost(gate.HostParams, operands(k[3])))
	released(t, k[2])
	gate.open()
	eventuallyReleased(t, k[0], k[1])
	kept(t, k[3])

	busy.Store(true)
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k[3])
	busy.Store(false)
	eventuallyReleased(t, k[3])
}

func TestUncountedLaunchesByHandleAreAssumed(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(3)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, x.Node("call").UpdateHost(gate.HostParams, operands(k[1])))
	released(t, k[0])
	require.NoError(t, x.NoteStream(s))
	require.NoError(t, x.NoteStream(s))
	require.Zero(t, ctx.Driver().RawGraphLaunch(uintptr(x.Handle()), s.Handle()))
	<-gate.entered
	require.NoError(t, x.Node("call").UpdateHost(gate.HostParams, operands(k[2])))
	steps(t)
	kept(t, k[1])
	gate.open()
	eventuallyReleased(t, k[1])
}
