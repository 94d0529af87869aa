// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// interrupted is a driver during whose calls another thread does something.
type interrupted struct {
	driver.API
	after map[string]func() // by call, once
	calls []string
}

func (d *interrupted) happens(call string) {
	d.calls = append(d.calls, call)
	if f := d.after[call]; f != nil {
		delete(d.after, call)
		f()
	}
}

func (d *interrupted) CuUserObjectCreate(p uintptr, destroy driver.CUhostFn, count, flags uint32) (driver.CUuserObject, driver.CUresult) {
	defer d.happens("create")
	return d.API.CuUserObjectCreate(p, destroy, count, flags)
}

func (d *interrupted) CuStreamGetCaptureInfo(s driver.CUstream, deps bool) (driver.CaptureInfo, driver.CUresult) {
	defer d.happens("info")
	return d.API.CuStreamGetCaptureInfo(s, deps)
}

func (d *interrupted) CuGraphRetainUserObject(g driver.CUgraph, o driver.CUuserObject, count, flags uint32) driver.CUresult {
	defer d.happens("retain")
	return d.API.CuGraphRetainUserObject(g, o, count, flags)
}

func TestHoldForCapture(t *testing.T) {
	var ended atomic.Int32
	var api *interrupted
	wrap := wrapForTest
	wrapForTest = func(a driver.API) driver.API {
		api = &interrupted{API: a}
		return api
	}
	defer func() { wrapForTest = wrap }()
	c := openSimulated(t, Options{CallHost: func(fn, data uintptr) { ended.Add(1) }})
	s := newTestStream(t, c, StreamOptions{})
	var g driver.CUgraph
	end := func() {
		var r driver.CUresult
		g, r = api.API.CuStreamEndCapture(s.h)
		require.Equal(t, driver.CUDA_SUCCESS, r)
	}
	destroy := func() {
		require.Equal(t, driver.CUDA_SUCCESS, api.API.CuGraphDestroy(g))
		g = 0
	}
	invalidate := func() { require.NotEqual(t, driver.CUDA_SUCCESS, api.API.CuStreamSynchronize(s.h)) }
	all := []string{"create", "info", "retain", "info"}
	for _, tt := range []struct {
		name  string
		at    string
		do    func()
		want  CaptureHold
		err   error
		calls []string
		ends  bool
	}{
		{"nothing", "", nil, HoldGraph, nil, all, true},
		{"an end before the graph is asked for", "create", end, HoldNone, nil, all[:2], false},
		{"an end and the graph is gone", "create", func() { end(); destroy() }, HoldNone, nil, all[:2], false},
		{"an invalidation", "create", invalidate, HoldNoGraph, nil, all[:2], false},
		{"an end between the two calls", "info", end, HoldInDoubt, nil, all, true},
		{"a dead handle", "info", func() { end(); destroy() }, HoldNone, ErrorInvalidValue, all[:3], false},
		{"an end at once", "retain", end, HoldInDoubt, nil, all, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ended.Store(0)
			require.NoError(t, s.BeginCapture(CaptureRelaxed))
			api.calls, api.after = nil, map[string]func(){tt.at: tt.do}
			hold, err := s.HoldForCapture(1, 2)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, hold)
			require.Equal(t, tt.calls, api.calls)
			if h, err := s.EndCapture(); err == nil {
				g = driver.CUgraph(h)
			}
			require.Zero(t, ended.Load())
			if g != 0 {
				destroy()
			}
			if tt.ends {
				require.Eventually(t, func() bool { return ended.Load() == 1 }, 10*time.Second, time.Millisecond)
			}
			require.Equal(t, tt.ends, ended.Load() == 1)
		})
	}
	hold, err := s.HoldForCapture(1, 2)
	require.NoError(t, err)
	require.Equal(t, HoldNone, hold)
}
