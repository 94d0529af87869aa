// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *binding) CuEventCreate(flags uint32) (driver.CUevent, driver.CUresult) {
	o := C.cuEventCreate(d.fn[cuEventCreate], C.uint(flags))
	return driver.CUevent(o.value), driver.CUresult(o.r)
}

func (d *binding) CuEventDestroy(e driver.CUevent) driver.CUresult {
	return driver.CUresult(C.cuEventDestroy(d.fn[cuEventDestroy], C.CUevent(e)))
}

func (d *binding) CuEventRecord(e driver.CUevent, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuEventRecord(d.fn[cuEventRecord], C.CUevent(e), C.CUstream(s)))
}

func (d *binding) CuEventQuery(e driver.CUevent) driver.CUresult {
	return driver.CUresult(C.cuEventQuery(d.fn[cuEventQuery], C.CUevent(e)))
}

func (d *binding) CuEventSynchronize(e driver.CUevent) driver.CUresult {
	return driver.CUresult(C.cuEventSynchronize(d.fn[cuEventSynchronize], C.CUevent(e)))
}

func (d *binding) CuEventElapsedTime(start, end driver.CUevent) (float32, driver.CUresult) {
	o := C.cuEventElapsedTime(d.fn[cuEventElapsedTime], C.CUevent(start), C.CUevent(end))
	return float32(o.value), driver.CUresult(o.r)
}
