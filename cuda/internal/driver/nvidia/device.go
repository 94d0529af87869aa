// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuDeviceGetName(dev driver.CUdevice) (string, driver.CUresult) {
	var text [256]C.char
	r := C.cuDeviceGetName(d.fn[cuDeviceGetName], &text[0], C.int(len(text)), C.CUdevice(dev))
	return C.GoString(&text[0]), driver.CUresult(r)
}

func (d *binding) CuDeviceGetPCIBusId(dev driver.CUdevice) (string, driver.CUresult) {
	var text [64]C.char
	r := C.cuDeviceGetPCIBusId(d.fn[cuDeviceGetPCIBusId], &text[0], C.int(len(text)), C.CUdevice(dev))
	return C.GoString(&text[0]), driver.CUresult(r)
}
