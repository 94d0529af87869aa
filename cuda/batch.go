// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A BatchCopy is one copy of [MemcpyBatch].
type BatchCopy struct {
	Dst, Src, Size uint64
	// To and From are contexts of the devices whose memory Dst and Src are, if they
	// need no access to each other's: see [MemcpyPeer]. Otherwise nil.
	To, From *Context
}

// MemcpyBatch makes copies that are independent of each other, in any order. It
// calls cuMemcpyBatchAsync; or cuMemcpyAsync for each copy, in their order, where
// the driver has no batches (before CUDA 13.0), s is the legacy default stream or
// capturing, or single is true, which it has to be if a side is pageable. Before
// that it calls cuMemcpyPeerAsync for those that have contexts.
//
// Stream-ordered on s; returns before completion unless a side is pageable.
// Captured as a memcpy node for each copy. The caller must keep all memory alive
// until the copies have completed.
//
// Errors: [ErrClosed]; an [*ArgumentError] if a copy writes what another one reads
// or writes, before anything was queued; an [*Error], before which others of the
// copies may have been queued.
func MemcpyBatch(copies []BatchCopy, single bool, s *Stream) error {
	if err := disjoint(copies); err != nil {
		return err
	}
	copies = slices.DeleteFunc(slices.Clone(copies), func(c BatchCopy) bool { return c.Size == 0 })
	for _, c := range copies {
		if c.To == nil {
			continue
		}
		if err := MemcpyPeer(c.Dst, c.To, c.Src, c.From, c.Size, s); err != nil {
			return err
		}
	}
	copies = slices.DeleteFunc(copies, func(c BatchCopy) bool { return c.To != nil })
	if len(copies) == 0 {
		return s.check()
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if !single && len(copies) > 1 && s.h > driver.CU_STREAM_LEGACY {
		capturing, err := s.capturing()
		if err != nil {
			return err
		}
		if !capturing {
			r := s.memcpyBatch(copies)
			if r != driver.CUDA_ERROR_NOT_SUPPORTED {
				return s.ctx.Failure("cuMemcpyBatchAsync", int32(r), fmt.Sprintf("%d copies", len(copies)))
			}
		}
	}
	for i, c := range copies {
		r := s.ctx.drv.api.CuMemcpyAsync(driver.CUdeviceptr(c.Dst), driver.CUdeviceptr(c.Src), c.Size, s.h)
		if r != driver.CUDA_SUCCESS {
			return s.ctx.fail("cuMemcpyAsync", r, fmt.Sprintf("copy %d of %d: %d bytes from %#x to %#x", i, len(copies), c.Size, c.Src, c.Dst))
		}
	}
	return nil
}

// memcpyBatch makes one call. The stream is in use, and its context current.
func (s *Stream) memcpyBatch(copies []BatchCopy) driver.CUresult {
	dsts, srcs, sizes := make([]driver.CUdeviceptr, len(copies)), make([]driver.CUdeviceptr, len(copies)), make([]uint64, len(copies))
	for i, c := range copies {
		dsts[i], srcs[i], sizes[i] = driver.CUdeviceptr(c.Dst), driver.CUdeviceptr(c.Src), c.Size
	}
	order := []driver.CUmemcpyAttributes{{SrcAccessOrder: driver.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}}
	return s.ctx.drv.api.CuMemcpyBatchAsync(dsts, srcs, sizes, order, []uint64{0}, s.h)
}

// disjoint fails if the order of the copies would matter.
func disjoint(copies []BatchCopy) error {
	type side struct {
		from, to uint64
		copy     int
		written  bool
	}
	sides := make([]side, 0, 2*len(copies))
	for i, c := range copies {
		if c.Size > 0 {
			sides = append(sides, side{c.Dst, c.Dst + c.Size, i, true}, side{c.Src, c.Src + c.Size, i, false})
		}
	}
	slices.SortFunc(sides, func(a, b side) int {
		if a.from < b.from {
			return -1
		}
		return min(int(a.from-b.from), 1)
	})
	// The read and the written range that reach furthest so far.
	var read, written side
	for _, s := range sides {
		for _, other := range []side{written, read} {
			if other.to > s.from && (s.written || other.written) {
				return badValue("copies", "%d and %d overlap, and copies of a batch are made in any order: one writes what the other reads or writes",
					min(s.copy, other.copy), max(s.copy, other.copy))
			}
		}
		if s.written && s.to > written.to {
			written = s
		} else if !s.written && s.to > read.to {
			read = s
		}
	}
	return nil
}

// A BatchPrefetch is one prefetch of [PrefetchBatch].
type BatchPrefetch struct {
	Ptr, Size uint64
	To        Location
}

// PrefetchBatch makes prefetches in any order. It calls cuMemPrefetchBatchAsync; or
// cuMemPrefetchAsync for each, where the driver has no batches (before CUDA 13.0)
// or s is the legacy default stream.
//
// Stream-ordered on s; returns before completion. Not allowed while s is
// capturing, which goes on.
//
// Errors: as for [Prefetch]; before an [*Error] others may have been queued.
func PrefetchBatch(list []BatchPrefetch, s *Stream) error {
	const op = "cuMemPrefetchBatchAsync"
	list = slices.DeleteFunc(slices.Clone(list), func(p BatchPrefetch) bool { return p.Size == 0 })
	if len(list) == 0 {
		return s.check()
	}
	for _, p := range list {
		for _, l := range []Location{p.To, {s.ctx.dev}} {
			if err := l.usable(op); err != nil {
				return err
			}
		}
	}
	if len(list) > 1 && s.h > driver.CU_STREAM_LEGACY {
		if err := s.prefetchBatch(op, list); !isUnsupported(err) {
			return err
		}
	}
	for _, p := range list {
		if err := Prefetch(p.Ptr, p.Size, p.To, s); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) prefetchBatch(op string, list []BatchPrefetch) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if capturing, err := s.capturing(); err != nil || capturing {
		if err == nil {
			err = badValue("stream", "must not be capturing: a prefetch cannot be part of a graph")
		}
		return err
	}
	ptrs, sizes := make([]driver.CUdeviceptr, len(list)), make([]uint64, len(list))
	locations, first := make([]driver.CUmemLocation, len(list)), make([]uint64, len(list))
	for i, p := range list {
		ptrs[i], sizes[i], locations[i], first[i] = driver.CUdeviceptr(p.Ptr), p.Size, p.To.raw(), uint64(i)
	}
	r := s.ctx.drv.api.CuMemPrefetchBatchAsync(ptrs, sizes, locations, first, 0, s.h)
	return s.ctx.Failure(op, int32(r), fmt.Sprintf("%d prefetches", len(list)))
}

func isUnsupported(err error) bool { return errors.Is(err, ErrorNotSupported) }
