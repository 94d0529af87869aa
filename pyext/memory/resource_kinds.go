// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"

	"github.com/cudago/cudago/pyext/border"
)

// newResource is the common part of the functions below: each makes a resource
// of one kind on a device.
func newResource(ordinal C.int32_t, st *C.cudago_status, kind func(*cuda.Device) (resource, error)) (id C.uint64_t) {
	guard(st, func() error {
		dev, err := border.Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		r, err := kind(dev)
		if err != nil {
			return err
		}
		id = C.uint64_t(Resources.Put(r))
		return nil
	})
	return id
}

// cudagoResourceDefaultPool makes a resource over the device's default pool.
//
//export cudagoResourceDefaultPool
func cudagoResourceDefaultPool(ordinal C.int32_t, pool *C.uintptr_t, st *C.cudago_status) C.uint64_t {
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		return overPool(pool)(dev.DefaultMemoryResource())
	})
}

// cudagoResourcePool makes a pool, one that processes can share if shared is not
// 0; maxSize 0 means no limit.
//
//export cudagoResourcePool
func cudagoResourcePool(ordinal C.int32_t, threshold, maxSize C.uint64_t, shared C.int, pool *C.uintptr_t, st *C.cudago_status) C.uint64_t {
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		keep := uint64(threshold)
		return overPool(pool)(cuda.NewDeviceMemoryResource(dev, cuda.PoolOptions{
			MaxSize: uint64(maxSize), ReleaseThreshold: &keep, Shareable: shared != 0,
		}))
	})
}

// cudagoResourceHostPool makes a pool of pinned or of managed memory; numa -1
// means any node. One of pinned memory is for sharing if shared is not 0.
//
//export cudagoResourceHostPool
func cudagoResourceHostPool(
	ordinal C.int32_t, threshold, maxSize C.uint64_t, managed, numa, shared C.int, pool *C.uintptr_t, st *C.cudago_status,
) C.uint64_t {
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		keep := uint64(threshold)
		o := cuda.PoolOptions{MaxSize: uint64(maxSize), ReleaseThreshold: &keep, Shareable: shared != 0}
		if managed != 0 {
			return overPool(pool)(cuda.NewManagedPool(dev, o))
		}
		var node *int
		if numa >= 0 {
			n := int(numa)
			node = &n
		}
		return overPool(pool)(cuda.NewPinnedPool(dev, o, node))
	})
}

func overPool(handle *C.uintptr_t) func(*cuda.DeviceMemoryResource, error) (resource, error) {
	return func(mr *cuda.DeviceMemoryResource, err error) (resource, error) {
		if err != nil {
			return resource{}, err
		}
		*handle = C.uintptr_t(mr.PoolHandle())
		return resource{mr, mr}, nil
	}
}

//export cudagoResourcePinned
func cudagoResourcePinned(ordinal C.int32_t, st *C.cudago_status) C.uint64_t {
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		mr, err := cuda.NewPinnedMemoryResource(dev)
		return resource{MemoryResource: mr}, err
	})
}

//export cudagoResourceManaged
func cudagoResourceManaged(ordinal C.int32_t, st *C.cudago_status) C.uint64_t {
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		mr, err := cuda.NewManagedMemoryResource(dev)
		return resource{MemoryResource: mr}, err
	})
}

// cudagoResourceVirtual makes virtual memory; reserve 0 means as much as the
// device has. peers has a bit for each device that may touch the memory. Other
// processes can import it if shared is not 0.
//
//export cudagoResourceVirtual
func cudagoResourceVirtual(ordinal C.int32_t, reserve, peers C.uint64_t, shared C.int, st *C.cudago_status) C.uint64_t {
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		others, err := peersOf(uint64(peers))
		if err != nil {
			return resource{}, err
		}
		mr, err := cuda.NewVirtualMemoryResource(dev, cuda.VirtualOptions{Reserve: uint64(reserve), Peers: others, Shareable: shared != 0})
		return resource{MemoryResource: mr}, err
	})
}
