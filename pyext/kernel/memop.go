// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"

	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoMemOp
func cudagoMemOp(on, at, value C.uint64_t, width C.uint32_t, waits, condition C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		return cuda.MemOp(cuda.MemOpParams{
			Ptr: uint64(at), Value: uint64(value), Width: uint32(width), IsWait: waits != 0, Condition: cuda.WaitCondition(condition),
		}, s)
	})
}

// MemOpParams makes parameters of a cudago_memop, which is C memory: each
// package has a type of its own for it.
func MemOpParams(at uint64, memop unsafe.Pointer) cuda.MemOpParams {
	m := (*C.cudago_memop)(memop)
	return cuda.MemOpParams{
		Ptr: at, Value: uint64(m.value), Width: uint32(m.width), IsWait: m.waits != 0, Condition: cuda.WaitCondition(m.condition),
	}
}
