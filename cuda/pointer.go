// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// PointerInfo is what the driver knows about an address.
type PointerInfo struct {
	Kind MemoryKind
	// Ordinal is the device that the memory is on, or through which it was
	// allocated; -1 for [HostMemory].
	Ordinal int
	// Base and Size are the allocation that contains the address; zero if the
	// driver does not report them.
	Base, Size uint64
	// BufferID is unique among the allocations of this process.
	BufferID uint64
	// DevicePointer is the address for device work, HostPointer that for the
	// host; zero where there is none.
	DevicePointer, HostPointer uint64
}

// PointerInfo asks the driver about an address. An address that it does not
// know is [HostMemory]. It calls cuPointerGetAttribute and
// cuMemGetAddressRange.
func (c *Context) PointerInfo(ptr uint64) (PointerInfo, error) {
	leave, err := c.Enter()
	if err != nil {
		return PointerInfo{}, err
	}
	defer leave()
	api, p := c.drv.api, driver.CUdeviceptr(ptr)
	memoryType, r := api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)
	if r == driver.CUDA_ERROR_INVALID_VALUE || r == driver.CUDA_SUCCESS && memoryType == 0 {
		return PointerInfo{Kind: HostMemory, Ordinal: -1, HostPointer: ptr}, nil
	}
	if err := c.check("cuPointerGetAttribute", r); err != nil {
		return PointerInfo{}, err
	}
	// Not every attribute exists for every kind of memory; missing ones stay
	// zero.
	get := func(attr driver.CUpointer_attribute) uint64 {
		v, r := api.CuPointerGetAttribute(attr, p)
		if r != driver.CUDA_SUCCESS {
			return 0
		}
		return v
	}
	info := PointerInfo{
		Ordinal:       int(int32(get(driver.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL))),
		BufferID:      get(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID),
		DevicePointer: get(driver.CU_POINTER_ATTRIBUTE_DEVICE_POINTER),
		HostPointer:   get(driver.CU_POINTER_ATTRIBUTE_HOST_POINTER),
	}
	switch {
	case get(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED) != 0:
		info.Kind = UnifiedMemory
	case driver.CUmemorytype(memoryType) == driver.CU_MEMORYTYPE_HOST:
		info.Kind = PinnedMemory
	default:
		info.Kind = DeviceMemory
	}
	if base, size, r := api.CuMemGetAddressRange(p); r == driver.CUDA_SUCCESS {
		info.Base, info.Size = uint64(base), size
	}
	return info, nil
}

// Reaches reports whether kernels in c can use the memory at an address, which is
// what cuPointerGetAttribute says of CU_POINTER_ATTRIBUTE_DEVICE_POINTER: on two
// H200 with driver 580.159 it knows of cuCtxEnablePeerAccess,
// cuMemPoolSetAccess and cuMemSetAccess, and that variables of modules that were
// loaded before are not reached; but of memory of graphs it says that other devices
// do not reach it where they do.
func (c *Context) Reaches(ptr uint64) (bool, error) {
	leave, err := c.Enter()
	if err != nil {
		return false, err
	}
	defer leave()
	_, r := c.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, driver.CUdeviceptr(ptr))
	if r == driver.CUDA_ERROR_INVALID_VALUE {
		return false, nil
	}
	return r == driver.CUDA_SUCCESS, c.check("cuPointerGetAttribute", r)
}

// BufferID returns the number of the allocation that an address is in, which no
// other allocation of this process ever has; 0 if the driver does not know the
// address. It calls cuPointerGetAttribute.
func (c *Context) BufferID(ptr uint64) (uint64, error) {
	leave, err := c.Enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	id, r := c.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID, driver.CUdeviceptr(ptr))
	if r == driver.CUDA_ERROR_INVALID_VALUE {
		return 0, nil
	}
	return id, c.check("cuPointerGetAttribute", r)
}

// CheckDeviceMemory checks that a range of addresses is memory that c's device
// has, as far as the driver can tell. It makes the calls of
// [Context.PointerInfo].
//
// Errors: an [*ArgumentError] that says what the range is.
func (c *Context) CheckDeviceMemory(ptr, size uint64) error {
	if size == 0 {
		return nil
	}
	if ptr+size-1 < ptr {
		return badValue("size", "of %d bytes goes past the last address, from %#x", size, ptr)
	}
	first, err := c.PointerInfo(ptr)
	if err != nil {
		return err
	}
	if err := c.onDevice(ptr, first); err != nil {
		return err
	}
	if first.Size != 0 && size <= first.Size && ptr-first.Base <= first.Size-size {
		return nil
	}
	// The range of virtual memory may be that of several allocations.
	last, err := c.PointerInfo(ptr + size - 1)
	if err != nil {
		return err
	}
	if c.onDevice(ptr, last) != nil {
		return badValue("size", "must not go past the memory at %#x, which ends after %d bytes, got %d", ptr, first.Base+first.Size-ptr, size)
	}
	return nil
}

// onDevice checks that an address is of memory that c's device has.
func (c *Context) onDevice(ptr uint64, info PointerInfo) error {
	switch {
	case info.Kind == UnifiedMemory:
	case info.Kind != DeviceMemory:
		return badValue("ptr", "must be the address of device memory, but %#x is %v memory", ptr, info.Kind)
	case info.Ordinal != c.dev.ordinal:
		return badValue("ptr", "must be on device %d, as the stream is, but the memory at %#x is on device %d", c.dev.ordinal, ptr, info.Ordinal)
	}
	return nil
}
