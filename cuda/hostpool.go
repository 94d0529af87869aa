// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// managedPools is the CUDA version that introduced pools of managed memory.
const managedPools = 13000

// NewPinnedPool creates a resource with a new pool of page-locked host memory,
// on a NUMA node if numa is not nil; if other processes are to import it, it is on
// one in any case, by default the device's. The memory is allocated and freed in the
// order of d's streams; every device with such pools can access it. It calls
// cuMemPoolCreate and cuMemPoolSetAccess.
//
// Lifetime: the caller must Close it.
//
// Errors: [ErrorNotSupported] if d has no such pools: they came with CUDA 13.0,
// those on a NUMA node with 12.9.
func NewPinnedPool(d *Device, o PoolOptions, numa *int) (*DeviceMemoryResource, error) {
	props := &driver.CUmemPoolProps{
		AllocType: int32(driver.CU_MEM_ALLOCATION_TYPE_PINNED), LocationType: int32(driver.CU_MEM_LOCATION_TYPE_HOST),
		MaxSize: o.MaxSize,
	}
	if o.Shareable && numa == nil {
		node, err := d.hostNode()
		if err != nil {
			return nil, err
		}
		numa = &node
	}
	can, lack := HostMemoryPoolsSupported, "has no pools of host memory, or its driver is older than CUDA 13.0"
	if numa != nil {
		can, lack = HostNUMAMemoryPoolsSupported, "has no pools of host memory on a NUMA node, or its driver is older than CUDA 12.9"
		props.LocationType, props.LocationID = int32(driver.CU_MEM_LOCATION_TYPE_HOST_NUMA), clampInt32(*numa)
	}
	if err := d.supports(can, "cuMemPoolCreate", lack); err != nil {
		return nil, err
	}
	mr, err := newPool(d, PinnedMemory, o, props)
	if err != nil {
		return nil, err
	}
	if err := mr.allowAll(can); err != nil {
		_ = mr.Close()
		return nil, err
	}
	return mr, nil
}

// hostNode is the NUMA node of the host that is next to d: the first, if the host
// has no others.
func (d *Device) hostNode() (int, error) {
	err := d.supports(HostNUMAMemoryPoolsSupported, "cuMemPoolCreate", "shares no pools of host memory with other processes: that takes pools on a NUMA node")
	if err != nil {
		return 0, err
	}
	node, err := d.Attribute(HostNUMAID)
	return max(node, 0), err
}

// supports is need of an attribute that older drivers do not know.
func (d *Device) supports(a Attribute, op, lack string) error {
	err := d.need(a, op, lack)
	if errors.Is(err, ErrorInvalidValue) {
		return &Error{Op: op, Result: ErrorNotSupported, Detail: d.String() + " " + lack}
	}
	return err
}

// allowAll gives access to all devices that can have it: at first only the host
// has.
func (mr *DeviceMemoryResource) allowAll(can Attribute) error {
	desc, err := mr.ctx.drv.allDevices(can)
	if err != nil {
		return err
	}
	_, err = poolCall(mr, "cuMemPoolSetAccess", func(api driver.API, pool driver.CUmemoryPool) (none, driver.CUresult) {
		return none{}, api.CuMemPoolSetAccess(pool, desc)
	})
	return err
}

// allDevices describes access for all devices that can have it.
func (d *Driver) allDevices(can Attribute) ([]driver.CUmemAccessDesc, error) {
	var desc []driver.CUmemAccessDesc
	for i := range d.count {
		dev, err := d.Device(i)
		if err != nil {
			return nil, err
		}
		err = dev.supports(can, "cuMemPoolSetAccess", "cannot access the pool")
		if err != nil && !errors.Is(err, ErrorNotSupported) {
			return nil, err
		}
		if err == nil {
			desc = append(desc, driver.CUmemAccessDesc{Location: dev.location(), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE})
		}
	}
	return desc, nil
}

// NewManagedPool creates a resource with a new pool of managed memory, which is
// allocated and freed in the order of d's streams, and d is its preferred location.
// It calls cuMemPoolCreate.
//
// Without a preferred location the host does not see what kernels write: once the
// pool has given memory back, by cuMemPoolTrimTo after a wait for the free, and
// allocates it anew at the same address, NVIDIA's driver, 580.159, lets the host
// read the old pages (H200, 20 of 20; with a location, 0 of 20).
//
// Lifetime: the caller must Close it.
//
// Errors: [ErrorNotSupported] if d has no such pools, or the driver is older than
// CUDA 13.0; an [*ArgumentError] if o limits the size.
func NewManagedPool(d *Device, o PoolOptions) (*DeviceMemoryResource, error) {
	const op = "cuMemPoolCreate"
	if o.MaxSize != 0 {
		return nil, badValue("max_size", "cannot be set for managed memory, got %d", o.MaxSize)
	}
	if v := d.drv.version; v < managedPools {
		return nil, &Error{
			Op: op, Result: ErrorNotSupported,
			Detail: fmt.Sprintf("pools of managed memory need a driver for CUDA 13.0, this one is for %d.%d", v/1000, v%1000/10),
		}
	}
	if err := d.need(ConcurrentManagedAccess, op, "cannot use managed memory while the host does, so it has no pools of it"); err != nil {
		return nil, err
	}
	return newPool(d, UnifiedMemory, o, &driver.CUmemPoolProps{
		AllocType: int32(driver.CU_MEM_ALLOCATION_TYPE_MANAGED), LocationType: int32(driver.CU_MEM_LOCATION_TYPE_DEVICE), LocationID: int32(d.ordinal),
	})
}
