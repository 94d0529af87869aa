// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// limitRange is what a limit is at first, and how a value that is asked for is
// rounded up and clamped. Kernels are not held to limits here.
type limitRange struct {
	initial, step uint64
	most          uint64 // 0: the device's memory
}

// limitRanges are the limits of all profiles, with the defaults of CUDA's
// programming guide where it has them. cuda.h leaves rounding and clamping to
// the driver.
var limitRanges = map[driver.CUlimit]limitRange{
	driver.CU_LIMIT_STACK_SIZE:                       {1 << 10, 16, 512 << 10},
	driver.CU_LIMIT_PRINTF_FIFO_SIZE:                 {1 << 20, 4 << 10, 0},
	driver.CU_LIMIT_MALLOC_HEAP_SIZE:                 {8 << 20, 4 << 10, 0},
	driver.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:           {2, 1, 24},
	driver.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT: {2048, 1, math.MaxInt32},
	driver.CU_LIMIT_MAX_L2_FETCH_GRANULARITY:         {64, 32, 128},
}

// limits are those of a context.
type limits struct {
	mu    sync.Mutex
	asked map[driver.CUlimit]uint64 // guarded by mu
}

// limitRange returns how a limit of the device behaves.
func (dev *device) limitRange(l driver.CUlimit) (limitRange, driver.CUresult) {
	if l == driver.CU_LIMIT_PERSISTING_L2_CACHE_SIZE { // is clamped to what a device has: none
		return limitRange{step: 1, most: uint64(dev.attributes[driver.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE])}, driver.CUDA_SUCCESS
	}
	found, ok := limitRanges[l]
	major := dev.attributes[driver.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR]
	// cuda.h, at cuCtxSetLimit: not from compute capability 9.0 on.
	if !ok {
		return limitRange{}, driver.CUDA_ERROR_INVALID_VALUE
	}
	if l == driver.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && major >= 9 {
		return limitRange{}, driver.CUDA_ERROR_UNSUPPORTED_LIMIT
	}
	if found.most == 0 {
		_, found.most = dev.memory.Info()
	}
	return found, driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxSetLimit(l driver.CUlimit, value uint64) driver.CUresult {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return r
	}
	known, r := c.dev.limitRange(l)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	value = min(value, known.most) // first: rounding must not overflow
	value = min((value+known.step-1)/known.step*known.step, known.most)
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	if c.limits.asked == nil {
		c.limits.asked = map[driver.CUlimit]uint64{}
	}
	c.limits.asked[l] = value
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxGetLimit(l driver.CUlimit) (value uint64, r driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	known, r := c.dev.limitRange(l)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	if asked, ok := c.limits.asked[l]; ok {
		return asked, driver.CUDA_SUCCESS
	}
	return known.initial, driver.CUDA_SUCCESS
}
