// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var exhaustions = map[string]func(*suite){
	"allocation larger than any memory leaves nothing behind": exhaustSizes,
	"pool keeps its counts when an allocation fails":          exhaustPool,
	"graph's allocation that fails leaves no node":            exhaustGraph,
}

// tooMuch is more memory than a device has; absurd are sizes that no rounding
// and no sum of theirs fits into 64 bits.
const tooMuch = 1 << 44

var absurd = []uint64{1 << 63, 1<<63 + 2<<20, 1<<64 - 2<<20, 1<<64 - 1}

// allocators are calls that allocate. What succeeded by mistake is the test's
// failure, and not freed.
func (s *suite) allocators() map[string]func(size uint64) driver.CUresult {
	st, own := s.stream(), s.pool(0)
	return map[string]func(uint64) driver.CUresult{
		"cuMemAlloc":      func(n uint64) driver.CUresult { _, r := s.CuMemAlloc(n); return r },
		"cuMemAllocAsync": func(n uint64) driver.CUresult { _, r := s.CuMemAllocAsync(n, st); return r },
		"cuMemAllocFromPoolAsync": func(n uint64) driver.CUresult {
			_, r := s.CuMemAllocFromPoolAsync(n, own, st)
			return r
		},
		"cuMemCreate": func(n uint64) driver.CUresult { _, r := s.CuMemCreate(n, s.prop(), 0); return r },
		"cuMemHostAlloc": func(n uint64) driver.CUresult {
			if n == tooMuch {
				return driver.CUDA_ERROR_OUT_OF_MEMORY // the host is not to be tried
			}
			_, r := s.CuMemHostAlloc(n, 0)
			return r
		},
		"cuMemAllocManaged": func(n uint64) driver.CUresult {
			if n == tooMuch {
				return driver.CUDA_ERROR_OUT_OF_MEMORY // managed memory may exceed a device's
			}
			_, r := s.CuMemAllocManaged(n, driver.CU_MEM_ATTACH_GLOBAL)
			return r
		},
	}
}

func exhaustSizes(s *suite) {
	st := s.stream()
	for name, allocate := range s.allocators() {
		before, _, r := s.CuMemGetInfo()
		s.ok(r)
		require.Equal(s.T, driver.CUDA_ERROR_OUT_OF_MEMORY, allocate(tooMuch), name)
		for _, size := range absurd {
			require.NotEqual(s.T, driver.CUDA_SUCCESS, allocate(size), "%s of %d bytes", name, size)
		}
		after, _, r := s.CuMemGetInfo()
		s.ok(r)
		require.GreaterOrEqual(s.T, after+64<<20, before, name) // others may use the device meanwhile
		p, r := s.CuMemAllocAsync(32<<20, st)
		s.ok(r)
		s.ok(s.CuMemFreeAsync(p, st))
		s.alloc(32 << 20)
	}
	for _, size := range absurd {
		_, r := s.CuMemAddressReserve(size, 0, 0, 0)
		require.NotEqual(s.T, driver.CUDA_SUCCESS, r, "addresses: %d bytes", size)
	}
	_, r := s.CuMemAddressReserve(s.granularity(), 1<<63, 0, 0)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r, "alignment")
	s.addresses(s.granularity())
}

func exhaustPool(s *suite) {
	pool, st := s.pool(0), s.stream()
	s.ok(s.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1<<64-1))
	p, r := s.CuMemAllocFromPoolAsync(1<<20, pool, st)
	s.ok(r)
	counts := []driver.CUmemPool_attribute{
		driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH,
		driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, driver.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
	}
	var before []uint64
	for _, a := range counts {
		before = append(before, s.poolAttribute(pool, a))
	}
	for _, size := range append([]uint64{tooMuch}, absurd...) {
		_, r := s.CuMemAllocFromPoolAsync(size, pool, st)
		require.NotEqual(s.T, driver.CUDA_SUCCESS, r, "%d bytes", size)
	}
	for i, a := range counts {
		require.Equal(s.T, before[i], s.poolAttribute(pool, a), "attribute %d", a)
	}
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

func exhaustGraph(s *suite) {
	g := s.graph()
	for _, size := range absurd {
		_, r := s.CuGraphAddMemAllocNode(g, nil, graphAllocation(size))
		require.NotEqual(s.T, driver.CUDA_SUCCESS, r, "%d bytes", size)
	}
	list, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Empty(s.T, list)
	s.allocating(g, 7)
}
