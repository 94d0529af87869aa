// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var memories = map[string]func(*suite){
	"device memory has a range and attributes":  memoryDevice,
	"device memory runs out":                    memoryExhausted,
	"pinned memory is host memory for everyone": memoryPinned,
	"managed memory is seen from both sides":    memoryManaged,
	"pointer attributes refuse pageable memory": memoryPageable,
	"free of an unknown address is refused":     memoryBadFree,
	"buffer ids tell allocations apart":         memoryBufferID,
	"freed memory is counted as free again":     memoryInfo,
}

func (s *suite) attribute(a driver.CUpointer_attribute, p driver.CUdeviceptr) uint64 {
	s.Helper()
	v, r := s.CuPointerGetAttribute(a, p)
	s.ok(r)
	return v
}

func memoryDevice(s *suite) {
	p := s.alloc(1000)
	require.Zero(s.T, p%256, "allocations are aligned to 256 bytes")
	base, size, r := s.CuMemGetAddressRange(p + 999)
	s.ok(r)
	require.Equal(s.T, p, base)
	require.GreaterOrEqual(s.T, size, uint64(1000))
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_DEVICE), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p+8))
	require.Equal(s.T, uint64(s.dev), s.attribute(driver.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p))
	require.Equal(s.T, uint64(s.ctx), s.attribute(driver.CU_POINTER_ATTRIBUTE_CONTEXT, p))
	require.Zero(s.T, s.attribute(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, p))
}

func memoryExhausted(s *suite) {
	_, total, r := s.CuMemGetInfo()
	s.ok(r)
	_, r = s.CuMemAlloc(2 * total)
	s.code(driver.CUDA_ERROR_OUT_OF_MEMORY, r)
	_, r = s.CuMemAlloc(0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.alloc(64) // the failure is not sticky
}

func memoryPinned(s *suite) {
	host, r := s.CuMemHostAlloc(64, driver.CU_MEMHOSTALLOC_PORTABLE|driver.CU_MEMHOSTALLOC_DEVICEMAP)
	s.ok(r)
	p := driver.CUdeviceptr(host)
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_HOST), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p))
	require.Equal(s.T, uint64(host), s.attribute(driver.CU_POINTER_ATTRIBUTE_HOST_POINTER, p))
	w := words(host, 16)
	w[3] = 7
	st := s.stream()
	s.ok(s.launch(st, s.kernel("step"), p+12, uint32(6), uint32(0)))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, uint32(42), w[3])
	s.ok(s.CuMemFreeHost(host))
}

func memoryManaged(s *suite) {
	p, r := s.CuMemAllocManaged(64, driver.CU_MEM_ATTACH_GLOBAL)
	s.ok(r)
	require.Equal(s.T, uint64(1), s.attribute(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, p))
	w := words(uintptr(p), 16)
	w[0] = 5
	st := s.stream()
	s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(1)))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, uint32(11), w[0])
	s.ok(s.CuMemFree(p))
}

func memoryPageable(s *suite) {
	b := make([]byte, 64)
	_, r := s.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID, addressOf(b))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func memoryBadFree(s *suite) {
	s.ok(s.CuMemFree(0))
	p := s.alloc(64)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFree(p+8))
	s.ok(s.CuMemFree(p))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFree(p))
}

func memoryBufferID(s *suite) {
	a, b := s.alloc(64), s.alloc(64)
	id := s.attribute(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID, a)
	require.Equal(s.T, id, s.attribute(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID, a+63))
	require.NotEqual(s.T, id, s.attribute(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID, b))
}

func memoryInfo(s *suite) {
	const size = 64 << 20
	before, _, r := s.CuMemGetInfo()
	s.ok(r)
	p, r := s.CuMemAlloc(size)
	s.ok(r)
	during, _, r := s.CuMemGetInfo()
	s.ok(r)
	require.GreaterOrEqual(s.T, before-during, uint64(size))
	s.ok(s.CuMemFree(p))
	after, _, r := s.CuMemGetInfo()
	s.ok(r)
	require.Greater(s.T, after, during)
}
