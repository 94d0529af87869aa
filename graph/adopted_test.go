// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// addAside adds a kernel node by calls of the test's own.
func addAside(t *testing.T, g *Graph, k *cuda.Kernel, at uint64, v uint32, after int, deps []cuda.NodeHandle, ops []Operand) Added {
	p := putParams(t, k, at, v)
	h, err := g.Context().AddKernelNode(g.Handle(), deps, nil, &p)
	require.NoError(t, err)
	return Added{Handle: h, Kind: cuda.KernelNode, After: after, Params: keepKernel(p), Operands: ops}
}

func TestAdoptedNodesAreLikeOthers(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), newKernel(t, ctx)
	b := buffers(t, ctx, 1, 8)
	ops := tokens(4)
	g := newTestGraph(t, ctx, Options{OnBundle: func([]Operand, bool) { t.Error("adopted operands are not reported") }})
	root, err := g.Empty(NodeOptions{})
	require.NoError(t, err)
	nodes := []*Node{root}

	first := addAside(t, g, k, b[0].Ptr(), 1, 0, []cuda.NodeHandle{root.Handle()}, operands(ops[0], ops[1]))
	second := addAside(t, g, k, b[0].Ptr(), 2, 1, []cuda.NodeHandle{first.Handle}, operands(ops[2]))
	alone := addAside(t, g, k, b[0].Ptr()+4, 3, -1, nil, operands(ops[3]))
	alone.Params = nil // unknown
	nodes = g.Adopt(nodes, []Added{first, second, alone})

	require.Equal(t, g.Nodes(), nodes)
	require.Equal(t, []Edge{{From: nodes[0], To: nodes[1]}, {From: nodes[1], To: nodes[2]}}, g.Edges())
	for i, name := range []string{"empty_0", "kernel_0", "kernel_1", "kernel_2"} {
		require.Same(t, nodes[i], g.Node(name))
		require.Equal(t, i, nodes[i].Index())
	}
	require.Equal(t, []string{"kernel_0:op0", "kernel_0:op1", "kernel_1:op2", "kernel_2:op3"}, names(g.Retained()))
	require.Nil(t, nodes[1].Params().(cuda.KernelNodeParams).Params)
	require.Nil(t, nodes[3].Params())

	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{2, 3}, []byte{b[0].Bytes()[0], b[0].Bytes()[4]})
	g.watch = nil
	require.NoError(t, g.Remove(nodes[2]))
	kept(t, ops...) // the executable has it
	require.NoError(t, g.Close())
	kept(t, ops...)
	require.NoError(t, x.Close())
	eventuallyReleased(t, ops...)
}

func TestASpoiledGraphSaysSo(t *testing.T) {
	g := newTestGraph(t, open(t), Options{})
	require.False(t, g.IsSpoiled())
	_ = g.h.spoil(&cuda.HalfDoneError{Err: cuda.ErrorUnknown, Undo: cuda.ErrorUnknown})
	require.True(t, g.IsSpoiled())
}
