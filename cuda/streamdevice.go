// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// StreamDevice returns the device that a CUstream belongs to, which may be
// another library's; of default streams nothing tells. It calls cuStreamGetCtx,
// and cuCtxGetDevice in a context that is not of this package.
func (d *Driver) StreamDevice(handle uintptr) (*Device, error) {
	ctx, r := d.api.CuStreamGetCtx(driver.CUstream(handle))
	if r != driver.CUDA_SUCCESS {
		return nil, check("cuStreamGetCtx", r)
	}
	for ordinal := range d.count {
		dev, err := d.Device(ordinal)
		if err != nil {
			return nil, err
		}
		if c := dev.context.Load(); c != nil && c.h == ctx {
			return dev, nil
		}
	}
	return d.contextDevice(ctx)
}

// contextDevice returns the device of a context that another library has made.
func (d *Driver) contextDevice(ctx driver.CUcontext) (*Device, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r := d.api.CuCtxPushCurrent(ctx); r != driver.CUDA_SUCCESS {
		return nil, check("cuCtxPushCurrent", r)
	}
	h, r := d.api.CuCtxGetDevice()
	d.popContext(ctx)
	if r != driver.CUDA_SUCCESS {
		return nil, check("cuCtxGetDevice", r)
	}
	for ordinal := range d.count {
		if dev, err := d.Device(ordinal); err != nil || dev.h == h {
			return dev, err
		}
	}
	return nil, badValue("stream", "is of a device that is not among those of the driver")
}
