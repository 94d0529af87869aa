// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// None is the offset of an absent register operand.
const None = ^uint32(0)

// Class is ptxir.Class with a value for "none".
type Class uint8

// The classes.
const (
	ClassNone Class = iota
	ClassPred
	Class16
	Class32
	Class64
)

// ClassOf returns the Class of a register that exists.
func ClassOf(c ptxir.Class) Class { return Class(c) + 1 }

// RowBytes is the size of a register of a class, with all lanes.
func RowBytes(c ptxir.Class) uint32 {
	switch c {
	case ptxir.ClassPred:
		return rowPred
	case ptxir.Class64:
		return Row64
	}
	return row32
}

// Raw is a lane of a register as 64 bits.
func (f File) Raw(o uint32, c Class, l int) uint64 {
	if c == Class64 {
		return f.U64(o)[l]
	}
	return uint64(f.U32(o)[l])
}

// SetRaw gives a lane of a register the low bits of a value.
func (f File) SetRaw(o uint32, c Class, l int, v uint64) {
	switch c {
	case Class64:
		f.U64(o)[l] = v
	case Class16:
		f.U32(o)[l] = uint32(uint16(v))
	default:
		f.U32(o)[l] = uint32(v)
	}
}

// SetPred gives lanes of a predicate one value.
func (f File) SetPred(d uint32, v bool, mask uint32) {
	p := f.Pred(d)
	*p &^= mask
	if v {
		*p |= mask
	}
}

// Fill gives lanes of a register one value.
func (f File) Fill(o uint32, class ptxir.Class, v uint64, m uint32) {
	switch class {
	case ptxir.ClassPred:
		f.SetPred(o, v&1 != 0, m)
	case ptxir.Class64:
		f.broadcast64(o, v, m)
	case ptxir.Class16:
		f.Broadcast32(o, uint32(uint16(v)), m)
	default:
		f.Broadcast32(o, uint32(v), m)
	}
}

func (f File) broadcast64(o uint32, v uint64, m uint32) {
	d := f.U64(o)
	if m == Full {
		for l := range d {
			d[l] = v
		}
		return
	}
	for ; m != 0; m &= m - 1 {
		d[bits.TrailingZeros32(m)&31] = v
	}
}

// Broadcast32 gives lanes of a register one value.
func (f File) Broadcast32(o, v, m uint32) {
	d := f.U32(o)
	if m == Full {
		for l := range d {
			d[l] = v
		}
		return
	}
	for ; m != 0; m &= m - 1 {
		d[bits.TrailingZeros32(m)&31] = v
	}
}

// Value returns a lane of a 32-bit register, or of a 64-bit one if it is wide.
func (f File) Value(o uint32, wide bool, l int) uint64 {
	if wide {
		return f.U64(o)[l]
	}
	return uint64(f.U32(o)[l])
}
