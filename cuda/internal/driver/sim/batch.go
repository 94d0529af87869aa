// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

// batch checks what calls for batches have in common: a stream that is not the
// legacy default one, and groups that begin with the first item.
func (d *simulator) batch(h driver.CUstream, items, sizes, groups int, first []uint64) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if s.isLegacy || items == 0 || sizes != items || groups == 0 || groups != len(first) || first[0] != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for i, at := range first {
		if at >= uint64(items) || i > 0 && at <= first[i-1] {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	return driver.CUDA_SUCCESS
}

// CuMemcpyBatchAsync makes the copies in their order. If one fails, those before
// it have been queued.
func (d *simulator) CuMemcpyBatchAsync(dsts, srcs []driver.CUdeviceptr, sizes []uint64, attrs []driver.CUmemcpyAttributes, first []uint64, s driver.CUstream) driver.CUresult {
	if r := d.batch(s, len(dsts), len(sizes), len(attrs), first); r != driver.CUDA_SUCCESS {
		return r
	}
	if len(srcs) != len(dsts) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for _, a := range attrs {
		if a.SrcAccessOrder < driver.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || a.SrcAccessOrder > driver.CU_MEMCPY_SRC_ACCESS_ORDER_ANY || a.Flags > 1 {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	for i := range dsts {
		if r := d.CuMemcpyAsync(dsts[i], srcs[i], sizes[i], s); r != driver.CUDA_SUCCESS {
			return r
		}
	}
	return driver.CUDA_SUCCESS
}

// CuMemPrefetchBatchAsync makes the prefetches in their order.
func (d *simulator) CuMemPrefetchBatchAsync(ptrs []driver.CUdeviceptr, sizes []uint64, locations []driver.CUmemLocation, first []uint64, flags uint64, s driver.CUstream) driver.CUresult {
	if r := d.batch(s, len(ptrs), len(sizes), len(locations), first); r != driver.CUDA_SUCCESS {
		return r
	}
	if flags != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	group := 0
	for i := range ptrs {
		if group+1 < len(first) && uint64(i) == first[group+1] {
			group++
		}
		if r := d.CuMemPrefetchAsync(ptrs[i], sizes[i], locations[group], 0, s); r != driver.CUDA_SUCCESS {
			return r
		}
	}
	return driver.CUDA_SUCCESS
}
