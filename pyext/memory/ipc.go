// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// cudagoResourceImported makes a resource over another process's pool, of device
// memory unless pinned is not 0, and leaves the descriptors open.
//
//export cudagoResourceImported
func cudagoResourceImported(ordinal C.int32_t, pinned, pool, leases C.int, st *C.cudago_status) C.uint64_t {
	kind := cuda.DeviceMemory
	if pinned != 0 {
		kind = cuda.PinnedMemory
	}
	return newResource(ordinal, st, func(dev *cuda.Device) (resource, error) {
		mr, err := cuda.ImportPool(dev, kind, int(pool), int(leases))
		return resource{MemoryResource: mr}, err
	})
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

// cudagoBufferImport makes a cuda.Buffer over memory of another process.
//
//export cudagoBufferImport
func cudagoBufferImport(mr C.uint64_t, data *C.cudago_shared, on C.uint64_t, ptr *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
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
		b, err := p.Import(cuda.PointerExport{
			Data: *(*[cuda.SharedBytes]byte)(unsafe.Pointer(&data.data)), Pool: *(*cuda.PoolID)(unsafe.Pointer(&data.pool)),
			Size: uint64(data.size), Slot: int64(data.slot),
		}, s)
		if err != nil {
			return err
		}
		*ptr = C.uint64_t(b.Ptr())
		id = C.uint64_t(buffers.Put(b))
		return nil
	})
	return id
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
