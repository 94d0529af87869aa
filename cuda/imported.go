// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// imports are what a driver has imported of other processes. NVIDIA's driver,
// 580, returns the same handle for the same pool and the same address for the same
// memory each time, whichever import of its pool it is imported through. One
// cuMemFree ends that for all, and a pool is not destroyed while memory of it is
// imported. So here everything is imported once and counted: a pool by its number
// or else its handle, memory by its address.
type imports struct {
	mu      sync.Mutex
	pools   map[poolKey]*importedPool            // guarded by mu
	handles map[driver.CUmemoryPool]*handleCount // guarded by mu; of all devices
	memory  map[uint64]*imported                 // guarded by mu; by address
}

// handleCount is one handle of the driver: it is destroyed as often as it was
// returned, once no importedPool has it.
type handleCount struct{ returned, holders int }

// add counts an importedPool with the handle that it was returned.
//
// Preconditions: mu is held.
func (all *imports) add(p *importedPool) {
	n := all.handles[p.pool]
	if n == nil {
		n = &handleCount{}
		if all.handles == nil {
			all.handles = map[driver.CUmemoryPool]*handleCount{}
		}
		all.handles[p.pool] = n
		p.ctx.drv.live.pools.Add(1)
	}
	n.returned++
	n.holders++
}

// remove undoes add. It returns how often the handle is to be destroyed now.
//
// Preconditions: mu is held.
func (all *imports) remove(p *importedPool) (times int) {
	if p.lessee != nil {
		if key := (poolKey{p.ctx, p.lessee.id}); all.pools[key] == p {
			delete(all.pools, key)
		}
	}
	n := all.handles[p.pool]
	if n.holders--; n.holders > 0 {
		return 0
	}
	delete(all.handles, p.pool)
	return n.returned
}

type poolKey struct {
	ctx *Context
	id  PoolID
}

// importedPool is a pool of another process.
type importedPool struct {
	ctx    *Context
	kind   MemoryKind // DeviceMemory or PinnedMemory
	pool   driver.CUmemoryPool
	lessee *lessee // nil without leases
	held   refs    // by each ImportedMemoryResource until it is closed, each allocation and each import

	memory map[importKey]*imported // guarded by imports.mu
}

// importKey says which memory of a pool it is: its lease, which it has alone, or
// what the driver says of it.
type importKey struct {
	slot int64
	data [SharedBytes]byte
}

func (p *importedPool) key(e PointerExport) importKey {
	if p.lessee != nil {
		return importKey{slot: e.Slot}
	}
	return importKey{data: e.Data}
}

// imported is memory of another process, freed with its last Buffer.
type imported struct {
	ctx        *Context
	base, size uint64
	data       [SharedBytes]byte // what the driver says of it
	ways       []importedWay     // guarded by imports.mu
	count      int               // guarded by imports.mu; its Buffers
	freed      bool              // guarded by imports.mu
}

// importedWay is how memory was imported: it has a lease in each pool, and holds
// the pool.
type importedWay struct {
	pool *importedPool
	key  importKey
}

// importPool imports a pool, unless that was done. It takes over the lessee.
func (c *Context) importPool(kind MemoryKind, fd int, l *lessee) (*importedPool, error) {
	all := &c.drv.imports
	all.mu.Lock()
	defer all.mu.Unlock()
	if l != nil {
		if p := all.pools[poolKey{c, l.id}]; p != nil && p.held.retain() {
			_ = l.file.Close()
			return p, nil
		}
	}
	p := &importedPool{ctx: c, kind: kind, lessee: l, memory: map[importKey]*imported{}}
	if err := p.open(fd); err != nil {
		p.closeLeases()
		return nil, err
	}
	all.add(p)
	p.held.init()
	if l != nil {
		if all.pools == nil {
			all.pools = map[poolKey]*importedPool{}
		}
		all.pools[poolKey{c, l.id}] = p
	}
	return p, nil
}

