// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// failOnce has the stub's next call of a name fail.
func (s *stub) failOnce(name string) {
	done := false
	s.on = func(call string) driver.CUresult {
		if call != name || done {
			return driver.CUDA_SUCCESS
		}
		done = true
		return driver.CUDA_ERROR_OUT_OF_MEMORY
	}
}

// A release before which another call has failed was not tried, and is tried
// again: nothing is left behind, and nothing given back too early.
func TestReleaseIsTriedAgain(t *testing.T) {
	stub, c := openStub(t)
	var warnings []error
	c.drv.OnWarning(func(err error) { warnings = append(warnings, err) })
	asked := 0
	c.drv.OnCaptureEnd(func() {
		asked++
		require.EqualValues(t, 1, c.deferred.waiting.Load(), "it is there to be tried")
	})
	s := newTestStream(t, c, StreamOptions{})
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	alive, live := stub.living(), c.drv.Live()
	released := 0
	must := func(x io.Closer, err error) io.Closer {
		require.NoError(t, err)
		return x
	}
	executable := func() io.Closer {
		x, err := c.Instantiate(1, 0)
		return must(execCloser{c, x}, err)
	}
	for name, test := range map[string]struct {
		fails string
		make  func() io.Closer
		gives string
	}{
		"stream":        {"cuCtxPushCurrent", func() io.Closer { return must(c.NewStream(StreamOptions{})) }, "cuStreamDestroy"},
		"asked stream":  {"cuStreamIsCapturing", func() io.Closer { return must(c.NewStream(StreamOptions{})) }, "cuStreamDestroy"},
		"event":         {"cuCtxPushCurrent", func() io.Closer { return must(c.NewEvent(EventOptions{})) }, "cuEventDestroy"},
		"executable":    {"cuCtxPushCurrent", executable, "cuGraphExecDestroy"},
		"pinned memory": {"cuCtxPushCurrent", func() io.Closer { return must(pinned.Allocate(16, s)) }, "cuMemFreeHost"},
		"used memory":   {"cuStreamQuery", func() io.Closer { return must(pinned.Allocate(16, s)) }, "cuMemFreeHost"},
		"host memory": {"cuCtxSynchronize", func() io.Closer {
			return must(c.RegisterHost(HostRegistration{Ptr: 0x70000, Size: 64, Release: func() { released++ }}))
		}, "cuMemHostUnregister"},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, released, asked = nil, 0, 0
			x := test.make()
			stub.calls = nil
			stub.failOnce(test.fails)
			require.NoError(t, x.Close())
			require.NotZero(t, stub.count(test.fails))
			require.Zero(t, stub.count(test.gives))
			require.Zero(t, released)
			require.Equal(t, 1, asked, "for a Drain soon")
			require.Zero(t, c.Drain())
			require.Equal(t, 1, stub.count(test.gives))
			require.Equal(t, alive, stub.living())
			require.Equal(t, live, c.drv.Live())
			require.Empty(t, warnings)
		})
	}
}

// What the driver refuses to unregister may be used by devices until a reset,
// which is none until it has succeeded.
func TestRefusedUnregisterBesideAReset(t *testing.T) {
	stub, c := openStub(t)
	released := 0
	b, err := c.RegisterHost(HostRegistration{Ptr: 0x70000, Size: 64, Release: func() { released++ }})
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		if call != "cuMemHostUnregister" {
			return driver.CUDA_SUCCESS
		}
		c.state.Store(contextResetting) // another thread begins a reset, which waits for this call
		return driver.CUDA_ERROR_UNKNOWN
	}
	require.NoError(t, b.Close())
	require.Zero(t, released)
	stub.on = nil
	c.reopen() // it has failed
	require.Zero(t, c.Drain())
	require.Zero(t, released)
	require.NoError(t, c.dev.Reset())
	require.Equal(t, 1, released)
}
