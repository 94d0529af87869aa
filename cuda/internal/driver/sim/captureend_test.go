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

// captureWhile begins and ends captures while another thread makes a call again and
// again.
func captureWhile(t *testing.T, o *one, call func()) {
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
		if g, r := o.CuStreamEndCapture(o.stream); r == driver.CUDA_SUCCESS {
			ok(t, o.CuGraphDestroy(g))
		}
	}
	close(stop)
	others.Wait()
	require.False(t, t.Failed())
	ok(t, o.CuStreamSynchronize(o.stream))
}
