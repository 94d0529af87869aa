// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A Location is where managed memory is, or who accesses it: a device, or the
// host if Device is nil.
type Location struct{ Device *Device }

// String returns "device 1" or "the host".
func (l Location) String() string {
	if l.Device == nil {
		return "the host"
	}
	return l.Device.String()
}

func (l Location) raw() driver.CUmemLocation {
	if l.Device == nil {
		return driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_HOST}
	}
	return driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: int32(l.Device.ordinal)}
}

// usable fails unless a device can use managed memory while the host does.
func (l Location) usable(op string) error {
	if l.Device == nil {
		return nil
	}
	return l.Device.need(ConcurrentManagedAccess, op, "cannot use managed memory while the host does, so it takes no advice about it")
}

// An Advice says how managed memory will be used. It affects the speed of
// accesses, never their result.
type Advice int32

const (
	// SetReadMostly lets every reader of the memory have its own copy.
	SetReadMostly Advice = 1
	// UnsetReadMostly takes SetReadMostly back.
	UnsetReadMostly Advice = 2
	// SetPreferredLocation keeps the memory in a place if it can be used from
	// there.
	SetPreferredLocation Advice = 3
	// UnsetPreferredLocation takes SetPreferredLocation back.
	UnsetPreferredLocation Advice = 4
	// SetAccessedBy keeps the memory mapped for a device or the host, wherever it
	// is.
	SetAccessedBy Advice = 5
	// UnsetAccessedBy takes SetAccessedBy back.
	UnsetAccessedBy Advice = 6
)

// Advise advises the driver about the use of size bytes of managed memory at
// ptr. It calls cuMemAdvise. Advice is for whole pages. The location is ignored
// where the advice needs none.
//
// Not stream-ordered. Allowed while streams are capturing, and not captured.
//
// Errors: [ErrorNotSupported] if a device cannot use managed memory while the
// host does; [ErrorInvalidValue] if the memory is not managed.
func (c *Context) Advise(ptr, size uint64, a Advice, at Location) error {
	if size == 0 {
		return nil
	}
	if err := at.usable("cuMemAdvise"); err != nil {
		return err
	}
	leave, err := c.enterRelaxed()
	if err != nil {
		return err
	}
	defer leave()
	r := c.drv.api.CuMemAdvise(driver.CUdeviceptr(ptr), size, driver.CUmem_advise(a), at.raw())
	return c.Failure("cuMemAdvise", int32(r), fmt.Sprintf("advice %d for %d bytes at %#x, location %v", a, size, ptr, at))
}

