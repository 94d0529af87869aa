// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// sharedOffset returns where in the window of shared memory an address of the access
// is.
func (a *access) sharedOffset(addr uint64) (off uint64, ok bool) {
	switch addr >> memory.WindowShift {
	case 0:
		return addr, a.space == ptxir.SpaceShared
	case memory.SharedWindow:
		return addr - memory.SharedBase, true
	}
	return 0, false
}

// allWritten is check for the case that only uninitialized reads of shared memory
// can be found. It looks at neighbouring lanes together, and returns false if it
// has found such a read: check then looks lane by lane.
func (v *Block) allWritten(w *lane.Warp, a *access, m uint32) bool {
	var start, end uint64
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		off, ok := a.sharedOffset(a.address(w, l))
		size := a.sizeIn(w, l)
		switch {
		case !ok || size == 0 || off >= start && off+size <= end:
		case off == end:
			end += size
		default:
			if !v.writtenRange(a, start, end) {
				return false
			}
			start, end = off, off+size
		}
	}
	return v.writtenRange(a, start, end)
}

// writtenRange notes or checks a range that allWritten has put together. It ignores
// what is out of bounds.
func (v *Block) writtenRange(a *access, start, end uint64) bool {
	reserved := v.cta.SharedStart
	if end <= reserved { // see shared
		return true
	}
	start, end = start-reserved, end-reserved
	if end > v.cta.SharedBytes || start > end {
		return false
	}
	if !a.kind.Writes() || a.reads {
		if n, _ := v.written.Missing(start, end-start); n > 0 {
			return false
		}
	}
	if a.kind.Writes() {
		v.written.Define(start, end-start)
	}
	return true
}
