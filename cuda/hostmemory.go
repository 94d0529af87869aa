// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A PinnedMemoryResource allocates page-locked host memory that every device
// can access. It owns nothing itself.
type PinnedMemoryResource struct{ hostResource }

// NewPinnedMemoryResource returns a resource that allocates through d's
// context.
func NewPinnedMemoryResource(d *Device) (*PinnedMemoryResource, error) {
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	return &PinnedMemoryResource{hostResource{ctx: c, kind: PinnedMemory, alloc: "cuMemHostAlloc", free: "cuMemFreeHost"}}, nil
}

// Allocate is documented at [MemoryResource]. It calls cuMemHostAlloc.
func (mr *PinnedMemoryResource) Allocate(size uint64, s *Stream) (*Buffer, error) {
	return mr.allocate(mr, size, s, func(api driver.API) (uint64, driver.CUresult) {
		p, r := api.CuMemHostAlloc(size, driver.CU_MEMHOSTALLOC_PORTABLE|driver.CU_MEMHOSTALLOC_DEVICEMAP)
		return uint64(p), r
	}, func(api driver.API, base uint64) driver.CUresult { return api.CuMemFreeHost(uintptr(base)) })
}

// A ManagedMemoryResource allocates memory that host and device share by moving
// pages. It owns nothing itself.
type ManagedMemoryResource struct{ hostResource }

// NewManagedMemoryResource returns a resource that allocates through d's
// context.
//
// Errors: [ErrorNotSupported] if d has no managed memory.
func NewManagedMemoryResource(d *Device) (*ManagedMemoryResource, error) {
	if err := d.need(ManagedMemory, "cuMemAllocManaged", "has no managed memory"); err != nil {
		return nil, err
	}
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	return &ManagedMemoryResource{hostResource{ctx: c, kind: UnifiedMemory, alloc: "cuMemAllocManaged", free: "cuMemFree"}}, nil
}

// Allocate is documented at [MemoryResource]. It calls cuMemAllocManaged.
func (mr *ManagedMemoryResource) Allocate(size uint64, s *Stream) (*Buffer, error) {
	return mr.allocate(mr, size, s, func(api driver.API) (uint64, driver.CUresult) {
		p, r := api.CuMemAllocManaged(size, driver.CU_MEM_ATTACH_GLOBAL)
		return uint64(p), r
	}, func(api driver.API, base uint64) driver.CUresult { return api.CuMemFree(driver.CUdeviceptr(base)) })
}

// hostResource is what the resources that are not stream-ordered share.
type hostResource struct {
	ctx         *Context
	kind        MemoryKind
	alloc, free string // the driver calls
	closed      atomic.Bool
}

// Kind returns where the memory is.
func (mr *hostResource) Kind() MemoryKind { return mr.kind }

// Device returns the device through whose context memory is allocated.
func (mr *hostResource) Device() *Device { return mr.ctx.dev }

// IsClosed reports whether Close was called.
func (mr *hostResource) IsClosed() bool { return mr.closed.Load() }

// Close is documented at [MemoryResource].
func (mr *hostResource) Close() error {
	mr.closed.Store(true)
	return nil
}

// allocate is Allocate of self. The memory is freed once its stream, if it has
// one, has completed: the driver does not promise to wait for work that uses it.
func (mr *hostResource) allocate(self MemoryResource, size uint64, s *Stream,
	alloc func(driver.API) (uint64, driver.CUresult), free func(driver.API, uint64) driver.CUresult,
) (*Buffer, error) {
	if mr.closed.Load() {
		return nil, &ClosedError{"memory resource"}
	}
	if size == 0 {
		return emptyBuffer(mr.ctx, self, s)
	}
	c := mr.ctx
	c.Drain()
	a := &allocation{ctx: c, kind: mr.kind, size: size, resource: self}
	if err := a.useStream(s); err != nil {
		return nil, err
	}
	base, err := c.allocRelaxed(mr.kind, mr.alloc, size, alloc)
	if err != nil {
		unuse(s)
		return nil, err
	}
	a.base = base
	a.free = func(a *allocation, s *Stream) {
		on := s.OnAnyThread()
		c.dispose(mr.free, a.what(), nil, &c.drv.live.allocations, func(api driver.API) driver.CUresult {
			if r := a.unused(on); r != driver.CUDA_SUCCESS {
				return r
			}
			return free(api, base)
		}, func() { unuse(s) })
	}
	c.drv.live.allocations.Add(1)
	return newBuffer(a), nil
}

// allocRelaxed allocates in relaxed capture mode: in global mode the allocation
// would be refused during a capture of any thread, and invalidate it.
func (c *Context) allocRelaxed(kind MemoryKind, op string, size uint64, alloc func(driver.API) (uint64, driver.CUresult)) (uint64, error) {
	leave, err := c.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer leave()
	base, r := alloc(c.drv.api)
	if r != driver.CUDA_SUCCESS {
		return 0, c.failAllocOf(kind, op, r, size, "")
	}
	return base, nil
}
