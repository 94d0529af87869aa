// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// callHost stands for a call into C: countUp adds 1 to the int64 at userData,
// and other functions are looked up in hostFunctions.
func callHost(fn driver.CUhostFn, userData uintptr) {
	if fn == countUp {
		atomic.AddInt64((*int64)(pointer(userData)), 1)
		return
	}
	hostFunctions[fn](userData)
}

// hostFunctions is filled by the tests that need more than a counter.
var hostFunctions = map[driver.CUhostFn]func(userData uintptr){}

func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
