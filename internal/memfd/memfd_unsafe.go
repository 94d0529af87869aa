// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package memfd makes files that lie in memory and have no name, by which
// processes share memory and locks.
package memfd

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// numbers are those of memfd_create(2), which package syscall lacks, from the
// kernel's table of each architecture.
var numbers = map[string]uintptr{"amd64": 319, "arm64": 279}

// Create makes an empty file. The name only shows in /proc.
func Create(name string) (*os.File, error) {
	const closeOnExec = 1 // MFD_CLOEXEC
	number, ok := numbers[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("memfd_create: %w on %s", syscall.ENOSYS, runtime.GOARCH)
	}
	text, err := syscall.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	fd, _, failed := syscall.Syscall(number, uintptr(unsafe.Pointer(text)), closeOnExec, 0)
	if failed != 0 {
		return nil, os.NewSyscallError("memfd_create", failed)
	}
	return os.NewFile(fd, name), nil
}

// Open opens the file behind a descriptor once more, of this process or of
// another one of the same user. Unlike a duplicate, it has locks of its own.
func Open(pid, fd int) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0)
}

// Duplicate returns a second descriptor of a file, which children do not
// inherit.
func Duplicate(f *os.File) (fd int, err error) {
	const duplicate = 1030 // F_DUPFD_CLOEXEC, linux/fcntl.h
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed syscall.Errno
	err = raw.Control(func(from uintptr) {
		made, _, e := syscall.Syscall(syscall.SYS_FCNTL, from, duplicate, 0)
		fd, failed = int(made), e
	})
	if err == nil && failed != 0 {
		err = os.NewSyscallError("fcntl", failed)
	}
	return fd, err
}