// open imports the pool into the driver. It does not inherit who may access host
// memory.
func (p *importedPool) open(fd int) error {
	var access []driver.CUmemAccessDesc
	if p.kind == PinnedMemory {
		var err error
		if access, err = p.ctx.drv.allDevices(HostNUMAMemoryPoolsSupported); err != nil {
			return err
		}
	}
	pool, err := call1(p.ctx, "cuMemPoolImportFromShareableHandle", func(api driver.API) (driver.CUmemoryPool, driver.CUresult) {
		return api.CuMemPoolImportFromShareableHandle(int32(fd), driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	})
	if err != nil || access == nil {
		p.pool = pool
		return err
	}
	_, err = call1(p.ctx, "cuMemPoolSetAccess", func(api driver.API) (none, driver.CUresult) {
		defer p.ctx.drv.relax()()
		return none{}, api.CuMemPoolSetAccess(pool, access)
	})
	if err != nil {
		p.ctx.drv.live.pools.Add(1)
		p.ctx.dispose("cuMemPoolDestroy", "imported memory pool", nil, &p.ctx.drv.live.pools, func(api driver.API) driver.CUresult {
			return api.CuMemPoolDestroy(pool)
		}, nil)
	}
	p.pool = pool
	return err
}

// release lets go of the pool, and destroys it with the last holder. Meanwhile it
// may be imported anew.
func (p *importedPool) release() {
	if !p.held.release() {
		return
	}
	all := &p.ctx.drv.imports
	all.mu.Lock() // across the call: a thread that imports the pool meanwhile gets a handle that is not destroyed
	defer all.mu.Unlock()
	if times := all.remove(p); times > 0 {
		p.ctx.dispose("cuMemPoolDestroy", "imported memory pool", nil, &p.ctx.drv.live.pools, func(api driver.API) (r driver.CUresult) {
			for range times {
				r = max(r, api.CuMemPoolDestroy(p.pool))
			}
			return r
		}, nil)
	}
	p.closeLeases()
}

func (p *importedPool) closeLeases() {
	if p.lessee != nil {
		_ = p.lessee.file.Close()
	}
}

func (p *importedPool) lease(slot int64) error {
	if p.lessee == nil {
		return nil
	}
	err := p.lessee.take(slot)
	switch {
	case errors.Is(err, errFreed):
		return badValue("descriptor", "names memory that is gone: %v", err)
	case errors.Is(err, errNoSlot):
		return badValue("descriptor", "has slot %d: %v", slot, err)
	}
	return err
}

func (p *importedPool) endLease(slot int64) {
	if p.lessee != nil {
		p.lessee.giveBack(slot)
	}
}

// borrow imports memory, unless that was done and it is not freed yet.
//
// Preconditions: the caller holds p.
func (p *importedPool) borrow(e PointerExport) (*imported, error) {
	all := &p.ctx.drv.imports
	all.mu.Lock()
	defer all.mu.Unlock()
	it := p.memory[p.key(e)]
	if it == nil {
		if err := p.lease(e.Slot); err != nil {
			return nil, err
		}
		var err error
		if it, err = p.importPointer(e); err != nil {
			p.endLease(e.Slot)
			return nil, err
		}
		p.held.retain()
		p.memory[p.key(e)] = it
		it.ways = append(it.ways, importedWay{p, p.key(e)})
	} else if it.size != e.Size {
		return nil, it.disagrees(e)
	}
	it.count++
	return it, nil
}

func (it *imported) disagrees(e PointerExport) error {
	return badValue("descriptor", "says that the memory has %d bytes, and an earlier one said %d", e.Size, it.size)
}

// as returns it for another import of the same memory.
func (it *imported) as(c *Context, e PointerExport) (*imported, error) {
	if it.ctx != c { // only host memory has no device of its own
		return nil, badValue("descriptor", "names memory that is imported on %v already: import it there", it.ctx.dev)
	}
	if it.size != e.Size {
		return nil, it.disagrees(e)
	}
	return it, nil
}

// ofHandle returns memory that was imported through some import of a pool, or nil:
// NVIDIA's driver, 580, imports host memory once.
//
// Preconditions: mu is held.
func (all *imports) ofHandle(pool driver.CUmemoryPool, data [SharedBytes]byte) *imported {
	for _, it := range all.memory {
		if it.data == data && !it.ctx.IsLost() && slices.ContainsFunc(it.ways, func(w importedWay) bool { return w.pool.pool == pool }) {
			return it
		}
	}
	return nil
}

// importPointer returns what is at the address at which the driver imports memory.
//
// Preconditions: imports.mu is held.
func (p *importedPool) importPointer(e PointerExport) (*imported, error) {
	c := p.ctx
	if it := c.drv.imports.ofHandle(p.pool, e.Data); it != nil {
		return it.as(c, e)
	}
	leave, err := c.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer leave()
	ptr, r := c.drv.api.CuMemPoolImportPointer(p.pool, &driver.CUmemPoolPtrExportData{Reserved: e.Data})
	if r != driver.CUDA_SUCCESS {
		return nil, c.fail("cuMemPoolImportPointer", r, fmt.Sprintf("%d bytes that another process shares: is it of this pool, and not freed?", e.Size))
	}
	base := uint64(ptr)
	if it := c.drv.imports.memory[base]; it != nil && !it.ctx.IsLost() { // through another import of the pool
		return it.as(c, e)
	}
	if err := p.holds(base, e.Size); err != nil {
		if r := c.drv.api.CuMemFree(ptr); r != driver.CUDA_SUCCESS {
			c.drv.warn("imported memory", c.fail("cuMemFree", r, ""))
		}
		return nil, err
	}
	it := &imported{ctx: c, base: base, size: e.Size, data: e.Data}
	if c.drv.imports.memory == nil {
		c.drv.imports.memory = map[uint64]*imported{}
	}
	c.drv.imports.memory[base] = it
	return it, nil
}

// holds asks the driver whether imported memory has as many bytes as who exported
// it says, and whether the host can read what it is to read.
//
// Preconditions: the context is current.
func (p *importedPool) holds(ptr, size uint64) error {
	c := p.ctx
	kind, r := c.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, driver.CUdeviceptr(ptr))
	if r != driver.CUDA_SUCCESS {
		return c.fail("cuPointerGetAttribute", r, fmt.Sprintf("%d bytes that another process shares", size))
	}
	if isHost := driver.CUmemorytype(kind) == driver.CU_MEMORYTYPE_HOST; isHost != (p.kind == PinnedMemory) {
		return badValue("descriptor", "names memory of another kind: the pool was imported as one of %v memory", p.kind)
	}
	base, n, r := c.drv.api.CuMemGetAddressRange(driver.CUdeviceptr(ptr))
	if r != driver.CUDA_SUCCESS {
		return c.fail("cuMemGetAddressRange", r, fmt.Sprintf("%d bytes that another process shares", size))
	}
	if before := ptr - uint64(base); size > n-before {
		return badValue("descriptor", "says that the memory has %d bytes, and the driver that it has %d", size, n-before)
	}
	return nil
}

