// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// Each driver call of adding a kernel with programmatic edges fails in turn: the
// graph is as it was.
func TestFailedEdgesAddNothing(t *testing.T) {
	ctx := openEarly(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	g := newTestGraph(t, ctx, Options{})
	first, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	early := together(t, k, b[0].Ptr(), 2)
	early.Config.Programmatic = true
	for _, call := range []string{"cuGraphAddKernelNode", "cuGraphKernelNodeSetAttribute", "cuGraphAddDependencies"} {
		ops := tokens(1)
		ctx.Driver().FailCall(call, 1, cuda.ErrorUnknown)
		_, err := g.Kernel(early, NodeOptions{Deps: []*Node{first}, Operands: operands(ops[0])})
		require.ErrorIs(t, err, cuda.ErrorUnknown, call)
		released(t, ops[0])
		handles, err := ctx.GraphNodes(g.handle)
		require.NoError(t, err)
		require.Len(t, handles, 1, call)
		require.Len(t, g.Nodes(), 1, call)
	}
	second, err := g.Kernel(early, NodeOptions{Deps: []*Node{first}})
	require.NoError(t, err)
	for _, call := range []string{"cuGraphRemoveDependencies", "cuGraphAddDependencies"} {
		ctx.Driver().FailCall(call, 1, cuda.ErrorUnknown)
		if call == "cuGraphAddDependencies" {
			require.NoError(t, g.RemoveEdge(first, second))
			require.ErrorIs(t, g.AddEdge(first, second, cuda.LaunchOrder), cuda.ErrorUnknown)
		} else {
			require.ErrorIs(t, g.RemoveEdge(first, second), cuda.ErrorUnknown)
		}
		require.Equal(t, driverData(t, g), ourData(g), call)
	}
	require.NoError(t, g.Close())
}

// Where no node can be destroyed, a node that lacks its edges must never run.
func TestHalfAddedEdgesSpoilTheGraph(t *testing.T) {
	ctx := openEarly(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	g := newTestGraph(t, ctx, Options{})
	first, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	early := putParams(t, k, b[0].Ptr(), 2)
	early.Config.Programmatic = true
	ctx.Driver().FailCall("cuGraphAddDependencies", 1, cuda.ErrorUnknown)
	ctx.Driver().FailCall("cuGraphDestroyNode", 1, cuda.ErrorOutOfMemory)
	_, err = g.Kernel(early, NodeOptions{Deps: []*Node{first}})
	require.ErrorIs(t, err, cuda.ErrorUnknown)
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorContains(t, err, "the graph cannot be used any more: ")
	require.NoError(t, g.Close())
}
