// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// A referee counts records that overlap the begin or the end of a capture, or
// that hit a stream which is capturing.
type referee struct {
	driver.API
	changing, recording atomic.Int64
	beside, captured    atomic.Int64
	user                map[driver.CUevent]bool // recorded by the capturing thread, in the capture
}

func (r *referee) change(f func()) {
	r.changing.Add(1)
	defer r.changing.Add(-1)
	runtime.Gosched() // so that others can enter, if nothing stops them
	if r.recording.Load() > 0 {
		r.beside.Add(1)
	}
	f()
	runtime.Gosched()
}

func (r *referee) CuStreamIsCapturing(s driver.CUstream) (driver.CUstreamCaptureStatus, driver.CUresult) {
	defer runtime.Gosched()
	return r.API.CuStreamIsCapturing(s)
}

func (r *referee) CuStreamBeginCapture(s driver.CUstream, m driver.CUstreamCaptureMode) (res driver.CUresult) {
	r.change(func() { res = r.API.CuStreamBeginCapture(s, m) })
	return res
}

func (r *referee) CuStreamEndCapture(s driver.CUstream) (g driver.CUgraph, res driver.CUresult) {
	r.change(func() { g, res = r.API.CuStreamEndCapture(s) })
	return g, res
}

func (r *referee) CuEventRecord(e driver.CUevent, s driver.CUstream) driver.CUresult {
	if r.user[e] {
		return r.API.CuEventRecord(e, s)
	}
	r.recording.Add(1)
	defer r.recording.Add(-1)
	if r.changing.Load() > 0 {
		r.beside.Add(1)
	}
	runtime.Gosched()
	if st, _ := r.API.CuStreamIsCapturing(s); st != driver.CU_STREAM_CAPTURE_STATUS_NONE {
		r.captured.Add(1)
	}
	return r.API.CuEventRecord(e, s)
}

func openRefereed(t *testing.T) (*referee, *Context) {
	r := &referee{}
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		r.API = wrap(api)
		return r
	}
	defer func() { wrapForTest = wrap }()
	return r, openSimulated(t, Options{})
}

// Threads that record meet neither the begin nor the end of a capture, and no
// stream that is capturing: neither the one it was begun in, nor one that joined.
func TestRecordsAndCapturesExcludeEachOther(t *testing.T) {
	r, c := openRefereed(t)
	s, fork := newTestStream(t, c, StreamOptions{}), newTestStream(t, c, StreamOptions{})
	forked, joined := newTestEvent(t, c, EventOptions{}), newTestEvent(t, c, EventOptions{})
	r.user = map[driver.CUevent]bool{forked.h: true, joined.h: true}
	var wg sync.WaitGroup
	var stop atomic.Bool
	for i, record := range []func(*Stream, *Event) (bool, error){
		(*Stream).RecordUncaptured, (*Stream).RecordAside, (*Stream).RecordUncaptured, (*Stream).RecordAside,
	} {
		target := []*Stream{s, s, fork, fork}[i]
		e := newTestEvent(t, c, EventOptions{})
		wg.Go(func() {
			for !stop.Load() {
				recorded, err := record(target, e)
				if err != nil {
					t.Error(err)
				}
				if recorded {
					if _, err := e.Query(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 300 {
		require.NoError(t, s.BeginCapture(CaptureRelaxed))
		require.NoError(t, s.Record(forked))
		require.NoError(t, fork.Wait(forked))
		require.NoError(t, fork.Record(joined))
		require.NoError(t, s.Wait(joined))
		g, err := s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, c.GraphDestroy(g))
	}
	stop.Store(true)
	wg.Wait()
	require.Zero(t, r.beside.Load())
	require.Zero(t, r.captured.Load())
}

func TestRecordUncaptured(t *testing.T) {
	c := openSimulated(t, Options{Sim: "devices=2"})
	s, other := newTestStream(t, c, StreamOptions{}), newTestStream(t, c, StreamOptions{})
	e := newTestEvent(t, c, EventOptions{})
	for _, record := range []func(*Stream, *Event) (bool, error){(*Stream).RecordUncaptured, (*Stream).RecordAside} {
		recorded, err := record(s, e)
		require.NoError(t, err)
		require.True(t, recorded)
	}
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	recorded, err := s.RecordUncaptured(e)
	require.NoError(t, err)
	require.False(t, recorded)
	recorded, err = other.RecordUncaptured(e)
	require.NoError(t, err)
	require.True(t, recorded)
	recorded, err = other.RecordAside(e) // it may join at any time
	require.NoError(t, err)
	require.False(t, recorded)
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, c.GraphDestroy(g))

	peer, err := c.drv.Device(1)
	require.NoError(t, err)
	far, err := peer.Context()
	require.NoError(t, err)
	_, err = s.RecordUncaptured(newTestEvent(t, far, EventOptions{}))
	require.ErrorContains(t, err, "event must be of")
	closed, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = s.RecordUncaptured(closed)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, other.Close())
	_, err = other.RecordUncaptured(e)
	require.ErrorIs(t, err, ErrClosed)
}

// A capture counts as open until the driver says that it is over: also where it
// says nothing.
func TestCaptureThatCannotEndIsStillOpen(t *testing.T) {
	var faults *fault.Driver
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		faults = fault.New(api)
		return faults
	}
	defer func() { wrapForTest = wrap }()
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	for _, ask := range []driver.CUresult{driver.CUDA_SUCCESS, driver.CUDA_ERROR_UNKNOWN} {
		faults.Fail("CuStreamEndCapture", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
		if ask != driver.CUDA_SUCCESS {
			faults.Fail("CuStreamIsCapturing", 1, ask)
		}
		_, err := s.EndCapture()
		require.ErrorIs(t, err, ErrorOutOfMemory)
		require.False(t, faults.Clear())
		require.True(t, c.drv.Capturing())
	}
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.False(t, c.drv.Capturing())
	require.NoError(t, c.GraphDestroy(g))
}

func TestOnCaptureEnd(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	ended := 0
	capture := func() {
		require.NoError(t, s.BeginCapture(CaptureRelaxed))
		g, err := s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, c.GraphDestroy(g))
	}
	c.drv.OnCaptureEnd(func() {
		require.False(t, c.drv.Capturing())
		ended++
	})
	capture()
	require.Equal(t, 1, ended)
	c.drv.OnCaptureEnd(nil)
	capture()
	require.Equal(t, 1, ended)
	require.Zero(t, c.Drain())
}
