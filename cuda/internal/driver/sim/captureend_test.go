// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// What a thread does in a stream while another begins and ends captures of it is
// either captured or not.
func TestCallsWhileACaptureEnds(t *testing.T) {
	o := newOne(t, open(t, ""))
	e, r := o.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	ok(t, r)
	for name, c := range map[string]struct {
		call func() driver.CUresult
		may  []driver.CUresult
	}{
		"allocation": {func() driver.CUresult {
			p, r := o.CuMemAllocAsync(16, o.stream)
			o.CuMemFree(p) // refused, if a capture has it
			return r
		}, []driver.CUresult{driver.CUDA_SUCCESS}},
		"fill": {func() driver.CUresult { return o.CuMemsetD8Async(o.memory, 0, 1, o.stream) }, []driver.CUresult{driver.CUDA_SUCCESS}},
		// In a capture a wait for what is outside is an error, which invalidates it.
		"wait": {func() driver.CUresult { return o.CuStreamWaitEvent(o.stream, e, 0) }, []driver.CUresult{
			driver.CUDA_SUCCESS, driver.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			captureWhile(t, o, func() {
				if r := c.call(); !slices.Contains(c.may, r) {
					t.Errorf("got %v", r)
				}
			})
		})
	}
}

// A call that is refused because of a capture has invalidated it.
func TestCallsAreRefusedForCapturesThatTheyEnd(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	for name, call := range map[string]func() driver.CUresult{
		"launch":    func() driver.CUresult { return o.CuGraphLaunch(x, o.stream) },
		"upload":    func() driver.CUresult { return o.CuGraphUpload(x, o.stream) },
		"query":     func() driver.CUresult { return o.CuStreamQuery(o.stream) },
		"peer copy": func() driver.CUresult { return o.CuMemcpyPeerAsync(o.memory, o.ctx, o.memory, o.ctx, 0, o.stream) },
	} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			invalidated := captureWhile(t, o, func() {
				if r := call(); r == driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED {
					refused++
				}
			})
			require.Equal(t, invalidated, refused)
		})
	}
}

// captureWhile begins and ends captures while another thread makes a call again and
// again. It returns how many were invalidated.
func captureWhile(t *testing.T, o *one, call func()) (invalidated int) {
	t.Helper()
	const captures = 5000
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ok(t, o.CuCtxPushCurrent(o.ctx))
		for !t.Failed() {
			select {
			case <-stop:
				return
			default:
				call()
			}
		}
	})
	for range captures {
		ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
		switch g, r := o.CuStreamEndCapture(o.stream); r {
		case driver.CUDA_SUCCESS:
			ok(t, o.CuGraphDestroy(g))
		case driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
			invalidated++
		}
	}
	close(stop)
	others.Wait()
	require.False(t, t.Failed())
	ok(t, o.CuStreamSynchronize(o.stream))
	return invalidated
}
