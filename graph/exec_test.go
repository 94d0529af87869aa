// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// hostGraph makes a graph of one host node, named "call".
func hostGraph(t testing.TB, ctx *cuda.Context, p cuda.HostParams, ops []Operand) *Graph {
	t.Helper()
	g := newTestGraph(t, ctx, Options{})
	_, err := g.Host(p, NodeOptions{Name: "call", Operands: ops})
	require.NoError(t, err)
	return g
}

func instantiate(t testing.TB, g *Graph, o ExecOptions) *Exec {
	t.Helper()
	x, err := g.Instantiate(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func TestExecHoldsAfterItsGraphIsClosed(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var m mirror
	var ran atomic.Int64
	k := tokens(1)
	g := hostGraph(t, ctx, hostFunc(func() { ran.Add(1) }), operands(k...))
	x := instantiate(t, g, ExecOptions{OnBundle: m.apply})
	m.holds(t, k...)
	require.NoError(t, g.Close())
	for range 3 {
		require.NoError(t, x.Launch(s))
	}
	require.NoError(t, s.Synchronize())
	require.Equal(t, int64(3), ran.Load())
	kept(t, k...)
	require.Equal(t, []string{"call:op0"}, names(x.Retained()))
	require.Equal(t, []Retainer{k[0]}, x.Retainers())

	require.False(t, x.IsClosed())
	require.NoError(t, x.Close())
	require.True(t, x.IsClosed())
	m.holds(t)
	eventuallyReleased(t, k...)
	require.NoError(t, x.Close())
	require.ErrorIs(t, x.Launch(s), cuda.ErrClosed)
	require.ErrorIs(t, x.Upload(s), cuda.ErrClosed)
	require.ErrorIs(t, x.Node("call").UpdateHost(hostFunc(func() {}), nil), cuda.ErrClosed)
}

func TestExecNeverLaunchedReleasesAtOnce(t *testing.T) {
	ctx := open(t)
	k := tokens(2)
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, x.Node("call").UpdateHost(hostFunc(func() {}), operands(k[1])))
	released(t, k[0])
	kept(t, k[1])
	require.NoError(t, x.Close())
	released(t, k[1])
}

func TestExecClosedInFlight(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(1)
	k[0].at = func() {
		select {
		case <-gate.opened:
		default:
			t.Error("released while the launch was under way")
		}
	}
	g := hostGraph(t, ctx, gate.HostParams, operands(k...))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, g.Close())
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	require.Equal(t, 1, Live()["GraphExec"])
	gate.open()
	eventuallyReleased(t, k...)
	require.NoError(t, s.Synchronize())
}

func TestExecWaitsForEachOfItsStreams(t *testing.T) {
	ctx := open(t)
	a, b := newStream(t, ctx), newStream(t, ctx)
	block := newGate(t)
	var ran atomic.Int64
	k := tokens(1)
	g := hostGraph(t, ctx, hostFunc(func() { ran.Add(1) }), operands(k...))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(a))
	require.NoError(t, a.Synchronize())
	require.NoError(t, b.LaunchHostFunc(block.Fn, block.UserData))
	require.NoError(t, x.Launch(b)) // behind the gate
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	block.open()
	eventuallyReleased(t, k...)
	require.Equal(t, int64(2), ran.Load())
}

func TestUpdateInFlight(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	var m mirror
	var second atomic.Int64
	k := tokens(3)
	g := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	x := instantiate(t, g, ExecOptions{OnBundle: m.apply})
	require.NoError(t, g.Close())
	call := x.Node("call")
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, call.UpdateHost(hostFunc(func() { second.Add(1) }), operands(k[1])))
	m.holds(t, k[1]) // the hold of the launch under way is not the owner's
	steps(t)
	kept(t, k[0], k[1])

	// Never launched with op1: it goes at once, op0 stays.
	require.NoError(t, call.UpdateHost(hostFunc(func() { second.Add(1) }), operands(k[2])))
	released(t, k[1])
	kept(t, k[0], k[2])

	gate.open()
	eventuallyReleased(t, k[0])
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, int64(1), second.Load())
	kept(t, k[2])
	require.NoError(t, x.Close())
	eventuallyReleased(t, k[2])
}

