// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuStreamCreateWithPriority(flags uint32, priority int32) (driver.CUstream, driver.CUresult) {
	o := C.cuStreamCreateWithPriority(d.fn[cuStreamCreateWithPriority], C.uint(flags), C.int(priority))
	return driver.CUstream(o.value), driver.CUresult(o.r)
}

func (d *binding) CuStreamDestroy(s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuStreamDestroy(d.fn[cuStreamDestroy], C.CUstream(s)))
}

func (d *binding) CuStreamSynchronize(s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuStreamSynchronize(d.fn[cuStreamSynchronize], C.CUstream(s)))
}

func (d *binding) CuStreamQuery(s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuStreamQuery(d.fn[cuStreamQuery], C.CUstream(s)))
}

func (d *binding) CuStreamWaitEvent(s driver.CUstream, e driver.CUevent, flags uint32) driver.CUresult {
	return driver.CUresult(C.cuStreamWaitEvent(d.fn[cuStreamWaitEvent], C.CUstream(s), C.CUevent(e), C.uint(flags)))
}

func (d *binding) CuStreamGetPriority(s driver.CUstream) (int32, driver.CUresult) {
	o := C.cuStreamGetPriority(d.fn[cuStreamGetPriority], C.CUstream(s))
	return int32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuStreamGetFlags(s driver.CUstream) (uint32, driver.CUresult) {
	o := C.cuStreamGetFlags(d.fn[cuStreamGetFlags], C.CUstream(s))
	return uint32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuStreamGetId(s driver.CUstream) (uint64, driver.CUresult) {
	o := C.cuStreamGetId(d.fn[cuStreamGetId], C.CUstream(s))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuStreamGetCtx(s driver.CUstream) (driver.CUcontext, driver.CUresult) {
	o := C.cuStreamGetCtx(d.fn[cuStreamGetCtx], C.CUstream(s))
	return driver.CUcontext(o.value), driver.CUresult(o.r)
}

func (d *binding) CuLaunchHostFunc(s driver.CUstream, fn driver.CUhostFn, userData uintptr) driver.CUresult {
	return driver.CUresult(C.cuLaunchHostFunc(d.fn[cuLaunchHostFunc],
		C.CUstream(s), C.CUhostFn(fn), C.uintptr_t(userData)))
}

func (d *binding) CuStreamBeginCapture(s driver.CUstream, mode driver.CUstreamCaptureMode) driver.CUresult {
	return driver.CUresult(C.cuStreamBeginCapture(d.fn[cuStreamBeginCapture], C.CUstream(s), C.enumeration(mode)))
}

func (d *binding) CuStreamEndCapture(s driver.CUstream) (driver.CUgraph, driver.CUresult) {
	o := C.cuStreamEndCapture(d.fn[cuStreamEndCapture], C.CUstream(s))
	return driver.CUgraph(o.value), driver.CUresult(o.r)
}

func (d *binding) CuStreamIsCapturing(s driver.CUstream) (driver.CUstreamCaptureStatus, driver.CUresult) {
	o := C.cuStreamIsCapturing(d.fn[cuStreamIsCapturing], C.CUstream(s))
	return driver.CUstreamCaptureStatus(o.value), driver.CUresult(o.r)
}

func (d *binding) CuStreamGetCaptureInfo(s driver.CUstream) (driver.CaptureInfo, driver.CUresult) {
	o := C.cuStreamGetCaptureInfo(d.fn[cuStreamGetCaptureInfo], C.CUstream(s))
	info := driver.CaptureInfo{
		Status: driver.CUstreamCaptureStatus(o.status),
		ID:     uint64(o.id),
		Graph:  driver.CUgraph(o.graph),
	}
	// Copied at once: the driver's array is gone with the stream's next call.
	if o.r == 0 && o.count > 0 {
		deps := unsafe.Slice((*driver.CUgraphNode)(unsafe.Pointer(o.deps)), int(o.count))
		info.Deps = append(info.Deps, deps...)
	}
	return info, driver.CUresult(o.r)
}

func (d *binding) CuThreadExchangeStreamCaptureMode(mode driver.CUstreamCaptureMode) (driver.CUstreamCaptureMode, driver.CUresult) {
	o := C.cuThreadExchangeStreamCaptureMode(d.fn[cuThreadExchangeStreamCaptureMode], C.enumeration(mode))
	return driver.CUstreamCaptureMode(o.value), driver.CUresult(o.r)
}
