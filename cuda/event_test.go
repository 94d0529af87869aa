// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestEventQuery(t *testing.T) {
	stub, c := openStub(t)
	e := newTestEvent(t, c, EventOptions{})
	done, err := e.Query()
	require.NoError(t, err)
	require.True(t, done)
	stub.ready = false
	done, err = e.Query()
	require.NoError(t, err)
	require.False(t, done)
	require.NoError(t, e.Close())
	_, err = e.Query()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, e.Synchronize(), ErrClosed)
	_, _, err = e.Use()
	require.ErrorIs(t, err, ErrClosed)
}

func TestEventElapsed(t *testing.T) {
	stub, c := openStub(t)
	start, end := newTestEvent(t, c, EventOptions{Timing: true}), newTestEvent(t, c, EventOptions{Timing: true})
	untimed := newTestEvent(t, c, EventOptions{})
	ms, err := end.ElapsedMS(start)
	require.NoError(t, err)
	require.Equal(t, 1.5, ms)

	_, err = untimed.ElapsedMS(start)
	require.EqualError(t, err, "the end event was created without timing")
	_, err = end.ElapsedMS(untimed)
	require.EqualError(t, err, "the start event was created without timing")

	code := driver.CUDA_ERROR_NOT_READY
	stub.on = func(call string) driver.CUresult {
		if call == "cuEventElapsedTime" {
			return code
		}
		return driver.CUDA_SUCCESS
	}
	_, err = end.ElapsedMS(start)
	require.ErrorIs(t, err, ErrorNotReady)
	require.ErrorContains(t, err, "synchronize with the later event first")
	code = driver.CUDA_ERROR_INVALID_HANDLE
	_, err = end.ElapsedMS(start)
	require.ErrorContains(t, err, "never been recorded")

	require.NoError(t, start.Close())
	_, err = end.ElapsedMS(start)
	require.ErrorIs(t, err, ErrClosed)
}

func TestEventCloseWhileSynchronizing(t *testing.T) {
	stub, c := openStub(t)
	e := newTestEvent(t, c, EventOptions{})
	waiting, release := make(chan struct{}), make(chan struct{})
	stub.on = func(call string) driver.CUresult {
		if call == "cuEventSynchronize" {
			close(waiting)
			<-release
		}
		return driver.CUDA_SUCCESS
	}
	result := make(chan error)
	go func() { result <- e.Synchronize() }()
	<-waiting
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Zero(t, stub.count("cuEventDestroy"))
	close(release)
	require.NoError(t, <-result)
	require.Equal(t, 1, stub.count("cuEventDestroy"))
	require.Empty(t, c.drv.Live())
}
