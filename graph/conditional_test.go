// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// newConditional adds a conditional node whose condition is first at each launch.
func newConditional(t testing.TB, g *Graph, k cuda.ConditionalType, bodies int, first uint32) *Node {
	t.Helper()
	c, err := g.Condition(first, true)
	require.NoError(t, err)
	n, err := g.Conditional(c, k, bodies, NodeOptions{Name: "choose"})
	require.NoError(t, err)
	return n
}

func fill(b *cuda.Buffer, value uint32) cuda.MemsetParams {
	return cuda.MemsetParams{Dst: b.Ptr(), Value: value, ElementSize: 1, Count: b.Size()}
}

func TestBodiesKeepWhatTheyAreGiven(t *testing.T) {
	ctx := open(t)
	s, b, ops := newStream(t, ctx), buffers(t, ctx, 3, 8), tokens(4)
	var m, executed mirror
	g := newTestGraph(t, ctx, Options{OnBundle: m.apply})
	n := newConditional(t, g, cuda.If, 2, 0)
	bodies := n.Bodies()
	require.Len(t, bodies, 2)
	require.Equal(t, n, bodies[0].Owner())
	require.NotZero(t, bodies[0].Handle())
	_, err := bodies[0].Memset(fill(b[0], 1), NodeOptions{Operands: operands(ops[0])})
	require.NoError(t, err)
	old, err := bodies[1].Memset(fill(b[1], 2), NodeOptions{Operands: operands(ops[1])})
	require.NoError(t, err)
	require.NoError(t, old.UpdateMemset(fill(b[1], 3), operands(ops[2])))
	released(t, ops[1])
	m.holds(t, ops[0], ops[2])
	want := []string{"choose[0]/memset_0:op0", "choose[1]/memset_0:op2"}
	require.Equal(t, want, names(g.Retained()))
	require.Equal(t, want, names(n.Retained()))
	require.Equal(t, []string{"memset_0:op2"}, names(bodies[1].Retained()))

	x := instantiate(t, g, ExecOptions{OnBundle: executed.apply})
	require.NoError(t, g.Close())
	require.True(t, bodies[1].IsClosed())
	kept(t, ops[0], ops[2])
	m.holds(t)
	require.Equal(t, want, names(x.Retained()))
	require.Equal(t, want, names(x.Node("choose").Retained()))
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{0, 3}, []byte{b[0].Bytes()[0], b[1].Bytes()[0]})

	// A node of a body is updated as any other.
	require.NoError(t, x.Node("choose[1]/memset_0").UpdateMemset(fill(b[2], 4), operands(ops[3])))
	eventuallyReleased(t, ops[2])
	executed.holds(t, ops[0], ops[3])
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 4, b[2].Bytes()[0])
	require.NoError(t, x.Close())
	eventuallyReleased(t, ops...)
}

func TestBodiesTakeDeviceWorkOnly(t *testing.T) {
	ctx := open(t)
	b, ops := buffers(t, ctx, 1, 8), tokens(4)
	g := newTestGraph(t, ctx, Options{})
	body := newConditional(t, g, cuda.While, 1, 0).Bodies()[0]
	wrong := func(err error, text string) {
		t.Helper()
		var bad *cuda.ArgumentError
		require.ErrorAs(t, err, &bad)
		require.Contains(t, err.Error(), text)
	}
	_, err := body.Host(hostFunc(func() {}), NodeOptions{Operands: operands(ops[0])})
	wrong(err, `is a body of conditional node "choose": it can hold kernels, copies, fills, joins, graphs and conditional nodes, not host nodes`)
	pageable := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: 0x10000, SrcHost: true, Size: 8}
	_, err = body.Memcpy(pageable, NodeOptions{Operands: operands(ops[1])})
	wrong(err, `src is ordinary host memory, which cannot be copied in a body of conditional node "choose": pin it`)
	pinned := pageable
	pinned.Src = b[0].Ptr()
	n, err := body.Memcpy(pinned, NodeOptions{})
	require.NoError(t, err)
	wrong(n.UpdateMemcpy(pageable, operands(ops[2])), "ordinary host memory")

	inner := newTestGraph(t, ctx, Options{})
	_, err = inner.Memcpy(pageable, NodeOptions{Operands: operands(ops[3])})
	require.NoError(t, err)
	outer := newTestGraph(t, ctx, Options{})
	_, err = outer.Child(inner, NodeOptions{})
	require.NoError(t, err)
	_, err = body.Child(outer, NodeOptions{})
	wrong(err, "ordinary host memory")
	released(t, ops[:3]...)
	x := instantiate(t, g, ExecOptions{})
	wrong(x.Node("choose/memcpy_0").UpdateMemcpy(pageable, nil), "ordinary host memory")
}

