// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import "github.com/cudago/cudago/pyext/border"

//export cudagoAdoptCheck
func cudagoAdoptCheck(ordinal C.int32_t, ptr, size C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		return c.CheckDeviceMemory(uint64(ptr), uint64(size))
	})
}
