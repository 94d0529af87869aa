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
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoPrefetchBatch
func cudagoPrefetchBatch(on C.uint64_t, prefetches *C.cudago_prefetch, n C.int64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		list := make([]cuda.BatchPrefetch, n)
		for i, p := range unsafe.Slice(prefetches, int(n)) {
			to, err := locationOf(p.at)
			if err != nil {
				return err
			}
			list[i] = cuda.BatchPrefetch{Ptr: uint64(p.ptr), Size: uint64(p.size), To: to}
		}
		return cuda.PrefetchBatch(list, s)
	})
}
