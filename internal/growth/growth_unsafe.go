// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package growth tells whether what reads other people's bytes costs as much as
// they are long. It is for tests.
package growth

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

const (
	// most is how many times as much may be spent on four times as much: four is
	// linear, and sixteen quadratic.
	most = 8
	// What is not counted: what is spent whatever is read.
	sparedTime  = 40 * time.Millisecond
	sparedBytes = 256 << 10
	tries       = 3
)

// Cost is what a call spent.
type Cost struct {
	Time  time.Duration // of its thread: nothing that others do makes it more
	Bytes uint64        // that were allocated, whether or not they are still held
}

// String returns both.
func (c Cost) String() string { return fmt.Sprintf("%v and %d KiB", c.Time, c.Bytes>>10) }

// Of returns what a call spends.
func Of(call func()) Cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, start := allocated(), threadTime()
	call()
	return Cost{threadTime() - start, allocated() - before}
}

// RequireLinear fails the test if a reader spends more than linearly on what is made
// for n, in bytes or entries. Before it fails it asks again: caches, what a first
// call makes and the collector's help are part of what one call spends.
func RequireLinear[T any](t testing.TB, n int, of func(n int) T, read func(T)) {
	t.Helper()
	one, four := of(n), of(4*n)
	small, large := Cost{}, Cost{1 << 62, 1 << 62}
	for range tries {
		again := Of(func() { read(one) })
		small = Cost{max(small.Time, again.Time), max(small.Bytes, again.Bytes)}
		again = Of(func() { read(four) })
		large = Cost{min(large.Time, again.Time), min(large.Bytes, again.Bytes)}
		if large.Time <= most*small.Time+sparedTime && large.Bytes <= most*small.Bytes+sparedBytes {
			return
		}
	}
	t.Fatalf("%d cost %v, and four times as many %v", n, small, large)
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// threadTime is the time that the thread has run. What getrusage says of it is counted
// in ticks on some kernels.
func threadTime() time.Duration {
	const ofThisThread = 3 // CLOCK_THREAD_CPUTIME_ID of time.h
	var now syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, ofThisThread, uintptr(unsafe.Pointer(&now)), 0); e != 0 {
		panic(e)
	}
	return time.Duration(now.Nano())
}
