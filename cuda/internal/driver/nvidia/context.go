// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *binding) CuDevicePrimaryCtxRetain(dev driver.CUdevice) (driver.CUcontext, driver.CUresult) {
	o := C.cuDevicePrimaryCtxRetain(d.fn[cuDevicePrimaryCtxRetain], C.CUdevice(dev))
	return driver.CUcontext(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDevicePrimaryCtxRelease(dev driver.CUdevice) driver.CUresult {
	return driver.CUresult(C.cuDevicePrimaryCtxRelease(d.fn[cuDevicePrimaryCtxRelease], C.CUdevice(dev)))
}

func (d *binding) CuDevicePrimaryCtxReset(dev driver.CUdevice) driver.CUresult {
	return driver.CUresult(C.cuDevicePrimaryCtxReset(d.fn[cuDevicePrimaryCtxReset], C.CUdevice(dev)))
}

func (d *binding) CuCtxGetCurrent() (driver.CUcontext, driver.CUresult) {
	o := C.cuCtxGetCurrent(d.fn[cuCtxGetCurrent])
	return driver.CUcontext(o.value), driver.CUresult(o.r)
}

func (d *binding) CuCtxSetCurrent(ctx driver.CUcontext) driver.CUresult {
	return driver.CUresult(C.cuCtxSetCurrent(d.fn[cuCtxSetCurrent], C.CUcontext(ctx)))
}

func (d *binding) CuCtxPushCurrent(ctx driver.CUcontext) driver.CUresult {
	return driver.CUresult(C.cuCtxPushCurrent(d.fn[cuCtxPushCurrent], C.CUcontext(ctx)))
}

func (d *binding) CuCtxPopCurrent() (driver.CUcontext, driver.CUresult) {
	o := C.cuCtxPopCurrent(d.fn[cuCtxPopCurrent])
	return driver.CUcontext(o.value), driver.CUresult(o.r)
}

func (d *binding) CuCtxGetDevice() (driver.CUdevice, driver.CUresult) {
	o := C.cuCtxGetDevice(d.fn[cuCtxGetDevice])
	return driver.CUdevice(o.value), driver.CUresult(o.r)
}

func (d *binding) CuCtxSynchronize() driver.CUresult {
	return driver.CUresult(C.cuCtxSynchronize(d.fn[cuCtxSynchronize]))
}

func (d *binding) CuCtxGetStreamPriorityRange() (least, greatest int32, r driver.CUresult) {
	o := C.cuCtxGetStreamPriorityRange(d.fn[cuCtxGetStreamPriorityRange])
	return int32(o.first), int32(o.second), driver.CUresult(o.r)
}

func (d *binding) CuCtxEnablePeerAccess(peer driver.CUcontext, flags uint32) driver.CUresult {
	return driver.CUresult(C.cuCtxEnablePeerAccess(d.fn[cuCtxEnablePeerAccess], C.CUcontext(peer), C.uint(flags)))
}

func (d *binding) CuCtxDisablePeerAccess(peer driver.CUcontext) driver.CUresult {
	return driver.CUresult(C.cuCtxDisablePeerAccess(d.fn[cuCtxDisablePeerAccess], C.CUcontext(peer)))
}
