// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include "stream.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// Semaphores are the open semaphores of other APIs.
var Semaphores = border.NewTable[*cuda.ExternalSemaphore]("semaphore")

//export cudagoSemaphoreImport
func cudagoSemaphoreImport(ordinal, fd C.int32_t, timeline C.int, handle *C.uintptr_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		e, err := c.ImportSemaphore(int(fd), timeline != 0)
		if err != nil {
			return err
		}
		*handle = C.uintptr_t(e.Handle())
		id = C.uint64_t(Semaphores.Put(e))
		return nil
	})
	return id
}

// cudagoSemaphoreRelease leaves the semaphore to the reaper, once its uses on
// streams have ended. It needs the GIL, because the streams' blocks do.
//
//export cudagoSemaphoreRelease
func cudagoSemaphoreRelease(id C.uint64_t, streams, positions *C.uint64_t, n C.int) {
	e, ok := Semaphores.Take(uint64(id))
	if !ok {
		return
	}
	AfterUses(unsafe.Pointer(streams), unsafe.Pointer(positions), int(n), func() { border.Reaper.Add(border.Once(e.Close)) })
}

// AfterUses runs then once work on n streams has come to positions, which are
// arrays of uint64_t. It needs the GIL.
func AfterUses(streams, positions unsafe.Pointer, n int, then func()) {
	var left atomic.Int64
	left.Store(int64(n) + 1)
	one := func() {
		if left.Add(-1) == 0 {
			then()
		}
	}
	at := unsafe.Slice((*uint64)(positions), n)
	for i, id := range unsafe.Slice((*uint64)(streams), n) {
		if l, err := Lines.Get(id); err == nil {
			l.After(at[i], one)
		} else {
			one() // its line is gone, so all its work has ended
		}
	}
	one()
}
