// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include <stdlib.h>
#include "memory.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// cudagoVirtualExport returns the pieces with size bytes at offset of an
// allocation that the caller holds, and how many they are. The list is the
// caller's to free, and its descriptors the allocation's. before is where the
// bytes begin in the first piece.
//
//export cudagoVirtualExport
func cudagoVirtualExport(id, offset, size C.uint64_t, n *C.int, before *C.uint64_t, st *C.cudago_status) (pieces *C.cudago_piece) {
	guard(st, func() error {
		b, err := buffers.Get(uint64(id))
		if err != nil {
			return err
		}
		e, err := b.ExportVirtual(uint64(offset), uint64(size))
		if err != nil {
			return err
		}
		pieces = (*C.cudago_piece)(C.calloc(C.size_t(len(e.Pieces)), C.sizeof_cudago_piece))
		for i, p := range e.Pieces {
			unsafe.Slice(pieces, len(e.Pieces))[i] = C.cudago_piece{size: C.uint64_t(p.Size), fd: C.int64_t(p.FD)}
		}
		*n, *before = C.int(len(e.Pieces)), C.uint64_t(e.Offset)
		return nil
	})
	return pieces
}

// cudagoVirtualImport makes a cuda.Buffer over size bytes at offset of the pieces,
// and leaves their descriptors open.
//
//export cudagoVirtualImport
func cudagoVirtualImport(
	ordinal C.int32_t, pieces *C.cudago_piece, n C.int, offset, size, on C.uint64_t, ptr *C.uint64_t, st *C.cudago_status,
) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		e := cuda.VirtualExport{Offset: uint64(offset), Size: uint64(size)}
		for _, p := range unsafe.Slice(pieces, int(n)) {
			e.Pieces = append(e.Pieces, cuda.VirtualPiece{FD: int(p.fd), Size: uint64(p.size)})
		}
		b, err := c.ImportVirtual(e, s)
		if err != nil {
			return err
		}
		*ptr = C.uint64_t(b.Ptr())
		id = C.uint64_t(buffers.Put(b))
		return nil
	})
	return id
}
