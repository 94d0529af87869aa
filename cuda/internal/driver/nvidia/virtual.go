// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuMemGetAllocationGranularity(prop *driver.CUmemAllocationProp, option driver.CUmemAllocationGranularity_flags) (uint64, driver.CUresult) {
	o := C.cuMemGetAllocationGranularity(d.fn[cuMemGetAllocationGranularity],
		(*C.CUmemAllocationProp)(unsafe.Pointer(prop)), C.enumeration(option))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemAddressReserve(size, alignment uint64, addr driver.CUdeviceptr, flags uint64) (driver.CUdeviceptr, driver.CUresult) {
	o := C.cuMemAddressReserve(d.fn[cuMemAddressReserve],
		C.size_t(size), C.size_t(alignment), C.CUdeviceptr(addr), C.ulonglong(flags))
	return driver.CUdeviceptr(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemAddressFree(p driver.CUdeviceptr, size uint64) driver.CUresult {
	return driver.CUresult(C.cuMemAddressFree(d.fn[cuMemAddressFree], C.CUdeviceptr(p), C.size_t(size)))
}

func (d *binding) CuMemCreate(size uint64, prop *driver.CUmemAllocationProp, flags uint64) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	o := C.cuMemCreate(d.fn[cuMemCreate], C.size_t(size), (*C.CUmemAllocationProp)(unsafe.Pointer(prop)), C.ulonglong(flags))
	return driver.CUmemGenericAllocationHandle(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemRelease(h driver.CUmemGenericAllocationHandle) driver.CUresult {
	return driver.CUresult(C.cuMemRelease(d.fn[cuMemRelease], C.CUmemGenericAllocationHandle(h)))
}

func (d *binding) CuMemMap(p driver.CUdeviceptr, size, offset uint64, h driver.CUmemGenericAllocationHandle, flags uint64) driver.CUresult {
	return driver.CUresult(C.cuMemMap(d.fn[cuMemMap], C.CUdeviceptr(p), C.size_t(size), C.size_t(offset),
		C.CUmemGenericAllocationHandle(h), C.ulonglong(flags)))
}

func (d *binding) CuMemUnmap(p driver.CUdeviceptr, size uint64) driver.CUresult {
	return driver.CUresult(C.cuMemUnmap(d.fn[cuMemUnmap], C.CUdeviceptr(p), C.size_t(size)))
}

func (d *binding) CuMemSetAccess(p driver.CUdeviceptr, size uint64, desc []driver.CUmemAccessDesc) driver.CUresult {
	return driver.CUresult(C.cuMemSetAccess(d.fn[cuMemSetAccess], C.CUdeviceptr(p), C.size_t(size),
		(*C.CUmemAccessDesc)(unsafe.Pointer(unsafe.SliceData(desc))), C.size_t(len(desc))))
}
