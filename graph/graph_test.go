// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A graph is busy from Announce on, which a thread calls before it releases the
// GIL, and during calls that may block.
func TestBusyWhileInstantiating(t *testing.T) {
	ctx := open(t)
	g := hostGraph(t, ctx, hostFunc(func() {}), operands(tokens(1)...))
	require.False(t, g.Busy())
	end := g.Announce()
	require.True(t, g.Busy())
	end()
	told := 0
	x := instantiate(t, g, ExecOptions{OnBundle: func(_ []Operand, held bool) {
		if held {
			told++
			require.True(t, g.Busy())
		}
	}})
	require.Equal(t, 1, told)
	require.False(t, g.Busy())
	require.False(t, x.Busy())
	end = g.Announce()
	require.True(t, x.Busy())
	end()
}

func newTestGraph(t testing.TB, ctx *cuda.Context, o Options) *Graph {
	t.Helper()
	g, err := New(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func TestNodesAndEdges(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	b := buffers(t, ctx, 2, 64)
	cp := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: b[1].Ptr(), Size: 64}
	first, err := g.Memcpy(cp, NodeOptions{})
	require.NoError(t, err)
	second, err := g.Memcpy(cp, NodeOptions{Name: "again", Deps: []*Node{first, first}})
	require.NoError(t, err)
	fill, err := g.Memset(cuda.MemsetParams{Dst: b[0].Ptr(), ElementSize: 1, Count: 64}, NodeOptions{})
	require.NoError(t, err)
	call, err := g.Host(hostFunc(func() {}), NodeOptions{Deps: []*Node{fill}})
	require.NoError(t, err)
	join, err := g.Empty(NodeOptions{Deps: []*Node{second, call}})
	require.NoError(t, err)

	require.Equal(t, []*Node{first, second, fill, call, join}, g.Nodes())
	require.Equal(t, []Edge{{From: first, To: second}, {From: fill, To: call}, {From: second, To: join}, {From: call, To: join}}, g.Edges())
	for i, name := range []string{"memcpy_0", "again", "memset_0", "host_0", "empty_0"} {
		require.Equal(t, name, g.Nodes()[i].Name())
		require.Same(t, g.Nodes()[i], g.Node(name))
		require.Same(t, g, g.Nodes()[i].Graph())
	}
	require.Nil(t, g.Node("nobody"))
	require.Equal(t, cp, first.Params())
	require.Equal(t, cuda.MemcpyNode, first.Kind())
	require.Equal(t, `memcpy node "again"`, second.String())
	require.Equal(t, []*Node{first}, second.Dependencies())

	// The driver sees the same.
	handles, err := ctx.GraphNodes(g.Handle())
	require.NoError(t, err)
	require.Len(t, handles, 5)
	edges, err := ctx.GraphEdges(g.Handle())
	from, to := edges.From, edges.To
	require.NoError(t, err)
	require.Len(t, from, 4)
	require.Len(t, to, 4)
}

func TestAutomaticNamesAvoidGivenOnes(t *testing.T) {
	g := newTestGraph(t, open(t), Options{})
	for _, name := range []string{"empty_1", "", "", "empty_2"} {
		if name == "empty_2" {
			_, err := g.Empty(NodeOptions{Name: name})
			require.ErrorContains(t, err, `name must be unique in the graph, and "empty_2" already names a node of kind empty`)
			continue
		}
		_, err := g.Empty(NodeOptions{Name: name})
		require.NoError(t, err)
	}
	require.NotNil(t, g.Node("empty_2"))
	require.NotNil(t, g.Node("empty_3"))
	require.Len(t, g.Nodes(), 3)
}

func TestRefusedNodesReleaseTheirOperands(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	other := newTestGraph(t, ctx, Options{})
	foreign, err := other.Empty(NodeOptions{})
	require.NoError(t, err)
	_, err = g.Empty(NodeOptions{Name: "taken"})
	require.NoError(t, err)

	tests := []struct {
		name string
		o    NodeOptions
		want string
	}{
		{"name in use", NodeOptions{Name: "taken"}, "must be unique"},
		{"dependency of another graph", NodeOptions{Deps: []*Node{foreign}}, "must be nodes of this graph"},
		{"no dependency", NodeOptions{Deps: []*Node{nil}}, "got nil at position 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := tokens(2)
			tt.o.Operands = operands(k...)
			_, err := g.Host(hostFunc(func() {}), tt.o)
			require.ErrorContains(t, err, tt.want)
			released(t, k...)
			require.Len(t, g.Nodes(), 1)
		})
	}
	k := tokens(2)
	_, err = g.Host(cuda.HostParams{}, NodeOptions{Operands: operands(k[0])})
	require.ErrorIs(t, err, cuda.ErrorInvalidValue)
	_, err = g.Kernel(cuda.KernelNodeParams{}, NodeOptions{Operands: operands(k[1])})
	require.ErrorContains(t, err, "kernel must not be nil")
	released(t, k...)
}

