// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// wired checks that positions, names and both directions of the edges agree.
func wired(t testing.TB, g *Graph) {
	t.Helper()
	next := map[*Node][]*Node{}
	for _, e := range g.Edges() {
		next[e.From] = append(next[e.From], e.To)
	}
	for i, n := range g.Nodes() {
		require.Equal(t, i, n.Index())
		require.Same(t, n, g.Node(n.Name()))
		require.Equal(t, next[n], n.Dependents())
	}
}

// diamond adds four empty nodes: the last waits for two, which wait for the first.
func diamond(t testing.TB, g *Graph) {
	t.Helper()
	add := func(deps ...*Node) *Node {
		n, err := g.Empty(NodeOptions{Deps: deps})
		require.NoError(t, err)
		return n
	}
	top := add()
	add(add(top), add(top, top))
}

func TestNodesKnowTheirPlace(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	diamond(t, g)
	wired(t, g)
	nodes := g.Nodes()
	require.Equal(t, nodes[1:3], nodes[0].Dependents())
	require.Empty(t, nodes[3].Dependents())

	clone, err := g.Clone(Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, clone.Close()) }()
	diamond(t, g)
	wired(t, g)
	require.Nil(t, clone.Node("empty_4"))
	require.Len(t, clone.Nodes(), 4)
	wired(t, clone)

	child, err := clone.Child(g, NodeOptions{Name: "eight"})
	require.NoError(t, err)
	require.Len(t, child.Child().Nodes(), 8)
	wired(t, child.Child())
	wired(t, clone)
}

func TestNodesOfBodiesKnowTheirPlace(t *testing.T) {
	g := newTestGraph(t, open(t), Options{})
	n := newConditional(t, g, cuda.If, 2, 0)
	require.Equal(t, 2, n.BodyCount())
	for _, body := range n.Bodies() {
		diamond(t, body)
		wired(t, body)
		require.Equal(t, 0, body.Nodes()[0].BodyCount())
	}
	wired(t, g)
}

func TestCapturedNodesKnowTheirPlace(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	forked, joined := newEvent(t, ctx), newEvent(t, ctx)
	c := begin(t, s, Options{})
	p := hostFunc(func() {})
	require.NoError(t, recordHost(c, s, "host_1", p, nil))
	require.NoError(t, s.Record(forked))
	require.NoError(t, fork.Wait(forked))
	require.NoError(t, recordHost(c, s, "", p, nil))
	require.NoError(t, recordHost(c, fork, "", p, nil))
	require.NoError(t, fork.Record(joined))
	require.NoError(t, s.Wait(joined))
	require.NoError(t, recordHost(c, s, "last", p, nil))
	g, err := c.End()
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	wired(t, g)
	require.Len(t, g.Node("host_1").Dependents(), 2)
	require.Len(t, g.Node("last").Dependencies(), 2)
}

// A name that the graph refused, or whose node the driver refused, is free.
func TestNamesOfRefusedNodesAreFree(t *testing.T) {
	g := newTestGraph(t, open(t), Options{})
	stranger, err := newTestGraph(t, g.Context(), Options{}).Empty(NodeOptions{})
	require.NoError(t, err)
	_, err = g.Empty(NodeOptions{Name: "x", Deps: []*Node{stranger}})
	require.Error(t, err)
	_, err = g.Memcpy(cuda.MemcpyParams{Size: 8}, NodeOptions{Name: "x"})
	require.Error(t, err)
	require.Nil(t, g.Node("x"))
	n, err := g.Empty(NodeOptions{Name: "x"})
	require.NoError(t, err)
	require.Same(t, n, g.Node("x"))
	require.Empty(t, stranger.Dependents())
	wired(t, g)
}

// The work of a look-up, and of what one node keeps, does not grow with the
// graph: it allocates the same whatever else there is.
func TestOneLookUp(t *testing.T) {
	ctx := open(t)
	look := func(size int) []float64 {
		g := newTestGraph(t, ctx, Options{})
		for i := range size {
			_, err := g.Host(hostFunc(func() {}), NodeOptions{Name: fmt.Sprint("n", i), Operands: operands(tokens(1)...)})
			require.NoError(t, err)
		}
		x := instantiate(t, g, ExecOptions{})
		var n *Node
		var e *ExecNode
		return []float64{
			testing.AllocsPerRun(10, func() { n = g.Node("n3") }),
			testing.AllocsPerRun(10, func() { e = x.Node("n3") }),
			testing.AllocsPerRun(10, func() { require.NotNil(t, n.Retained()) }),
			testing.AllocsPerRun(10, func() { require.NotNil(t, e.Retained()) }),
			testing.AllocsPerRun(10, func() { n.Dependents() }),
		}
	}
	require.Equal(t, look(5), look(200))
}

// Only what a node has inside is its own, whatever others are called.
func TestANameThatLooksLikeOneInside(t *testing.T) {
	g := newTestGraph(t, open(t), Options{})
	k := tokens(2)
	for i, name := range []string{"a", "a/b"} {
		_, err := g.Host(hostFunc(func() {}), NodeOptions{Name: name, Operands: operands(k[i])})
		require.NoError(t, err)
	}
	x := instantiate(t, g, ExecOptions{})
	require.Equal(t, []string{"a:op0"}, names(g.Node("a").Retained()))
	require.Equal(t, []string{"a:op0"}, names(x.Node("a").Retained()))
	require.Equal(t, []string{"a/b:op1"}, names(x.Node("a/b").Retained()))
}

func TestNodesOfAnExecutableKeepItsEdges(t *testing.T) {
	g := newTestGraph(t, open(t), Options{})
	diamond(t, g)
	x, err := g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	of := g.Nodes()
	require.NoError(t, g.RemoveEdge(of[1], of[3]))
	require.NoError(t, g.AddEdge(of[1], of[2], cuda.EdgeData{}))

	require.Empty(t, x.Nodes()[0].Dependencies())
	require.Equal(t, of[:1], x.Nodes()[2].Dependencies())
	require.Equal(t, of[1:3], x.Nodes()[3].Dependencies())
}
