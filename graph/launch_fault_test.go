// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A launch that fails may have begun, so what it uses stays until the work in its
// stream has ended.
func TestFailedLaunchMayHaveBegun(t *testing.T) {
	for kind, streamOf := range streamsOf {
		for _, call := range []string{"cuGraphLaunch", "cuGraphUpload"} {
			t.Run(kind+"/"+call, func(t *testing.T) {
				ctx := open(t)
				failing.Store(true)
				s, gate, keep := streamOf(ctx, newStream(t, ctx)), newGate(t), tokens(1)
				g, err := New(ctx, Options{})
				require.NoError(t, err)
				_, err = g.Host(hostFunc(func() {}), NodeOptions{Operands: operands(keep...)})
				require.NoError(t, err)
				x, err := g.Instantiate(ExecOptions{})
				require.NoError(t, err)
				require.NoError(t, x.Launch(s)) // so that the operands wait for uses at all
				require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
				<-gate.entered
				ctx.Driver().FailCall(call, 1, cuda.ErrorOutOfMemory)
				enqueue := x.Launch
				if call == "cuGraphUpload" {
					enqueue = x.Upload
				}
				require.ErrorIs(t, enqueue(s), cuda.ErrorOutOfMemory)
				require.NoError(t, g.Close())
				require.NoError(t, x.Close())
				steps(t)
				kept(t, keep...)
				gate.open()
				eventuallyReleased(t, keep...)
				require.NoError(t, s.Close())
			})
		}
	}
}

// An executable that is closed launches nothing, and takes no position.
func TestClosedExecutableTakesNoPosition(t *testing.T) {
	for kind, streamOf := range streamsOf {
		t.Run(kind, func(t *testing.T) {
			ctx := open(t)
			s := streamOf(ctx, newStream(t, ctx))
			g, err := New(ctx, Options{})
			require.NoError(t, err)
			x, err := g.Instantiate(ExecOptions{})
			require.NoError(t, err)
			require.NoError(t, x.Close())
			require.ErrorIs(t, x.Launch(s), cuda.ErrClosed)
			require.Zero(t, LineOf(s).Queued())
			require.NoError(t, g.Close())
		})
	}
}
