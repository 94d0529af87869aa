// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuDevSmResourceSplitByCount(groups []driver.CUdevResource, input *driver.CUdevResource, flags, minCount uint32) (made uint32, left driver.CUdevResource, r driver.CUresult) {
	count := C.unsigned(len(groups))
	result := C.cuDevSmResourceSplitByCount(d.fn[cuDevSmResourceSplitByCount], resources(groups), &count, (*C.CUdevResource)(unsafe.Pointer(input)),
		(*C.CUdevResource)(unsafe.Pointer(&left)), C.unsigned(flags), C.unsigned(minCount))
	return uint32(count), left, driver.CUresult(result)
}

func (d *binding) CuDevResourceGenerateDesc(list []driver.CUdevResource) (driver.CUdevResourceDesc, driver.CUresult) {
	o := C.cuDevResourceGenerateDesc(d.fn[cuDevResourceGenerateDesc], resources(list), C.unsigned(len(list)))
	return driver.CUdevResourceDesc(o.value), driver.CUresult(o.r)
}

func resources(list []driver.CUdevResource) *C.CUdevResource {
	return (*C.CUdevResource)(unsafe.Pointer(unsafe.SliceData(list)))
}
