// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"encoding/binary"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Tile is an 8x8 matrix of 16-bit elements, of which lane l holds the elements
// 2(l%4) and the next of row l/4, or of column l/4 if transposed.
type Tile [8][8]uint16

// Spread gives the lanes their two elements of a matrix.
func (x *Tile) Spread(w register.File, o uint32, trans bool, m uint32) {
	d := w.U32(o)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		row, col := l/4, l%4*2
		if trans {
			d[l] = uint32(x[col][row]) | uint32(x[col+1][row])<<16
		} else {
			d[l] = uint32(x[row][col]) | uint32(x[row][col+1])<<16
		}
	}
}

// Gather is the inverse of spread, without transposition.
func Gather(w register.File, o uint32) (x Tile) {
	a := w.U32(o)
	for l, v := range a {
		x[l/4][l%4*2], x[l/4][l%4*2+1] = uint16(v), uint16(v>>16)
	}
	return x
}

// SetRow takes a row from memory.
func (x *Tile) SetRow(row int, from *[16]byte) {
	for col := range x[row] {
		x[row][col] = binary.LittleEndian.Uint16(from[2*col:])
	}
}

// StoredRow is the row of a matrix that stmatrix writes.
func StoredRow(w register.File, ir *ptxir.Instr, o uint32, row int) (out [16]byte) {
	if ir.From == ptxir.B8 {
		return storedBytes(w, o, row)
	}
	x := Gather(w, o)
	for col := range 8 {
		v := x[row][col]
		if ir.Mod&ptxir.ModTrans != 0 {
			v = x[col][row]
		}
		binary.LittleEndian.PutUint16(out[2*col:], v)
	}
	return out
}
