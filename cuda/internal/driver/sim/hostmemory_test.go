// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestPageableMemoryInKernels(t *testing.T) {
	o := newOne(t, open(t, ""))
	host := make([]uint32, 32)
	p := address(host)
	o.AllowHost(uintptr(p), 128, false)
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	ok(t, o.CuStreamSynchronize(o.stream))
	require.Equal(t, uint32(1), host[31])
	o.DisallowHost(uintptr(p), 128, false)
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
	require.Equal(t, uint32(1), host[0])
}

func TestPageableMemoryCanBeRefused(t *testing.T) {
	o := newOne(t, open(t, "pageable=0"))
	v, r := o.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0)
	ok(t, r)
	require.Zero(t, v)
	host := make([]uint32, 32)
	p := address(host)
	o.AllowHost(uintptr(p), 128, false)
	defer o.DisallowHost(uintptr(p), 128, false)
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
}

func TestDeviceMemoryHasAHostPointer(t *testing.T) {
	o := newOne(t, open(t, ""))
	ok(t, o.CuMemsetD32Async(o.memory, 77, 32, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	host, r := o.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_HOST_POINTER, o.memory+64)
	ok(t, r)
	require.NotEqual(t, uint64(o.memory+64), host)
	require.Equal(t, uint32(77), words(uintptr(host), 1)[0])
}

func TestCheckFullPoisonsMemory(t *testing.T) {
	o := newOne(t, open(t, "check=full"))
	_, err := driver.CheckerOf(o.API).SetChecks("") // it is an uninitialized read
	require.NoError(t, err)
	p, r := o.CuMemAllocAsync(128, o.stream)
	ok(t, r)
	require.Equal(t, uint32(0x7F7F7F7F), o.read(t, p)[31])
}

func TestPoolReusesInStreamOrder(t *testing.T) {
	o := newOne(t, open(t, "memory=8MiB"))
	for range 5 {
		p, r := o.CuMemAllocAsync(6<<20, o.stream)
		ok(t, r)
		ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
		ok(t, o.CuMemFreeAsync(p, o.stream))
	}
	ok(t, o.CuStreamSynchronize(o.stream))
	_, r := o.CuMemAllocAsync(9<<20, o.stream)
	require.Equal(t, driver.CUDA_ERROR_OUT_OF_MEMORY, r)
}

func TestMemoryInfoCountsPools(t *testing.T) {
	o := newOne(t, open(t, ""))
	pool, r := o.CuDeviceGetDefaultMemPool(0)
	ok(t, r)
	ok(t, o.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 64<<20))
	before, _, r := o.CuMemGetInfo()
	ok(t, r)
	p, r := o.CuMemAllocAsync(16<<20, o.stream)
	ok(t, r)
	ok(t, o.CuMemFreeAsync(p, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	kept, _, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, uint64(16<<20), before-kept, "the pool keeps what is below its threshold")
	ok(t, o.CuMemPoolTrimTo(pool, 0))
	after, _, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, before, after)
}

func TestCopyBeyondAnAllocation(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAlloc(256)
	ok(t, r)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemcpyAsync(p, o.memory, 129, o.stream))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemcpyAsync(o.memory+1, p, 128, o.stream))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemsetD8Async(o.memory, 0, 129, o.stream))
	ok(t, o.CuMemcpyAsync(p, o.memory, 128, o.stream))
}

func TestStagedCopyDoesNotWait(t *testing.T) {
	o := newOne(t, open(t, ""))
	const fn driver.CUhostFn = 0xC3
	gate := make(chan struct{})
	hostFunctions[fn] = func(uintptr) { <-gate }
	defer delete(hostFunctions, fn)
	in := make([]uint32, 32)
	in[5] = 55
	ok(t, o.CuLaunchHostFunc(o.stream, fn, 0))
	ok(t, o.CuMemcpyAsync(o.memory, address(in), 128, o.stream))
	clear(in)
	close(gate)
	require.Equal(t, uint32(55), o.read(t, o.memory)[5])
}
