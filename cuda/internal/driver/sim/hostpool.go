// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// poolKind is what memory of a pool will be, and the device that it is on; the
// first for host memory.
func poolKind(props *driver.CUmemPoolProps) (kind memoryKind, at int32, r driver.CUresult) {
	kindOf, place := driver.CUmemAllocationType(props.AllocType), driver.CUmemLocationType(props.LocationType)
	switch {
	case kindOf == driver.CU_MEM_ALLOCATION_TYPE_MANAGED:
		if props.MaxSize != 0 || props.HandleTypes != 0 || props.Usage != 0 {
			return 0, 0, driver.CUDA_ERROR_INVALID_VALUE
		}
		if place == driver.CU_MEM_LOCATION_TYPE_DEVICE { // preferred
			at = props.LocationID
		}
		return memManaged, at, driver.CUDA_SUCCESS
	case kindOf != driver.CU_MEM_ALLOCATION_TYPE_PINNED:
		return 0, 0, driver.CUDA_ERROR_INVALID_VALUE
	case place == driver.CU_MEM_LOCATION_TYPE_HOST && props.HandleTypes != 0:
		return 0, 0, driver.CUDA_ERROR_INVALID_VALUE
	case place == driver.CU_MEM_LOCATION_TYPE_HOST:
		return memPinned, 0, driver.CUDA_SUCCESS
	case place != driver.CU_MEM_LOCATION_TYPE_DEVICE, props.HandleTypes&^int32(driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0:
		return 0, 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return memPool, props.LocationID, driver.CUDA_SUCCESS
}

// allocateHostPooled makes memory of a pool of host or managed memory. Managed
// memory is there for every device, host memory for those that have access to the
// pool: with CUDA what is granted later covers the past too, here it does not.
func (d *simulator) allocateHostPooled(c *context, size uint64, p *pool) (driver.CUdeviceptr, driver.CUresult) {
	if !p.claim(size) {
		return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	mapping, ok := mapHost(size)
	p.settle(size, ok)
	if !ok {
		return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	a := &allocation{
		base: uint64(addressOf(mapping)), size: size, kind: p.kind, id: bufferCount.Add(1), ctx: c, mapping: mapping,
		pool: p, site: d.check.site("cuMemAllocFromPoolAsync"),
	}
	hostKind := memory.HostPinned
	if p.kind == memManaged {
		a.advised, hostKind = newAdvised(), memory.HostManaged
	}
	for _, dev := range d.devices {
		if p.kind == memManaged || p.access.Allows(dev.memory) {
			a.seenBy = append(a.seenBy, dev)
			dev.memory.AddHost(uintptr(a.base), size, hostKind)
		}
	}
	d.space.add(a)
	if d.cameTooLate(a) {
		return 0, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	return driver.CUdeviceptr(a.base), driver.CUDA_SUCCESS
}
