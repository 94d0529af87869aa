// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package memfd makes files that lie in memory and have no name, by which
// processes share memory and locks.
//
// Whoever has such a file can write into it, and could make it smaller: a process
// that then touches its mapping of what is gone ends with SIGBUS. So files are
// sealed, and this package opens and maps none that can become smaller: see
// fcntl(2), File Sealing.
package memfd

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// numbers are those of memfd_create(2), which package syscall lacks, from the
// kernel's table of each architecture.
var numbers = map[string]uintptr{"amd64": 319, "arm64": 279}

// From linux/fcntl.h and linux/memfd.h.
const (
	closeOnExec, allowSealing = 1, 2       // MFD_CLOEXEC, MFD_ALLOW_SEALING
	duplicate                 = 1030       // F_DUPFD_CLOEXEC
	addSeals, getSeals        = 1033, 1034 // F_ADD_SEALS, F_GET_SEALS
	sealSeal, sealShrink      = 1, 2       // F_SEAL_SEAL, F_SEAL_SHRINK
)

// ErrNotSealed is of a file that could become smaller while it is mapped, or that
// does not lie in memory.
var ErrNotSealed = errors.New("is not a file in memory that is sealed against becoming smaller")

// ErrTooSmall is of a file that ends before what was to be mapped.
var ErrTooSmall = errors.New("the file has fewer bytes")

// Create makes an empty file, which can grow, and neither become smaller nor be
// sealed further: nobody with whom it is shared can stop its growth or its
// mappings. The name only shows in /proc.
func Create(name string) (*os.File, error) {
	number, ok := numbers[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("memfd_create: %w on %s", syscall.ENOSYS, runtime.GOARCH)
	}
	text, err := syscall.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	fd, _, failed := syscall.Syscall(number, uintptr(unsafe.Pointer(text)), closeOnExec|allowSealing, 0)
	if failed != 0 {
		return nil, os.NewSyscallError("memfd_create", failed)
	}
	f := os.NewFile(fd, name)
	if _, err := control(fd, addSeals, sealSeal|sealShrink); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Grow gives a file so many bytes, unless it has more: others may have made it
// larger.
func Grow(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// Open opens the file behind a descriptor once more, of this process or of
// another one of the same user. Unlike a duplicate, it has locks of its own. It
// returns ErrNotSealed for other files, without opening what it takes for one: a
// process may have named the descriptor of a device.
func Open(pid, fd int) (*os.File, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	name, err := os.Readlink(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(name, "/memfd:") {
		return nil, ErrNotSealed
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := checkSealed(f.Fd()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Seal seals the file of another program's making, whose descriptor this is, unless
// that has sealed it. It returns ErrNotSealed if the file does not let itself be
// sealed: memfd_create was not called with MFD_ALLOW_SEALING.
func Seal(fd int) error {
	if fd < 0 {
		return syscall.EBADF
	}
	if checkSealed(uintptr(fd)) == nil {
		return nil
	}
	if _, err := control(uintptr(fd), addSeals, sealShrink); err != nil {
		return ErrNotSealed
	}
	return nil
}

func checkSealed(fd uintptr) error {
	if seals, err := control(fd, getSeals, 0); err != nil || seals&sealShrink == 0 {
		return ErrNotSealed
	}
	return nil
}

// Map maps part of a sealed file, shared. It returns ErrTooSmall if the file, as it
// is now, does not have that part.
func Map(fd uintptr, offset int64, size uint64) ([]byte, error) {
	if err := check(fd, offset, size); err != nil {
		return nil, err
	}
	mem, err := syscall.Mmap(int(fd), offset, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}

// MapAt is Map over addresses of the caller's, which it replaces. Whoever reserved
// them unmaps them.
func MapAt(at unsafe.Pointer, fd uintptr, offset int64, size uint64) error {
	if err := check(fd, offset, size); err != nil {
		return err
	}
	_, _, failed := syscall.Syscall6(syscall.SYS_MMAP, uintptr(at), uintptr(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED|syscall.MAP_FIXED, fd, uintptr(offset))
	if failed != 0 {
		return os.NewSyscallError("mmap", failed)
	}
	return nil
}

// check is of what is to be mapped: a sealed file has it from then on.
func check(fd uintptr, offset int64, size uint64) error {
	if err := checkSealed(fd); err != nil {
		return err
	}
	var info syscall.Stat_t
	if err := syscall.Fstat(int(fd), &info); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if offset < 0 || offset > info.Size || size > uint64(info.Size-offset) || size > math.MaxInt {
		return fmt.Errorf("%w: it ends at %d, and %d at %d were to be mapped", ErrTooSmall, info.Size, size, offset)
	}
	return nil
}

// Free gives part of a file back to the system: it reads as zeros then. If that
// fails, the memory stays until the file is gone.
func Free(fd uintptr, offset int64, size uint64) {
	const punchHole, keepSize = 2, 1 // fallocate(2)
	_ = syscall.Fallocate(int(fd), punchHole|keepSize, offset, int64(size))
}

// Duplicate returns a second descriptor of a file, which children do not
// inherit.
func Duplicate(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(from uintptr) { fd, failed = control(from, duplicate, 0) })
	if err == nil && failed != nil {
		return -1, failed
	}
	return fd, err
}

func control(fd uintptr, command, argument uintptr) (int, error) {
	n, _, failed := syscall.Syscall(syscall.SYS_FCNTL, fd, command, argument)
	if failed != 0 {
		return -1, os.NewSyscallError("fcntl", failed)
	}
	return int(n), nil
}
