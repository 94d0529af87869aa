// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// together are the parameters of putParams for a cooperative launch with a
// priority.
func together(t testing.TB, k *cuda.Kernel, p uint64, v uint32) cuda.KernelNodeParams {
	params, priority := putParams(t, k, p, v), -1
	params.Config.Cooperative, params.Config.Priority = true, &priority
	return params
}

// Each driver call of adding and of changing a kernel node with attributes
// fails in turn: the graph is as it was, and runs.
func TestFailedAttributesChangeNothing(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	plain := func(v uint32) cuda.KernelNodeParams { return putParams(t, k, b[0].Ptr(), v) }
	full := func(v uint32) cuda.KernelNodeParams { return together(t, k, b[0].Ptr(), v) }
	for name, test := range map[string]struct {
		from, to cuda.KernelNodeParams // from without a kernel: a new node
		calls    []string
	}{
		"add":    {cuda.KernelNodeParams{}, full(2), []string{"cuGraphAddKernelNode", "cuGraphKernelNodeSetAttribute"}},
		"gain":   {plain(1), full(2), changing},
		"lose":   {full(1), plain(2), changing},
		"remain": {full(1), full(2), []string{"cuGraphKernelNodeSetParams"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, call := range test.calls {
				faults := 0
				for changeFails(t, s, test.from, test.to, b[0], call, faults+1) {
					faults++
				}
				require.NotZero(t, faults, call)
			}
		})
	}
}

var changing = []string{
	"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetAttribute",
	"cuGraphKernelNodeSetAttribute", "cuGraphKernelNodeSetParams",
}

// changeFails reports whether a change makes an n-th call of a name; that fails.
func changeFails(t *testing.T, s *cuda.Stream, from, to cuda.KernelNodeParams, b *cuda.Buffer, call string, n int) bool {
	g := newTestGraph(t, s.Context(), Options{})
	ops := tokens(2)
	first, err := g.Empty(NodeOptions{})
	require.NoError(t, err)
	change := func() error { _, err := g.Kernel(to, NodeOptions{Operands: operands(ops[1])}); return err }
	want, nodes := byte(9), 1
	if from.Kernel != nil {
		node, err := g.Kernel(from, NodeOptions{Deps: []*Node{first}, Operands: operands(ops[0])})
		require.NoError(t, err)
		change = func() error { return node.UpdateKernel(to, operands(ops[1])) }
		want, nodes = 1, 2
	}
	s.Context().Driver().FailCall(call, n, cuda.ErrorUnknown)
	err = change()
	failed := !s.Context().Driver().ClearFaults()
	if failed {
		require.ErrorIs(t, err, cuda.ErrorUnknown, "%s %d", call, n)
		released(t, ops[1])
	} else {
		require.NoError(t, err)
		want = 2
		nodes = 2
	}
	handles, err := s.Context().GraphNodes(g.h.handle)
	require.NoError(t, err)
	require.Len(t, handles, nodes, "%s %d", call, n)
	require.Len(t, g.Nodes(), nodes, "%s %d", call, n)
	require.NoError(t, b.Fill(9, 1, s))
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, want, b.Bytes()[0], "%s %d", call, n)
	// The attributes are the old ones too: a whole update compares them.
	if failed && from.Kernel != nil {
		other := newTestGraph(t, s.Context(), Options{})
		d, err := other.Empty(NodeOptions{})
		require.NoError(t, err)
		_, err = other.Kernel(from, NodeOptions{Deps: []*Node{d}})
		require.NoError(t, err)
		require.NoError(t, x.Update(other), "%s %d", call, n)
		require.NoError(t, other.Close())
	}
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	eventuallyReleased(t, ops[1])
	return failed
}

// A node that has some of its attributes and cannot be removed must never run.
func TestHalfAddedNodeSpoilsTheGraph(t *testing.T) {
	ctx := open(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	ops := tokens(3)
	g := newTestGraph(t, ctx, Options{})
	ctx.Driver().FailCall("cuGraphKernelNodeSetAttribute", 2, cuda.ErrorUnknown)
	ctx.Driver().FailCall("cuGraphDestroyNode", 1, cuda.ErrorOutOfMemory)
	_, err := g.Kernel(together(t, k, b[0].Ptr(), 1), NodeOptions{Operands: operands(ops[0])})
	require.ErrorIs(t, err, cuda.ErrorUnknown)
	require.ErrorIs(t, err, cuda.ErrorOutOfMemory)
	released(t, ops[0])
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorContains(t, err, "the graph cannot be used any more: ")
	_, err = g.Clone(Options{})
	require.ErrorContains(t, err, "cannot be used any more")
	_, err = g.Empty(NodeOptions{Operands: operands(ops[1])})
	require.ErrorContains(t, err, "cannot be used any more")
	require.NoError(t, g.Close())
	require.Empty(t, Live())
}

// The same for a change that cannot be taken back.
func TestHalfChangedNodeSpoilsTheGraph(t *testing.T) {
	ctx := open(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	g := newTestGraph(t, ctx, Options{})
	n, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	drv := ctx.Driver()
	drv.FailCall("cuGraphKernelNodeSetParams", 1, cuda.ErrorUnknown)
	drv.FailCall("cuGraphKernelNodeGetParams", 2, cuda.ErrorOutOfMemory)
	require.ErrorIs(t, n.UpdateKernel(together(t, k, b[0].Ptr(), 1), nil), cuda.ErrorUnknown)
	require.ErrorContains(t, n.UpdateKernel(putParams(t, k, b[0].Ptr(), 1), nil), "cannot be used any more")
	require.NoError(t, g.Close())
}
