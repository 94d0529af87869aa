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

//export cudagoSemaphoreOp
func cudagoSemaphoreOp(on, semaphore, value C.uint64_t, waits C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		e, err := stream.Semaphores.Get(uint64(semaphore))
		if err != nil {
			return err
		}
		return cuda.SemaphoreOp(cuda.SemaphoreParams{Semaphore: e, Value: uint64(value), IsWait: waits != 0}, s)
	})
}
