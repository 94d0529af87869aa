// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// cudagoResourceImportBegin begins to make a resource over another process's pool, of
// device memory unless pinned is not 0: a task that makes its number. It leaves the
// descriptors to the caller.
//
//export cudagoResourceImportBegin
func cudagoResourceImportBegin(ordinal C.int32_t, pinned, pool, leases C.int, st *C.cudago_status) (task C.uint64_t) {
	kind := cuda.DeviceMemory
	if pinned != 0 {
		kind = cuda.PinnedMemory
	}
	guard(st, func() error {
		dev, err := border.Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		files, err := duplicates(int(pool), int(leases)) // the caller's may be closed during an abandoned task
		if err != nil {
			return err
		}
		task = C.uint64_t(border.BeginTask(func(t *border.Task) error {
			defer closeAll(files)
			mr, err := cuda.ImportPool(dev, kind, files[0], files[1])
			if err != nil {
				return err
			}
			id := Resources.Put(resource{MemoryResource: mr})
			t.Made[0], t.Undo = id, func() error { return takeAndClose(Resources, id) }
			return nil
		}))
		return nil
	})
	return task
}

// duplicates returns new descriptors of the same files; -1 stays -1.
func duplicates(fds ...int) (files []int, err error) {
	const duplicate = 1030 // F_DUPFD_CLOEXEC, linux/fcntl.h
	for _, fd := range fds {
		if fd >= 0 {
			made, _, failed := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), duplicate, 0)
			if failed != 0 {
				closeAll(files)
				return nil, os.NewSyscallError("fcntl", failed)
			}
			fd = int(made)
		}
		files = append(files, fd)
	}
	return files, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		if fd >= 0 {
			_ = syscall.Close(fd)
		}
	}
}

func takeAndClose[T io.Closer](table *border.Table[T], id uint64) error {
	if made, ok := table.Take(id); ok {
		return made.Close()
	}
	return nil
}

// sharer is a resource that knows the number by which processes share it.
type sharer interface{ ShareID() cuda.PoolID }

// cudagoPoolShareID writes the pool's number, zeros if it has none.
//
//export cudagoPoolShareID
func cudagoPoolShareID(mr C.uint64_t, id *C.uint8_t, st *C.cudago_status) {
	guard(st, func() error {
		r, err := Resources.Get(uint64(mr))
		if s, ok := r.MemoryResource.(sharer); err == nil && ok {
			number := s.ShareID()
			copy(unsafe.Slice((*byte)(id), len(number)), number[:])
		}
		return err
	})
}

// cudagoPoolExport returns two descriptors, the caller's to close.
//
//export cudagoPoolExport
func cudagoPoolExport(mr C.uint64_t, pool, leases *C.int, st *C.cudago_status) {
	guard(st, func() error {
		p, err := poolOf(mr)
		if err != nil {
			return err
		}
		a, b, err := p.Export()
		*pool, *leases = C.int(a), C.int(b)
		return err
	})
}

// cudagoPointerExport names an allocation that the caller holds.
//
//export cudagoPointerExport
func cudagoPointerExport(mr, base, size C.uint64_t, data *C.cudago_shared, st *C.cudago_status) {
	guard(st, func() error {
		p, err := poolOf(mr)
		if err != nil {
			return err
		}
		e, err := p.ExportPointer(uint64(base), uint64(size))
		if err != nil {
			return err
		}
		*(*[cuda.SharedBytes]byte)(unsafe.Pointer(&data.data)) = e.Data
		*(*cuda.PoolID)(unsafe.Pointer(&data.pool)) = e.Pool
		data.size, data.slot = C.uint64_t(e.Size), C.int64_t(e.Slot)
		return nil
	})
}

// cudagoBufferImportBegin begins to make a cuda.Buffer over memory of another process:
// a task that makes its number and its address.
//
//export cudagoBufferImportBegin
func cudagoBufferImportBegin(mr C.uint64_t, data *C.cudago_shared, on C.uint64_t, st *C.cudago_status) (task C.uint64_t) {
	guard(st, func() error {
		r, err := Resources.Get(uint64(mr))
		if err != nil {
			return err
		}
		p, ok := r.MemoryResource.(*cuda.ImportedMemoryResource)
		if !ok {
			return &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "resource", Text: "must be a pool imported from another process: " +
				"this process has allocated the memory itself"}
		}
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		e := cuda.PointerExport{
			Data: *(*[cuda.SharedBytes]byte)(unsafe.Pointer(&data.data)), Pool: *(*cuda.PoolID)(unsafe.Pointer(&data.pool)),
			Size: uint64(data.size), Slot: int64(data.slot),
		}
		task = C.uint64_t(border.BeginTask(func(t *border.Task) error {
			b, err := p.Import(e, s)
			if err != nil {
				return err
			}
			id := buffers.Put(b)
			t.Made, t.Undo = [2]uint64{id, b.Ptr()}, func() error { return takeAndClose(buffers, id) }
			return nil
		}))
		return nil
	})
	return task
}

// cudagoMayFree reports whether no other process has imported an allocation; then
// none can any more.
//
//export cudagoMayFree
func cudagoMayFree(mr, base C.uint64_t) (may C.int) {
	may = 1
	_ = border.Contained(func() error {
		if p, err := poolOf(mr); err == nil && !p.MayFree(uint64(base)) {
			may = 0
		}
		return nil
	})
	return may
}
