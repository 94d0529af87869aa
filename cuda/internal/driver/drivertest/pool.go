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
	"pool gives out what a queued free frees": poolQueued,
	"pool of host memory":                     poolHost,
	"pool of managed memory":                  poolManaged,
}

func (s *suite) pool(max uint64) driver.CUmemoryPool {
	s.Helper()
	p, r := s.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: 1, LocationID: int32(s.dev), MaxSize: max})
	s.ok(r)
	s.cleanup(func() { s.CuMemPoolDestroy(p) })
	return p
}

// poolOf is a pool of another kind of memory; it skips where there is none.
func (s *suite) poolOf(allocType driver.CUmemAllocationType, at driver.CUmemLocationType) driver.CUmemoryPool {
	s.Helper()
	p, r := s.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: int32(allocType), LocationType: int32(at)})
	version, vr := s.CuDriverGetVersion()
	s.ok(vr)
	if version < 13000 && r != driver.CUDA_SUCCESS {
		s.Skipf("the driver of CUDA %d has no such pool: %v", version, r)
	}
	s.ok(r)
	s.cleanup(func() {
		// Driver 580 reads freed memory if a free is queued.
		s.ok(s.CuCtxSynchronize())
		s.CuMemPoolDestroy(p)
	})
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

// poolQueued allocates behind a free that cannot run, with a pool at its limit.
func poolQueued(s *suite) {
	const limit, size = 64 << 20, 48 << 20
	st, other := s.stream(), s.stream()
	for _, c := range []struct {
		in       driver.CUstream
		depend   uint64
		expected driver.CUresult
	}{
		{st, 0, driver.CUDA_SUCCESS},
		{other, 1, driver.CUDA_SUCCESS}, // from now on it waits for st
		{other, 0, driver.CUDA_ERROR_OUT_OF_MEMORY},
	} {
		pool := s.pool(limit)
		s.ok(s.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, c.depend))
		p, r := s.CuMemAllocFromPoolAsync(size, pool, st)
		s.ok(r)
		s.ok(s.CuStreamSynchronize(st))
		gate := s.hold(st)
		s.ok(s.CuMemFreeAsync(p, st))
		p, r = s.CuMemAllocFromPoolAsync(size, pool, c.in)
		s.code(c.expected, r)
		s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
		if r == driver.CUDA_SUCCESS {
			s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(c.in))
			s.ok(s.CuMemFreeAsync(p, c.in))
		}
		gate.open()
		s.ok(s.CuCtxSynchronize())
	}
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

func poolHost(s *suite) {
	pool, st := s.poolOf(driver.CU_MEM_ALLOCATION_TYPE_PINNED, driver.CU_MEM_LOCATION_TYPE_HOST), s.stream()
	flags, r := s.CuMemPoolGetAccess(pool, onDevice(s.dev))
	s.ok(r)
	require.Equal(s.T, driver.CU_MEM_ACCESS_FLAGS_PROT_NONE, flags, "until it is granted")
	s.ok(s.CuMemPoolSetAccess(pool, []driver.CUmemAccessDesc{{Location: onDevice(s.dev), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}))
	flags, r = s.CuMemPoolGetAccess(pool, onDevice(s.dev))
	s.ok(r)
	require.Equal(s.T, driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags)
	s.hostPooled(pool, st, uint64(driver.CU_MEMORYTYPE_HOST), 0)
}

func poolManaged(s *suite) {
	st := s.stream()
	for place, preferred := range map[driver.CUmemLocationType]int32{driver.CU_MEM_LOCATION_TYPE_INVALID: noDevice, driver.CU_MEM_LOCATION_TYPE_DEVICE: int32(s.dev)} {
		pool := s.poolOf(driver.CU_MEM_ALLOCATION_TYPE_MANAGED, place)
		s.hostPooled(pool, st, uint64(driver.CU_MEMORYTYPE_DEVICE), 1)
		p, r := s.CuMemAllocFromPoolAsync(page, pool, st)
		s.ok(r)
		s.ok(s.CuStreamSynchronize(st))
		data := make([]int32, 1)
		s.ok(s.CuMemRangeGetAttribute(data, driver.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, page))
		require.Equal(s.T, preferred, data[0])
		s.ok(s.CuMemFreeAsync(p, st))
		s.ok(s.CuStreamSynchronize(st))
	}
}

// hostPooled uses memory of a pool that the host can read.
func (s *suite) hostPooled(pool driver.CUmemoryPool, st driver.CUstream, kind, managed uint64) {
	s.Helper()
	p, r := s.CuMemAllocFromPoolAsync(1<<20, pool, st)
	s.ok(r)
	require.Equal(s.T, kind, s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p))
	require.Equal(s.T, managed, s.attribute(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, p))
	s.ok(s.CuMemsetD32Async(p, 7, 1<<18, st))
	out := s.alloc(16)
	s.ok(s.CuMemcpyAsync(out, p+1024, 16, st))
	require.Equal(s.T, []uint32{7, 7, 7, 7}, s.read(out, 4))
	s.ok(s.CuStreamSynchronize(st))
	require.GreaterOrEqual(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT), uint64(1<<20))
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Zero(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
}