// forget ends an import. The caller then releases the pools of the ways that it
// returns.
//
// Preconditions: imports.mu is held.
func (all *imports) forget(it *imported) []importedWay {
	it.freed = true
	if all.memory[it.base] == it { // not if a reset took it, and it was imported anew
		delete(all.memory, it.base)
	}
	for _, w := range it.ways {
		delete(w.pool.memory, w.key)
		w.pool.endLease(w.key.slot)
	}
	return it.ways
}

// An ImportedMemoryResource is a pool of another process. It allocates nothing;
// [ImportedMemoryResource.Import] makes Buffers over what the other process has
// allocated. Several are of one pool, if it was imported several times.
type ImportedMemoryResource struct {
	*importedPool
	uses uses
}

// ImportPool imports a pool of another process, of [DeviceMemory] or of
// [PinnedMemory]. d has to be the same device, or for pinned memory any: streams of
// d then order its release, and every device with such pools can access it. It
// leaves the descriptors of [DeviceMemoryResource.Export] to the
// caller; leases may be -1 for a pool of another library. It calls
// cuMemPoolImportFromShareableHandle, and cuMemPoolSetAccess for pinned memory,
// unless the pool of these leases is imported already.
//
// Lifetime: the caller must Close it.
//
// Errors: an [*Error] if the descriptor is not that of a pool; an [*ArgumentError]
// if its leases say that its memory is of another kind.
func ImportPool(d *Device, kind MemoryKind, pool, leases int) (*ImportedMemoryResource, error) {
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	var l *lessee
	if leases >= 0 {
		if l, err = newLessee(leases); err != nil {
			return nil, badValue("handle", "cannot be imported: %v", err)
		}
		if l.kind != kind {
			_ = l.file.Close()
			return nil, badValue("handle", "is that of a pool of %v memory, and imported as one of %v memory", l.kind, kind)
		}
	}
	p, err := c.importPool(kind, pool, l)
	if err != nil {
		return nil, err
	}
	return &ImportedMemoryResource{importedPool: p}, nil
}

// ShareID is the pool's id in all processes; zero if it is not known.
func (mr *ImportedMemoryResource) ShareID() PoolID {
	if mr.lessee == nil {
		return PoolID{}
	}
	return mr.lessee.id
}

