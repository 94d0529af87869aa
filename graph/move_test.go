// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

func TestMovedGraphBelongsToTheOther(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(3)
	inner, outer := newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{})
	ran := 0
	_, err := inner.Host(hostFunc(func() { ran++ }), NodeOptions{Name: "call", Operands: operands(k[0])})
	require.NoError(t, err)
	n, err := outer.Move(inner, NodeOptions{Name: "sub", Operands: operands(k[1])})
	require.NoError(t, err)
	require.True(t, inner.IsClosed())
	require.ErrorIs(t, second(inner.Empty(NodeOptions{})), cuda.ErrClosed)
	require.Empty(t, inner.Retained())
	require.Len(t, outer.Retained(), 2)
	require.Equal(t, "call", n.Child().Nodes()[0].Name())
	require.NoError(t, inner.Close())
	x := instantiate(t, outer, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, 1, ran)
	kept(t, k[:2]...)
	require.NoError(t, outer.Remove(n))
	kept(t, k[:2]...) // the executable holds them
	require.NoError(t, x.Close())
	require.True(t, Reaper().Flush(patience))
	require.True(t, k[0].isReleased())
	require.True(t, k[1].isReleased())
}

func TestMovedMemoryIsTheOthers(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	inner, alloc, _ := allocating(t, ctx, b[0])
	outer := newTestGraph(t, ctx, Options{})
	m, err := alloc.Memory()
	require.NoError(t, err)
	n, err := outer.Move(inner, NodeOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, second(outer.Clone(Options{})), cuda.ErrorNotSupported)
	require.ErrorContains(t, outer.Remove(n), "has memory, whose addresses would no longer be reserved")
	x := instantiate(t, outer, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.True(t, isAllocated(t, ctx, m.Ptr()))
	require.NoError(t, FreeAsync(m, s))
	require.NoError(t, x.Close())
	require.True(t, Reaper().Flush(patience))
	_, err = outer.Free(m, NodeOptions{Deps: []*Node{n}})
	require.NoError(t, err)
	require.ErrorContains(t, second(outer.Free(m, NodeOptions{})), `is freed by free node "free_0" of this graph already`)
	x = instantiate(t, outer, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.False(t, isAllocated(t, ctx, m.Ptr()))
	require.NoError(t, x.Close())
	require.NoError(t, outer.Close())
	m.Release() // the last holder: only now the address is free
}

// What a launch has left allocated is freed when graph, executables and holders
// are gone, of whichever graph the node was.
func TestMovedMemoryIsFreedInTheEnd(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	inner, alloc, _ := allocating(t, ctx, b[0])
	outer := newTestGraph(t, ctx, Options{})
	m, err := alloc.Memory()
	require.NoError(t, err)
	_, err = outer.Move(inner, NodeOptions{})
	require.NoError(t, err)
	x := instantiate(t, outer, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.NoError(t, x.Close())
	require.NoError(t, outer.Close())
	require.True(t, Reaper().Flush(patience))
	require.True(t, isAllocated(t, ctx, m.Ptr()))
	ptr := m.Ptr()
	m.Release()
	require.True(t, Reaper().Flush(patience))
	require.False(t, isAllocated(t, ctx, ptr))
}

func TestGraphsThatCannotBeMoved(t *testing.T) {
	ctx := open(t)
	k := tokens(8)
	inner, outer := newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{})
	call, err := inner.Host(hostFunc(func() {}), NodeOptions{Operands: operands(k[0])})
	require.NoError(t, err)
	move := func(to, sub *Graph, k *token) error { return second(to.Move(sub, NodeOptions{Operands: operands(k)})) }
	require.ErrorContains(t, move(inner, inner, k[1]), "is the one that it would be moved into")
	x := instantiate(t, inner, ExecOptions{})
	require.ErrorContains(t, move(outer, inner, k[2]), "has 1 open executables")
	require.NoError(t, x.Close())
	_, err = outer.Child(inner, NodeOptions{Name: "copy"})
	require.NoError(t, err)
	require.ErrorContains(t, move(inner, outer.Node("copy").Child(), k[3]), "be moved")
	conditional := newTestGraph(t, ctx, Options{})
	c, err := conditional.Condition(1, true)
	require.NoError(t, err)
	_, err = conditional.Conditional(c, cuda.If, 1, NodeOptions{Name: "maybe"})
	require.NoError(t, err)
	err = move(outer, conditional, k[4])
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
	require.ErrorContains(t, err, "has conditional nodes")
	body := conditional.Node("maybe").Bodies()[0]
	require.ErrorContains(t, move(outer, body, k[5]), "be moved")
	require.ErrorContains(t, move(body, inner, k[6]), "the graph to embed")
	_, err = outer.Move(inner, NodeOptions{Deps: []*Node{call}})
	require.ErrorContains(t, err, "deps must be nodes of this graph")
	exported := newTestGraph(t, ctx, Options{})
	_, err = exported.Export()
	require.NoError(t, err)
	require.ErrorContains(t, move(outer, exported, k[7]), "other code")
	for _, one := range k[1:] {
		require.True(t, one.isReleased())
	}
	kept(t, k[0])
	require.Len(t, inner.Retained(), 1)
	require.NoError(t, move(outer, inner, tokens(1)[0])) // nothing of that has harmed it
}
