// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// What Go's runtime needs it takes when it needs it first, and ends the process
// where it gets none. So it is made to take everything while the library is
// loaded: _limits.py has asked then whether it is there.

const (
	// mostProcs is how many threads run Go code at once until the simulated
	// driver is opened, whose kernels do. Also in _limits.py.
	mostProcs = 8
	// spareThreads run what waits outside of Go: calls of the driver, host
	// functions. Also in _limits.py.
	spareThreads = 4
	// heapReserve is address space that Go's heap has in a process whose address
	// space is limited. Also in _limits.py.
	heapReserve = 192 << 20
)

// processors is how many the process may use.
var processors = runtime.GOMAXPROCS(0)

func init() {
	startPoller()
	// Set even if it stays the same: the runtime would follow changes of the
	// limit that containers have, to a number that needs more threads.
	runtime.GOMAXPROCS(min(processors, mostProcs))
	startThreads(min(processors, mostProcs) + spareThreads)
	if addressesAreLimited() {
		reserveHeap()
	}
}

// startPoller makes the runtime open its descriptors, which the first timer does.
func startPoller() { time.Sleep(time.Nanosecond) }

// startThreads makes the runtime start threads until n more than it has wait for
// work. They stay.
func startThreads(n int) {
	var ready, ended sync.WaitGroup
	release := make(chan struct{})
	ready.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread() // a goroutine that waits keeps its thread so
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	ended.Wait()
}

func addressesAreLimited() bool {
	var limit syscall.Rlimit
	return syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil && limit.Cur != ^uint64(0)
}

// reserveHeap makes the heap as large as it may have to be. The memory itself goes
// back to the system, the addresses do not.
func reserveHeap() {
	runtime.KeepAlive(make([]byte, heapReserve))
	runtime.GC()
}

// useAllProcessors is called before the simulated driver is opened. Where threads
// are limited its kernels run on fewer.
func useAllProcessors() {
	more := processors - mostProcs
	if more <= 0 {
		return
	}
	if more = int(C.cudago_can_start(C.int(more))); more > 0 {
		runtime.GOMAXPROCS(mostProcs + more)
		startThreads(mostProcs + more + spareThreads)
	}
}
