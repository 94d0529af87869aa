// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// cudagoPoolRelease destroys a pool after what is in the given streams now. It
// needs the GIL, because the streams' blocks do.
//
//export cudagoPoolRelease
func cudagoPoolRelease(id C.uint64_t, freedOn *C.uint64_t, n C.int) {
	r, ok := Resources.Take(uint64(id))
	if !ok {
		return
	}
	var left atomic.Int64
	left.Store(int64(n) + 1)
	one := func() {
		if left.Add(-1) == 0 {
			border.Reaper.Add(border.Once(r.Close))
		}
	}
	for _, s := range unsafe.Slice(freedOn, int(n)) {
		if !stream.AfterAll(uint64(s), one) {
			one() // it has been destroyed, after all that was in it
		}
	}
	one()
}

// cudagoStreamsOpen moves those of n streams that are open, or have work, to the
// front, and returns how many these are.
//
//export cudagoStreamsOpen
func cudagoStreamsOpen(streams *C.uint64_t, n C.int) (open C.int) {
	list := unsafe.Slice(streams, int(n))
	for _, s := range list {
		if _, err := stream.Lines.Get(uint64(s)); err == nil {
			list[open] = s
			open++
		}
	}
	return open
}
