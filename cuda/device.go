// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// An Attribute names a fact about a device. The constants are generated from
// cuda.h.
type Attribute int32

// AttributeNames returns every attribute that this version knows, by its name
// in lower case with underscores: "multiprocessor_count".
func AttributeNames() map[string]Attribute { return maps.Clone(attributesByName) }

// A UUID identifies a device across processes and reboots.
type UUID [16]byte

// String returns the form that nvidia-smi prints, without "GPU-".
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// A Device is one GPU, real or simulated. Get one from [Driver.Device]; there
// is one Device per ordinal, so that == works.
//
// Devices need no Close. Safe for concurrent use.
type Device struct {
	drv     *Driver
	ordinal int
	h       driver.CUdevice

	// Each is nil until first used, and then fixed, except that a reset
	// replaces the first two.
	context atomic.Pointer[Context]
	pool    atomic.Pointer[DeviceMemoryResource]
	limits  atomic.Pointer[launchLimits]

	// making is locked by Reset, and read-locked while a context is retained,
	// so that no context retained before a reset is kept after it.
	making sync.RWMutex
}

// Driver returns the driver that d belongs to.
func (d *Device) Driver() *Driver { return d.drv }

// Ordinal returns the device's number, from 0.
func (d *Device) Ordinal() int { return d.ordinal }

// String returns "device 0".
func (d *Device) String() string { return fmt.Sprintf("device %d", d.ordinal) }

// Name returns the product's name. It calls cuDeviceGetName.
func (d *Device) Name() (string, error) {
	s, r := d.drv.api.CuDeviceGetName(d.h)
	return s, check("cuDeviceGetName", r)
}

// UUID calls cuDeviceGetUuid.
func (d *Device) UUID() (UUID, error) {
	u, r := d.drv.api.CuDeviceGetUuid(d.h)
	return u, check("cuDeviceGetUuid", r)
}

// PCIBusID returns the form "0000:3b:00.0". It calls cuDeviceGetPCIBusId.
func (d *Device) PCIBusID() (string, error) {
	s, r := d.drv.api.CuDeviceGetPCIBusId(d.h)
	return s, check("cuDeviceGetPCIBusId", r)
}

// TotalMemory returns the device's memory in bytes. It calls cuDeviceTotalMem.
func (d *Device) TotalMemory() (uint64, error) {
	n, r := d.drv.api.CuDeviceTotalMem(d.h)
	return n, check("cuDeviceTotalMem", r)
}

// Attribute returns one fact about the device. It calls cuDeviceGetAttribute.
//
// Errors: [ErrorInvalidValue] for an attribute that this driver does not know.
func (d *Device) Attribute(a Attribute) (int, error) {
	v, r := d.drv.api.CuDeviceGetAttribute(driver.CUdevice_attribute(a), d.h)
	if r != driver.CUDA_SUCCESS {
		return 0, &Error{
			Op: "cuDeviceGetAttribute", Result: Result(r),
			Detail: fmt.Sprintf("%v of device %d", driver.CUdevice_attribute(a), d.ordinal),
		}
	}
	return int(v), nil
}

// need fails with [ErrorNotSupported] for the call op if attribute a is 0.
func (d *Device) need(a Attribute, op, lack string) error {
	v, err := d.Attribute(a)
	if err == nil && v == 0 {
		err = &Error{Op: op, Result: ErrorNotSupported, Detail: d.String() + " " + lack}
	}
	return err
}

// ComputeCapability returns, for example, 8 and 6.
func (d *Device) ComputeCapability() (major, minor int, err error) {
	if major, err = d.Attribute(ComputeCapabilityMajor); err != nil {
		return 0, 0, err
	}
	if minor, err = d.Attribute(ComputeCapabilityMinor); err != nil {
		return 0, 0, err
	}
	return major, minor, nil
}

// Context returns the device's primary context, the same pointer each time until
// the device is reset. The first call retains it: it calls
// cuDevicePrimaryCtxRetain, which may take a second. [Driver.Close] and
// [Device.Reset] release it.
func (d *Device) Context() (*Context, error) {
	if d.drv.closed.Load() {
		return nil, &ClosedError{"driver"}
	}
	if c := d.context.Load(); c != nil {
		return c, nil
	}
	d.making.RLock()
	defer d.making.RUnlock()
	// Two first callers may both retain; the loser releases its context.
	// Excluding one instead would make it wait for a call that can take
	// seconds.
	h, r := d.drv.api.CuDevicePrimaryCtxRetain(d.h)
	if r != driver.CUDA_SUCCESS {
		return nil, &Error{Op: "cuDevicePrimaryCtxRetain", Result: Result(r), Detail: d.String()}
	}
	c := newContext(d, h)
	if !d.context.CompareAndSwap(nil, c) {
		// The context is there all the same.
		if err := check("cuDevicePrimaryCtxRelease", d.drv.api.CuDevicePrimaryCtxRelease(d.h)); err != nil {
			d.drv.warn("second use of the context of "+d.String(), err)
		}
		return d.context.Load(), nil
	}
	return c, nil
}

// MemInfo returns the free and the total memory of the device in bytes. It
// calls cuMemGetInfo.
func (d *Device) MemInfo() (free, total uint64, err error) {
	c, err := d.Context()
	if err != nil {
		return 0, 0, err
	}
	leave, err := c.Enter()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	free, total, r := d.drv.api.CuMemGetInfo()
	return free, total, c.check("cuMemGetInfo", r)
}

// StartProfiler has a profiler that waits for this begin to collect. Without
// one, or if it collects already, it does nothing. It calls cuProfilerStart.
//
// Errors: an [*ArgumentError] while a stream is capturing; an [*Error].
func (d *Device) StartProfiler() error {
	c, err := d.profilable()
	if err != nil {
		return err
	}
	return c.call("cuProfilerStart", d.drv.api.CuProfilerStart)
}

// StopProfiler ends what StartProfiler began. It calls cuProfilerStop.
func (d *Device) StopProfiler() error {
	c, err := d.profilable()
	if err != nil {
		return err
	}
	return c.call("cuProfilerStop", d.drv.api.CuProfilerStop)
}

func (d *Device) profilable() (*Context, error) {
	if d.drv.Capturing() { // NVIDIA's driver refuses it then
		return nil, &ArgumentError{Kind: WrongValue, Arg: "profiler", Text: "cannot start or stop while a stream is capturing"}
	}
	return d.Context()
}

// Synchronize blocks until all work of the device's primary context has
// completed. It calls cuCtxSynchronize.
//
// Errors: an [*Error], which may report a fault in work that was queued
// earlier.
func (d *Device) Synchronize() error {
	c, err := d.Context()
	if err != nil {
		return err
	}
	return c.Synchronize()
}
