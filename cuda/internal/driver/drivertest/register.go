// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// What cuda.h leaves open here was seen on an H200, driver 580.159, CUDA 13.0.
var registrations = map[string]func(*suite){
	"registered memory is pinned memory":              registerUse,
	"registrations must not overlap":                  registerOverlap,
	"registrations may share a page":                  registerShared,
	"registration refuses bad arguments":              registerBad,
	"registration refuses memory that CUDA allocated": registerKnown,
	"registration needs memory that may be written":   registerReadOnly,
	"registration invalidates captures":               registerCapture,
}

const (
	page     = 4096
	portable = driver.CU_MEMHOSTREGISTER_PORTABLE | driver.CU_MEMHOSTREGISTER_DEVICEMAP
)

// pages maps host memory that the driver knows nothing of.
func (s *suite) pages(n, access int) uintptr {
	s.Helper()
	if v, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, s.dev); r != driver.CUDA_SUCCESS || v == 0 {
		s.Skip("the device cannot use host memory that is registered")
	}
	mem, err := syscall.Mmap(-1, 0, n*page, access, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(s.T, err)
	s.cleanup(func() { require.NoError(s.T, syscall.Munmap(mem)) })
	return uintptr(addressOf(mem))
}

func (s *suite) writablePages(n int) uintptr {
	s.Helper()
	return s.pages(n, syscall.PROT_READ|syscall.PROT_WRITE)
}

func registerUse(s *suite) {
	host := s.writablePages(2)
	p := driver.CUdeviceptr(host)
	s.ok(s.CuMemHostRegister(host, 2*page, portable))
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_HOST), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p+8))
	require.Equal(s.T, uint64(host), s.attribute(driver.CU_POINTER_ATTRIBUTE_HOST_POINTER, p))
	base, size, r := s.CuMemGetAddressRange(p + 5000)
	s.ok(r)
	require.Equal(s.T, p, base)
	require.Equal(s.T, uint64(2*page), size)
	w := words(host, 2048)
	w[1030] = 7
	st := s.stream()
	s.ok(s.launch(st, s.kernel("step"), p+4*1030, uint32(6), uint32(0)))
	s.ok(s.CuMemsetD32Async(p, 5, 1, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, uint32(42), w[1030])
	require.Equal(s.T, uint32(5), w[0])
	s.ok(s.CuMemHostUnregister(host))
	_, r = s.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.code(driver.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, s.CuMemHostUnregister(host))
	require.Equal(s.T, uint32(42), w[1030], "the memory is the host's as before")
}

func registerOverlap(s *suite) {
	host := s.writablePages(4)
	s.ok(s.CuMemHostRegister(host, 2*page, portable))
	for _, at := range []struct{ from, size uint64 }{{0, 2 * page}, {page, 2 * page}, {64, 64}} {
		s.code(driver.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, s.CuMemHostRegister(host+uintptr(at.from), at.size, portable))
	}
	s.ok(s.CuMemHostRegister(host+2*page, page, portable))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostUnregister(host+64))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostUnregister(host+page))
	s.ok(s.CuMemHostUnregister(host))
	s.ok(s.CuMemHostUnregister(host + 2*page))
}

func registerShared(s *suite) {
	host := s.writablePages(1)
	s.ok(s.CuMemHostRegister(host+100, 300, portable))
	s.ok(s.CuMemHostRegister(host+1000, 300, portable))
	s.ok(s.CuMemHostUnregister(host + 100))
	s.ok(s.CuMemHostUnregister(host + 1000))
}

func registerBad(s *suite) {
	host := s.writablePages(1)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostRegister(host, 0, portable))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostRegister(0, page, portable))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostRegister(host, page, 0x40))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostRegister(0x10000, page, portable)) // nobody maps what is so low
	s.code(driver.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, s.CuMemHostUnregister(host))
}

func registerKnown(s *suite) {
	host := s.writablePages(1)
	pinned, r := s.CuMemHostAlloc(page, driver.CU_MEMHOSTALLOC_PORTABLE)
	s.ok(r)
	managed, r := s.CuMemAllocManaged(page, driver.CU_MEM_ATTACH_GLOBAL)
	s.ok(r)
	for _, p := range []uintptr{pinned, uintptr(managed), uintptr(s.alloc(page))} {
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostRegister(p, 64, portable))
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostUnregister(pinned))
	s.ok(s.CuMemHostRegister(host, page, portable))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFreeHost(host))
	s.ok(s.CuMemHostUnregister(host))
	s.ok(s.CuMemFreeHost(pinned))
	s.ok(s.CuMemFree(managed))
}

func registerReadOnly(s *suite) {
	host := s.pages(1, syscall.PROT_READ)
	if v, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, s.dev); r != driver.CUDA_SUCCESS || v == 0 {
		s.Skip("the device cannot use read-only host memory")
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemHostRegister(host, page, portable))
	s.ok(s.CuMemHostRegister(host, page, portable|driver.CU_MEMHOSTREGISTER_READ_ONLY))
	p := s.word(1)
	st := s.stream()
	s.ok(s.CuMemcpyAsync(p, driver.CUdeviceptr(host), 4, st))
	s.same(0, p)
	s.ok(s.CuMemHostUnregister(host))
}

func registerCapture(s *suite) {
	host := s.writablePages(1)
	invalidates := func(call func() driver.CUresult) {
		s.Helper()
		st := s.stream()
		s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
		s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call())
		_, r := s.CuStreamEndCapture(st)
		s.code(driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, r)
	}
	invalidates(func() driver.CUresult { return s.CuMemHostRegister(host, page, portable) })
	s.ok(s.CuMemHostRegister(host, page, portable))
	invalidates(func() driver.CUresult { return s.CuMemHostUnregister(host) })
	s.ok(s.CuMemHostUnregister(host))
}
