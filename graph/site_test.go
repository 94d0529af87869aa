// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// nowhere is what nodes without a site are made at.
func nowhere(uint32) string { return "" }

// Copies of a node have its site: in clones, embeddings, executables and what
// executables are embedded as.
func TestCopiesHaveTheSite(t *testing.T) {
	ctx := open(t)
	s, nothing := newStream(t, ctx), hostFunc(func() {})
	inner, err := New(ctx, Options{})
	require.NoError(t, err)
	deep, err := inner.Host(nothing, NodeOptions{Name: "deep", Site: 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, deep.Site())
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	_, err = g.Child(inner, NodeOptions{Name: "inner", Site: 2})
	require.NoError(t, err)
	_, err = g.Empty(NodeOptions{Name: "end"})
	require.NoError(t, err)
	check := func(g *Graph) {
		t.Helper()
		require.EqualValues(t, 2, g.Node("inner").Site())
		require.EqualValues(t, 1, g.Node("inner").Child().Node("deep").Site())
		require.Zero(t, g.Node("end").Site())
	}
	check(g)
	clone, err := g.Clone(Options{})
	require.NoError(t, err)
	check(clone)
	x := instantiate(t, g, ExecOptions{})
	for _, n := range x.Nodes() {
		require.Equal(t, n.Source().Site(), n.Site())
	}

	c := begin(t, s, Options{})
	require.NoError(t, c.Record(s, Operation{Name: "call", Params: nothing, Site: 3}, func() error {
		return s.LaunchHostFunc(nothing.Fn, nothing.UserData)
	}))
	require.NoError(t, embedIn(x, c, s))
	require.NoError(t, s.LaunchHostFunc(nothing.Fn, nothing.UserData))
	captured, err := c.End()
	require.NoError(t, err)
	require.EqualValues(t, 3, captured.Node("call").Site())
	require.EqualValues(t, 7, captured.Node("child_graph_0").Site())
	check(captured.Node("child_graph_0").Child())
	require.Zero(t, captured.Node("host_1").Site(), "nobody has said what it is")

	require.NoError(t, x.Close())
	for _, g := range []*Graph{inner, g, clone, captured} {
		require.NoError(t, g.Close())
	}
}

func TestSitesOfCapturedMemory(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var ends []bool
	c := begin(t, s, Options{})
	m := allocIn(t, c, s, &ends)
	require.NoError(t, c.Free(m, s, nil, 8))
	g, err := c.End()
	require.NoError(t, err)
	require.EqualValues(t, 7, g.Node("alloc_0").Site())
	require.EqualValues(t, 8, g.Node("free_0").Site())
	m.Release()
	require.NoError(t, g.Close())
}

func TestSiteOfAnAdoptedNode(t *testing.T) {
	ctx := open(t)
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	h, err := ctx.AddEmptyNode(g.Handle(), nil)
	require.NoError(t, err)
	list := g.Adopt(nil, []Added{{Handle: h, Kind: cuda.EmptyNode, After: -1, Site: 5}})
	require.EqualValues(t, 5, list[0].Site())
	require.NoError(t, g.Close())
}
