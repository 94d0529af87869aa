// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// allocating makes a graph that allocates 8 bytes, fills them and copies them to b.
func allocating(t testing.TB, ctx *cuda.Context, b *cuda.Buffer) (g *Graph, alloc, last *Node) {
	t.Helper()
	g = newTestGraph(t, ctx, Options{})
	alloc, err := g.Alloc(8, NodeOptions{})
	require.NoError(t, err)
	p := alloc.Params().(AllocParams)
	require.NotZero(t, p.Ptr)
	require.EqualValues(t, 8, p.Size)
	set, err := g.Memset(cuda.MemsetParams{Dst: p.Ptr, Value: 7, ElementSize: 1, Count: 8}, NodeOptions{Deps: []*Node{alloc}})
	require.NoError(t, err)
	last, err = g.Memcpy(cuda.MemcpyParams{Dst: b.Ptr(), Src: p.Ptr, Size: 8}, NodeOptions{Deps: []*Node{set}})
	require.NoError(t, err)
	return g, alloc, last
}

func isAllocated(t testing.TB, ctx *cuda.Context, ptr uint64) bool {
	t.Helper()
	is, err := ctx.IsAllocated(ptr)
	require.NoError(t, err)
	return is
}

// memoryOf holds the memory of an alloc node until the test ends.
func memoryOf(t testing.TB, alloc *Node) Memory {
	t.Helper()
	m, err := alloc.Memory()
	require.NoError(t, err)
	t.Cleanup(m.Release)
	return m
}

func TestGraphAllocatesAndFrees(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	g, alloc, last := allocating(t, ctx, b[0])
	m := memoryOf(t, alloc)
	ptr := m.Ptr()
	require.Equal(t, alloc.Params().(AllocParams).Ptr, ptr)
	free, err := g.Free(m, NodeOptions{Deps: []*Node{last}})
	require.NoError(t, err)
	require.Equal(t, []string{"alloc_0", "memset_0", "memcpy_0", "free_0"}, []string{alloc.Name(), "memset_0", last.Name(), free.Name()})
	_, err = g.Free(m, NodeOptions{})
	require.ErrorContains(t, err, `is freed by free node "free_0" of this graph already`)
	_, err = g.Alloc(0, NodeOptions{})
	require.ErrorContains(t, err, "size must be at least 1 byte")
	_, err = g.Clone(Options{})
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
	x := instantiate(t, g, ExecOptions{})
	for range 2 {
		require.NoError(t, x.Launch(s))
		require.NoError(t, s.Synchronize())
		require.False(t, isAllocated(t, ctx, ptr))
	}
	require.EqualValues(t, 7, b[0].Bytes()[7])
}

// What a launch leaves allocated is freed when nobody can use it any more.
func TestWhatALaunchLeavesIsFreed(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	g, alloc, _ := allocating(t, ctx, b[0])
	ptr := alloc.Params().(AllocParams).Ptr
	hold, err := alloc.Memory()
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.Error(t, x.Launch(s), "it is still allocated")
	require.NoError(t, ctx.FreeAsync(ptr, s))
	require.False(t, isAllocated(t, ctx, ptr))
	require.NoError(t, x.Launch(s))
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	require.True(t, Reaper().Flush(patience))
	require.True(t, isAllocated(t, ctx, ptr), "somebody holds it")
	_, err = alloc.Memory()
	require.ErrorIs(t, err, cuda.ErrClosed)
	hold.Release()
	eventually(t, "freed", func() bool { return !isAllocated(t, ctx, ptr) })
}

func TestOnlyAllocNodesHaveMemory(t *testing.T) {
	ctx := open(t)
	_, _, last := allocating(t, ctx, buffers(t, ctx, 1, 8)[0])
	_, err := last.Memory()
	require.ErrorContains(t, err, `"memcpy_0" is of kind memcpy and has no memory`)
}

func TestEventNodes(t *testing.T) {
	ctx := open(t)
	s, other, shut, ops := newStream(t, ctx), newStream(t, ctx), newGate(t), tokens(2)
	e, err := ctx.NewEvent(cuda.EventOptions{})
	require.NoError(t, err)
	recording, waiting := newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{})
	gate, err := recording.Host(shut.HostParams, NodeOptions{})
	require.NoError(t, err)
	n, err := recording.EventRecord(e, NodeOptions{Deps: []*Node{gate}, Operands: operands(ops[0])})
	require.NoError(t, err)
	require.Equal(t, "event_record_0", n.Name())
	require.Equal(t, []string{"event_record_0:op0"}, names(recording.Retained()), "the hold of the handle is nobody's business")
	_, err = waiting.EventWait(e, NodeOptions{Operands: operands(ops[1])})
	require.NoError(t, err)
	x, y := instantiate(t, recording, ExecOptions{}), instantiate(t, waiting, ExecOptions{})
	require.NoError(t, e.Close()) // the nodes keep its handle
	require.NoError(t, recording.Close())
	require.NoError(t, waiting.Close())
	require.NoError(t, x.Launch(s))
	require.NoError(t, y.Launch(other))
	done, err := other.Done()
	require.NoError(t, err)
	require.False(t, done, "the event is recorded behind the gate")
	shut.open()
	require.NoError(t, other.Synchronize())
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	eventuallyReleased(t, ops...)

	closed := newTestGraph(t, ctx, Options{})
	late := tokens(1)
	_, err = closed.EventWait(e, NodeOptions{Operands: operands(late...)})
	require.ErrorIs(t, err, cuda.ErrClosed)
	released(t, late...)
}

// What a launch left allocated may be freed before the reaper can wait for the
// work that uses it: then the address may be somebody else's.
func TestWhatALaunchLeavesIsNotFreedTwice(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	g, alloc, _ := allocating(t, ctx, b[0])
	ptr := alloc.Params().(AllocParams).Ptr
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, x.Close())
	require.True(t, Reaper().Flush(patience))
	c := begin(t, newStream(t, ctx), Options{})
	require.NoError(t, g.Close())
	steps(t) // during the capture the reaper cannot wait
	require.True(t, isAllocated(t, ctx, ptr))
	require.NoError(t, ctx.FreeAsync(ptr, s))
	require.NoError(t, c.Abort())
	require.True(t, Reaper().Flush(patience)) // a second free would be a warning, which fails the test
}

// A node after a free node gets the same address. Then two nodes have it, but it
// is freed once.
func TestAnAddressThatTwoNodesHaveIsFreedOnce(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	g, alloc, last := allocating(t, ctx, b[0])
	m, err := alloc.Memory()
	require.NoError(t, err)
	ptr := m.Ptr()
	free, err := g.Free(m, NodeOptions{Deps: []*Node{last}})
	require.NoError(t, err)
	again, err := g.Alloc(8, NodeOptions{Deps: []*Node{free}})
	require.NoError(t, err)
	require.Equal(t, ptr, again.Params().(AllocParams).Ptr)
	_, err = g.Free(m, NodeOptions{Deps: []*Node{again}})
	require.ErrorContains(t, err, `is freed by free node "free_0"`, "it would free what came after it")
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.True(t, isAllocated(t, ctx, ptr))
	require.ErrorContains(t, FreeAsync(m, s), "is freed by a node")
	m.Release()
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	require.True(t, Reaper().Flush(patience)) // a second free would be a warning, which fails the test
	require.False(t, isAllocated(t, ctx, ptr))
}
