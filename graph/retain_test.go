// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

func TestGraphKeepsOperandsAsAWhole(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var m, mx mirror
	k := tokens(3)
	g, err := New(ctx, Options{OnBundle: m.apply})
	require.NoError(t, err)
	_, err = g.Host(hostFunc(func() {}), NodeOptions{})
	require.NoError(t, err)
	require.NoError(t, g.Retain(nil))
	require.NoError(t, g.Retain(operands(k[0])))
	require.Equal(t, []string{":op0"}, names(g.Retained()))
	x := instantiate(t, g, ExecOptions{OnBundle: mx.apply})
	require.NoError(t, g.Retain(operands(k[1])))
	m.holds(t, k[0], k[1])
	mx.holds(t, k[0])
	c, err := g.Clone(Options{})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.ErrorIs(t, g.Retain(operands(k[2])), cuda.ErrClosed)
	released(t, k[2])
	require.NoError(t, x.Launch(s))
	kept(t, k[0], k[1])
	require.NoError(t, c.Close())
	released(t, k[1])
	kept(t, k[0])
	require.NoError(t, x.Close())
	eventuallyReleased(t, k[0])
}

// What a body keeps as a whole must outlive the graph in its executables, and be
// replaced by their updates.
func TestExecutablesHoldWhatBodiesKeep(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	k := tokens(2)
	made := func(k *token) *Graph {
		g, err := New(ctx, Options{})
		require.NoError(t, err)
		body := newConditional(t, g, cuda.If, 1, 0).Bodies()[0]
		_, err = body.Empty(NodeOptions{})
		require.NoError(t, err)
		require.NoError(t, body.Retain(operands(k)))
		return g
	}
	g, other := made(k[0]), made(k[1])
	x := instantiate(t, g, ExecOptions{})
	require.Equal(t, names(g.Retained()), names(x.Retained()))
	require.NoError(t, g.Close())
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	kept(t, k[0])
	require.NoError(t, x.Update(other))
	eventuallyReleased(t, k[0])
	require.NoError(t, other.Close())
	kept(t, k[1])
	require.NoError(t, x.Close())
	eventuallyReleased(t, k[1])
}
