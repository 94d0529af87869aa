// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A diary notes destructions of events and ends of captures, and can refuse to
// tell the number of a capture.
type diary struct {
	driver.API
	mu       sync.Mutex
	entries  []string // guarded by mu
	nameless bool
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, s)
}

func (d *diary) CuEventDestroy(e driver.CUevent) driver.CUresult {
	d.note("destroy")
	return d.API.CuEventDestroy(e)
}

func (d *diary) CuStreamEndCapture(s driver.CUstream) (driver.CUgraph, driver.CUresult) {
	defer d.note("end")
	return d.API.CuStreamEndCapture(s)
}

func (d *diary) CuStreamGetCaptureInfo(s driver.CUstream, deps bool) (driver.CaptureInfo, driver.CUresult) {
	if d.nameless {
		return driver.CaptureInfo{}, driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	return d.API.CuStreamGetCaptureInfo(s, deps)
}

func openDiary(t *testing.T) (*diary, *Context, *Stream, *Event) {
	d := &diary{}
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		d.API = wrap(api)
		return d
	}
	defer func() { wrapForTest = wrap }()
	ctx := openSimulated(t, Options{})
	s, err := ctx.NewStream(StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	e, err := ctx.NewEvent(EventOptions{})
	require.NoError(t, err)
	return d, ctx, s, e
}

func (d *diary) end(t *testing.T, ctx *Context, s *Stream) {
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, ctx.GraphDestroy(g))
}

func TestCapturedEventIsDestroyedAfterTheCapture(t *testing.T) {
	d, ctx, s, e := openDiary(t)
	other, err := ctx.NewStream(StreamOptions{})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	require.NoError(t, s.Record(e))
	require.NoError(t, e.Close())
	// Captures that have nothing to do with it do not keep it waiting.
	require.NoError(t, other.BeginCapture(CaptureRelaxed))
	require.Empty(t, d.entries)
	require.Equal(t, 1, ctx.Drain())
	d.end(t, ctx, s)
	require.Equal(t, []string{"end", "destroy"}, d.entries)
	d.end(t, ctx, other)
}

func TestCapturedEventIsDestroyedAfterEachOfItsCaptures(t *testing.T) {
	d, ctx, s, e := openDiary(t)
	other, err := ctx.NewStream(StreamOptions{})
	require.NoError(t, err)
	defer other.Close()
	for _, in := range []*Stream{s, other} {
		require.NoError(t, in.BeginCapture(CaptureRelaxed))
		require.NoError(t, in.Record(e))
	}
	require.NoError(t, e.Close())
	d.end(t, ctx, s)
	d.end(t, ctx, other)
	require.Equal(t, []string{"end", "end", "destroy"}, d.entries)
}

func TestEventThatWasNotCapturedIsDestroyedAtOnce(t *testing.T) {
	d, ctx, s, e := openDiary(t)
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	require.NoError(t, s.Record(e))
	d.end(t, ctx, s)
	require.NoError(t, s.Record(e))
	other, err := ctx.NewStream(StreamOptions{})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.BeginCapture(CaptureRelaxed))
	require.NoError(t, e.Close())
	require.Equal(t, []string{"end", "destroy"}, d.entries)
	d.end(t, ctx, other)
}

// Nobody tells when a capture of another library ends.
func TestEventCapturedByOthersIsLeftToTheDriver(t *testing.T) {
	d, ctx, s, e := openDiary(t)
	before := ctx.drv.Live()["Event"]
	begin := func() driver.CUresult {
		return d.CuStreamBeginCapture(s.h, driver.CU_STREAM_CAPTURE_MODE_RELAXED)
	}
	leave, err := ctx.Enter()
	require.NoError(t, err)
	require.Equal(t, driver.CUDA_SUCCESS, begin())
	require.NoError(t, s.Record(e))
	g, r := d.API.CuStreamEndCapture(s.h)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	leave()
	require.NoError(t, ctx.GraphDestroy(GraphHandle(g)))
	require.NoError(t, e.Close())
	require.Empty(t, d.entries)
	require.Equal(t, before-1, ctx.drv.Live()["Event"])
}

func TestCaptureWithoutANumberCountsAsAnothers(t *testing.T) {
	d, ctx, s, e := openDiary(t)
	d.nameless = true
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	d.nameless = false
	require.NoError(t, s.Record(e))
	require.NoError(t, e.Close())
	d.end(t, ctx, s)
	require.Equal(t, []string{"end"}, d.entries)
}
