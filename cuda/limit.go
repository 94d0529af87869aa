// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A Limit is one of the resources of a device that a process can have more or
// less of. Sizes are in bytes.
type Limit int

// The limits, under the names of enum CUlimit.
const (
	StackSize                    = Limit(driver.CU_LIMIT_STACK_SIZE) // of each thread
	PrintfFIFOSize               = Limit(driver.CU_LIMIT_PRINTF_FIFO_SIZE)
	MallocHeapSize               = Limit(driver.CU_LIMIT_MALLOC_HEAP_SIZE) // of malloc in kernels
	DevRuntimeSyncDepth          = Limit(driver.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
	DevRuntimePendingLaunchCount = Limit(driver.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT)
	MaxL2FetchGranularity        = Limit(driver.CU_LIMIT_MAX_L2_FETCH_GRANULARITY)
	PersistingL2CacheSize        = Limit(driver.CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
)

// Limit returns what a limit is. It calls cuCtxGetLimit.
//
// Errors: [ErrorUnsupportedLimit] if the device does not have the limit.
func (d *Device) Limit(l Limit) (value uint64, err error) {
	c, err := d.Context()
	if err != nil {
		return 0, err
	}
	err = c.call("cuCtxGetLimit", func() (r driver.CUresult) {
		value, r = d.drv.api.CuCtxGetLimit(driver.CUlimit(l))
		return r
	})
	return value, err
}

// SetLimit asks for a limit, for the whole process. The driver rounds and clamps
// it: [Device.Limit] says what it has become. It calls cuCtxSetLimit, which may
// wait for all work of the device.
//
// Not stream-ordered. Allowed while streams are capturing, and not captured.
//
// Errors: [ErrorUnsupportedLimit] as for Limit; [ErrorInvalidValue] for a value
// that it cannot have, and for [PrintfFIFOSize] and [MallocHeapSize] once a
// kernel that uses them was launched.
func (d *Device) SetLimit(l Limit, value uint64) error {
	c, err := d.Context()
	if err != nil {
		return err
	}
	leave, err := c.enterRelaxed()
	if err != nil {
		return err
	}
	defer leave()
	if r := d.drv.api.CuCtxSetLimit(driver.CUlimit(l), value); r != driver.CUDA_SUCCESS {
		return c.fail("cuCtxSetLimit", r, fmt.Sprintf("%s, value %d", d, value))
	}
	return nil
}
