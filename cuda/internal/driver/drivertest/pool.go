// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var pools = map[string]func(*suite){
	"pool memory is usable in stream order":   poolOrder,
	"pool counts what is used and reserved":   poolCounts,
	"pool keeps what its threshold says":      poolThreshold,
	"pool of one's own":                       poolOwn,
	"pool attributes have CUDA's defaults":    poolDefaults,
	"pool's limit is kept":                    poolLimit,
	"default pool cannot be destroyed":        poolDefault,
	"pool memory can be freed without stream": poolFree,
}

func (s *suite) pool(max uint64) driver.CUmemoryPool {
	s.Helper()
	p, r := s.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: 1, LocationID: int32(s.dev), MaxSize: max})
	s.ok(r)
	s.cleanup(func() { s.CuMemPoolDestroy(p) })
	return p
}

func (s *suite) poolAttribute(p driver.CUmemoryPool, a driver.CUmemPool_attribute) uint64 {
	s.Helper()
	v, r := s.CuMemPoolGetAttribute(p, a)
	s.ok(r)
	return v
}

func poolOrder(s *suite) {
	st, out := s.stream(), s.alloc(16)
	for i := range uint32(8) {
		p, r := s.CuMemAllocAsync(1<<20, st)
		s.ok(r)
		s.ok(s.CuMemsetD32Async(p, i, 1<<18, st))
		s.ok(s.CuMemcpyAsync(out, p+1024, 16, st))
		s.ok(s.CuMemFreeAsync(p, st))
	}
	require.Equal(s.T, []uint32{7, 7, 7, 7}, s.read(out, 4))
}

func poolCounts(s *suite) {
	pool, st := s.pool(0), s.stream()
	p, r := s.CuMemAllocFromPoolAsync(3<<20, pool, st)
	s.ok(r)
	s.ok(s.CuStreamSynchronize(st))
	require.GreaterOrEqual(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT), uint64(3<<20))
	require.GreaterOrEqual(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), uint64(3<<20))
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Zero(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
	require.GreaterOrEqual(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH), uint64(3<<20))
	s.ok(s.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0))
	require.Zero(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 5))
}

func poolThreshold(s *suite) {
	pool, st := s.pool(0), s.stream()
	s.ok(s.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1<<62))
	p, r := s.CuMemAllocFromPoolAsync(4<<20, pool, st)
	s.ok(r)
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
	require.GreaterOrEqual(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), uint64(4<<20))
	s.ok(s.CuMemPoolTrimTo(pool, 0))
	require.Zero(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))
}

func poolOwn(s *suite) {
	pool, st := s.pool(0), s.stream()
	p, r := s.CuMemAllocFromPoolAsync(64, pool, st)
	s.ok(r)
	s.ok(s.CuMemsetD32Async(p, 1, 16, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_DEVICE), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p))
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

func poolDefaults(s *suite) {
	pool := s.pool(0)
	require.Zero(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD))
	for _, a := range []driver.CUmemPool_attribute{
		driver.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
		driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
		driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
	} {
		require.Equal(s.T, uint64(1), s.poolAttribute(pool, a))
		s.ok(s.CuMemPoolSetAttribute(pool, a, 0))
		require.Zero(s.T, s.poolAttribute(pool, a))
	}
}

func poolLimit(s *suite) {
	pool, st := s.pool(32<<20), s.stream()
	_, r := s.CuMemAllocFromPoolAsync(1<<30, pool, st)
	s.code(driver.CUDA_ERROR_OUT_OF_MEMORY, r)
	p, r := s.CuMemAllocFromPoolAsync(1<<20, pool, st)
	s.ok(r)
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

func poolDefault(s *suite) {
	pool, r := s.CuDeviceGetDefaultMemPool(s.dev)
	s.ok(r)
	require.NotZero(s.T, pool)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.CuMemPoolDestroy(pool))
}

func poolFree(s *suite) {
	st := s.stream()
	p, r := s.CuMemAllocAsync(64, st)
	s.ok(r)
	s.ok(s.CuStreamSynchronize(st))
	s.ok(s.CuMemFree(p))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFreeAsync(p, st))
}
