// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memfd

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func create(t *testing.T) *os.File {
	t.Helper()
	f, err := Create("cudago test")
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFileIsSharedByDescriptor(t *testing.T) {
	f := create(t)
	_, err := f.WriteAt([]byte("shared"), 4096)
	require.NoError(t, err)
	fd, err := Duplicate(f)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(fd)) }()
	again, err := Open(os.Getpid(), fd)
	require.NoError(t, err)
	defer again.Close()
	text := make([]byte, 6)
	_, err = again.ReadAt(text, 4096)
	require.NoError(t, err)
	require.Equal(t, "shared", string(text))
}

func TestNothingIsThereToOpen(t *testing.T) {
	_, err := Open(os.Getpid(), 1<<20)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create("a\x00b")
	require.Error(t, err)
}

func TestNobodyMakesAFileSmallerOrStopsItsGrowth(t *testing.T) {
	f := create(t)
	require.NoError(t, Grow(f, 8192))
	other, err := Open(os.Getpid(), int(f.Fd()))
	require.NoError(t, err)
	defer other.Close()
	require.ErrorIs(t, other.Truncate(4096), syscall.EPERM)
	const sealGrow, sealWrite = 4, 8
	for _, seal := range []uintptr{sealGrow, sealWrite} {
		_, err := control(other.Fd(), addSeals, seal)
		require.ErrorIs(t, err, syscall.EPERM)
	}
	require.NoError(t, other.Truncate(1<<20))
	require.NoError(t, Grow(f, 16384), "others made it larger")
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, info.Size())
}

// unsealed is a file in memory of another program.
func unsealed(t *testing.T, flags uintptr) *os.File {
	t.Helper()
	name := []byte("plain\x00")
	fd, _, failed := syscall.Syscall(numbers[runtime.GOARCH], uintptr(unsafe.Pointer(&name[0])), flags, 0)
	require.Zero(t, failed)
	f := os.NewFile(fd, "plain")
	t.Cleanup(func() { _ = f.Close() })
	require.NoError(t, f.Truncate(8192))
	return f
}

func TestWhatCanBecomeSmallerIsNeitherOpenedNorMapped(t *testing.T) {
	plain, sealable := unsealed(t, closeOnExec), unsealed(t, closeOnExec|allowSealing)
	onDisk, err := os.Create(filepath.Join(t.TempDir(), "memfd:"))
	require.NoError(t, err)
	defer onDisk.Close()
	require.NoError(t, onDisk.Truncate(8192))
	for _, f := range []*os.File{plain, sealable, onDisk} {
		_, err := Open(os.Getpid(), int(f.Fd()))
		require.ErrorIs(t, err, ErrNotSealed)
		_, err = Map(f.Fd(), 0, 4096)
		require.ErrorIs(t, err, ErrNotSealed)
	}
	require.ErrorIs(t, Seal(int(plain.Fd())), ErrNotSealed)
	require.ErrorIs(t, Seal(int(onDisk.Fd())), ErrNotSealed)
	require.Error(t, Seal(-1))
	require.NoError(t, Seal(int(sealable.Fd())))
	mem, err := Map(sealable.Fd(), 4096, 4096)
	require.NoError(t, err)
	require.NoError(t, syscall.Munmap(mem))
	require.NoError(t, Seal(int(sealable.Fd())), "twice")
}

func TestOnlyWhatAFileHasIsMapped(t *testing.T) {
	f := create(t)
	require.NoError(t, Grow(f, 8192))
	for _, part := range []struct {
		offset int64
		size   uint64
	}{{0, 8193}, {8192, 1}, {4096, 4097}, {-4096, 4096}, {1 << 62, 4096}, {4096, 1 << 63}, {4096, ^uint64(0)}} {
		_, err := Map(f.Fd(), part.offset, part.size)
		require.ErrorIs(t, err, ErrTooSmall, "%+v", part)
	}
}

func TestMappedTwiceItIsTheSameMemory(t *testing.T) {
	f := create(t)
	require.NoError(t, Grow(f, 8192))
	one, err := Map(f.Fd(), 4096, 4096)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(one)) }()
	two, err := syscall.Mmap(-1, 0, 8192, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(two)) }()
	require.NoError(t, MapAt(unsafe.Pointer(&two[0]), f.Fd(), 4096, 4096))
	one[5] = 7
	require.Equal(t, byte(7), two[5])
	Free(f.Fd(), 4096, 4096)
	require.Zero(t, two[5])
	require.ErrorIs(t, MapAt(unsafe.Pointer(&two[0]), f.Fd(), 4096, 8192), ErrTooSmall)
}
