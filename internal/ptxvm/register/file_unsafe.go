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

// The accessors below turn an operand, which is a byte offset into the running
// frame, into the register's lanes. Decoding has checked that every operand
// lies inside the frame and has the class that its operation uses, so there is
// no check here: these are the hottest lines of the package.

func (f File) U32(o uint32) *[Lanes]uint32  { return (*[Lanes]uint32)(unsafe.Add(f.base, o)) }
func (f File) S32(o uint32) *[Lanes]int32   { return (*[Lanes]int32)(unsafe.Add(f.base, o)) }
func (f File) F32(o uint32) *[Lanes]float32 { return (*[Lanes]float32)(unsafe.Add(f.base, o)) }
func (f File) U64(o uint32) *[Lanes]uint64  { return (*[Lanes]uint64)(unsafe.Add(f.base, o)) }
func (f File) S64(o uint32) *[Lanes]int64   { return (*[Lanes]int64)(unsafe.Add(f.base, o)) }
func (f File) F64(o uint32) *[Lanes]float64 { return (*[Lanes]float64)(unsafe.Add(f.base, o)) }
func (f File) Pred(o uint32) *uint32        { return (*uint32)(unsafe.Add(f.base, o)) }

// The x8 views are for unrolled loops: constant indices into rows of 8 need no
// bounds checks.

func (f File) U32x8(o uint32) *[Lanes / 8][8]uint32 {
	return (*[Lanes / 8][8]uint32)(unsafe.Add(f.base, o))
}

func (f File) S32x8(o uint32) *[Lanes / 8][8]int32 {
	return (*[Lanes / 8][8]int32)(unsafe.Add(f.base, o))
}

func (f File) F32x8(o uint32) *[Lanes / 8][8]float32 {
	return (*[Lanes / 8][8]float32)(unsafe.Add(f.base, o))
}

func (f File) U64x8(o uint32) *[Lanes / 8][8]uint64 {
	return (*[Lanes / 8][8]uint64)(unsafe.Add(f.base, o))
}

func (f File) S64x8(o uint32) *[Lanes / 8][8]int64 {
	return (*[Lanes / 8][8]int64)(unsafe.Add(f.base, o))
}

func (f File) F64x8(o uint32) *[Lanes / 8][8]float64 {
	return (*[Lanes / 8][8]float64)(unsafe.Add(f.base, o))
}