// Prefetch moves size bytes of managed memory at ptr to a location. It calls
// cuMemPrefetchAsync. Whole pages are moved.
//
// Stream-ordered on s; returns before completion. Not allowed while s is
// capturing, which goes on.
//
// Errors: as for [Context.Advise]; an [*ArgumentError] if s is capturing.
func Prefetch(ptr, size uint64, to Location, s *Stream) error {
	const op = "cuMemPrefetchAsync"
	if size == 0 {
		return s.check()
	}
	for _, l := range []Location{to, {s.ctx.dev}} {
		if err := l.usable(op); err != nil {
			return err
		}
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if capturing, err := s.capturing(); err != nil || capturing {
		if err == nil {
			err = badValue("stream", "must not be capturing: a prefetch cannot be part of a graph")
		}
		return err
	}
	r := s.ctx.drv.api.CuMemPrefetchAsync(driver.CUdeviceptr(ptr), size, to.raw(), 0, s.h)
	return s.ctx.Failure(op, int32(r), fmt.Sprintf("%d bytes at %#x to %v", size, ptr, to))
}

// RangeAttributes is the advice in effect for managed memory.
type RangeAttributes struct {
	// ReadMostly is true if all pages have that advice.
	ReadMostly bool
	// Preferred and LastPrefetch are nil if the pages differ or have none.
	Preferred, LastPrefetch *Location
	// AccessedBy lists the locations that all pages are mapped for: devices in
	// their order, then the host.
	AccessedBy []Location
}

// RangeAttributes returns the advice in effect for size bytes of managed memory
// at ptr, and where they were last prefetched to, by any code of this process.
// It calls cuMemRangeGetAttribute.
//
// Errors: [ErrorInvalidValue] if the memory is not managed.
func (c *Context) RangeAttributes(ptr, size uint64) (RangeAttributes, error) {
	var a RangeAttributes
	if size == 0 {
		return a, nil
	}
	leave, err := c.Enter()
	if err != nil {
		return a, err
	}
	defer leave()
	accessed := make([]int32, c.drv.count+1)
	var readMostly, preferred, prefetched [1]int32
	for _, q := range []struct {
		attribute driver.CUmem_range_attribute
		data      []int32
	}{
		{driver.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, readMostly[:]},
		{driver.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, preferred[:]},
		{driver.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, prefetched[:]},
		{driver.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, accessed},
	} {
		r := c.drv.api.CuMemRangeGetAttribute(q.data, q.attribute, driver.CUdeviceptr(ptr), size)
		if r != driver.CUDA_SUCCESS {
			return a, c.fail("cuMemRangeGetAttribute", r, fmt.Sprintf("attribute %d of %d bytes at %#x", q.attribute, size, ptr))
		}
	}
	a.ReadMostly = readMostly[0] != 0
	if a.Preferred, err = c.drv.location(preferred[0]); err != nil {
		return a, err
	}
	if a.LastPrefetch, err = c.drv.location(prefetched[0]); err != nil {
		return a, err
	}
	for _, number := range accessed {
		l, err := c.drv.location(number)
		if err != nil {
			return a, err
		}
		if l != nil {
			a.AccessedBy = append(a.AccessedBy, *l)
		}
	}
	return a, nil
}

// location makes a Location of the driver's number for a device or the host;
// nil for none.
func (d *Driver) location(number int32) (*Location, error) {
	switch number {
	case driver.CU_DEVICE_INVALID:
		return nil, nil
	case driver.CU_DEVICE_CPU:
		return &Location{}, nil
	}
	dev, err := d.Device(int(number))
	return &Location{dev}, err
}

// managed fails unless b is open and managed memory. The caller is a holder
// then, until it releases b.a.
func (b *Buffer) managed() error {
	if b.a.kind != UnifiedMemory {
		return badType("buffer", "must be managed memory to be advised about or prefetched, got %v memory", b.a.kind)
	}
	return b.begin()
}

// Advise advises the driver about the use of b: see [Context.Advise].
//
// Errors: [ErrClosed]; an [*ArgumentError] if b is not [UnifiedMemory].
func (b *Buffer) Advise(a Advice, at Location) error {
	if err := b.managed(); err != nil {
		return err
	}
	defer b.a.release()
	return b.a.ctx.Advise(b.Ptr(), b.Size(), a, at)
}

// Prefetch moves b to a location: see the function [Prefetch].
//
// Stream-ordered on s; returns before completion. Not allowed while s is
// capturing.
//
// Errors: [ErrClosed]; an [*ArgumentError] if b is not [UnifiedMemory].
func (b *Buffer) Prefetch(to Location, s *Stream) error {
	if err := b.managed(); err != nil {
		return err
	}
	defer b.a.release()
	return Prefetch(b.Ptr(), b.Size(), to, s)
}

// RangeAttributes returns the advice in effect for b: see
// [Context.RangeAttributes].
//
// Errors: [ErrClosed]; an [*ArgumentError] if b is not [UnifiedMemory].
func (b *Buffer) RangeAttributes() (RangeAttributes, error) {
	if err := b.managed(); err != nil {
		return RangeAttributes{}, err
	}
	defer b.a.release()
	return b.a.ctx.RangeAttributes(b.Ptr(), b.Size())
}