// Kind returns where the pool's memory is.
func (mr *ImportedMemoryResource) Kind() MemoryKind { return mr.kind }

// Device returns the device that the pool was imported into.
func (mr *ImportedMemoryResource) Device() *Device { return mr.ctx.dev }

// IsClosed reports whether Close was called.
func (mr *ImportedMemoryResource) IsClosed() bool { return mr.uses.closed() }

// Allocate fails: only the process that created the pool allocates from it.
func (mr *ImportedMemoryResource) Allocate(uint64, *Stream) (*Buffer, error) {
	return nil, badType("", "an imported pool allocates nothing: only the process that created it can")
}

// Import returns a Buffer over memory that another process has allocated and
// exported. The caller orders its work after that allocation and what is to be
// read, for instance with an event that processes share. It calls
// cuMemPoolImportPointer, cuPointerGetAttribute and cuMemGetAddressRange, unless the memory is imported
// already.
//
// The last holder's release waits for s and unmaps the memory; work in other
// streams must have completed.
//
// Errors: [ErrClosed]; an [*ArgumentError] if the other process has freed the
// memory, or if it has fewer bytes than e says; an [*Error] if e does not belong
// to the pool.
func (mr *ImportedMemoryResource) Import(e PointerExport, s *Stream) (*Buffer, error) {
	if s == nil {
		return nil, badType("stream", "is required: imported memory is released when a stream has completed")
	}
	if s.ctx != mr.ctx {
		return nil, badValue("stream", "must be of %v, as the pool is, got one of %v", mr.ctx.dev, s.ctx.dev)
	}
	if mr.ctx.IsLost() {
		return nil, mr.ctx.lostError("memory resource")
	}
	if !mr.uses.begin() {
		return nil, &ClosedError{"memory resource"}
	}
	defer mr.end()
	mr.ctx.Drain()
	a := &allocation{ctx: mr.ctx, kind: mr.kind, size: e.Size, resource: mr}
	if mr.lessee != nil && mr.lessee.id != e.Pool {
		return nil, badValue("descriptor", "is of memory in another pool")
	}
	if err := a.useStream(s); err != nil {
		return nil, err
	}
	it, err := mr.borrow(e)
	if err != nil {
		unuse(s)
		return nil, err
	}
	mr.held.retain() // it is open: it is in use
	a.base = it.base
	a.free = func(a *allocation, s *Stream) { mr.free(a, s, it) }
	mr.ctx.drv.live.allocations.Add(1)
	return newBuffer(a), nil
}

// free gives a back once its stream has completed. With the last Buffer over the
// memory it frees that here, and then lets the process that allocated it free it.
// cuMemFree returns when that is done; a free in the order of a stream would have
// to be waited for.
func (mr *ImportedMemoryResource) free(a *allocation, s *Stream, it *imported) {
	on, all := s.OnAnyThread(), &a.ctx.drv.imports
	counted := false        // guarded by all.mu; a failed call is tried again
	var ended []importedWay // likewise
	a.ctx.dispose("cuMemFree", a.what(), on.capturing, &a.ctx.drv.live.allocations, func(api driver.API) driver.CUresult {
		if !a.idle.Load() && !hasWaited(api.CuStreamSynchronize(on.h)) {
			return notYet
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		if !counted {
			it.count--
			counted = true
		}
		if it.count > 0 || it.freed { // also if it was imported again since the last attempt
			return driver.CUDA_SUCCESS
		}
		r := api.CuMemFree(driver.CUdeviceptr(it.base))
		if r == driver.CUDA_SUCCESS {
			ended = all.forget(it)
		}
		return r
	}, func() {
		all.mu.Lock()
		if !counted {
			it.count--
		}
		if it.count == 0 && !it.freed { // its context is lost, and the memory with it
			ended = all.forget(it)
		}
		all.mu.Unlock()
		for _, w := range ended {
			w.pool.release()
		}
		unuse(s)
		mr.release()
	})
}

func (mr *ImportedMemoryResource) end() {
	if mr.uses.end() {
		mr.release()
	}
}

// Close is documented at [MemoryResource]. It calls cuMemPoolDestroy once the last
// Buffer and the last resource of the pool are closed.
func (mr *ImportedMemoryResource) Close() error {
	if mr.uses.close() {
		mr.release()
	}
	return nil
}
