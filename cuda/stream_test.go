// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func newTestStream(t *testing.T, c *Context, o StreamOptions) *Stream {
	t.Helper()
	s, err := c.NewStream(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newTestEvent(t *testing.T, c *Context, o EventOptions) *Event {
	t.Helper()
	e, err := c.NewEvent(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestStreamSynchronize(t *testing.T) {
	tests := []struct {
		name   string
		closed bool
		fault  driver.CUresult
		want   error
	}{
		{name: "idle stream"},
		{name: "closed stream", closed: true, want: ErrClosed},
		{name: "driver fails", fault: driver.CUDA_ERROR_INVALID_HANDLE, want: ErrorInvalidHandle},
		{name: "earlier work failed", fault: driver.CUDA_ERROR_ILLEGAL_ADDRESS, want: ErrorIllegalAddress},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stub, c := openStub(t)
			s := newTestStream(t, c, StreamOptions{})
			if tt.closed {
				require.NoError(t, s.Close())
			}
			stub.on = func(call string) driver.CUresult {
				if call == "cuStreamSynchronize" {
					return tt.fault
				}
				return driver.CUDA_SUCCESS
			}
			require.ErrorIs(t, s.Synchronize(), tt.want)
		})
	}
}

func TestStreamDone(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	done, err := s.Done()
	require.NoError(t, err)
	require.True(t, done)

	stub.ready = false
	done, err = s.Done()
	require.NoError(t, err, "not ready is an answer, not an error")
	require.False(t, done)

	stub.on = func(string) driver.CUresult { return driver.CUDA_ERROR_ILLEGAL_ADDRESS }
	done, err = s.Done()
	require.Error(t, err)
	require.False(t, done)
	stub.on = nil
}

func TestStreamCloseTwice(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{Name: "upload"})
	require.False(t, s.IsClosed())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.True(t, s.IsClosed())
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
	require.EqualError(t, s.Synchronize(), `stream "upload" is closed`)
	_, _, err := s.Use()
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, c.drv.Live())
}

// Close does not wait for a call that blocks; that call destroys the handle.
func TestStreamCloseWhileSynchronizing(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	waiting, release := make(chan struct{}), make(chan struct{})
	stub.on = func(call string) driver.CUresult {
		if call == "cuStreamSynchronize" {
			close(waiting)
			<-release
		}
		return driver.CUDA_SUCCESS
	}
	result := make(chan error)
	go func() { result <- s.Synchronize() }()
	<-waiting
	require.NoError(t, s.Close())
	require.Zero(t, stub.count("cuStreamDestroy"), "in use")
	close(release)
	require.NoError(t, <-result)
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
}

func TestStreamUseKeepsTheHandle(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	h, done, err := s.Use()
	require.NoError(t, err)
	require.Equal(t, s.Handle(), h)
	require.NoError(t, s.Close())
	require.Zero(t, stub.count("cuStreamDestroy"))
	done()
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
}

func TestStreamHammer(t *testing.T) {
	stub, c := openStub(t)
	for range 50 {
		s, err := c.NewStream(StreamOptions{})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for s.Synchronize() == nil {
				}
			})
		}
		wg.Go(func() { s.Close() })
		wg.Wait()
	}
	require.Zero(t, stub.living())
	require.Empty(t, c.drv.Live())
}

func TestDefaultStreams(t *testing.T) {
	stub, c := openStub(t)
	legacy, perThread := c.DefaultStream(Legacy), c.DefaultStream(PerThread)
	require.EqualValues(t, 1, legacy.Handle())
	require.EqualValues(t, 2, perThread.Handle())
	require.Same(t, legacy, c.WrapStream(0))
	require.Same(t, legacy, c.WrapStream(1))
	require.Same(t, perThread, c.WrapStream(2))
	require.True(t, legacy.IsDefault())
	require.Equal(t, "legacy default stream", legacy.String())

	require.NoError(t, legacy.Close())
	require.False(t, legacy.IsClosed(), "it is not ours to close")
	require.NoError(t, legacy.Synchronize())
	require.Zero(t, stub.count("cuStreamDestroy"))
}

func TestForeignStream(t *testing.T) {
	stub, c := openStub(t)
	s := c.WrapStream(0x4440)
	require.True(t, s.IsForeign())
	require.NoError(t, s.Synchronize())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Synchronize(), ErrClosed)
	require.Zero(t, stub.count("cuStreamDestroy"), "another library's")
	require.Empty(t, c.drv.Live())
}

func TestStreamPriorityFarOutsideStaysOutside(t *testing.T) {
	stub, c := openStub(t)
	newTestStream(t, c, StreamOptions{Priority: math.MinInt})
	require.EqualValues(t, math.MinInt32, stub.priority)
	newTestStream(t, c, StreamOptions{Priority: math.MaxInt})
	require.EqualValues(t, math.MaxInt32, stub.priority)
}

func TestStreamAndEventOfDifferentDevices(t *testing.T) {
	_, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	otherContext, err := other.Context()
	require.NoError(t, err)
	e := newTestEvent(t, otherContext, EventOptions{})
	require.EqualError(t, s.Record(e), "event must be of device 0, as the stream is, got one of device 1")
	require.NoError(t, s.Wait(e), "waiting across devices is fine")
}

func TestStreamWithClosedEvent(t *testing.T) {
	_, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	e := newTestEvent(t, c, EventOptions{})
	require.NoError(t, s.Record(e))
	require.NoError(t, e.Close())
	require.ErrorIs(t, s.Record(e), ErrClosed)
	require.ErrorIs(t, s.Wait(e), ErrClosed)
}

func TestClosedStreamRefusesEverything(t *testing.T) {
	_, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	e := newTestEvent(t, c, EventOptions{})
	require.NoError(t, s.Close())
	for name, f := range map[string]func() error{
		"Synchronize":    s.Synchronize,
		"Done":           func() error { _, err := s.Done(); return err },
		"Record":         func() error { return s.Record(e) },
		"Wait":           func() error { return s.Wait(e) },
		"LaunchHostFunc": func() error { return s.LaunchHostFunc(1, 2) },
		"Priority":       func() error { _, err := s.Priority(); return err },
		"IsBlocking":     func() error { _, err := s.IsBlocking(); return err },
		"ID":             func() error { _, err := s.ID(); return err },
		"BeginCapture":   func() error { return s.BeginCapture(CaptureGlobal) },
		"EndCapture":     func() error { _, err := s.EndCapture(); return err },
		"IsCapturing":    func() error { _, err := s.IsCapturing(); return err },
		"CaptureInfo":    func() error { _, err := s.CaptureInfo(); return err },
		"Memcpy":         func() error { return Memcpy(1, 2, 0, s) },
		"Memset":         func() error { return Memset(1, 2, 4, 0, s) },
		"MemOp":          func() error { return MemOp(MemOpParams{Width: 4}, s) },
		"ExecLaunch":     func() error { return c.ExecLaunch(1, s) },
	} {
		require.ErrorIs(t, f(), ErrClosed, name)
	}
}

// A capturing stream is destroyed after its capture.
func TestStreamCloseWhileCapturing(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE)
	require.NoError(t, s.Close())
	require.Zero(t, stub.count("cuStreamDestroy"))
	require.Equal(t, 1, c.Drain(), "still capturing")
	stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_NONE)
	require.Zero(t, c.Drain())
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
}
