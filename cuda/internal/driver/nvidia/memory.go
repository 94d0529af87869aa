// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuMemGetInfo() (free, total uint64, r driver.CUresult) {
	o := C.cuMemGetInfo(d.fn[cuMemGetInfo])
	return uint64(o.first), uint64(o.second), driver.CUresult(o.r)
}

func (d *binding) CuMemAlloc(size uint64) (driver.CUdeviceptr, driver.CUresult) {
	o := C.cuMemAlloc(d.fn[cuMemAlloc], C.size_t(size))
	return driver.CUdeviceptr(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemFree(p driver.CUdeviceptr) driver.CUresult {
	return driver.CUresult(C.cuMemFree(d.fn[cuMemFree], C.CUdeviceptr(p)))
}

func (d *binding) CuMemAllocAsync(size uint64, s driver.CUstream) (driver.CUdeviceptr, driver.CUresult) {
	o := C.cuMemAllocAsync(d.fn[cuMemAllocAsync], C.size_t(size), C.CUstream(s))
	return driver.CUdeviceptr(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemAllocFromPoolAsync(size uint64, pool driver.CUmemoryPool, s driver.CUstream) (driver.CUdeviceptr, driver.CUresult) {
	o := C.cuMemAllocFromPoolAsync(d.fn[cuMemAllocFromPoolAsync], C.size_t(size), C.CUmemoryPool(pool), C.CUstream(s))
	return driver.CUdeviceptr(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemFreeAsync(p driver.CUdeviceptr, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuMemFreeAsync(d.fn[cuMemFreeAsync], C.CUdeviceptr(p), C.CUstream(s)))
}

func (d *binding) CuMemHostAlloc(size uint64, flags uint32) (uintptr, driver.CUresult) {
	o := C.cuMemHostAlloc(d.fn[cuMemHostAlloc], C.size_t(size), C.uint(flags))
	return uintptr(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemFreeHost(host uintptr) driver.CUresult {
	return driver.CUresult(C.cuMemFreeHost(d.fn[cuMemFreeHost], C.uintptr_t(host)))
}

func (d *binding) CuMemAllocManaged(size uint64, flags uint32) (driver.CUdeviceptr, driver.CUresult) {
	o := C.cuMemAllocManaged(d.fn[cuMemAllocManaged], C.size_t(size), C.uint(flags))
	return driver.CUdeviceptr(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemHostRegister(host uintptr, size uint64, flags uint32) driver.CUresult {
	return driver.CUresult(C.cuMemHostRegister(d.fn[cuMemHostRegister], C.uintptr_t(host), C.size_t(size), C.uint(flags)))
}

func (d *binding) CuMemHostUnregister(host uintptr) driver.CUresult {
	return driver.CUresult(C.cuMemHostUnregister(d.fn[cuMemHostUnregister], C.uintptr_t(host)))
}

func (d *binding) CuDeviceGetDefaultMemPool(dev driver.CUdevice) (driver.CUmemoryPool, driver.CUresult) {
	o := C.cuDeviceGetDefaultMemPool(d.fn[cuDeviceGetDefaultMemPool], C.CUdevice(dev))
	return driver.CUmemoryPool(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemPoolCreate(props *driver.CUmemPoolProps) (driver.CUmemoryPool, driver.CUresult) {
	o := C.cuMemPoolCreate(d.fn[cuMemPoolCreate], (*C.CUmemPoolProps)(unsafe.Pointer(props)))
	return driver.CUmemoryPool(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemPoolDestroy(pool driver.CUmemoryPool) driver.CUresult {
	return driver.CUresult(C.cuMemPoolDestroy(d.fn[cuMemPoolDestroy], C.CUmemoryPool(pool)))
}

func (d *binding) CuMemPoolTrimTo(pool driver.CUmemoryPool, keep uint64) driver.CUresult {
	return driver.CUresult(C.cuMemPoolTrimTo(d.fn[cuMemPoolTrimTo], C.CUmemoryPool(pool), C.size_t(keep)))
}

func (d *binding) CuMemPoolSetAttribute(pool driver.CUmemoryPool, attr driver.CUmemPool_attribute, value uint64) driver.CUresult {
	return driver.CUresult(C.cuMemPoolSetAttribute(d.fn[cuMemPoolSetAttribute],
		C.CUmemoryPool(pool), C.enumeration(attr), C.uint64_t(value)))
}

func (d *binding) CuMemPoolGetAttribute(pool driver.CUmemoryPool, attr driver.CUmemPool_attribute) (uint64, driver.CUresult) {
	o := C.cuMemPoolGetAttribute(d.fn[cuMemPoolGetAttribute], C.CUmemoryPool(pool), C.enumeration(attr))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemcpyAsync(dst, src driver.CUdeviceptr, size uint64, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuMemcpyAsync(d.fn[cuMemcpyAsync],
		C.CUdeviceptr(dst), C.CUdeviceptr(src), C.size_t(size), C.CUstream(s)))
}

func (d *binding) CuMemsetD8Async(dst driver.CUdeviceptr, value uint8, n uint64, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuMemsetD8Async(d.fn[cuMemsetD8Async],
		C.CUdeviceptr(dst), C.uchar(value), C.size_t(n), C.CUstream(s)))
}

func (d *binding) CuMemsetD16Async(dst driver.CUdeviceptr, value uint16, n uint64, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuMemsetD16Async(d.fn[cuMemsetD16Async],
		C.CUdeviceptr(dst), C.ushort(value), C.size_t(n), C.CUstream(s)))
}

func (d *binding) CuMemsetD32Async(dst driver.CUdeviceptr, value uint32, n uint64, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuMemsetD32Async(d.fn[cuMemsetD32Async],
		C.CUdeviceptr(dst), C.uint(value), C.size_t(n), C.CUstream(s)))
}

func (d *binding) CuPointerGetAttribute(attr driver.CUpointer_attribute, p driver.CUdeviceptr) (uint64, driver.CUresult) {
	o := C.cuPointerGetAttribute(d.fn[cuPointerGetAttribute], C.enumeration(attr), C.CUdeviceptr(p))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemGetAddressRange(p driver.CUdeviceptr) (base driver.CUdeviceptr, size uint64, r driver.CUresult) {
	o := C.cuMemGetAddressRange(d.fn[cuMemGetAddressRange], C.CUdeviceptr(p))
	return driver.CUdeviceptr(o.first), uint64(o.second), driver.CUresult(o.r)
}
