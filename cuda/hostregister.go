// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// HostRegistration describes host memory for [Context.RegisterHost].
type HostRegistration struct {
	Ptr  uint64 // address
	Size uint64 // bytes
	// ReadOnly is required for memory that the process may not write. Devices
	// may then not write it either.
	ReadOnly bool
	// Release is called once, on any goroutine, when the memory is no longer
	// page-locked. If the driver refuses to unlock it, devices may use it as
	// before, and Release is called when the device is reset. It may be nil.
	Release func()
}

// RegisterHost page-locks host memory allocated elsewhere, for use by every
// device, and returns a Buffer of [PinnedMemory] over it. It calls
// cuMemHostRegister.
//
// Lifetime: the memory must stay mapped until o.Release is called. The caller
// must Close the Buffer. The last holder waits for all work of all contexts of
// the driver, with cuCtxSynchronize, and then calls cuMemHostUnregister. Both
// are postponed during captures that [Driver.Capturing] reports; a capture of
// another library would be invalidated.
//
// Errors: an [*ArgumentError] if there are no bytes; [ErrorNotSupported] if the
// device cannot use such memory; [ErrorHostMemoryAlreadyRegistered] if a part of
// it is registered, here or by another library; [ErrorInvalidValue] if CUDA
// allocated it, or if it is not mapped or may not be written.
func (c *Context) RegisterHost(o HostRegistration) (*Buffer, error) {
	if o.Size == 0 {
		return nil, badValue("host memory", "must have at least 1 byte to be registered, got 0")
	}
	flags := driver.CU_MEMHOSTREGISTER_PORTABLE | driver.CU_MEMHOSTREGISTER_DEVICEMAP
	if err := c.dev.need(HostRegisterSupported, "cuMemHostRegister", "cannot use host memory that is registered"); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		flags |= driver.CU_MEMHOSTREGISTER_READ_ONLY
		if err := c.dev.need(ReadOnlyHostRegisterSupported, "cuMemHostRegister", "cannot use host memory that is read-only"); err != nil {
			return nil, err
		}
	}
	c.Drain()
	if err := c.register(o, flags); err != nil {
		return nil, err
	}
	c.drv.live.allocations.Add(1)
	a := &allocation{ctx: c, kind: PinnedMemory, base: o.Ptr, size: o.Size}
	a.free = func(a *allocation, s *Stream) { c.unregister(a, s, o.Release) }
	return newBuffer(a), nil
}

// register makes the driver call.
func (c *Context) register(o HostRegistration, flags uint32) error {
	leave, err := c.enterRelaxed()
	if err != nil {
		return err
	}
	defer leave()
	r := c.drv.api.CuMemHostRegister(uintptr(o.Ptr), o.Size, flags)
	detail := fmt.Sprintf("%d bytes of host memory at %#x", o.Size, o.Ptr)
	switch r {
	case driver.CUDA_SUCCESS:
		return nil
	case driver.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
		detail += ", of which some are registered already, here or by another library"
	case driver.CUDA_ERROR_INVALID_VALUE:
		detail += ", which CUDA has allocated itself, or which are not mapped, or which the process may not write"
	}
	return c.fail("cuMemHostRegister", r, detail)
}

// unregister releases memory of RegisterHost. The driver does not promise to
// wait for work that uses the memory, on any device.
func (c *Context) unregister(a *allocation, s *Stream, release func()) {
	gone := c.drv.closed.Load()
	c.disposeSteps(a.what(), nil, &c.drv.live.allocations, func(api driver.API) (string, driver.CUresult) {
		for _, other := range c.drv.contexts() {
			if r := awaited(other.Synchronize()); r != driver.CUDA_SUCCESS {
				return "cuCtxSynchronize", r
			}
		}
		r := api.CuMemHostUnregister(uintptr(a.base))
		gone = r == driver.CUDA_SUCCESS
		return "cuMemHostUnregister", r
	}, func() {
		unuse(s)
		switch {
		case release == nil:
		case gone:
			release()
		default:
			c.whenLost(release)
		}
	})
}
