// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// closedExposed returns the handle of a closed stream that others know.
func closedExposed(t *testing.T, c *Context, o StreamOptions) uintptr {
	t.Helper()
	s, err := c.NewStream(o)
	require.NoError(t, err)
	s.Expose()
	require.NoError(t, s.Close())
	return s.Handle()
}

func TestExposedStreamIsGivenOutAgain(t *testing.T) {
	c := openSimulated(t, Options{})
	h := closedExposed(t, c, StreamOptions{})
	require.NoError(t, c.WrapStream(h).Synchronize(), "it was destroyed")
	require.NotEqual(t, h, newTestStream(t, c, StreamOptions{Priority: -1}).Handle(), "of another priority")
	require.NotEqual(t, h, newTestStream(t, c, StreamOptions{Blocking: true}).Handle(), "of another kind")

	again := newTestStream(t, c, StreamOptions{})
	require.Equal(t, h, again.Handle())
	require.True(t, again.IsExposed(), "others still know it")
	require.NotEqual(t, h, newTestStream(t, c, StreamOptions{}).Handle(), "it was given out twice")
}

func TestUnknownStreamIsDestroyed(t *testing.T) {
	c := openSimulated(t, Options{})
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.ErrorIs(t, c.WrapStream(s.Handle()).Synchronize(), ErrorInvalidHandle)
}

func TestExposedStreamInUseStaysParked(t *testing.T) {
	goOn := make(chan struct{})
	c := openSimulated(t, Options{CallHost: func(fn, userData uintptr) { <-goOn }})
	h := closedExposed(t, c, StreamOptions{})
	stale := c.WrapStream(h)

	require.NoError(t, stale.LaunchHostFunc(1, 2))
	require.NotEqual(t, h, newTestStream(t, c, StreamOptions{}).Handle(), "it has work")
	close(goOn)
	require.NoError(t, stale.Synchronize())

	require.NoError(t, stale.BeginCapture(CaptureRelaxed))
	require.NotEqual(t, h, newTestStream(t, c, StreamOptions{}).Handle(), "it is capturing")
	g, err := stale.EndCapture()
	require.NoError(t, err)
	require.NoError(t, c.GraphDestroy(g))
	require.Equal(t, h, newTestStream(t, c, StreamOptions{}).Handle())
}

func TestParkedStreamThatCannotBeAskedStaysParked(t *testing.T) {
	stub, c := openStub(t)
	h := closedExposed(t, c, StreamOptions{})
	stub.on = func(call string) driver.CUresult {
		if call == "cuStreamIsCapturing" {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		return driver.CUDA_SUCCESS
	}
	require.NotEqual(t, h, newTestStream(t, c, StreamOptions{}).Handle())
	stub.on = nil
	require.Equal(t, h, newTestStream(t, c, StreamOptions{}).Handle())
}
