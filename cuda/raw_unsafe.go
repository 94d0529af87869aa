// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// The calls below are for C code that found no [Driver.EntryPoint]: the border
// to Python exports C functions with the driver's ABI that forward to them. Each
// is one driver call with no check, no lock, no allocation and no change of
// context, and returns the CUresult.

// RawGraphLaunch is cuGraphLaunch.
func (d *Driver) RawGraphLaunch(exec, stream uintptr) int32 {
	return int32(d.api.CuGraphLaunch(driver.CUgraphExec(exec), driver.CUstream(stream)))
}

// RawLaunchKernelEx is cuLaunchKernelEx without its extra argument. config is a
// *CUlaunchConfig and params a void**, both in C memory or pinned.
func (d *Driver) RawLaunchKernelEx(config unsafe.Pointer, f uintptr, params unsafe.Pointer) int32 {
	return int32(d.api.CuLaunchKernelEx((*driver.CUlaunchConfig)(config), driver.CUfunction(f), params))
}

// RawEventRecord is cuEventRecord.
func (d *Driver) RawEventRecord(event, stream uintptr) int32 {
	return int32(d.api.CuEventRecord(driver.CUevent(event), driver.CUstream(stream)))
}

// RawEventQuery is cuEventQuery.
func (d *Driver) RawEventQuery(event uintptr) int32 {
	return int32(d.api.CuEventQuery(driver.CUevent(event)))
}

// RawMemAllocFromPoolAsync is cuMemAllocFromPoolAsync.
func (d *Driver) RawMemAllocFromPoolAsync(out *uint64, size uint64, pool, stream uintptr) int32 {
	p, r := d.api.CuMemAllocFromPoolAsync(size, driver.CUmemoryPool(pool), driver.CUstream(stream))
	*out = uint64(p)
	return int32(r)
}

// RawMemFreeAsync is cuMemFreeAsync.
func (d *Driver) RawMemFreeAsync(p uint64, stream uintptr) int32 {
	return int32(d.api.CuMemFreeAsync(driver.CUdeviceptr(p), driver.CUstream(stream)))
}

// RawMemcpyAsync is cuMemcpyAsync.
func (d *Driver) RawMemcpyAsync(dst, src, size uint64, stream uintptr) int32 {
	return int32(d.api.CuMemcpyAsync(driver.CUdeviceptr(dst), driver.CUdeviceptr(src), size, driver.CUstream(stream)))
}

// RawStreamIsCapturing is cuStreamIsCapturing.
func (d *Driver) RawStreamIsCapturing(stream uintptr, status *int32) int32 {
	st, r := d.api.CuStreamIsCapturing(driver.CUstream(stream))
	*status = int32(st)
	return int32(r)
}

// RawStreamWaitEvent is cuStreamWaitEvent.
func (d *Driver) RawStreamWaitEvent(stream, event uintptr, flags uint32) int32 {
	return int32(d.api.CuStreamWaitEvent(driver.CUstream(stream), driver.CUevent(event), flags))
}

// RawThreadExchangeStreamCaptureMode is cuThreadExchangeStreamCaptureMode: it
// sets the calling thread's mode and stores the one it had in mode.
func (d *Driver) RawThreadExchangeStreamCaptureMode(mode *int32) int32 {
	old, r := d.api.CuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode(*mode))
	if r == driver.CUDA_SUCCESS {
		*mode = int32(old)
	}
	return int32(r)
}