func TestClosedGraph(t *testing.T) {
	ctx := open(t)
	var m mirror
	g, err := New(ctx, Options{OnBundle: m.apply})
	require.NoError(t, err)
	k := tokens(3)
	n, err := g.Host(hostFunc(func() {}), NodeOptions{Name: "call", Operands: operands(k[0], k[1])})
	require.NoError(t, err)
	m.holds(t, k[0], k[1])
	require.Equal(t, []string{"call:op0", "call:op1"}, names(g.Retained()))
	require.Equal(t, Retained{"call", "op0", k[0], 8, "test"}, g.Retained()[0])
	require.Equal(t, g.Retained(), n.Retained())
	require.Equal(t, []Retainer{k[0], k[1]}, g.Retainers())
	require.False(t, g.IsClosed())

	require.NoError(t, g.Close())
	released(t, k[0], k[1])
	m.holds(t)
	require.True(t, g.IsClosed())
	require.NoError(t, g.Close())
	require.Empty(t, g.Retained())

	_, err = g.Host(hostFunc(func() {}), NodeOptions{Operands: operands(k[2])})
	require.ErrorIs(t, err, cuda.ErrClosed)
	released(t, k[2])
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
	_, err = g.Clone(Options{})
	require.ErrorIs(t, err, cuda.ErrClosed)
	k = tokens(1)
	require.ErrorIs(t, n.UpdateHost(hostFunc(func() {}), operands(k...)), cuda.ErrClosed)
	released(t, k...)
}

func TestUpdateOfDefinitionReleasesAtOnce(t *testing.T) {
	ctx := open(t)
	var m mirror
	g := newTestGraph(t, ctx, Options{OnBundle: m.apply})
	b := buffers(t, ctx, 2, 64)
	k := tokens(4)
	n, err := g.Memset(cuda.MemsetParams{Dst: b[0].Ptr(), ElementSize: 1, Count: 64}, NodeOptions{Operands: operands(k[0])})
	require.NoError(t, err)

	changed := cuda.MemsetParams{Dst: b[1].Ptr(), ElementSize: 1, Count: 64, Value: 3}
	require.NoError(t, n.UpdateMemset(changed, operands(k[1])))
	released(t, k[0])
	kept(t, k[1])
	m.holds(t, k[1])
	require.Equal(t, changed, n.Params())

	err = n.UpdateHost(hostFunc(func() {}), operands(k[2]))
	require.ErrorContains(t, err, `node "memset_0" is of kind memset and cannot take the parameters of kind host`)
	released(t, k[2])
	err = n.UpdateMemset(cuda.MemsetParams{Dst: b[1].Ptr(), ElementSize: 3, Count: 1}, operands(k[3]))
	require.ErrorIs(t, err, cuda.ErrorInvalidValue)
	released(t, k[3])
	require.Equal(t, changed, n.Params())
	m.holds(t, k[1])

	join, err := g.Empty(NodeOptions{})
	require.NoError(t, err)
	k = tokens(1)
	err = join.UpdateHost(hostFunc(func() {}), operands(k...))
	require.ErrorContains(t, err, "whose parameters cannot be updated")
	released(t, k...)
}

func TestCloneHoldsForItself(t *testing.T) {
	ctx := open(t)
	var m mirror
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	k := tokens(3)
	first, err := g.Host(hostFunc(func() {}), NodeOptions{Name: "first", Operands: operands(k[0])})
	require.NoError(t, err)
	_, err = g.Host(hostFunc(func() {}), NodeOptions{Name: "second", Deps: []*Node{first}, Operands: operands(k[1])})
	require.NoError(t, err)

	c, err := g.Clone(Options{OnBundle: m.apply})
	require.NoError(t, err)
	m.holds(t, k[0], k[1])
	require.Equal(t, names(g.Retained()), names(c.Retained()))
	require.NotEqual(t, g.Node("first").Handle(), c.Node("first").Handle())
	require.Equal(t, []*Node{c.Node("first")}, c.Node("second").Dependencies())

	require.NoError(t, first.UpdateHost(hostFunc(func() {}), operands(k[2])))
	kept(t, k[0])
	require.NoError(t, g.Close())
	released(t, k[2])
	kept(t, k[0], k[1])
	require.NoError(t, c.Close())
	released(t, k[0], k[1])
	m.holds(t)
}

