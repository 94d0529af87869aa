// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// exporter stands for another API by files in memory.
type exporter struct{ t *testing.T }

// memory makes a file, a new descriptor of it, and maps it.
func (e exporter) Memory(size int) (int32, []byte) {
	f, err := memfd.Create("test")
	require.NoError(e.t, err)
	defer f.Close()
	require.NoError(e.t, f.Truncate(int64(size)))
	fd, err := memfd.Duplicate(f)
	require.NoError(e.t, err)
	mem, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { require.NoError(e.t, syscall.Munmap(mem)) })
	return int32(fd), mem
}

// Semaphore writes the page that semaphore_unsafe.go describes.
func (e exporter) Semaphore(timeline bool) (int32, *atomic.Uint64) {
	fd, mem := e.Memory(4096)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), 3)
	words[0], words[1] = 0x616d657367756463, 1
	if timeline {
		words[1] = 9
	}
	return fd, (*atomic.Uint64)(unsafe.Pointer(&words[2]))
}

// What was imported is the driver's: it closes the descriptor.
func TestImportTakesTheDescriptor(t *testing.T) {
	o := newOne(t, open(t, ""))
	fd, _ := exporter{t}.Semaphore(true)
	_, r := o.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: 1, Fd: fd})
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, r, "it is a timeline")
	sem, r := o.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: 9, Fd: fd})
	ok(t, r)
	require.ErrorIs(t, syscall.Close(int(fd)), syscall.EBADF)
	ok(t, o.CuDestroyExternalSemaphore(sem))
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuDestroyExternalSemaphore(sem))
}

// Only the kinds that Linux has, and only files in memory.
func TestOtherHandlesAreRefused(t *testing.T) {
	o := newOne(t, open(t, ""))
	fd, _ := exporter{t}.Semaphore(true)
	_, r := o.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: 2, Fd: fd})
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	_, r = o.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: 2, Fd: fd, Size: 4096})
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	_, r = o.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: 1, Fd: fd, Size: 4097})
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	require.NoError(t, syscall.Close(int(fd)))
}

// Memory of another API does not count as used.
func TestExternalMemoryDoesNotCount(t *testing.T) {
	o := newOne(t, open(t, "check=full"))
	fd, bytes := exporter{t}.Memory(1 << 20)
	bytes[5] = 9
	free, _, r := o.CuMemGetInfo()
	ok(t, r)
	m, r := o.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: 1, Fd: fd, Size: 1 << 20})
	ok(t, r)
	p, r := o.CuExternalMemoryGetMappedBuffer(m, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Size: 1 << 20})
	ok(t, r)
	after, _, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, free, after)
	require.EqualValues(t, 9, bytes[5], "a check must not fill it")
	ok(t, o.CuMemFree(p))
	ok(t, o.CuDestroyExternalMemory(m))
}

func TestFileOfExternalMemoryIsClosedWithTheLastUse(t *testing.T) {
	o := newOne(t, open(t, ""))
	before := openFiles(t)
	fd, _ := exporter{t}.Memory(8192)
	m, r := o.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: 1, Fd: fd, Size: 8192})
	ok(t, r)
	p, r := o.CuExternalMemoryGetMappedBuffer(m, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Size: 4096})
	ok(t, r)
	_, r = o.CuExternalMemoryGetMappedBuffer(m, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Size: 8192, Offset: 4096})
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	ok(t, o.CuDestroyExternalMemory(m))
	require.Equal(t, before+1, openFiles(t), "a buffer is left")
	ok(t, o.CuMemFree(p))
	require.Equal(t, before, openFiles(t))
}
