// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"sort"
)

// hostRange is host memory that kernels may touch.
type hostRange struct {
	base, size uint64
	kind       Kind
	readOnly   bool
	count      int
	// reach is the furthest end of this and all earlier ranges: a search that
	// walks down from an address stops where nothing reaches it any more.
	reach uint64
}

// hostRanges is sorted by base, size, and whether the range may be written.
// Ranges may overlap, as views of one NumPy array do.
type hostRanges struct{ list []hostRange }

func (h *hostRanges) index(base, size uint64, readOnly bool) (int, bool) {
	return sort.Find(len(h.list), func(i int) int {
		r := &h.list[i]
		switch {
		case base != r.base:
			return compare(base, r.base)
		case size != r.size:
			return compare(size, r.size)
		case readOnly == r.readOnly:
			return 0
		case readOnly:
			return 1
		}
		return -1
	})
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (h *hostRanges) add(base, size uint64, kind Kind, readOnly bool) {
	i, found := h.index(base, size, readOnly)
	if found {
		h.list[i].count++
		// The stronger kind wins: what is pinned stays pinned when it is also
		// lent as pageable memory.
		h.list[i].kind = min(h.list[i].kind, kind)
		return
	}
	h.list = slices.Insert(h.list, i, hostRange{base: base, size: size, kind: kind, readOnly: readOnly, count: 1})
	h.spread(i)
}

// remove reports whether the range is gone.
func (h *hostRanges) remove(base, size uint64, readOnly bool) bool {
	i, found := h.index(base, size, readOnly)
	if !found {
		return false
	}
	if h.list[i].count--; h.list[i].count > 0 {
		return false
	}
	h.list = slices.Delete(h.list, i, i+1)
	h.spread(i)
	return true
}

// spread recomputes reach from index i on.
func (h *hostRanges) spread(i int) {
	var reach uint64
	if i > 0 {
		reach = h.list[i-1].reach
	}
	for ; i < len(h.list); i++ {
		reach = max(reach, h.list[i].base+h.list[i].size)
		h.list[i].reach = reach
	}
}

// find returns a range that contains all of [addr, addr+size): one that may be
// written, if there is one.
func (h *hostRanges) find(addr, size uint64) (found hostRange, ok bool) {
	i := sort.Search(len(h.list), func(i int) bool { return h.list[i].base > addr }) - 1
	for ; i >= 0 && h.list[i].reach > addr; i-- {
		r := h.list[i]
		if off := addr - r.base; off < r.size && size <= r.size-off {
			if found, ok = r, true; !r.readOnly {
				break
			}
		}
	}
	return found, ok
}
