// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
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
	if mr.lessor, err = newLessor(mr.kind); err != nil {
		return systemError(op, "sharing needs a file in memory", err)
	}
	mr.ctx.lessors.add(mr.lessor)
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
	fd, err := mr.descriptor()
	if err != nil {
		return -1, -1, err
	}
	if leases, err = mr.lessor.export(); err != nil {
		_ = syscall.Close(fd)
		return -1, -1, systemError("cuMemPoolExportToShareableHandle", "opening the file of leases", err)
	}
	return fd, leases, nil
}

// descriptor makes a file descriptor of the pool, the caller's to close.
func (mr *DeviceMemoryResource) descriptor() (int, error) {
	fd, err := poolCall(mr, "cuMemPoolExportToShareableHandle", func(api driver.API, pool driver.CUmemoryPool) (int32, driver.CUresult) {
		return api.CuMemPoolExportToShareableHandle(pool, driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	})
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(int(fd))
	mr.lessor.exported.Store(true)
	return int(fd), nil
}

// closeLeases closes the file when the pool is gone. Duplicates stay open.
func (mr *DeviceMemoryResource) closeLeases() {
	if mr.lessor != nil {
		mr.ctx.lessors.remove(mr.lessor)
		mr.lessor.close()
	}
}

// ExportPointer names an allocation of the pool, which base is the start of, to
// other processes. As long as one of them has imported it, it is not freed. It
// calls cuMemPoolExportPointer, and cuMemPoolExportToShareableHandle before the
// first time: NVIDIA's driver, 580, names no memory of a pool that has no
// descriptor yet.
//
// The caller holds the allocation.
//
// Errors: as for Export.
func (mr *DeviceMemoryResource) ExportPointer(base, size uint64) (PointerExport, error) {
	if err := mr.needShareable(); err != nil {
		return PointerExport{}, err
	}
	if !mr.lessor.exported.Load() {
		fd, err := mr.descriptor()
		if err != nil {
			return PointerExport{}, err
		}
		_ = syscall.Close(fd)
	}
	data, err := poolCall(mr, "cuMemPoolExportPointer", func(api driver.API, _ driver.CUmemoryPool) (driver.CUmemPoolPtrExportData, driver.CUresult) {
		return api.CuMemPoolExportPointer(driver.CUdeviceptr(base))
	})
	if err != nil {
		return PointerExport{}, err
	}
	slot, err := mr.lessor.slot(base)
	return PointerExport{Data: data.Reserved, Size: size, Slot: slot, Pool: mr.lessor.id}, err
}

// MayFree reports whether the allocation that starts at base can be freed, because
// no other process has imported it. Then none can any more: for C code that frees
// memory itself.
func (mr *DeviceMemoryResource) MayFree(base uint64) bool {
	return mr.lessor == nil || mr.lessor.end(base)
}
