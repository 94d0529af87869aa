// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	var rest []batchItem
	for i, c := range copies {
		item := batchItem{i, c}
		switch {
		case c.Size == 0:
		case c.To == nil:
			rest = append(rest, item)
		default:
			if err := MemcpyPeer(c.Dst, c.To, c.Src, c.From, c.Size, s); err != nil {
				return fmt.Errorf("copy %d: %w", i, err)
			}
		}
	}
	if len(rest) == 0 {
		return s.check()
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if !single && len(rest) > 1 && s.h > driver.CU_STREAM_LEGACY {
		capturing, err := s.capturing()
		if err != nil {
			return err
		}
		if !capturing {
			r := s.memcpyBatch(rest)
			if r != driver.CUDA_ERROR_NOT_SUPPORTED {
				return s.refused("cuMemcpyBatchAsync", r, rest)
			}
		}
	}
	for _, c := range rest {
		r := s.ctx.drv.api.CuMemcpyAsync(driver.CUdeviceptr(c.Dst), driver.CUdeviceptr(c.Src), c.Size, s.h)
		if err := s.refused("cuMemcpyAsync", r, []batchItem{c}); err != nil {
			return err
		}
	}
	return nil
}

// A batchItem is a copy and its place among all that were asked for.
type batchItem struct {
	index int
	BatchCopy
}

// String returns what the copy is called in errors.
func (c batchItem) String() string {
	return fmt.Sprintf("copy %d: %d bytes from %#x to %#x", c.index, c.Size, c.Src, c.Dst)
}

// refused says which of some copies the driver refused, as far as can be told: it
// does not say itself. Nil for success.
//
// Preconditions: the context of s is current.
func (s *Stream) refused(op string, r driver.CUresult, copies []batchItem) error {
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	for _, c := range copies {
		for i, side := range []uint64{c.Dst, c.Src} {
			if r == driver.CUDA_ERROR_INVALID_VALUE && !s.ctx.holds(side, c.Size) {
				return s.ctx.fail(op, r, fmt.Sprintf("%v, and its %s is not inside memory that the driver knows", c, []string{"dst", "src"}[i]))
			}
		}
	}
	return s.ctx.fail(op, r, amongAll(copies))
}

// holds reports whether the driver knows of the first and the last byte of memory.
// It does not know of pageable memory.
//
// Preconditions: c is current.
func (c *Context) holds(ptr, size uint64) bool {
	for _, at := range []uint64{ptr, ptr + size - 1} {
		_, r := c.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, driver.CUdeviceptr(at))
		if r == driver.CUDA_ERROR_INVALID_VALUE {
			return false
		}
	}
	return true
}

// amongAll returns what errors say of items, one of which was refused.
func amongAll[T fmt.Stringer](items []T) string {
	const most = 8
	if len(items) == 1 {
		return items[0].String()
	}
	var names []string
	for _, it := range items[:min(len(items), most)] {
		names = append(names, it.String())
	}
	if len(items) > most {
		names = append(names, fmt.Sprintf("or one of %d more", len(items)-most))
	}
	return "one of " + strings.Join(names, "; ")
}

// memcpyBatch makes one call. The stream is in use, and its context current.
func (s *Stream) memcpyBatch(copies []batchItem) driver.CUresult {
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
			sides = append(sides, side{c.Dst, c.Dst + c.Size, i, true})
		}
		if c.Size > 0 && c.Src != c.Dst {
			sides = append(sides, side{c.Src, c.Src + c.Size, i, false})
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
				return overlapping(copies, min(s.copy, other.copy), max(s.copy, other.copy))
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

func overlapping(copies []BatchCopy, i, j int) error {
	if i == j {
		return badValue("copies", "must not read what they write: src and dst of %v overlap", batchItem{i, copies[i]})
	}
	return badValue("copies", "%d and %d overlap, and copies of a batch are made in any order: one writes what the other reads or writes; %v; %v",
		i, j, batchItem{i, copies[i]}, batchItem{j, copies[j]})
}

// A BatchPrefetch is one prefetch of [PrefetchBatch].
type BatchPrefetch struct {
	Ptr, Size uint64
	To        Location
}

// A prefetchItem is a prefetch and its place among all that were asked for.
type prefetchItem struct {
	index int
	BatchPrefetch
}

// String returns what the prefetch is called in errors.
func (p prefetchItem) String() string {
	return fmt.Sprintf("prefetch %d: %d bytes at %#x to %v", p.index, p.Size, p.Ptr, p.To)
}

// PrefetchBatch makes prefetches in any order. It calls cuMemPrefetchBatchAsync; or
// cuMemPrefetchAsync for each, where the driver has no batches (before CUDA 13.0)
// or s is the legacy default stream.
//
// Stream-ordered on s; returns before completion. Not allowed while s is
// capturing, which goes on.
//
// Errors: as for [Prefetch], with the index of the prefetch; before an [*Error]
// others may have been queued.
func PrefetchBatch(list []BatchPrefetch, s *Stream) error {
	const op = "cuMemPrefetchBatchAsync"
	var items []prefetchItem
	for i, p := range list {
		if p.Size > 0 {
			items = append(items, prefetchItem{i, p})
		}
	}
	if len(items) == 0 {
		return s.check()
	}
	if err := (Location{s.ctx.dev}).usable(op); err != nil {
		return err
	}
	for _, p := range items {
		if err := p.To.usable(op); err != nil {
			return fmt.Errorf("prefetch %d: %w", p.index, err)
		}
	}
	if len(items) > 1 && s.h > driver.CU_STREAM_LEGACY {
		if err := s.prefetchBatch(op, items); !isUnsupported(err) {
			return err
		}
	}
	for _, p := range items {
		err := Prefetch(p.Ptr, p.Size, p.To, s)
		var call *Error
		switch {
		case errors.As(err, &call):
			return fmt.Errorf("prefetch %d: %w", p.index, err)
		case err != nil: // of the stream
			return err
		}
	}
	return nil
}

func (s *Stream) prefetchBatch(op string, list []prefetchItem) error {
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
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	return s.ctx.fail(op, r, s.unmanaged(list))
}

// unmanaged says which of some prefetches was refused, as far as can be told.
func (s *Stream) unmanaged(list []prefetchItem) string {
	for _, p := range list {
		for _, at := range []uint64{p.Ptr, p.Ptr + p.Size - 1} {
			managed, r := s.ctx.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, driver.CUdeviceptr(at))
			if managed == 0 && (r == driver.CUDA_SUCCESS || r == driver.CUDA_ERROR_INVALID_VALUE) {
				return fmt.Sprintf("%v, which is not inside managed memory", p)
			}
		}
	}
	return amongAll(list)
}

func isUnsupported(err error) bool { return errors.Is(err, ErrorNotSupported) }
