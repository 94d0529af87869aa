// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// From sm_80 on the first KiB of a block's shared memory is the system's: the
// CUDA C++ Programming Guide, "Shared Memory" of compute capability 8.x, and PTX
// ISA, "Special Registers: %reserved_smem_offset_begin …". Cooperative groups keeps
// the barriers of tiles of several warps there. The block's own memory begins
// behind it in every kernel, also in one that knows nothing of it: on an H200
// (driver 580) the first shared variable has the address 1024.
const (
	ReservedShared = 1 << 10
	// reservedUsed is how much of it programs may use: cooperative groups counts on
	// 288 bytes (details/memory.h, CUDA 13.2), and %reserved_smem_offset_end is that
	// on an H200. What lies behind can be reached by a wrong index only.
	reservedUsed = 288
)

// SetShared gives the block the memory for a launch with that many bytes of its
// own, behind those that the system reserves. Uses says that the kernel uses the
// reserved ones: to any other they are out of bounds, as they are the place of the
// elements before a variable's first one.
func (c *CTA) SetShared(size, reserved uint64, uses bool) {
	c.SharedBytes, c.SharedStart, c.reserved = size, reserved, nil
	if len(c.Shared) < int(size) {
		c.Shared = make([]byte, (size+4095)&^4095)
	}
	if uses && reserved > 0 {
		c.reserved = make([]byte, reservedUsed)
	}
}

// StartShared readies shared memory for a block: cooperative groups expects zeros
// in what is reserved, and leaves its barriers behind.
func (c *CTA) StartShared() { clear(c.reserved) }

// sharedOffset is an address in shared memory, generic or not, as an offset in the
// window.
func sharedOffset(addr uint64) uint64 {
	if addr>>memory.WindowShift == memory.SharedWindow {
		return addr - memory.SharedBase
	}
	return addr
}

// SharedPlace is where an address in shared memory lies in the block's own, counted
// from its first byte. It is negative for a place before that.
func (c *CTA) SharedPlace(addr uint64) int64 {
	off := sharedOffset(addr)
	if off>>32 == 0 { // of 32 bits, which wrap around below 0
		return int64(int32(uint32(off) - uint32(c.SharedStart)))
	}
	return int64(off - c.SharedStart)
}

// ReadsReserved reports whether a special register tells where the reserved shared
// memory is.
func ReadsReserved(id ptxir.SpecialID) bool {
	return id >= ptxir.SpecialReservedSmemBegin && id <= ptxir.SpecialReservedSmemCap
}

// The registers that tell the sizes of shared memory. PTX ISA, "Special Registers:
// %total_smem_size" and "%aggr_smem_size"; on an H200 the latter is not rounded.
func totalShared(w *Warp, _ int) uint64 {
	unit := uint64(256)
	if w.CTA.SharedStart > 0 { // from sm_80 on, as it is reserved
		unit = 128
	}
	return (w.CTA.SharedBytes + unit - 1) / unit * unit
}

func aggregateShared(w *Warp, _ int) uint64 { return w.CTA.SharedStart + w.CTA.SharedBytes }

func reservedBegin(*Warp, int) uint64 { return 0 }

func reservedEnd(w *Warp, _ int) uint64 { return min(reservedUsed, w.CTA.SharedStart) }

func reservedCap(w *Warp, _ int) uint64 { return w.CTA.SharedStart }
