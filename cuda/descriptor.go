// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"os"
	"sync/atomic"
)

var descriptorWatch atomic.Pointer[func(fd int, isOpen bool)]

// WatchDescriptors has f told of each file descriptor that keeps device memory:
// once it is open, and before it is closed, on any goroutine. A forked child has to
// close its copies, which would keep the memory as long as it runs.
func WatchDescriptors(f func(fd int, isOpen bool)) { descriptorWatch.Store(&f) }

func tellDescriptor(file *os.File, isOpen bool) {
	if f := descriptorWatch.Load(); f != nil {
		(*f)(int(file.Fd()), isOpen)
	}
}
