// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// Where the node is there and cannot be ordered, it has its operands all the same.
func TestEmbeddingThatFailsHalfway(t *testing.T) {
	ctx := open(t)
	fail := func(call string) { ctx.Driver().FailCall(call, 1, cuda.ErrorUnknown) }
	s, k := newStream(t, ctx), tokens(2)
	var ran []string
	g := nested(t, ctx, &ran, k)
	require.NoError(t, s.BeginCapture(cuda.CaptureRelaxed))
	fail("cuGraphAddChildGraphNode")
	left, err := g.Capture(nil, s, 0)
	require.Error(t, err)
	require.Nil(t, left)
	fail("cuStreamUpdateCaptureDependencies")
	left, err = g.Capture(nil, s, 0)
	require.Error(t, err)
	require.NoError(t, g.Close())
	kept(t, k...)
	left.Release()
	eventuallyReleased(t, k...)
	handle, err := s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, ctx.GraphDestroy(handle))
}
