// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var batches = map[string]func(*suite){
	"batch of copies copies all":            batchCopies,
	"batch of copies comes in its order":    batchOrder,
	"batch of copies refuses what is wrong": batchRefused,
	"batch of prefetches moves all":         batchPrefetches,
}

var inStreamOrder = []driver.CUmemcpyAttributes{{SrcAccessOrder: driver.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}}

// copies is a batch of copies between device memory, in the order of st.
func (s *suite) copies(dsts, srcs []driver.CUdeviceptr, sizes []uint64, st driver.CUstream) driver.CUresult {
	s.Helper()
	r := s.CuMemcpyBatchAsync(dsts, srcs, sizes, inStreamOrder, []uint64{0}, st)
	if r == driver.CUDA_ERROR_NOT_SUPPORTED {
		s.Skip("the driver has no batches of copies")
	}
	return r
}

func batchCopies(s *suite) {
	st, from, to := s.stream(), s.alloc(64), s.alloc(64)
	for i := range 4 {
		s.ok(s.CuMemsetD32Async(from+driver.CUdeviceptr(16*i), uint32(i), 4, st))
	}
	s.ok(s.CuMemsetD32Async(to, 9, 16, st))
	s.ok(s.copies(
		[]driver.CUdeviceptr{to, to + 16, to + 48},
		[]driver.CUdeviceptr{from + 48, from + 16, from},
		[]uint64{16, 8, 4}, st))
	require.Equal(s.T, []uint32{3, 3, 3, 3, 1, 1, 9, 9, 9, 9, 9, 9, 0, 9, 9, 9}, s.read(to, 16))
}

func batchOrder(s *suite) {
	st, p, q := s.stream(), s.word(1), s.word(2)
	gate := s.hold(st)
	s.ok(s.CuMemsetD32Async(p, 5, 1, st))
	s.ok(s.copies([]driver.CUdeviceptr{q}, []driver.CUdeviceptr{p}, []uint64{4}, st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
	gate.open()
	s.same(5, q)
}

func batchRefused(s *suite) {
	st, p, q := s.stream(), s.word(1), s.word(2)
	one, other := []driver.CUdeviceptr{p}, []driver.CUdeviceptr{q}
	s.ok(s.copies(one, other, []uint64{4}, st))
	for _, r := range []driver.CUresult{
		s.CuMemcpyBatchAsync(one, other, []uint64{4}, inStreamOrder, []uint64{0}, 0),
		s.CuMemcpyBatchAsync(one, other, []uint64{4}, inStreamOrder, []uint64{1}, st),
		s.CuMemcpyBatchAsync(one, other, []uint64{4}, make([]driver.CUmemcpyAttributes, 1), []uint64{0}, st),
	} {
		s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	}
}

func batchPrefetches(s *suite) {
	p, st := s.managed(), s.stream()
	q := s.managed()
	here := driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: int32(s.dev)}
	host := driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_HOST}
	r := s.CuMemPrefetchBatchAsync([]driver.CUdeviceptr{p, q}, []uint64{1 << 16, 1 << 16}, []driver.CUmemLocation{here, host}, []uint64{0, 1}, 0, st)
	if r == driver.CUDA_ERROR_NOT_SUPPORTED {
		s.Skip("the driver has no batches of prefetches")
	}
	s.ok(r)
	s.ok(s.CuStreamSynchronize(st))
	for i, want := range []int32{int32(s.dev), -1} {
		at := make([]int32, 1)
		s.ok(s.CuMemRangeGetAttribute(at, driver.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, []driver.CUdeviceptr{p, q}[i], 1<<16))
		require.Equal(s.T, want, at[0])
	}
}