func TestBodiesAreNoGraphsOfTheirOwn(t *testing.T) {
	ctx := open(t)
	g, other := newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{})
	body := newConditional(t, g, cuda.Switch, 3, 0).Bodies()[2]
	for _, err := range []error{
		body.Close(),
		second(body.Clone(Options{})),
		second(body.Instantiate(ExecOptions{})),
		second(other.Child(body, NodeOptions{})),
	} {
		var bad *cuda.ArgumentError
		require.ErrorAs(t, err, &bad)
		require.Contains(t, err.Error(), `is a body of conditional node "choose" and cannot be`)
	}
	_, err := g.Clone(Options{})
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
	_, err = other.Child(g, NodeOptions{})
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
}

func TestConditionsAreChecked(t *testing.T) {
	ctx := open(t)
	g, other := newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{})
	foreign, err := other.Condition(0, false)
	require.NoError(t, err)
	c, err := g.Condition(0, false)
	require.NoError(t, err)
	ops := tokens(1)
	_, err = g.Conditional(foreign, cuda.If, 1, NodeOptions{Operands: operands(ops...)})
	require.ErrorContains(t, err, "condition must be one that this graph has made")
	released(t, ops...)
	for _, wrong := range []struct {
		kind   cuda.ConditionalType
		bodies int
	}{{cuda.If, 0}, {cuda.If, 3}, {cuda.While, 2}, {cuda.Switch, 0}, {cuda.Switch, MaxBodies + 1}, {7, 1}} {
		_, err = g.Conditional(c, wrong.kind, wrong.bodies, NodeOptions{})
		var bad *cuda.ArgumentError
		require.ErrorAs(t, err, &bad)
	}
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorContains(t, err, "controls no conditional node: add one that it controls: ")
	_, err = g.Conditional(c, cuda.If, 1, NodeOptions{})
	require.NoError(t, err)
	_, err = g.Conditional(c, cuda.If, 1, NodeOptions{})
	require.ErrorContains(t, err, `condition already controls conditional node "conditional_0"`)
	require.NoError(t, g.Close())
	_, err = g.Condition(0, false)
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.NoError(t, other.Close()) // its condition, which no node has, is released
}

// The driver has no way to give a condition back.
func TestConditionOfARemovedNode(t *testing.T) {
	ctx := open(t)
	g := newTestGraph(t, ctx, Options{})
	c, err := g.Condition(1, true)
	require.NoError(t, err)
	n, err := g.Conditional(c, cuda.If, 1, NodeOptions{Name: "maybe"})
	require.NoError(t, err)
	x, err := g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.NoError(t, g.Remove(n))
	const why = `controls no conditional node since conditional node "maybe" was removed`
	_, err = g.Clone(Options{})
	require.ErrorContains(t, err, why+"), with which no graph can be cloned: build it again")
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorContains(t, err, why, "of which there is one already")
	require.NoError(t, x.Close())
	require.True(t, Reaper().Flush(patience))
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorContains(t, err, why+": add one that it controls")
	_, err = g.Conditional(c, cuda.If, 1, NodeOptions{Name: "again"})
	require.NoError(t, err)
	x, err = g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
}

func TestEmbeddingInABodyNamesIt(t *testing.T) {
	ctx := open(t)
	g, inner, outer := newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{}), newTestGraph(t, ctx, Options{})
	c, err := g.Condition(1, true)
	require.NoError(t, err)
	n, err := g.Conditional(c, cuda.If, 1, NodeOptions{Name: "loop"})
	require.NoError(t, err)
	_, err = inner.Host(cuda.HostParams{Fn: 1}, NodeOptions{Name: "call"})
	require.NoError(t, err)
	_, err = outer.Child(inner, NodeOptions{Name: "deep"})
	require.NoError(t, err)
	for _, sub := range []*Graph{inner, outer} {
		_, err = n.Bodies()[0].Child(sub, NodeOptions{})
		require.ErrorContains(t, err, `host node "call" of the graph to embed: graph is a body of conditional node "loop": it can hold`)
	}
	require.NoError(t, g.Close())
	require.NoError(t, inner.Close())
	require.NoError(t, outer.Close())
}

func TestDOTOfBodies(t *testing.T) {
	ctx := open(t)
	b := buffers(t, ctx, 1, 8)
	g := newTestGraph(t, ctx, Options{})
	n := newConditional(t, g, cuda.If, 2, 0)
	_, err := n.Bodies()[1].Memset(fill(b[0], 1), NodeOptions{})
	require.NoError(t, err)
	dot := g.DOT(nowhere)
	require.Contains(t, dot, `n0 [label="choose\nconditional\nif", fillcolor="#f4cccc", class="conditional"];`)
	require.Contains(t, dot, "subgraph cluster_n0_0 {\n    label=\"choose[0]\";\n  }\n")
	require.Contains(t, dot, `label="choose[1]";`)
	require.Contains(t, dot, "n0 -> n0_1_0 [style=dashed];")
}
