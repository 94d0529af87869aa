// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"

	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoMemset
func cudagoMemset(on, dst C.uint64_t, value, width C.uint32_t, count C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		return cuda.Memset(uint64(dst), uint32(value), int(width), uint64(count), s)
	})
}
