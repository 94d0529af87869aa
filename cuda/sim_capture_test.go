// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCaptureAndReplay(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	buf := allocate(t, device(t, c), 4, s)
	poke := kernel(t, c, "poke")
	temporary, err := device(t, c).Allocate(4, s)
	require.NoError(t, err)

	require.NoError(t, s.BeginCapture(CaptureThreadLocal))
	require.NoError(t, Launch(s, one(), poke, buf))
	require.NoError(t, temporary.Close(), "freed after the capture")
	info, err := s.CaptureInfo()
	require.NoError(t, err)
	require.Equal(t, CaptureActive, info.Status)
	require.Len(t, info.Dependencies, 1)
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.Zero(t, c.Drain())

	nodes, err := c.GraphNodes(g)
	require.NoError(t, err)
	require.Equal(t, info.Dependencies, nodes)
	kind, err := c.NodeType(nodes[0])
	require.NoError(t, err)
	require.Equal(t, KernelNode, kind)
	params, err := c.KernelNodeParams(nodes[0])
	require.NoError(t, err)
	require.Equal(t, poke.Handle(), params.Function)
	require.Equal(t, [3]uint32{1, 1, 1}, params.Grid)

	x, err := c.Instantiate(g, 0)
	require.NoError(t, err)
	require.NoError(t, c.GraphDestroy(g))
	got := make([]byte, 4)
	for range 2 {
		require.NoError(t, buf.Fill(0, 4, s))
		require.NoError(t, c.ExecLaunch(x, s))
		require.NoError(t, buf.CopyToHost(got, s))
		require.Equal(t, []byte{7, 0, 0, 0}, got)
	}
	require.NoError(t, c.ExecDestroy(x))
}

func TestSynchronizeWhileCapturingInvalidatesTheCapture(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	require.NoError(t, s.BeginCapture(CaptureGlobal))
	require.ErrorIs(t, s.Synchronize(), ErrorStreamCaptureUnsupported)
	status, err := s.IsCapturing()
	require.NoError(t, err)
	require.Equal(t, CaptureInvalidated, status)
	_, err = s.EndCapture()
	require.ErrorIs(t, err, ErrorStreamCaptureInvalidated)
	status, err = s.IsCapturing()
	require.NoError(t, err)
	require.Equal(t, CaptureNone, status)
}

// Allocating and freeing in other threads invalidates no global capture.
func TestGlobalCaptureSurvivesAllocations(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := openSimulated(t, Options{})
	s, other := newTestStream(t, c, StreamOptions{}), newTestStream(t, c, StreamOptions{})
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture(CaptureGlobal))
	finished := make(chan error)
	go func() {
		b, err := pinned.Allocate(64, other)
		if err == nil {
			err = b.Close()
		}
		finished <- err
	}()
	require.NoError(t, <-finished)
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, c.GraphDestroy(g))
	require.Zero(t, c.Drain())
}
