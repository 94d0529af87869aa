// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuInit(flags uint32) driver.CUresult {
	return driver.CUresult(C.cuInit(d.fn[cuInit], C.uint(flags)))
}

func (d *binding) CuDriverGetVersion() (int32, driver.CUresult) {
	o := C.cuDriverGetVersion(d.fn[cuDriverGetVersion])
	return int32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceGetCount() (int32, driver.CUresult) {
	o := C.cuDeviceGetCount(d.fn[cuDeviceGetCount])
	return int32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceGet(ordinal int32) (driver.CUdevice, driver.CUresult) {
	o := C.cuDeviceGet(d.fn[cuDeviceGet], C.int(ordinal))
	return driver.CUdevice(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceGetName(dev driver.CUdevice) (string, driver.CUresult) {
	var text [256]C.char
	r := C.cuDeviceGetName(d.fn[cuDeviceGetName], &text[0], C.int(len(text)), C.CUdevice(dev))
	return C.GoString(&text[0]), driver.CUresult(r)
}

func (d *binding) CuDeviceGetUuid(dev driver.CUdevice) (uuid [16]byte, r driver.CUresult) {
	p := (*C.uchar)(unsafe.Pointer(&uuid))
	r = driver.CUresult(C.cuDeviceGetUuid(d.fn[cuDeviceGetUuid], p, C.CUdevice(dev)))
	return uuid, r
}

func (d *binding) CuDeviceTotalMem(dev driver.CUdevice) (uint64, driver.CUresult) {
	o := C.cuDeviceTotalMem(d.fn[cuDeviceTotalMem], C.CUdevice(dev))
	return uint64(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceGetAttribute(attrib driver.CUdevice_attribute, dev driver.CUdevice) (int32, driver.CUresult) {
	o := C.cuDeviceGetAttribute(d.fn[cuDeviceGetAttribute], C.enumeration(attrib), C.CUdevice(dev))
	return int32(o.value), driver.CUresult(o.r)
}

func (d *binding) CuDeviceGetPCIBusId(dev driver.CUdevice) (string, driver.CUresult) {
	var text [64]C.char
	r := C.cuDeviceGetPCIBusId(d.fn[cuDeviceGetPCIBusId], &text[0], C.int(len(text)), C.CUdevice(dev))
	return C.GoString(&text[0]), driver.CUresult(r)
}

func (d *binding) CuDeviceCanAccessPeer(dev, peer driver.CUdevice) (bool, driver.CUresult) {
	o := C.cuDeviceCanAccessPeer(d.fn[cuDeviceCanAccessPeer], C.CUdevice(dev), C.CUdevice(peer))
	return o.value != 0, driver.CUresult(o.r)
}
