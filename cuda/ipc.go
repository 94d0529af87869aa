// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// SharedBytes is the length of what the driver says of a shared allocation or
// event.
const SharedBytes = 64

// A PointerExport names an allocation of a pool to other processes.
type PointerExport struct {
	Data [SharedBytes]byte // the driver's
	Size uint64            // bytes of the whole allocation
	Slot int64             // of its lease
	Pool PoolID
}

// IsShareable reports whether other processes can import the pool.
func (mr *DeviceMemoryResource) IsShareable() bool { return mr.lessor != nil }

// ShareID is the pool's id in all processes; zero if it is not for sharing.
func (mr *DeviceMemoryResource) ShareID() PoolID {
	if mr.lessor == nil {
		return PoolID{}
	}
	return mr.lessor.id
}

// share prepares for a pool that other processes can import.
func (mr *DeviceMemoryResource) share(props *driver.CUmemPoolProps) error {
	const op = "cuMemPoolCreate"
	err := mr.ctx.dev.need(MemPoolSupportedHandleTypes, op, "shares no memory pools with other processes")
	if err != nil {
		return err
	}
	props.HandleTypes = int32(driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
	if mr.lessor, err = newLessor(); err != nil {
		return &Error{Op: op, Result: ErrorNotSupported, Detail: fmt.Sprintf("sharing needs a file in memory: %v", err)}
	}
	return nil
}

func (mr *DeviceMemoryResource) needShareable() error {
	if mr.lessor == nil {
		return badValue("", "this pool was not created for sharing with other processes")
	}
	return nil
}

// Export returns two new file descriptors, the caller's to close, from which
// [ImportPool] of another process makes the same pool. It calls
// cuMemPoolExportToShareableHandle.
//
// Errors: an [*ArgumentError] if the pool is not for sharing; [ErrClosed].
func (mr *DeviceMemoryResource) Export() (pool, leases int, err error) {
	if err := mr.needShareable(); err != nil {
		return -1, -1, err
	}
	fd, err := poolCall(mr, "cuMemPoolExportToShareableHandle", func(api driver.API, pool driver.CUmemoryPool) (int32, driver.CUresult) {
		return api.CuMemPoolExportToShareableHandle(pool, driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	})
	if err != nil {
		return -1, -1, err
	}
	syscall.CloseOnExec(int(fd))
	if leases, err = memfd.Duplicate(mr.lessor.file); err != nil {
		_ = syscall.Close(int(fd))
		return -1, -1, err
	}
	return int(fd), leases, nil
}

// closeLeases closes the file when the pool is gone. Duplicates stay open.
func (mr *DeviceMemoryResource) closeLeases() {
	if mr.lessor != nil {
		_ = mr.lessor.file.Close()
	}
}

// ExportPointer names an allocation of the pool, which base is the start of, to
// other processes. As long as one of them has imported it, it is not freed. It
// calls cuMemPoolExportPointer.
//
// The caller holds the allocation.
//
// Errors: as for Export.
func (mr *DeviceMemoryResource) ExportPointer(base, size uint64) (PointerExport, error) {
	if err := mr.needShareable(); err != nil {
		return PointerExport{}, err
	}
	data, err := mr.exportPointer(base)
	// NVIDIA's driver, 580, refused memory that was allocated just before.
	if errors.Is(err, ErrorInvalidValue) && mr.ctx.Synchronize() == nil {
		data, err = mr.exportPointer(base)
	}
	if err != nil {
		return PointerExport{}, err
	}
	slot, err := mr.lessor.slot(base)
	return PointerExport{Data: data.Reserved, Size: size, Slot: slot, Pool: mr.lessor.id}, err
}

func (mr *DeviceMemoryResource) exportPointer(base uint64) (driver.CUmemPoolPtrExportData, error) {
	return poolCall(mr, "cuMemPoolExportPointer", func(api driver.API, _ driver.CUmemoryPool) (driver.CUmemPoolPtrExportData, driver.CUresult) {
		return api.CuMemPoolExportPointer(driver.CUdeviceptr(base))
	})
}

// MayFree reports whether the allocation that starts at base can be freed, because
// no other process has imported it. Then none can any more: for C code that frees
// memory itself.
func (mr *DeviceMemoryResource) MayFree(base uint64) bool {
	return mr.lessor == nil || mr.lessor.end(base)
}

// An ImportedMemoryResource is a pool of another process. It allocates nothing;
// [ImportedMemoryResource.Import] makes Buffers over what the other process has
// allocated.
type ImportedMemoryResource struct {
	ctx    *Context
	pool   driver.CUmemoryPool
	lessee *lessee // nil without leases
	uses   uses
	held   refs // until it is closed, by the caller; and by each allocation

	mu      sync.Mutex
	imports map[importKey]*imported // guarded by mu
}

// importKey says which memory it is: its lease, which it has alone, or what the
// driver says of it.
type importKey struct {
	slot int64
	data [SharedBytes]byte
}

func (mr *ImportedMemoryResource) key(e PointerExport) importKey {
	if mr.lessee != nil {
		return importKey{slot: e.Slot}
	}
	return importKey{data: e.Data}
}

// imported is memory of another process. NVIDIA's driver, 580, returns the same
// address for the same memory each time, and one cuMemFree ends that: so it is
// imported once, and freed with its last Buffer.
type imported struct {
	base  uint64
	size  uint64
	count int  // guarded by ImportedMemoryResource.mu; its Buffers
	freed bool // guarded likewise
}

// ImportPool imports a pool of another process into d, which has to be the same
// device. It leaves the descriptors of [DeviceMemoryResource.Export] to the
// caller; leases may be -1 for a pool of another library. It calls
// cuMemPoolImportFromShareableHandle.
//
// Lifetime: the caller must Close it.
//
// Errors: an [*Error] if the descriptor is not that of a pool.
func ImportPool(d *Device, pool, leases int) (*ImportedMemoryResource, error) {
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	mr := &ImportedMemoryResource{ctx: c, imports: map[importKey]*imported{}}
	if leases >= 0 {
		if mr.lessee, err = newLessee(leases); err != nil {
			return nil, badValue("handle", "cannot be imported: %v", err)
		}
	}
	mr.pool, err = call1(c, "cuMemPoolImportFromShareableHandle", func(api driver.API) (driver.CUmemoryPool, driver.CUresult) {
		return api.CuMemPoolImportFromShareableHandle(int32(pool), driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	})
	if err != nil {
		mr.closeLeases()
		return nil, err
	}
	c.drv.live.pools.Add(1)
	mr.held.init()
	return mr, nil
}

// ShareID is the pool's id in all processes; zero if it is not known.
func (mr *ImportedMemoryResource) ShareID() PoolID {
	if mr.lessee == nil {
		return PoolID{}
	}
	return mr.lessee.id
}

// Kind returns [DeviceMemory].
func (mr *ImportedMemoryResource) Kind() MemoryKind { return DeviceMemory }

// Device returns the device whose memory the pool holds.
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
// cuMemPoolImportPointer.
//
// The last holder's release waits for s and unmaps the memory; work in other
// streams must have completed.
//
// Errors: [ErrClosed]; an [*ArgumentError] if the other process has freed the
// memory; an [*Error] if e does not belong to the pool.
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
	a := &allocation{ctx: mr.ctx, kind: DeviceMemory, size: e.Size, resource: mr}
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
	a.free = func(a *allocation, s *Stream) { mr.free(a, s, e, it) }
	mr.ctx.drv.live.allocations.Add(1)
	return newBuffer(a), nil
}

// borrow imports memory, unless that was done and it is not freed yet.
func (mr *ImportedMemoryResource) borrow(e PointerExport) (*imported, error) {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	if it := mr.imports[mr.key(e)]; it != nil {
		if it.size != e.Size {
			return nil, badValue("descriptor", "says that the memory has %d bytes, and an earlier one said %d", e.Size, it.size)
		}
		it.count++
		return it, nil
	}
	if err := mr.lease(e.Slot); err != nil {
		return nil, err
	}
	base, err := mr.importPointer(e)
	if err != nil {
		mr.endLease(e.Slot)
		return nil, err
	}
	it := &imported{base: base, size: e.Size, count: 1}
	mr.imports[mr.key(e)] = it
	return it, nil
}

func (mr *ImportedMemoryResource) importPointer(e PointerExport) (uint64, error) {
	const op = "cuMemPoolImportPointer"
	leave, err := mr.ctx.Enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	restore := mr.ctx.drv.relax()
	defer restore()
	p, r := mr.ctx.drv.api.CuMemPoolImportPointer(mr.pool, &driver.CUmemPoolPtrExportData{Reserved: e.Data})
	if r != driver.CUDA_SUCCESS {
		return 0, mr.ctx.fail(op, r, fmt.Sprintf("%d bytes that another process shares: is it of this pool, and not freed?", e.Size))
	}
	return uint64(p), nil
}

// free gives a back once its stream has completed. With the last Buffer over the
// memory it frees that here, and then lets the process that allocated it free it.
// cuMemFree returns when that is done; a free in the order of a stream would have
// to be waited for.
func (mr *ImportedMemoryResource) free(a *allocation, s *Stream, e PointerExport, it *imported) {
	on := s.anyThread()
	counted := false // guarded by mr.mu; a failed call is tried again
	a.ctx.dispose("cuMemFree", a.what(), on.capturing, &a.ctx.drv.live.allocations, func(api driver.API) driver.CUresult {
		if !a.idle.Load() && !hasWaited(api.CuStreamSynchronize(on.h)) {
			return notYet
		}
		mr.mu.Lock()
		defer mr.mu.Unlock()
		if !counted {
			it.count--
			counted = true
		}
		if it.count > 0 || it.freed { // also if it was imported again since the last attempt
			return driver.CUDA_SUCCESS
		}
		r := api.CuMemFree(driver.CUdeviceptr(it.base))
		if r == driver.CUDA_SUCCESS {
			mr.forget(e, it)
		}
		return r
	}, func() {
		mr.mu.Lock()
		if !counted {
			it.count--
		}
		if it.count == 0 && !it.freed { // its context is lost, and the memory with it
			mr.forget(e, it)
		}
		mr.mu.Unlock()
		unuse(s)
		mr.release()
	})
}

// forget ends an import.
//
// Preconditions: mr.mu is held.
func (mr *ImportedMemoryResource) forget(e PointerExport, it *imported) {
	it.freed = true
	delete(mr.imports, mr.key(e))
	mr.endLease(e.Slot)
}

func (mr *ImportedMemoryResource) lease(slot int64) error {
	if mr.lessee == nil {
		return nil
	}
	err := mr.lessee.take(slot)
	if errors.Is(err, errFreed) {
		return badValue("descriptor", "names memory that is gone: %v", err)
	}
	return err
}

func (mr *ImportedMemoryResource) endLease(slot int64) {
	if mr.lessee != nil {
		mr.lessee.giveBack(slot)
	}
}

func (mr *ImportedMemoryResource) end() {
	if mr.uses.end() {
		mr.release()
	}
}

// Close is documented at [MemoryResource]. It calls cuMemPoolDestroy once the last
// Buffer is closed.
func (mr *ImportedMemoryResource) Close() error {
	if mr.uses.close() {
		mr.release()
	}
	return nil
}

func (mr *ImportedMemoryResource) release() {
	if !mr.held.release() {
		return
	}
	mr.ctx.dispose("cuMemPoolDestroy", "imported memory pool", nil, &mr.ctx.drv.live.pools, func(api driver.API) driver.CUresult {
		return api.CuMemPoolDestroy(mr.pool)
	}, mr.closeLeases)
}

func (mr *ImportedMemoryResource) closeLeases() {
	if mr.lessee != nil {
		_ = mr.lessee.file.Close()
	}
}
