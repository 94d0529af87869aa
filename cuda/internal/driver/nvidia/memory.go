// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuMemPoolSetAttribute(pool driver.CUmemoryPool, attr driver.CUmemPool_attribute, value uint64) driver.CUresult {
	return driver.CUresult(C.cuMemPoolSetAttribute(d.fn[cuMemPoolSetAttribute],
		C.CUmemoryPool(pool), C.CUmemPool_attribute(attr), C.uint64_t(value)))
}

func (d *binding) CuMemPoolGetAttribute(pool driver.CUmemoryPool, attr driver.CUmemPool_attribute) (uint64, driver.CUresult) {
	o := C.cuMemPoolGetAttribute(d.fn[cuMemPoolGetAttribute], C.CUmemoryPool(pool), C.CUmemPool_attribute(attr))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceGetGraphMemAttribute(dev driver.CUdevice, attr driver.CUgraphMem_attribute) (uint64, driver.CUresult) {
	o := C.cuDeviceGetGraphMemAttribute(d.fn[cuDeviceGetGraphMemAttribute], C.CUdevice(dev), C.CUgraphMem_attribute(attr))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceSetGraphMemAttribute(dev driver.CUdevice, attr driver.CUgraphMem_attribute, value uint64) driver.CUresult {
	return driver.CUresult(C.cuDeviceSetGraphMemAttribute(d.fn[cuDeviceSetGraphMemAttribute],
		C.CUdevice(dev), C.CUgraphMem_attribute(attr), C.uint64_t(value)))
}

func (d *binding) CuPointerGetAttribute(attr driver.CUpointer_attribute, p driver.CUdeviceptr) (uint64, driver.CUresult) {
	o := C.cuPointerGetAttribute(d.fn[cuPointerGetAttribute], C.CUpointer_attribute(attr), C.CUdeviceptr(p))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemPoolExportToShareableHandle(pool driver.CUmemoryPool, typ driver.CUmemAllocationHandleType, flags uint64) (int32, driver.CUresult) {
	o := C.cuMemPoolExportToShareableHandle(d.fn[cuMemPoolExportToShareableHandle], C.CUmemoryPool(pool),
		C.CUmemAllocationHandleType(typ), C.uint64_t(flags))
	return int32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemPoolImportFromShareableHandle(fd int32, typ driver.CUmemAllocationHandleType, flags uint64) (driver.CUmemoryPool, driver.CUresult) {
	o := C.cuMemPoolImportFromShareableHandle(d.fn[cuMemPoolImportFromShareableHandle], C.int(fd),
		C.CUmemAllocationHandleType(typ), C.uint64_t(flags))
	return driver.CUmemoryPool(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemExportToShareableHandle(h driver.CUmemGenericAllocationHandle, typ driver.CUmemAllocationHandleType, flags uint64) (int32, driver.CUresult) {
	o := C.cuMemExportToShareableHandle(d.fn[cuMemExportToShareableHandle], C.CUmemGenericAllocationHandle(h),
		C.CUmemAllocationHandleType(typ), C.uint64_t(flags))
	return int32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuMemImportFromShareableHandle(fd int32, typ driver.CUmemAllocationHandleType) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	o := C.cuMemImportFromShareableHandle(d.fn[cuMemImportFromShareableHandle], C.int(fd), C.CUmemAllocationHandleType(typ))
	return driver.CUmemGenericAllocationHandle(o.value), driver.CUresult(o.r)
}
