// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"sync/atomic"
	"testing"
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

func address(b []uint32) driver.CUdeviceptr {
	return driver.CUdeviceptr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// words views memory as n 32-bit numbers.
func words(p uintptr, n int) []uint32 { return unsafe.Slice((*uint32)(pointer(p)), n) }

// read returns 32 numbers of device memory, once all work is done.
func (o *one) read(t testing.TB, p driver.CUdeviceptr) []uint32 {
	t.Helper()
	ok(t, o.CuCtxSynchronize())
	out := make([]uint32, 32)
	ok(t, o.CuMemcpyAsync(address(out), p, 128, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	return out
}
