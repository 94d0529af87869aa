// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// Externals are the open memories of other APIs.
var Externals = border.NewTable[*cuda.ExternalMemory]("external memory")

//export cudagoExternalImport
func cudagoExternalImport(ordinal, fd C.int32_t, size C.uint64_t, dedicated C.int, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		m, err := c.ImportMemory(int(fd), uint64(size), dedicated != 0)
		if err == nil {
			id = C.uint64_t(Externals.Put(m))
		}
		return err
	})
	return id
}

// cudagoExternalMap makes a cuda.Buffer over a part of the memory.
//
//export cudagoExternalMap
func cudagoExternalMap(memory, offset, size, on C.uint64_t, ptr *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		m, err := Externals.Get(uint64(memory))
		if err != nil {
			return err
		}
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		b, err := m.Map(uint64(offset), uint64(size), s)
		if err != nil {
			return err
		}
		*ptr = C.uint64_t(b.Ptr())
		id = C.uint64_t(buffers.Put(b))
		return nil
	})
	return id
}

// cudagoExternalRelease leaves the memory to the reaper, because destroying it
// may wait for the device.
//
//export cudagoExternalRelease
func cudagoExternalRelease(id C.uint64_t) {
	if m, ok := Externals.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(m.Close))
	}
}
