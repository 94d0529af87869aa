// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var contexts = map[string]func(*suite){
	"context of a device is one":            contextPrimary,
	"context is active while it is held":    contextState,
	"context has a number of its own":       contextID,
	"context stack pushes and pops":         contextStack,
	"context is current on one thread only": contextThreads,
	"context has limits":                    contextLimits,
	"profiler starts and stops any time":    contextProfiler,
	"calls without a context are refused":   contextMissing,
}

func contextPrimary(s *suite) {
	again, r := s.CuDevicePrimaryCtxRetain(s.dev)
	s.ok(r)
	require.Equal(s.T, s.ctx, again)
	s.ok(s.CuDevicePrimaryCtxRelease(s.dev))
	dev, r := s.CuCtxGetDevice()
	s.ok(r)
	require.Equal(s.T, s.dev, dev)
	least, greatest, r := s.CuCtxGetStreamPriorityRange()
	s.ok(r)
	require.LessOrEqual(s.T, greatest, least, "a lower number is a higher priority")
}

// state is whether the device's context is held by anybody.
func (s *suite) state() bool {
	s.Helper()
	_, active, r := s.CuDevicePrimaryCtxGetState(s.dev)
	s.ok(r)
	return active != 0
}

// contextState gives up all holds, so the context ends.
func contextState(s *suite) {
	_, r := s.CuDevicePrimaryCtxRetain(s.dev)
	s.ok(r)
	require.True(s.T, s.state())
	s.ok(s.CuDevicePrimaryCtxRelease(s.dev))
	require.True(s.T, s.state())
	s.reset()
	require.True(s.T, s.state())
	_, _, r = s.CuDevicePrimaryCtxGetState(-1)
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, r)
}

// contextID: the handle of a context that was made anew may be the old one.
func contextID(s *suite) {
	before, r := s.CuCtxGetId(s.ctx)
	s.ok(r)
	again, r := s.CuCtxGetId(s.ctx)
	s.ok(r)
	require.Equal(s.T, before, again)
	s.reset()
	after, r := s.CuCtxGetId(s.ctx)
	s.ok(r)
	require.NotEqual(s.T, before, after)
}

func contextStack(s *suite) {
	s.ok(s.CuCtxPushCurrent(s.ctx))
	popped, r := s.CuCtxPopCurrent()
	s.ok(r)
	require.Equal(s.T, s.ctx, popped)
	current, r := s.CuCtxGetCurrent()
	s.ok(r)
	require.Equal(s.T, s.ctx, current)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.CuCtxPushCurrent(0))
}

func contextThreads(s *suite) {
	type answer struct {
		ctx driver.CUcontext
		r   driver.CUresult
	}
	answers := make(chan answer)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		ctx, r := s.CuCtxGetCurrent()
		answers <- answer{ctx, r}
	}()
	got := <-answers
	s.ok(got.r)
	require.Zero(s.T, got.ctx)
}

// limits are those that a test may change: they only become greater.
var limits = []driver.CUlimit{
	driver.CU_LIMIT_STACK_SIZE, driver.CU_LIMIT_PRINTF_FIFO_SIZE, driver.CU_LIMIT_MALLOC_HEAP_SIZE,
}

// contextLimits are rounded and clamped by the driver as it likes.
func contextLimits(s *suite) {
	s.reset() // no kernel has used printf or malloc
	for _, l := range limits {
		before, r := s.CuCtxGetLimit(l)
		s.ok(r)
		require.NotZero(s.T, before)
		s.ok(s.CuCtxSetLimit(l, 2*before))
		after, r := s.CuCtxGetLimit(l)
		s.ok(r)
		require.GreaterOrEqual(s.T, after, 2*before)
	}
	s.ok(s.CuCtxSetLimit(driver.CU_LIMIT_STACK_SIZE, 1999))
	rounded, r := s.CuCtxGetLimit(driver.CU_LIMIT_STACK_SIZE)
	s.ok(r)
	require.GreaterOrEqual(s.T, rounded, uint64(1999))
	_, r = s.CuCtxGetLimit(999)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuCtxSetLimit(999, 1))
	s.reset()
	again, r := s.CuCtxGetLimit(driver.CU_LIMIT_STACK_SIZE)
	s.ok(r)
	require.Less(s.T, again, rounded, "a new context has its own limits")
}

// contextProfiler: neither call needs the other, nor a profiler.
func contextProfiler(s *suite) {
	s.ok(s.CuProfilerStop())
	s.ok(s.CuProfilerStart())
	s.ok(s.CuProfilerStart())
	s.ok(s.CuProfilerStop())
}

func contextMissing(s *suite) {
	_, r := s.CuCtxPopCurrent()
	s.ok(r)
	_, r = s.CuMemAlloc(16)
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, r)
	_, r = s.CuStreamCreateWithPriority(0, 0)
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, r)
	_, r = s.CuCtxGetDevice()
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, r)
	_, r = s.CuCtxGetLimit(driver.CU_LIMIT_STACK_SIZE)
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, r)
	s.ok(s.CuCtxSetCurrent(s.ctx))
	current, r := s.CuCtxGetCurrent()
	s.ok(r)
	require.Equal(s.T, s.ctx, current)
}
