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
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	s, err := ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	// Nobody can launch in it any more, but its last launch still counts.
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

func TestSharedStreams(t *testing.T) {
	ctx := open(t)
	own := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(2)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	foreign := ctx.WrapStream(own.Handle())
	perThread := ctx.DefaultStream(cuda.PerThread)
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

// While a stream is capturing no event is recorded in it: that would invalidate the
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

// What this package destroys invalidates no global capture of another thread.
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

// byHandle is a launcher by handle: C code that makes the launches itself, in a
// stream whose line has its counters where C can read them.
type byHandle struct {
	x                      *Exec
	line                   *Line
	queued, proven, marked atomic.Uint64
	latest, launches       uint64
	counted                uint64 // positions that OnProven has told
}

func newByHandle(t *testing.T, s *cuda.Stream) *byHandle {
	h := &byHandle{}
	var err error
	h.line, err = NewLine(s, LineOptions{
		Queued: &h.queued, Proven: &h.proven, Marked: &h.marked, OnProven: func(n uint64) { h.counted += n },
	})
	require.NoError(t, err)
	return h
}

func (h *byHandle) uses() []Use { return []Use{{h.line, h.latest}} }

func (h *byHandle) launch(t *testing.T) {
	h.launches++
	s := h.line.Stream()
	require.Zero(t, s.Context().Driver().RawGraphLaunch(uintptr(h.x.Handle()), s.Handle()))
	h.latest = h.queued.Add(1)
}

func TestLaunchesByHandle(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(4)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	h := newByHandle(t, s)
	require.Same(t, h.line, LineOf(s))
	h.x = instantiate(t, g, ExecOptions{Uses: h.uses, Launches: func() uint64 { return h.launches }})
	require.NoError(t, g.Close())
	call := h.x.Node("call")

	h.launch(t)
	<-gate.entered
	require.NoError(t, call.UpdateHost(gate.HostParams, operands(k[1])))
	steps(t)
	kept(t, k[0])
	require.Equal(t, uint64(1), h.marked.Load())
	// Nothing was launched since.
	require.NoError(t, call.UpdateHost(gate.HostParams, operands(k[2])))
	released(t, k[1])
	h.launch(t)
	require.NoError(t, call.UpdateHost(gate.HostParams, operands(k[3])))
	steps(t)
	kept(t, k[0], k[2])
	gate.open()
	eventuallyReleased(t, k[0], k[2])
	require.Equal(t, uint64(2), h.proven.Load())
	require.Equal(t, uint64(2), h.counted)
	require.NoError(t, h.x.Close())
	released(t, k[3])
}

func TestUncountedLaunchesByHandleAreAssumed(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(3)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	h := newByHandle(t, s)
	h.x = instantiate(t, g, ExecOptions{Uses: h.uses})
	require.NoError(t, g.Close())
	require.NoError(t, h.x.Node("call").UpdateHost(gate.HostParams, operands(k[1])))
	released(t, k[0]) // nothing is in flight
	h.launch(t)
	<-gate.entered
	require.NoError(t, h.x.Node("call").UpdateHost(gate.HostParams, operands(k[2])))
	steps(t)
	kept(t, k[1])
	gate.open()
	eventuallyReleased(t, k[1])
}

// A launch by handle and one of Go's, in two streams: the last one counts.
func TestOperandsWaitForBothKindsOfLaunches(t *testing.T) {
	ctx := open(t)
	s, other := newStream(t, ctx), newStream(t, ctx)
	gate, block := newGate(t), newGate(t)
	k := tokens(1)
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(k...))
	h := newByHandle(t, s)
	h.x = instantiate(t, g, ExecOptions{Uses: h.uses, Launches: func() uint64 { return h.launches }})
	require.NoError(t, g.Close())
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	h.launch(t)
	require.NoError(t, other.LaunchHostFunc(block.Fn, block.UserData))
	require.NoError(t, h.x.Launch(other))
	require.NoError(t, h.x.Close())
	require.Equal(t, 1, Live()["GraphExec"])
	gate.open()
	eventually(t, "the launch by handle has ended", func() bool { return h.proven.Load() == 1 })
	steps(t)
	kept(t, k...)
	require.Equal(t, 1, Live()["GraphExec"])
	block.open()
	eventuallyReleased(t, k...)
}
