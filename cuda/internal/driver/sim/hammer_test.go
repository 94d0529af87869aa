// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// TestHammer has several threads do a bit of everything at once: streams of all
// kinds that wait for each other, pool memory, graphs, captures, and objects
// destroyed in flight. It looks for races, deadlocks and lost work.
func TestHammer(t *testing.T) {
	const threads, rounds = 4, 60
	o := newOne(t, open(t, ""))
	ok(t, o.CuMemsetD32Async(o.memory, 0, 32, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	shared, r := o.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	ok(t, r)
	results := make(chan driver.CUresult, threads*rounds*20)
	var wg sync.WaitGroup
	for range threads {
		args := o.pointerTo(t, o.memory)
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			check := func(r driver.CUresult) { results <- r }
			check(o.CuCtxPushCurrent(o.ctx))
			for i := range rounds {
				s, r := o.CuStreamCreateWithPriority(uint32(i)%2, 0)
				check(r)
				p, r := o.CuMemAllocAsync(4096, s)
				check(r)
				check(o.CuMemsetD8Async(p, 1, 4096, s))
				check(o.CuStreamWaitEvent(s, shared, 0))
				check(o.CuMemcpyAsync(p+64, p, 64, s))
				check(o.CuMemFreeAsync(p, s))
				// A capture in a blocking stream would forbid the others' use of the
				// legacy stream.
				c, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
				check(r)
				check(o.CuStreamBeginCapture(c, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
				config := o.config
				config.HStream = c
				check(o.CuLaunchKernelEx(&config, o.kernel, args))
				g, r := o.CuStreamEndCapture(c)
				check(r)
				check(o.CuStreamDestroy(c))
				x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
				check(r)
				// The kernel adds without atomics: all runs of it are in order.
				check(o.CuMemsetD8Async(o.memory+64, 0, 64, driver.CU_STREAM_LEGACY))
				check(o.CuGraphLaunch(x, driver.CU_STREAM_LEGACY))
				check(o.CuEventRecord(shared, driver.CU_STREAM_LEGACY))
				check(o.CuGraphExecDestroy(x))
				check(o.CuGraphDestroy(g))
				check(o.CuStreamDestroy(s))
			}
			_, r := o.CuCtxPopCurrent()
			check(r)
		})
	}
	wg.Wait()
	close(results)
	for r := range results {
		require.Equal(t, driver.CUDA_SUCCESS, r)
	}
	require.Equal(t, uint32(threads*rounds), o.read(t, o.memory)[0])
}
