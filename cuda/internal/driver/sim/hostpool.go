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
	case props.HandleTypes&^int32(driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0:
		return 0, 0, driver.CUDA_ERROR_NOT_SUPPORTED
	case place == driver.CU_MEM_LOCATION_TYPE_HOST_NUMA && props.LocationID != 0: // the host has one node
		return 0, 0, driver.CUDA_ERROR_INVALID_VALUE
	case place == driver.CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return memPinned, 0, driver.CUDA_SUCCESS
	case place != driver.CU_MEM_LOCATION_TYPE_DEVICE:
		return 0, 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return memPool, props.LocationID, driver.CUDA_SUCCESS
}

// allocateHostPooled makes memory of a pool of host or managed memory. Managed
// memory is there for every device, host memory for those that have access to the
// pool: with CUDA what is granted later covers the past too, here it does not.
func (d *simulator) allocateHostPooled(s *stream, size uint64, p *pool) (driver.CUdeviceptr, driver.CUresult) {
	r := d.withReuse(p, s, func() driver.CUresult {
		if !p.claim(size) {
			return driver.CUDA_ERROR_OUT_OF_MEMORY
		}
		return driver.CUDA_SUCCESS
	})
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	var at *place
	if p.shared != nil {
		var err error
		if at, err = p.shared.take(size); err != nil {
			p.settle(size, false)
			return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
		}
	}
	a, r := d.hostPooled(s.ctx, size, p, at)
	p.settle(size, r == driver.CUDA_SUCCESS)
	if r != driver.CUDA_SUCCESS {
		if at != nil {
			at.end(size)
		}
		return 0, r
	}
	return d.addHostPooled(a)
}

// hostPooled maps memory of a pool, at a place that processes share if the pool is
// for that.
func (d *simulator) hostPooled(c *context, size uint64, p *pool, at *place) (a *allocation, r driver.CUresult) {
	a = &allocation{size: size, kind: p.kind, id: bufferCount.Add(1), ctx: c, pool: p, place: at, site: d.check.site("cuMemAllocFromPoolAsync")}
	if at != nil {
		a.mapping, r = at.mapHost(size)
	} else if mem, ok := mapHost(size); ok {
		a.mapping = mem
	} else {
		r = driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	if r == driver.CUDA_SUCCESS {
		a.base = uint64(addressOf(a.mapping))
	}
	return a, r
}

// addHostPooled shows new memory of a pool to the devices.
func (d *simulator) addHostPooled(a *allocation) (driver.CUdeviceptr, driver.CUresult) {
	hostKind := memory.HostPinned
	if a.kind == memManaged {
		a.advised, hostKind = newAdvised(a.pool.preferred), memory.HostManaged
	}
	for _, dev := range d.devices {
		if a.kind == memManaged || a.pool.access.Allows(dev.memory) {
			a.seenBy = append(a.seenBy, dev)
			dev.memory.AddHost(uintptr(a.base), a.size, hostKind)
		}
	}
	d.space.add(a)
	if d.cameTooLate(a) {
		return 0, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	return driver.CUdeviceptr(a.base), driver.CUDA_SUCCESS
}