func TestRejectedUpdateChangesNothing(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 2, 64)
	var m mirror
	k := tokens(6)
	g := newTestGraph(t, ctx, Options{})
	params := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: b[1].Ptr(), Size: 64}
	_, err := g.Memcpy(params, NodeOptions{Name: "copy", Operands: operands(k[0])})
	require.NoError(t, err)
	_, err = g.Empty(NodeOptions{Name: "join"})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{OnBundle: m.apply})
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(s))

	copyNode := x.Node("copy")
	require.Nil(t, x.Node("nobody"))
	require.Equal(t, cuda.MemcpyNode, copyNode.Kind())
	require.Same(t, x, copyNode.Exec())
	require.Equal(t, []*ExecNode{copyNode, x.Node("join")}, x.Nodes())

	zero := params
	zero.Size = 0
	require.ErrorIs(t, copyNode.UpdateMemcpy(zero, operands(k[1])), cuda.ErrorInvalidValue)
	require.ErrorContains(t, copyNode.UpdateMemset(cuda.MemsetParams{}, operands(k[2])), "is of kind memcpy and cannot take the parameters of kind memset")
	require.ErrorContains(t, copyNode.UpdateKernel(cuda.KernelNodeParams{}, operands(k[3])), "kernel must not be nil")
	require.ErrorContains(t, x.Node("join").UpdateHost(hostFunc(func() {}), operands(k[4])),
		`node "join" is of kind empty, whose parameters cannot be updated; those of nodes that allocate, free, join or branch cannot`)
	released(t, k[1], k[2], k[3], k[4])
	kept(t, k[0])
	m.holds(t, k[0])
	require.Equal(t, params, copyNode.Params())

	other := params
	other.Src, other.Dst = params.Dst, params.Src
	require.NoError(t, copyNode.UpdateMemcpy(other, operands(k[5])))
	require.Equal(t, other, copyNode.Params())
	eventuallyReleased(t, k[0])
	require.Equal(t, []string{"copy:op5"}, names(copyNode.Retained()))
}

// What was updated away and can still be used goes when its launches have
// ended; the number of bundles stays bounded by the launches under way.
func TestManyUpdates(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	first := &token{name: "first"}
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(first))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	call := x.Node("call")
	p := hostFunc(func() {})
	const n, every = 10_000, 100
	most := 0
	for i := range n {
		require.NoError(t, call.UpdateHost(p, operands(&token{name: "op"})))
		if i%10 == 0 {
			require.NoError(t, x.Launch(s))
		}
		if i%every == 0 {
			require.NoError(t, s.Synchronize())
			require.True(t, Reaper().Flush(patience))
			require.Equal(t, 1, Live()["Bundle"])
		}
		most = max(most, Live()["Bundle"])
	}
	released(t, first)
	require.LessOrEqual(t, most, every/10+2)
}

func TestUpdatesWithoutLaunchesStayBoundedInFlight(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(1)
	g := hostGraph(t, ctx, gate.HostParams, operands(k...))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(s))
	<-gate.entered
	for range 10_000 {
		require.NoError(t, x.Node("call").UpdateHost(gate.HostParams, operands(&token{name: "op"})))
	}
	require.Equal(t, 2, Live()["Bundle"])
	kept(t, k...)
	gate.open()
	eventuallyReleased(t, k...)
}

func TestExecOfParentHoldsEmbeddedOperands(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(2)
	inner := hostGraph(t, ctx, gate.HostParams, operands(k[0]))
	outer := newTestGraph(t, ctx, Options{})
	_, err := outer.Child(inner, NodeOptions{Name: "sub", Operands: operands(k[1])})
	require.NoError(t, err)
	x := instantiate(t, outer, ExecOptions{})
	require.NoError(t, inner.Close())
	require.NoError(t, outer.Close())
	kept(t, k...)
	require.ElementsMatch(t, []string{"sub:op1", "sub/call:op0"}, names(x.Retained()))
	require.ElementsMatch(t, []string{"sub:op1", "sub/call:op0"}, names(x.Node("sub").Retained()))
	require.NoError(t, x.Launch(s))
	<-gate.entered
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	gate.open()
	eventuallyReleased(t, k...)
}

func TestTwoExecsShareWhatTheGraphHeld(t *testing.T) {
	ctx := open(t)
	k := tokens(2)
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(k[0]))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Node("call").UpdateHost(hostFunc(func() {}), operands(k[1])))
	kept(t, k[0])
	y := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, x.Close())
	released(t, k[0])
	kept(t, k[1])
	require.NoError(t, y.Close())
	released(t, k[1])
}

func TestNodeCanBeDisabled(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 1, 8)
	k := tokens(1)
	g := newTestGraph(t, ctx, Options{})
	_, err := g.Memset(cuda.MemsetParams{Dst: b[0].Ptr(), ElementSize: 1, Count: 8, Value: 7}, NodeOptions{Name: "fill", Operands: operands(k...)})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	fill := x.Node("fill")
	was, err := fill.SetEnabled(false)
	require.NoError(t, err)
	require.True(t, was)
	enabled, err := fill.IsEnabled()
	require.NoError(t, err)
	require.False(t, enabled)
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, make([]byte, 8), b[0].Bytes())
	kept(t, k...)
	was, err = fill.SetEnabled(true)
	require.NoError(t, err)
	require.False(t, was)
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{7, 7, 7, 7, 7, 7, 7, 7}, b[0].Bytes())
	require.NoError(t, x.Close())
	_, err = fill.IsEnabled()
	require.ErrorIs(t, err, cuda.ErrClosed)
}

