// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// hostPage is the granularity of reserved sizes.
const hostPage = 4096

// virtualSpace is what the process has reserved and mapped. The VM does the
// mapping; CUDA's rules about it are here.
type virtualSpace struct {
	handles table[driver.CUmemGenericAllocationHandle, physical]

	mu       sync.Mutex
	reserved []*memory.Reservation // guarded by mu
	mapped   []*virtualMapping     // guarded by mu; by address
}

// physical is memory that cuMemCreate made, or another process's that was
// imported.
type physical struct {
	dev    *device
	memory *memory.Physical
	file   *os.File // of memory that other processes may import; open as long as the handle is
}

// release ends the handle; mappings keep the memory.
func (p *physical) release() { p.dev.memory.Release(p.memory) }

// virtualMapping is physical memory at an address. Immutable.
type virtualMapping struct {
	base, size uint64
	id         uint64 // CU_POINTER_ATTRIBUTE_BUFFER_ID
	dev        *device
}

// in returns the mappings that together are [addr, addr+size), or nil.
//
// Preconditions: v.mu must be locked.
func (v *virtualSpace) in(addr, size uint64) []*virtualMapping {
	first := v.index(addr)
	at := addr
	for i := first; i < len(v.mapped) && v.mapped[i].base == at && at-addr < size; i++ {
		at += v.mapped[i].size
		if at-addr == size {
			return v.mapped[first : i+1]
		}
	}
	return nil
}

// index is where the first mapping at or after addr is.
//
// Preconditions: v.mu must be locked.
func (v *virtualSpace) index(addr uint64) int {
	return sort.Search(len(v.mapped), func(i int) bool { return v.mapped[i].base >= addr })
}

// free reports whether nothing is mapped in [addr, addr+size).
//
// Preconditions: v.mu must be locked.
func (v *virtualSpace) free(addr, size uint64) bool {
	i := v.index(addr)
	return (i == len(v.mapped) || v.mapped[i].base-addr >= size) && (i == 0 || v.mapped[i-1].base+v.mapped[i-1].size <= addr)
}

// find returns the mapping that contains addr, or nil.
func (v *virtualSpace) find(addr uint64) *virtualMapping {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := sort.Search(len(v.mapped), func(i int) bool { return v.mapped[i].base > addr }) - 1
	if i < 0 || addr-v.mapped[i].base >= v.mapped[i].size {
		return nil
	}
	return v.mapped[i]
}

// close frees the reservations. The devices have been closed, and with them all
// mappings.
func (v *virtualSpace) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.reserved {
		r.Free()
	}
	v.reserved, v.mapped = nil, nil
}

// virtualCall begins each call: they need no context.
func (d *simulator) virtualCall() driver.CUresult {
	if !d.initialized.Load() {
		return driver.CUDA_ERROR_NOT_INITIALIZED
	}
	return d.permitted()
}

