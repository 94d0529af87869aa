// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

func TestLentNodes(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 2, 8)
	ops := tokens(6)
	g := newTestGraph(t, ctx, Options{})
	first := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: b[1].Ptr(), Size: 8}
	n, err := g.Memcpy(first, NodeOptions{Name: "copy", Operands: operands(ops[0])})
	require.NoError(t, err)
	gate := newGate(t)
	_, err = g.Host(gate.HostParams, NodeOptions{})
	require.NoError(t, err)
	var told mirror
	x := instantiate(t, g, ExecOptions{OnBundle: told.apply})
	node := x.Node("copy")

	lent, err := node.Lend(func(params any, list []Operand) bool {
		require.Equal(t, first, params)
		require.Equal(t, operands(ops[0]), list)
		return false
	})
	require.NoError(t, err)
	require.False(t, lent)
	told.holds(t, ops[0])

	lent, err = node.Lend(func(any, []Operand) bool { return true })
	require.NoError(t, err)
	require.True(t, lent)
	told.holds(t)
	require.NoError(t, g.Close())
	released(t, ops[0]) // no launch has used it
	lent, err = node.Lend(func(any, []Operand) bool { t.Error("it is lent already"); return true })
	require.NoError(t, err)
	require.False(t, lent)

	require.NoError(t, x.Launch(s))
	x.Retire(operands(ops[1]))
	kept(t, ops[1])
	second := cuda.MemcpyParams{Dst: b[1].Ptr(), Src: b[0].Ptr(), Size: 8}
	told.apply(operands(ops[2]), true) // whoever returns it has shown it already
	node.Return(second, operands(ops[2]))
	require.Equal(t, second, node.Params())
	require.Equal(t, []string{"copy:op2"}, names(x.Retained()))
	// The launch may have used what was returned, as nobody says since when the node has it.
	require.NoError(t, node.UpdateMemcpy(first, operands(ops[3])))
	kept(t, ops[2])
	gate.open()
	eventuallyReleased(t, ops[1], ops[2])
	require.NoError(t, s.Synchronize())
	x.Retire(operands(ops[4]))
	eventuallyReleased(t, ops[4])

	_, err = node.Lend(func(any, []Operand) bool { return true })
	require.NoError(t, err)
	require.NoError(t, x.Close())
	_, err = node.Lend(func(any, []Operand) bool { return true })
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.Equal(t, "copy", n.Name())
	eventuallyReleased(t, ops[3])
}

func TestARemovedNodeIsNotLent(t *testing.T) {
	ctx := open(t)
	b := buffers(t, ctx, 1, 8)
	g := newTestGraph(t, ctx, Options{})
	n, err := g.Memset(cuda.MemsetParams{Dst: b[0].Ptr(), ElementSize: 1, Count: 8}, NodeOptions{Operands: operands(tokens(1)...)})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Remove(n))
	_, err = x.Nodes()[0].Lend(func(any, []Operand) bool { t.Error("the driver has no such node"); return true })
	var removed *RemovedError
	require.ErrorAs(t, err, &removed)
}
