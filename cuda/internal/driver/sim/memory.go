// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"errors"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// allocate makes device memory of some kind and adds it to the space. Memory of
// a pool must have been claimed.
func (d *simulator) allocate(c *context, size uint64, a *allocation) driver.CUresult {
	a.id, a.site = bufferCount.Add(1), d.check.site(cmp.Or(a.maker, allocators[a.kind]))
	base, err := a.from(c.dev.memory, size)
	if a.pool != nil && !a.isTheirs() { // before the memory can be found and freed
		a.pool.settle(size, err == nil)
	}
	if errors.Is(err, memory.ErrOutOfMemory) {
		return driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	if err != nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	a.base, a.size, a.ctx = base, size, c
	d.space.add(a)
	if d.cameTooLate(a) {
		return driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	if a.isTheirs() {
		return driver.CUDA_SUCCESS
	}
	if d.config.full {
		d.poison(a)
	}
	if d.check.flags()&checkUninitialized != 0 {
		c.dev.memory.Undefine(base)
	}
	return driver.CUDA_SUCCESS
}

// from takes the memory from a device. Peers may access a pool's memory if they
// may access the pool, a graph's as its node says, and other memory as
// cuCtxEnablePeerAccess said.
func (a *allocation) from(m *memory.Memory, size uint64) (uint64, error) {
	switch a.kind {
	case memPool:
		if a.place != nil {
			return m.AllocFile(a.place.memory(), size, a, a.pool.access)
		}
		return m.AllocShared(size, a, a.pool.access)
	case memGraph:
		return m.AllocShared(size, a, a.access)
	}
	if a.external != nil {
		return m.AllocFile(memory.File{FD: a.external.file.Fd(), Offset: int64(a.offset), Theirs: true}, size, a, nil)
	}
	return m.Alloc(size, a)
}

// isTheirs reports whether the memory was imported from another process or API.
func (a *allocation) isTheirs() bool {
	return a.external != nil || a.place != nil && a.place.pool.imported
}

// poisonByte fills fresh memory under check=full: as a float it is a huge
// number, as an index it is far out of bounds.
const poisonByte = 0x7F

func (d *simulator) poison(a *allocation) {
	if p, err := a.ctx.dev.memory.Bytes(a.base, a.size); err == nil {
		fill(p, poisonByte, 1, a.size)
	}
}

// cameTooLate frees memory that was allocated while its context was being
// reset: the reset may have missed it.
func (d *simulator) cameTooLate(a *allocation) bool {
	late := a.ctx.result() == driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	if late {
		d.release(a, "cuDevicePrimaryCtxReset")
	}
	return late
}

// release frees memory of any kind at once, for the first caller: a reset may
// coincide with the owner's free. The freeing call is for messages about later
// accesses.
func (d *simulator) release(a *allocation, call string) {
	d.give(a, call)
	if a.gone.Swap(true) {
		return
	}
	d.space.remove(a)
	if a.onDevice() {
		// It can only fail for an allocation that is not live, and the space
		// had it: the device was closed meanwhile.
		a.ctx.dev.memory.Forget(a.base)
		_ = a.ctx.dev.memory.Free(a.base, a.freer(call))
		if a.place != nil {
			a.place.end(a.size)
		}
		a.closeFile()
		if a.pool != nil && !a.isTheirs() {
			a.pool.returned(a)
		}
		return
	}
	seenBy := d.devices
	if a.pool != nil {
		seenBy = a.seenBy
		if !a.isTheirs() {
			a.pool.returned(a)
		}
	}
	for _, dev := range seenBy {
		removeHost(dev.memory, uintptr(a.base), a.size, a.readOnly)
		dev.memory.Forget(a.base)
	}
	if a.kind != memRegistered { // that still belongs to the host
		d.check.bury(a)
	}
	if a.mapping != nil {
		unmap(a.mapping)
	}
	if a.place != nil {
		a.place.end(a.size)
	}
}

// closeFile lets go of the file that memory of other processes or APIs is in.
func (a *allocation) closeFile() {
	if a.place != nil {
		a.place.use.end()
	}
	if a.external != nil {
		a.external.end()
	}
}

func (d *simulator) CuMemGetInfo() (free, total uint64, r driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, 0, r
	}
	free, total = c.dev.memory.Info()
	slack := uint64(max(c.dev.poolSlack.Load(), 0))
	return free - min(free, slack), total, r
}

func (d *simulator) CuMemAlloc(size uint64) (driver.CUdeviceptr, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.behindLaunches()
	if size == 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	a := &allocation{kind: memDevice}
	if r := d.allocate(c, size, a); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return driver.CUdeviceptr(a.base), driver.CUDA_SUCCESS
}

// CuMemFree frees device or managed memory. As with CUDA, it first waits for
// the context's work, but not for memory that came from a pool.
func (d *simulator) CuMemFree(p driver.CUdeviceptr) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if p == 0 {
		return driver.CUDA_SUCCESS
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	a := d.space.start(p)
	if a == nil || a.kind == memPinned && a.pool == nil || a.kind == memRegistered {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if a.kind == memGraph {
		if !a.graph.setLive(false) {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		(&graphFreeWork{a.graph}).run(nil)
		return a.ctx.result()
	}
	if a.place != nil && a.place.pool.imported {
		defer d.enterPoolChange()()
	}
	if !d.give(a, "cuMemFree") {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if a.pool == nil {
		a.ctx.drain()
	}
	d.release(a, "cuMemFree")
	return a.ctx.result()
}

func (d *simulator) CuMemHostAlloc(size uint64, flags uint32) (uintptr, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	const known = driver.CU_MEMHOSTALLOC_PORTABLE | driver.CU_MEMHOSTALLOC_DEVICEMAP | 4 // WRITECOMBINED
	if flags&^known != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	d.behindLaunches()
	a, r := d.allocateHost(size, memPinned, memory.HostPinned)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return uintptr(a.base), r
}

func (d *simulator) CuMemAllocManaged(size uint64, flags uint32) (driver.CUdeviceptr, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if flags != driver.CU_MEM_ATTACH_GLOBAL && flags != 2 { // 2: CU_MEM_ATTACH_HOST
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	a, r := d.allocateHost(size, memManaged, memory.HostManaged)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return driver.CUdeviceptr(a.base), r
}

// allocateHost maps host memory that every device can touch at its own address.
func (d *simulator) allocateHost(size uint64, kind memoryKind, hostKind memory.HostKind) (*allocation, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if size == 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	mapping, ok := mapHost(size)
	if !ok {
		return nil, driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	a := &allocation{
		base: uint64(addressOf(mapping)), size: size, kind: kind, id: bufferCount.Add(1), ctx: c, mapping: mapping,
		site: d.check.site(allocators[kind]),
	}
	if kind == memManaged {
		a.advised = newAdvised(driver.CUmemLocation{})
	}
	for _, dev := range d.devices {
		dev.memory.AddHost(uintptr(a.base), size, hostKind)
	}
	d.space.add(a)
	if d.cameTooLate(a) {
		return nil, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	return a, driver.CUDA_SUCCESS
}

func (d *simulator) CuMemFreeHost(host uintptr) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	a := d.space.start(driver.CUdeviceptr(host))
	if a == nil || a.kind != memPinned || a.pool != nil || !d.give(a, "cuMemFreeHost") {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	a.ctx.drain()
	d.release(a, "cuMemFreeHost")
	return a.ctx.result()
}

// AllowHost lets kernels access pageable memory, unless the devices are
// configured not to read it.
func (d *simulator) AllowHost(p uintptr, size uint64, readOnly bool) {
	if !d.config.pageable || size == 0 {
		return
	}
	for _, dev := range d.devices {
		if readOnly {
			dev.memory.AddReadOnly(p, size, memory.HostPageable)
		} else {
			dev.memory.AddHost(p, size, memory.HostPageable)
		}
	}
}

// DisallowHost undoes one AllowHost.
func (d *simulator) DisallowHost(p uintptr, size uint64, readOnly bool) {
	if !d.config.pageable || size == 0 {
		return
	}
	for _, dev := range d.devices {
		removeHost(dev.memory, p, size, readOnly)
	}
}

func removeHost(m *memory.Memory, p uintptr, size uint64, readOnly bool) {
	if readOnly {
		m.RemoveReadOnly(p, size)
	} else {
		m.RemoveHost(p, size)
	}
}

func (d *simulator) CuMemGetAddressRange(p driver.CUdeviceptr) (driver.CUdeviceptr, uint64, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, 0, r
	}
	a := d.space.find(uint64(p))
	if a != nil && a.isReserved() {
		return 0, 0, driver.CUDA_ERROR_NOT_FOUND
	}
	if a != nil {
		return driver.CUdeviceptr(a.base), a.size, driver.CUDA_SUCCESS
	}
	if isSimulated(uint64(p)) { // a module's variable
		if m := d.memoryOf(uint64(p)); m != nil {
			base, size, _, _ := m.Range(uint64(p))
			return driver.CUdeviceptr(base), size, driver.CUDA_SUCCESS
		}
	}
	return 0, 0, driver.CUDA_ERROR_NOT_FOUND
}