func TestParentHoldsWhatItEmbeds(t *testing.T) {
	ctx := open(t)
	var m mirror
	inner, err := New(ctx, Options{})
	require.NoError(t, err)
	k := tokens(2)
	a, err := inner.Host(hostFunc(func() {}), NodeOptions{Name: "a", Operands: operands(k[0])})
	require.NoError(t, err)
	_, err = inner.Host(hostFunc(func() {}), NodeOptions{Name: "b", Deps: []*Node{a}})
	require.NoError(t, err)
	middle, err := New(ctx, Options{})
	require.NoError(t, err)
	_, err = middle.Child(inner, NodeOptions{Name: "inner", Operands: operands(k[1])})
	require.NoError(t, err)
	outer := newTestGraph(t, ctx, Options{OnBundle: m.apply})
	for _, name := range []string{"one", "two"} {
		_, err = outer.Child(middle, NodeOptions{Name: name})
		require.NoError(t, err)
	}
	m.holds(t, k[0], k[0], k[1], k[1])
	require.Equal(t, []string{"one/inner:op1", "one/inner/a:op0", "two/inner:op1", "two/inner/a:op0"}, names(outer.Retained()))
	require.Equal(t, []string{"two/inner:op1", "two/inner/a:op0"}, names(outer.Node("two").Retained()))

	require.NoError(t, inner.Close())
	require.NoError(t, middle.Close())
	kept(t, k...)

	view := outer.Node("one").Child().Node("inner").Child()
	require.Equal(t, []Edge{{From: view.Node("a"), To: view.Node("b")}}, view.Edges())
	require.True(t, view.IsEmbedded())
	require.Zero(t, view.Handle())
	for name, err := range map[string]error{
		"close": view.Close(),
		"add":   second(view.Empty(NodeOptions{})),
		"clone": second(view.Clone(Options{})),
		"exec":  second(view.Instantiate(ExecOptions{})),
		"embed": second(outer.Child(view, NodeOptions{})),
		"set":   view.Node("a").UpdateHost(hostFunc(func() {}), nil),
	} {
		require.ErrorContains(t, err, "graph is embedded in another", name)
	}
	c, err := outer.Clone(Options{})
	require.NoError(t, err)
	require.Equal(t, names(outer.Retained()), names(c.Retained()))
	require.NoError(t, outer.Close())
	kept(t, k...)
	require.True(t, view.IsClosed())
	require.NoError(t, c.Close())
	released(t, k...)
}

func second[T any](_ T, err error) error { return err }

func TestGraphInItself(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	k := tokens(1)
	_, err := g.Host(hostFunc(func() {}), NodeOptions{Operands: operands(k...)})
	require.NoError(t, err)
	// The driver embeds a copy, or refuses; either way counts stay right.
	if n, err := g.Child(g, NodeOptions{}); err == nil {
		require.Len(t, g.Retained(), 2)
		require.Len(t, n.Child().Nodes(), 1, "as it was before")
	}
	require.NoError(t, g.Close())
	released(t, k...)
}

func TestDOT(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	inner := newTestGraph(t, ctx, Options{})
	b := buffers(t, ctx, 2, 64)
	k := tokens(1)
	_, err := inner.Memcpy(cuda.MemcpyParams{Dst: b[0].Ptr(), Src: b[1].Ptr(), Size: 64}, NodeOptions{Operands: operands(k...)})
	require.NoError(t, err)
	fill, err := g.Memset(cuda.MemsetParams{Dst: b[0].Ptr(), ElementSize: 4, Count: 16, Value: 7}, NodeOptions{Name: `a "quoted\` + "\nname", Site: 7})
	require.NoError(t, err)
	_, err = g.Child(inner, NodeOptions{Deps: []*Node{fill}})
	require.NoError(t, err)
	require.Equal(t, `digraph cudago {
  rankdir=TB;
  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif", fontsize=10];
  n0 [label="a \"quoted\\\nname\nmemset\n64 bytes of 0x7", fillcolor="#d9d2e9", class="memset", tooltip="\"C:\\7"];
  n1 [label="child_graph_0\nchild graph", fillcolor="#fff2cc", class="child graph"];
  subgraph cluster_n1_0 {
    label="child_graph_0";
    n1_0_0 [label="memcpy_0\nmemcpy\n64 bytes\nkeeps op0 (8 bytes)", fillcolor="#cfe2f3", class="memcpy"];
  }
  n0 -> n1;
}
`, g.DOT(func(site uint32) string { return map[uint32]string{7: `"C:\7`}[site] }))
}

func TestDOTHasNothingThatTerminalsObey(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	_, err := g.Memset(cuda.MemsetParams{Dst: buffers(t, ctx, 1, 64)[0].Ptr(), ElementSize: 4, Count: 16},
		NodeOptions{Name: "é\x1b[31m\x00\u0085\u2028\u202e\ta\nb"})
	require.NoError(t, err)
	require.Contains(t, g.DOT(nowhere), "label=\"é\uFFFD[31m\uFFFD\uFFFD\uFFFD\uFFFD a\\nb\\n")
}
