// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"

	"github.com/cudago/cudago/cuda/internal/driver"
)

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
		if l, err = newLessee(leases); errors.Is(err, errNoLeases) {
			return nil, badValue("handle", "cannot be imported: %v", err)
		}
		if err != nil {
			return nil, systemError("cuMemPoolImportFromShareableHandle", "opening the file of leases", err)
		}
		if l.kind != kind {
			l.close()
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
	a.ctx.dispose("cuMemFree", a.what(), nil, &a.ctx.drv.live.allocations, func(api driver.API) driver.CUresult {
		if r := a.unused(on); r != driver.CUDA_SUCCESS {
			return r
		}
		return a.ctx.drv.waits.tryApart(func() driver.CUresult {
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
		})
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
