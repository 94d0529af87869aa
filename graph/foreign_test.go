// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// theirs makes a driver graph that no Graph knows: a host node, and one behind it.
func theirs(t *testing.T, ctx *cuda.Context, ran *[]string) cuda.GraphHandle {
	t.Helper()
	handle, err := ctx.GraphCreate()
	require.NoError(t, err)
	var before []cuda.NodeHandle
	for _, name := range []string{"a", "b"} {
		p := hostFunc(func() { *ran = append(*ran, name) })
		n, err := ctx.AddHostNode(handle, before, &p)
		require.NoError(t, err)
		before = []cuda.NodeHandle{n}
	}
	return handle
}

// The owner lives as long as anything that was made of its graph.
func TestGraphOfSomeoneElse(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(2)
	var ran []string
	handle := theirs(t, ctx, &ran)
	var m mirror
	g, err := Wrap(ctx, handle, nil, operands(k[0]), Options{OnBundle: m.apply})
	require.NoError(t, err)
	m.holds(t, k[0])
	a, b := g.Node("host_0"), g.Node("host_1")
	require.Equal(t, []*Node{a}, b.Dependencies())
	require.Nil(t, a.Params())
	_, err = g.Host(hostFunc(func() { ran = append(ran, "c") }), NodeOptions{Deps: []*Node{b}, Operands: operands(k[1])})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	clone, err := g.Clone(Options{})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []string{"a", "b", "c"}, ran)
	require.NoError(t, x.Close())
	steps(t)
	kept(t, k...)
	require.NoError(t, clone.Close())
	eventuallyReleased(t, k...)
	nodes, err := ctx.GraphNodes(handle)
	require.NoError(t, err, "the graph is not ours to destroy")
	require.Len(t, nodes, 3)
	require.NoError(t, ctx.GraphDestroy(handle))
	_, err = Wrap(ctx, handle, nil, operands(tokens(1)...), Options{})
	require.ErrorIs(t, err, cuda.ErrorInvalidValue)
}

// A driver graph that two Graphs have goes with the last of them.
func TestGraphThatIsOurs(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(1)
	ran := 0
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	_, err = g.Host(hostFunc(func() { ran++ }), NodeOptions{Operands: operands(k[0])})
	require.NoError(t, err)
	handle, err := g.Export()
	require.NoError(t, err)
	same, err := Wrap(ctx, handle, g, nil, Options{})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	_, err = Wrap(ctx, handle, g, nil, Options{})
	require.ErrorIs(t, err, cuda.ErrClosed)
	x := instantiate(t, same, ExecOptions{})
	require.NoError(t, same.Close())
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, 1, ran)
	kept(t, k...)
	require.NoError(t, x.Close())
	eventuallyReleased(t, k...)
}

// What other code may have copied is released with the graph, not before.
func TestExportedGraph(t *testing.T) {
	ctx := open(t)
	k := tokens(5)
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	before, err := g.Host(hostFunc(func() {}), NodeOptions{Operands: operands(k[0])})
	require.NoError(t, err)
	require.NoError(t, before.UpdateHost(hostFunc(func() {}), operands(k[1])))
	released(t, k[0])
	gone, err := g.Host(hostFunc(func() {}), NodeOptions{Operands: operands(k[2])})
	require.NoError(t, err)
	_, err = g.Export()
	require.NoError(t, err)
	require.NoError(t, before.UpdateHost(hostFunc(func() {}), operands(k[3])))
	require.NoError(t, before.UpdateHost(hostFunc(func() {}), operands(k[4])))
	require.NoError(t, g.Remove(gone))
	kept(t, k[1:]...)
	require.NoError(t, g.Close())
	released(t, k...)
	_, err = g.Export()
	require.ErrorIs(t, err, cuda.ErrClosed)
}
