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
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// cudagoMemcpyBatch makes n copies; one by one if pageable memory is among them.
//
//export cudagoMemcpyBatch
func cudagoMemcpyBatch(on C.uint64_t, copies *C.cudago_copy, n C.int64_t, pageable C.int, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		list := make([]cuda.BatchCopy, n)
		for i, c := range unsafe.Slice(copies, int(n)) {
			list[i] = cuda.BatchCopy{Dst: uint64(c.dst), Src: uint64(c.src), Size: uint64(c.size)}
			if c.across == 0 {
				continue
			}
			if list[i].To, err = border.ContextOf(int(c.to)); err != nil {
				return err
			}
			if list[i].From, err = border.ContextOf(int(c.from)); err != nil {
				return err
			}
		}
		return cuda.MemcpyBatch(list, pageable != 0, s)
	})
}
