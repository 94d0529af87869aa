// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
type handleCount struct {
	ctx      *Context // of the first import; a reset ends the handle
	returned int      // guarded by imports.mu
	holders  int      // guarded by imports.mu
}

// add counts an importedPool with the handle that it was returned.
//
// Preconditions: mu is held.
func (all *imports) add(p *importedPool) {
	n := all.handles[p.pool]
	if n == nil || n.ctx.IsLost() {
		n = &handleCount{ctx: p.ctx}
		if all.handles == nil {
			all.handles = map[driver.CUmemoryPool]*handleCount{}
		}
		all.handles[p.pool] = n
	}
	n.returned++
	n.holders++
	p.count = n
	p.ctx.drv.live.pools.Add(1)
}

// remove undoes add, unless that is done. It reports whether the handle has to go.
//
// Preconditions: mu is held.
func (all *imports) remove(p *importedPool) (last bool) {
	if !p.removed {
		p.removed = true
		p.count.holders--
	}
	return p.count.holders == 0
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
	count  *handleCount // of pool
	lessee *lessee      // nil without leases
	held   refs         // by each ImportedMemoryResource until it is closed, each allocation and each import

	memory  map[importKey]*imported // guarded by imports.mu
	removed bool                    // guarded by imports.mu; it counts no more
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
	var p *importedPool
	var err error
	c.drv.waits.apart(func() { p, err = c.importPoolApart(kind, fd, l) })
	if err == nil {
		return p, nil
	}
	if p.count != nil { // nobody was given access to it
		p.dispose()
	}
	p.closeLeases()
	return nil, err
}

// importPoolApart is importPool; with an error it may have a pool without access.
//
// Preconditions: waits are excluded.
func (c *Context) importPoolApart(kind MemoryKind, fd int, l *lessee) (*importedPool, error) {
	all := &c.drv.imports
	all.mu.Lock()
	defer all.mu.Unlock()
	if l != nil {
		if p := all.pools[poolKey{c, l.id}]; p != nil && p.held.retain() {
			l.close()
			return p, nil
		}
	}
	p := &importedPool{ctx: c, kind: kind, lessee: l, memory: map[importKey]*imported{}}
	err := p.open(fd)
	if p.pool != 0 {
		all.add(p)
	}
	if err != nil {
		return p, err
	}
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
	var err error
	if p.kind == PinnedMemory {
		if access, err = p.ctx.drv.allDevices(HostNUMAMemoryPoolsSupported); err != nil {
			return err
		}
	}
	p.pool, err = call1(p.ctx, "cuMemPoolImportFromShareableHandle", func(api driver.API) (driver.CUmemoryPool, driver.CUresult) {
		return api.CuMemPoolImportFromShareableHandle(int32(fd), driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	})
	if err != nil || access == nil {
		return err
	}
	_, err = call1(p.ctx, "cuMemPoolSetAccess", func(api driver.API) (none, driver.CUresult) {
		defer p.ctx.drv.relax()()
		return none{}, api.CuMemPoolSetAccess(p.pool, access)
	})
	return err
}

// release lets go of the pool, and destroys it with the last holder.
func (p *importedPool) release() {
	if !p.held.release() {
		return
	}
	if p.lessee != nil {
		p.ctx.drv.imports.unname(poolKey{p.ctx, p.lessee.id}, p)
	}
	p.dispose()
	p.closeLeases()
}

// unname has the pool imported anew from now on.
func (all *imports) unname(key poolKey, p *importedPool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.pools[key] == p {
		delete(all.pools, key)
	}
}

// dispose destroys the pool as often as it was imported, unless it was imported
// anew when that can be done: then that import will. Unlike those of [poolParking]
// such pools go: nobody can allocate from them.
func (p *importedPool) dispose() {
	drv := p.ctx.drv
	all := &drv.imports
	p.ctx.dispose("cuMemPoolDestroy", "imported memory pool", nil, &drv.live.pools, func(api driver.API) driver.CUresult {
		return drv.waits.tryApart(func() driver.CUresult {
			all.mu.Lock()
			defer all.mu.Unlock()
			if !all.remove(p) {
				return driver.CUDA_SUCCESS
			}
			for ; p.count.returned > 0; p.count.returned-- {
				if r := api.CuMemPoolDestroy(p.pool); r != driver.CUDA_SUCCESS {
					return r
				}
			}
			return driver.CUDA_SUCCESS
		})
	}, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.remove(p) && all.handles[p.pool] == p.count {
			delete(all.handles, p.pool)
		}
	})
}

func (p *importedPool) closeLeases() {
	if p.lessee != nil {
		p.lessee.close()
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
func (p *importedPool) borrow(e PointerExport) (it *imported, err error) {
	all := &p.ctx.drv.imports
	all.mu.Lock()
	it, err = p.known(e)
	all.mu.Unlock()
	if it != nil || err != nil {
		return it, err
	}
	once := func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if it, err = p.known(e); it == nil && err == nil {
			it, err = p.add(e)
		}
	}
	p.ctx.drv.waits.apart(once)
	for end := time.Now().Add(busyPatience); errors.Is(err, errBusy) && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // with nothing held
		p.ctx.drv.waits.apart(once)
	}
	if errors.Is(err, errBusy) {
		err = badValue("descriptor", "names memory that cannot be imported now: %v", err)
	}
	return it, err
}

// busyPatience is how long an import waits for another process that tries to free
// the memory. That takes microseconds, a reset as long as the device has work.
const busyPatience = 10 * time.Second

// known counts a Buffer over memory that is imported already, else it returns nil.
//
// Preconditions: imports.mu is held.
func (p *importedPool) known(e PointerExport) (*imported, error) {
	it := p.memory[p.key(e)]
	if it == nil {
		return nil, nil
	}
	if it.size != e.Size {
		return nil, it.disagrees(e)
	}
	it.count++
	return it, nil
}

// add imports memory for one Buffer.
//
// Preconditions: imports.mu is held, and waits are excluded.
func (p *importedPool) add(e PointerExport) (*imported, error) {
	if err := p.lease(e.Slot); err != nil {
		return nil, err
	}
	it, err := p.importPointer(e)
	if err != nil {
		p.endLease(e.Slot)
		return nil, err
	}
	p.held.retain()
	p.memory[p.key(e)] = it
	it.ways = append(it.ways, importedWay{p, p.key(e)})
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