// The driver cannot disable host nodes: they call a function that does nothing.
// What a disabled one is updated with is called once it is enabled.
func TestHostNodeCanBeDisabled(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var first, second, nothing atomic.Int64
	k := tokens(2)
	g := newTestGraph(t, ctx, Options{})
	p := hostFunc(func() { first.Add(1) })
	_, err := g.Host(p, NodeOptions{Name: "tell", Operands: operands(k[0])})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{Nothing: hostFunc(func() { nothing.Add(1) }).Fn})
	run := func() {
		require.NoError(t, x.Launch(s))
		require.NoError(t, s.Synchronize())
	}
	tell := x.Node("tell")
	_, err = tell.SetEnabled(false)
	require.NoError(t, err)
	run()
	kept(t, k[0])
	require.NoError(t, tell.UpdateHost(hostFunc(func() { second.Add(1) }), operands(k[1])))
	run()
	require.NoError(t, g.Close())
	eventuallyReleased(t, k[0])
	kept(t, k[1])
	require.Equal(t, []int64{0, 0, 2}, []int64{first.Load(), second.Load(), nothing.Load()})
	_, err = tell.SetEnabled(true)
	require.NoError(t, err)
	run()
	require.Equal(t, []int64{0, 1, 2}, []int64{first.Load(), second.Load(), nothing.Load()})

	y := instantiate(t, hostGraph(t, ctx, p, nil), ExecOptions{})
	_, err = y.Nodes()[0].SetEnabled(false)
	require.ErrorIs(t, err, cuda.ErrorInvalidValue)
	enabled, err := y.Nodes()[0].IsEnabled()
	require.NoError(t, err)
	require.True(t, enabled)
}

func TestLaunchIntoCapturingStreamIsRefused(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var ran atomic.Int64
	g := hostGraph(t, ctx, hostFunc(func() { ran.Add(1) }), nil)
	x := instantiate(t, g, ExecOptions{})
	c, err := Begin(s, cuda.CaptureRelaxed, Options{})
	require.NoError(t, err)
	require.ErrorContains(t, x.Launch(s), "cannot be launched into a stream that is capturing")
	captured, err := c.End() // the capture is not invalidated
	require.NoError(t, err)
	require.NoError(t, captured.Close())
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, int64(1), ran.Load())
}

// After the reaper has stopped, at exit, nobody can wait: what may be in use is
// leaked and counted.
func TestStoppedReaperAbandons(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	gate := newGate(t)
	k := tokens(1)
	g := hostGraph(t, ctx, gate.HostParams, operands(k...))
	r := finalize.NewReaper(finalize.ReaperOptions{})
	l, err := NewLine(s, LineOptions{Reaper: r})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{Reaper: r})
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(s))
	require.Zero(t, r.Stop(patience))
	require.NoError(t, x.Close())
	require.Equal(t, 1, Live()["Abandoned"])
	kept(t, k...)

	// For the tests that follow, be the reaper.
	gate.open()
	require.NoError(t, s.Synchronize())
	be(t, (*lineItem)(l))
	released(t, k...)
	require.Equal(t, 2, Live()["Abandoned"], "the executable was not destroyed")
	be(t, (*closedExec)(x))
	require.NoError(t, s.Close())
	require.Equal(t, 3, Live()["Abandoned"], "nor was the stream")
	be(t, (*lineItem)(l))
	live.abandoned.Add(-3)
}

// be steps an item as the reaper would.
func be(t *testing.T, it finalize.Item) {
	t.Helper()
	for done := false; !done; {
		var err error
		done, err = it.Step()
		require.NoError(t, err)
	}
}

func TestUploadAndFacts(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 2, 8)
	g := newTestGraph(t, ctx, Options{})
	p := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: b[1].Ptr(), Size: 8}
	n, err := g.Memcpy(p, NodeOptions{Name: "copy"})
	require.NoError(t, err)
	p.Size = 4
	require.NoError(t, n.UpdateMemcpy(p, nil))
	x := instantiate(t, g, ExecOptions{Upload: s})
	require.NoError(t, x.Upload(s))
	require.Same(t, ctx, x.Context())
	require.Same(t, ctx, g.Context())
	require.Equal(t, `memcpy node "copy"`, x.Node("copy").String())
	require.Equal(t, "copy", x.Node("copy").Name())
	copy(b[1].Bytes(), "abcdefgh")
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, "abcd\x00\x00\x00\x00", string(b[0].Bytes()))
	require.NoError(t, x.Close())
	require.ErrorIs(t, x.Upload(s), cuda.ErrClosed)
}
