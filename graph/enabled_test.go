// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// capturedCall captures a host function as another library does: nobody here knows
// what the node calls.
func capturedCall(t *testing.T, s *cuda.Stream, p cuda.HostParams) *Graph {
	c := begin(t, s, Options{})
	require.NoError(t, s.LaunchHostFunc(p.Fn, p.UserData))
	g, err := c.End()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// A host node of another library's is enabled with what the executable calls, not
// with what its graph's node has become since.
func TestUnknownHostNodeIsEnabledAsItWas(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	calls := make([]atomic.Int64, 3)
	calling := func(i int) cuda.HostParams { return hostFunc(func() { calls[i].Add(1) }) }
	g, second := capturedCall(t, s, calling(0)), capturedCall(t, s, calling(1))
	x := instantiate(t, g, ExecOptions{Nothing: hostFunc(func() {}).Fn})
	again := func() []int64 {
		n := x.Nodes()[0]
		_, err := n.SetEnabled(false)
		require.NoError(t, err)
		_, err = n.SetEnabled(true)
		require.NoError(t, err)
		require.NoError(t, x.Launch(s))
		require.NoError(t, s.Synchronize())
		return []int64{calls[0].Load(), calls[1].Load(), calls[2].Load()}
	}
	require.Equal(t, []int64{1, 0, 0}, again())

	k := tokens(1)
	require.NoError(t, g.Nodes()[0].UpdateHost(calling(2), operands(k...)))
	require.Equal(t, []int64{2, 0, 0}, again(), "after an update of the graph's node")

	require.NoError(t, x.Update(second))
	require.Equal(t, []int64{2, 1, 0}, again(), "after an update from another graph")
	require.NoError(t, second.Close())
	require.Equal(t, []int64{2, 2, 0}, again(), "after that graph is closed")

	_, err := x.Nodes()[0].SetEnabled(false)
	require.NoError(t, err)
	require.NoError(t, x.Update(g))
	require.Equal(t, []int64{2, 2, 1}, again(), "after an update while it was disabled")
	kept(t, k...)
}
