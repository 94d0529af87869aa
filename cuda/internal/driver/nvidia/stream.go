// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuStreamGetCaptureInfo(s driver.CUstream, withDeps bool) (driver.CaptureInfo, driver.CUresult) {
	var asks C.int
	if withDeps {
		asks = 1
	}
	o := C.cuStreamGetCaptureInfo(d.fn[cuStreamGetCaptureInfo], C.CUstream(s), asks)
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
	o := C.cuThreadExchangeStreamCaptureMode(d.fn[cuThreadExchangeStreamCaptureMode], C.CUstreamCaptureMode(mode))
	return driver.CUstreamCaptureMode(o.value), driver.CUresult(o.r)
}
