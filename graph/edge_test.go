// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// openEarly is open for a device that has programmatic launches.
func openEarly(t testing.TB) *cuda.Context {
	t.Helper()
	t.Setenv("CUDAGO_SIM", "cc=9.0")
	return open(t)
}

// driverData is what the driver says of the edges of g, by their ends.
func driverData(t testing.TB, g *Graph) map[[2]*Node]cuda.EdgeData {
	t.Helper()
	edges, err := g.Context().GraphEdges(g.h.handle)
	require.NoError(t, err)
	by := make(map[cuda.NodeHandle]*Node)
	for _, n := range g.Nodes() {
		by[n.handle] = n
	}
	found := make(map[[2]*Node]cuda.EdgeData)
	for i, d := range edges.Data {
		found[[2]*Node{by[edges.From[i]], by[edges.To[i]]}] = d
	}
	return found
}

// ourData is what g says of them.
func ourData(g *Graph) map[[2]*Node]cuda.EdgeData {
	found := make(map[[2]*Node]cuda.EdgeData)
	for _, e := range g.Edges() {
		found[[2]*Node{e.From, e.To}] = e.Data
	}
	return found
}

func TestEdgeDataIsWhatTheDriverHas(t *testing.T) {
	ctx := openEarly(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	g := newTestGraph(t, ctx, Options{})
	early := putParams(t, k, b[0].Ptr(), 1)
	early.Config.Programmatic = true
	var nodes []*Node
	for range 3 {
		n, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	empty, err := g.Empty(NodeOptions{Deps: nodes[:1]})
	require.NoError(t, err)
	last, err := g.Kernel(early, NodeOptions{Deps: []*Node{nodes[0], empty, nodes[1], nodes[0]}})
	require.NoError(t, err)
	require.NoError(t, g.AddEdge(nodes[2], last, cuda.LaunchOrder))
	require.NoError(t, g.AddEdge(nodes[0], nodes[1], cuda.EdgeData{}))
	want := map[[2]*Node]cuda.EdgeData{
		{nodes[0], empty}: {}, {nodes[0], last}: cuda.Programmatic, {empty, last}: {}, {nodes[1], last}: cuda.Programmatic,
		{nodes[2], last}: cuda.LaunchOrder, {nodes[0], nodes[1]}: {},
	}
	require.Equal(t, want, ourData(g))
	require.Equal(t, want, driverData(t, g))

	x := instantiate(t, g, ExecOptions{})
	kept := x.Node(last.Name()).Edges()
	for _, change := range []func() error{
		func() error { return g.RemoveEdge(nodes[1], last) },
		func() error { return g.Remove(empty) },
		func() error { return g.AddEdge(nodes[1], last, cuda.EdgeData{}) },
		func() error { return g.RemoveEdge(nodes[0], last) },
		func() error { return g.RemoveEdge(nodes[2], last) },
	} {
		require.NoError(t, change())
		require.Equal(t, driverData(t, g), ourData(g))
	}
	require.Equal(t, kept, x.Node(last.Name()).Edges(), "an executable keeps its edges")
	require.Len(t, kept, 4)
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
}

// An executable can become a graph whose edges were made one by one in the order
// that a kernel's edges are told in.
func TestEdgesOfAnEarlyKernelAreToldInTheirOrder(t *testing.T) {
	ctx := openEarly(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	early := putParams(t, k, b[0].Ptr(), 1)
	early.Config.Programmatic = true
	build := func(atOnce bool) *Graph {
		g := newTestGraph(t, ctx, Options{})
		one, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{Name: "one"})
		require.NoError(t, err)
		empty, err := g.Empty(NodeOptions{Name: "empty"})
		require.NoError(t, err)
		o := NodeOptions{Name: "last"}
		if atOnce {
			o.Deps = []*Node{one, one, empty, one}
		}
		last, err := g.Kernel(early, o)
		require.NoError(t, err)
		if !atOnce {
			require.NoError(t, g.AddEdge(empty, last, cuda.EdgeData{}))
			require.NoError(t, g.AddEdge(one, last, cuda.Programmatic))
		}
		require.Equal(t, []Edge{{empty, last, cuda.EdgeData{}}, {one, last, cuda.Programmatic}}, g.Edges())
		edges, err := ctx.GraphEdges(g.h.handle)
		require.NoError(t, err)
		require.Equal(t, []cuda.NodeHandle{empty.handle, one.handle}, edges.From)
		return g
	}
	x := instantiate(t, build(true), ExecOptions{})
	require.NoError(t, x.Update(build(false)))
	require.NoError(t, x.Close())
}

func TestEdgeDataIsRefused(t *testing.T) {
	ctx := openEarly(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	g := newTestGraph(t, ctx, Options{})
	one, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	two, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	empty, err := g.Empty(NodeOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, g.AddEdge(one, empty, cuda.Programmatic), `empty node "empty_0" is none`)
	require.ErrorContains(t, g.AddEdge(empty, two, cuda.LaunchOrder), `empty node "empty_0" is none`)
	require.ErrorContains(t, g.AddEdge(one, two, cuda.EdgeData{FromPort: 7, Type: 1}), "got type 1, port 7 to 0")
	require.Empty(t, g.Edges())
	require.Empty(t, driverData(t, g))
	require.NoError(t, g.Close())
}

func TestOldDevicesHaveNoProgrammaticLaunches(t *testing.T) {
	ctx := open(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	ops := tokens(1)
	g := newTestGraph(t, ctx, Options{})
	one, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	two, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
	require.NoError(t, err)
	err = g.AddEdge(one, two, cuda.Programmatic)
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
	require.ErrorContains(t, err, "needs compute capability 9.0, device 0 has 7.5")
	early := putParams(t, k, b[0].Ptr(), 1)
	early.Config.Programmatic = true
	_, err = g.Kernel(early, NodeOptions{Operands: operands(ops[0])})
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
	released(t, ops[0])
	require.Len(t, g.Nodes(), 2)
	require.NoError(t, g.Close())
}

// A graph that other code has made may have edges that wait for less.
func TestEdgeDataOfOtherCodeIsShown(t *testing.T) {
	ctx := openEarly(t)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	g := newTestGraph(t, ctx, Options{})
	for range 2 {
		_, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{})
		require.NoError(t, err)
	}
	from, to := g.Nodes()[0].handle, g.Nodes()[1].handle
	require.NoError(t, ctx.AddDependencies(g.handle, []cuda.NodeHandle{from}, []cuda.NodeHandle{to}, []cuda.EdgeData{cuda.LaunchCompletion}))
	w, err := Wrap(ctx, g.handle, g, nil, Options{})
	require.NoError(t, err)
	require.Equal(t, cuda.LaunchCompletion, w.Edges()[0].Data)
	require.Contains(t, w.DOT(nowhere), `n0 -> n1 [style=dotted, label="launch_completion"];`)
	require.Equal(t, "type 2, port 3 to 4", cuda.EdgeData{FromPort: 3, ToPort: 4, Type: 2}.String())
	require.NoError(t, w.RemoveEdge(w.Nodes()[0], w.Nodes()[1]))
	require.Empty(t, driverData(t, w))
	require.NoError(t, w.Close())
	require.NoError(t, g.Close())
}
