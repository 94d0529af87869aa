// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package register

import "unsafe"

// The lanes of a warp, and the sizes of registers.
const (
	Lanes = 32
	Full  = ^uint32(0) // the mask of all lanes

	rowPred = 8 // bytes of register memory, by class
	row32   = 4 * Lanes
	Row64   = 8 * Lanes
)

// A File is the register memory of one frame. A register is a row of 32 lanes;
// a predicate is a mask.
type File struct{ base unsafe.Pointer }

// At is the file that begins at a byte offset of a stack of frames.
func At(stack []uint64, o uint32) File {
	return File{unsafe.Add(unsafe.Pointer(unsafe.SliceData(stack)), o)}
}

// The methods below give a register's lanes their Go type. The operand is a byte
// offset into the running frame. Decoding has checked that it lies inside the
// frame and has the class that its operation uses, so there is no check here:
// these are the hottest lines of the simulator.

// U32 is for 32-bit registers, and for 16-bit ones, which have rows as wide.
func (f File) U32(o uint32) *[Lanes]uint32 { return (*[Lanes]uint32)(unsafe.Add(f.base, o)) }

// S32 is U32 with signed lanes.
func (f File) S32(o uint32) *[Lanes]int32 { return (*[Lanes]int32)(unsafe.Add(f.base, o)) }

// F32 is U32 with lanes of f32.
func (f File) F32(o uint32) *[Lanes]float32 { return (*[Lanes]float32)(unsafe.Add(f.base, o)) }

// U64 is for 64-bit registers.
func (f File) U64(o uint32) *[Lanes]uint64 { return (*[Lanes]uint64)(unsafe.Add(f.base, o)) }

// S64 is U64 with signed lanes.
func (f File) S64(o uint32) *[Lanes]int64 { return (*[Lanes]int64)(unsafe.Add(f.base, o)) }

// F64 is U64 with lanes of f64.
func (f File) F64(o uint32) *[Lanes]float64 { return (*[Lanes]float64)(unsafe.Add(f.base, o)) }

// Pred is for predicates, which are masks of lanes.
func (f File) Pred(o uint32) *uint32 { return (*uint32)(unsafe.Add(f.base, o)) }

// U32x8 is U32 in groups of 8, for unrolled loops: a constant index into a group
// needs no bounds check.
func (f File) U32x8(o uint32) *[Lanes / 8][8]uint32 {
	return (*[Lanes / 8][8]uint32)(unsafe.Add(f.base, o))
}

// S32x8 is S32 in groups of 8.
func (f File) S32x8(o uint32) *[Lanes / 8][8]int32 {
	return (*[Lanes / 8][8]int32)(unsafe.Add(f.base, o))
}

// F32x8 is F32 in groups of 8.
func (f File) F32x8(o uint32) *[Lanes / 8][8]float32 {
	return (*[Lanes / 8][8]float32)(unsafe.Add(f.base, o))
}

// U64x8 is U64 in groups of 8.
func (f File) U64x8(o uint32) *[Lanes / 8][8]uint64 {
	return (*[Lanes / 8][8]uint64)(unsafe.Add(f.base, o))
}

// S64x8 is S64 in groups of 8.
func (f File) S64x8(o uint32) *[Lanes / 8][8]int64 {
	return (*[Lanes / 8][8]int64)(unsafe.Add(f.base, o))
}

// F64x8 is F64 in groups of 8.
func (f File) F64x8(o uint32) *[Lanes / 8][8]float64 {
	return (*[Lanes / 8][8]float64)(unsafe.Add(f.base, o))
}