// deviceOf checks the properties of physical memory: that of a device, perhaps for
// sharing, with no other extras.
func (d *simulator) deviceOf(prop *driver.CUmemAllocationProp) (*device, driver.CUresult) {
	if prop == nil || prop.Type != driver.CU_MEM_ALLOCATION_TYPE_PINNED || prop.Win32HandleMetaData != 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	if prop.Location.Type != driver.CU_MEM_LOCATION_TYPE_DEVICE ||
		prop.RequestedHandleTypes&^int32(driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 ||
		prop.CompressionType != 0 || prop.GpuDirectRDMACapable != 0 || prop.Usage != 0 {
		return nil, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return d.device(driver.CUdevice(prop.Location.ID))
}

func (d *simulator) CuMemGetAllocationGranularity(prop *driver.CUmemAllocationProp, option driver.CUmemAllocationGranularity_flags) (uint64, driver.CUresult) {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if _, r := d.deviceOf(prop); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if option != driver.CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != driver.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return memory.MappingGranularity, driver.CUDA_SUCCESS
}

// CuMemAddressReserve takes the hint if it is the end of another reservation
// and the range after it is free.
func (d *simulator) CuMemAddressReserve(size, alignment uint64, addr driver.CUdeviceptr, flags uint64) (driver.CUdeviceptr, driver.CUresult) {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if size == 0 || size%hostPage != 0 || uint64(addr)%hostPage != 0 || alignment&(alignment-1) != 0 || flags != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	v := &d.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	var made *memory.Reservation
	for _, r := range v.reserved {
		if r.Base()+r.Size() == uint64(addr) && uint64(addr)%max(alignment, 1) == 0 {
			made = r.Behind(size)
		}
	}
	if made == nil {
		var err error
		if made, err = memory.Reserve(size, alignment); err != nil {
			return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
		}
	}
	v.reserved = append(v.reserved, made)
	return driver.CUdeviceptr(made.Base()), driver.CUDA_SUCCESS
}

func (d *simulator) CuMemAddressFree(p driver.CUdeviceptr, size uint64) driver.CUresult {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	v := &d.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.reserved, func(r *memory.Reservation) bool { return r.Base() == uint64(p) && r.Size() == size })
	if i < 0 || !v.free(uint64(p), size) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	v.reserved[i].Free()
	v.reserved = slices.Delete(v.reserved, i, i+1)
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemCreate(size uint64, prop *driver.CUmemAllocationProp, flags uint64) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	dev, r := d.deviceOf(prop)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if size == 0 || size%memory.MappingGranularity != 0 || flags != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	p := &physical{dev: dev}
	var err error
	if prop.RequestedHandleTypes != 0 {
		err = p.createShared(size)
	} else {
		p.memory, err = dev.memory.Create(size)
	}
	if errors.Is(err, memory.ErrOutOfMemory) {
		return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	if err != nil {
		return 0, driver.CUDA_ERROR_UNKNOWN
	}
	if d.config.full {
		bytes := p.memory.Bytes()
		for i := range bytes {
			bytes[i] = poisonByte
		}
	}
	return d.virtual.handles.add(p), driver.CUDA_SUCCESS
}

func (d *simulator) CuMemRelease(h driver.CUmemGenericAllocationHandle) driver.CUresult {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	p := d.virtual.handles.take(h)
	if p == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	p.release()
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemMap(p driver.CUdeviceptr, size, offset uint64, h driver.CUmemGenericAllocationHandle, flags uint64) driver.CUresult {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	what := d.virtual.handles.get(h)
	if what == nil || size != what.memory.Size() || offset != 0 || flags != 0 || uint64(p)%memory.MappingGranularity != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	v := &d.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.IndexFunc(v.reserved, func(r *memory.Reservation) bool { return r.Contains(uint64(p), size) })
	if i < 0 || !v.free(uint64(p), size) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if err := what.dev.memory.Map(v.reserved[i], uint64(p), what.memory, "cuMemMap"); err != nil {
		return driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	v.mapped = slices.Insert(v.mapped, v.index(uint64(p)), &virtualMapping{
		base: uint64(p), size: size, id: bufferCount.Add(1), dev: what.dev,
	})
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemUnmap(p driver.CUdeviceptr, size uint64) driver.CUresult {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	v := &d.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	whole := v.in(uint64(p), size)
	if whole == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for _, m := range whole {
		m.dev.memory.Unmap(m.base, "cuMemUnmap")
	}
	i := v.index(uint64(p))
	v.mapped = slices.Delete(v.mapped, i, i+len(whole))
	d.check.frees.Add(1)
	return driver.CUDA_SUCCESS
}

// CuMemSetAccess gives devices access to mappings of their own memory and of
// that of others.
func (d *simulator) CuMemSetAccess(p driver.CUdeviceptr, size uint64, desc []driver.CUmemAccessDesc) driver.CUresult {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	v := &d.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	whole := v.in(uint64(p), size)
	if whole == nil || len(desc) == 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for i := range desc {
		if r := d.accessible(&desc[i]); r != driver.CUDA_SUCCESS {
			return r
		}
	}
	for i := range desc {
		who := d.devices[desc[i].Location.ID].memory
		for _, m := range whole {
			m.dev.memory.SetAccess(m.base, m.size, who, desc[i].Flags == driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		}
	}
	return driver.CUDA_SUCCESS
}

// accessible checks one access descriptor.
func (d *simulator) accessible(desc *driver.CUmemAccessDesc) driver.CUresult {
	if desc.Location.Type != driver.CU_MEM_LOCATION_TYPE_DEVICE {
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	if _, r := d.device(driver.CUdevice(desc.Location.ID)); r != driver.CUDA_SUCCESS {
		return r
	}
	switch desc.Flags {
	case driver.CU_MEM_ACCESS_FLAGS_PROT_NONE, driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
		return driver.CUDA_SUCCESS
	case driver.CU_MEM_ACCESS_FLAGS_PROT_READ:
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return driver.CUDA_ERROR_INVALID_VALUE
}
