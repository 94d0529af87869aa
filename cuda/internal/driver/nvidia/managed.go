// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func locationWords(l driver.CUmemLocation) C.CUmemLocation {
	return *(*C.CUmemLocation)(unsafe.Pointer(&l))
}

func (d *binding) CuMemAdvise(p driver.CUdeviceptr, size uint64, advice driver.CUmem_advise, location driver.CUmemLocation) driver.CUresult {
	return driver.CUresult(C.cuMemAdvise(d.fn[cuMemAdvise], C.CUdeviceptr(p), C.size_t(size), C.enumeration(advice), locationWords(location)))
}

func (d *binding) CuMemPrefetchAsync(p driver.CUdeviceptr, size uint64, location driver.CUmemLocation, flags uint32, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuMemPrefetchAsync(d.fn[cuMemPrefetchAsync], C.CUdeviceptr(p), C.size_t(size), locationWords(location),
		C.uint(flags), C.CUstream(s)))
}

func (d *binding) CuMemRangeGetAttribute(data []int32, attribute driver.CUmem_range_attribute, p driver.CUdeviceptr, size uint64) driver.CUresult {
	return driver.CUresult(C.cuMemRangeGetAttribute(d.fn[cuMemRangeGetAttribute], (*C.int32_t)(unsafe.SliceData(data)),
		C.size_t(4*len(data)), C.enumeration(attribute), C.CUdeviceptr(p), C.size_t(size)))
}

func (d *binding) CuMemPoolSetAccess(pool driver.CUmemoryPool, desc []driver.CUmemAccessDesc) driver.CUresult {
	return driver.CUresult(C.cuMemPoolSetAccess(d.fn[cuMemPoolSetAccess], C.CUmemoryPool(pool),
		(*C.CUmemAccessDesc)(unsafe.Pointer(unsafe.SliceData(desc))), C.size_t(len(desc))))
}

func (d *binding) CuMemPoolGetAccess(pool driver.CUmemoryPool, location driver.CUmemLocation) (driver.CUmemAccess_flags, driver.CUresult) {
	o := C.cuMemPoolGetAccess(d.fn[cuMemPoolGetAccess], C.CUmemoryPool(pool), locationWords(location))
	return driver.CUmemAccess_flags(o.value), driver.CUresult(o.r)
}
