// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import "unsafe"

const (
	lanes = 32
	full  = ^uint32(0) // the mask of all lanes

	rowPred = 8 // bytes of register memory, by class
	row32   = 4 * lanes
	row64   = 8 * lanes
)

// The accessors below turn an operand, which is a byte offset into the running
// frame, into the register's lanes. Decoding has checked that every operand
// lies inside the frame and has the class that its operation uses, so there is
// no check here: these are the hottest lines of the package.

func (w *warp) u32(o uint32) *[lanes]uint32  { return (*[lanes]uint32)(unsafe.Add(w.regs, o)) }
func (w *warp) s32(o uint32) *[lanes]int32   { return (*[lanes]int32)(unsafe.Add(w.regs, o)) }
func (w *warp) f32(o uint32) *[lanes]float32 { return (*[lanes]float32)(unsafe.Add(w.regs, o)) }
func (w *warp) u64(o uint32) *[lanes]uint64  { return (*[lanes]uint64)(unsafe.Add(w.regs, o)) }
func (w *warp) s64(o uint32) *[lanes]int64   { return (*[lanes]int64)(unsafe.Add(w.regs, o)) }
func (w *warp) f64(o uint32) *[lanes]float64 { return (*[lanes]float64)(unsafe.Add(w.regs, o)) }
func (w *warp) pred(o uint32) *uint32        { return (*uint32)(unsafe.Add(w.regs, o)) }

// The x8 views are for unrolled loops: constant indices into rows of 8 need no
// bounds checks.

func (w *warp) u32x8(o uint32) *[lanes / 8][8]uint32 {
	return (*[lanes / 8][8]uint32)(unsafe.Add(w.regs, o))
}

func (w *warp) s32x8(o uint32) *[lanes / 8][8]int32 {
	return (*[lanes / 8][8]int32)(unsafe.Add(w.regs, o))
}

func (w *warp) f32x8(o uint32) *[lanes / 8][8]float32 {
	return (*[lanes / 8][8]float32)(unsafe.Add(w.regs, o))
}

func (w *warp) u64x8(o uint32) *[lanes / 8][8]uint64 {
	return (*[lanes / 8][8]uint64)(unsafe.Add(w.regs, o))
}

func (w *warp) s64x8(o uint32) *[lanes / 8][8]int64 {
	return (*[lanes / 8][8]int64)(unsafe.Add(w.regs, o))
}

func (w *warp) f64x8(o uint32) *[lanes / 8][8]float64 {
	return (*[lanes / 8][8]float64)(unsafe.Add(w.regs, o))
}

// frameAt returns the register memory at a byte offset of the warp's stack.
func (w *warp) frameAt(o uint32) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(w.stack)), o)
}

// site returns the cached range of a memory instruction. Each worker has its
// own, so no lock is needed.
func (w *warp) site(i uint32) *site { return &w.cta.sites[i] }

// sharedHost is the host address of the block's shared memory.
func (c *context) sharedHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.shared)) }

// localHost is the host address of the first thread's local memory.
func (c *context) localHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.local)) }

// paramHost is the host address of the launch's parameter block.
func (c *context) paramHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.params)) }
