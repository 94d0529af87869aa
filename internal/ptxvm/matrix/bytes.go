// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Matrices of bytes have rows of 16 bytes in memory. With g = lane/4 and
// t = lane%4 a lane holds, as mma wants it,
//
//	ldmatrix m8n16:         bytes 4t…4t+3 of row g
//	ldmatrix m16n16.trans:  rows 4t…4t+3 of column g, and in the next register of column g+8
//	stmatrix m16n8.trans:   rows 2t and 2t+1 of column g, then of column g+8
//
// PTX ISA, "ldmatrix" and "stmatrix". Which lane holds what was taken from how
// CUTLASS describes these instructions, not from a GPU: they need an sm_100a.

// Unpacked turns a row into bytes. Elements of 4 or 6 bits, which padding follows,
// get a byte each; a row of bytes stays as it is.
func Unpacked(row *[16]byte, mode ptxir.Mode) (out [16]byte) {
	switch mode {
	case ptxir.ModePacked4:
		for i := range out {
			out[i] = row[i/2] >> (i % 2 * 4) & 0xf
		}
	case ptxir.ModePacked6:
		for i := range out {
			bit := 6 * i
			out[i] = byte((uint(row[bit/8])|uint(row[bit/8+1])<<8)>>(bit%8)) & 0x3f
		}
	default:
		out = *row
	}
	return out
}

// Rows are the rows of up to four matrices of bytes, unpacked.
type Rows [register.Lanes][16]byte

// Spread gives the lanes their bytes of matrix j, which are register j.
func (rows *Rows) Spread(w register.File, o uint32, j int, m uint32) {
	d := w.U32(o)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		row := &rows[8*j+l/4]
		t := l % 4 * 4
		d[l] = uint32(row[t]) | uint32(row[t+1])<<8 | uint32(row[t+2])<<16 | uint32(row[t+3])<<24
	}
}

// SpreadTall is spread of matrices of 16x16, each of which takes two registers.
func (rows *Rows) SpreadTall(w register.File, o uint32, j int, m uint32) {
	d := w.U32(o)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		first, col := j/2*16+l%4*4, l/4+j%2*8
		d[l] = uint32(rows[first][col]) | uint32(rows[first+1][col])<<8 |
			uint32(rows[first+2][col])<<16 | uint32(rows[first+3][col])<<24
	}
}

// storedBytes is a row of bytes that stmatrix writes.
func storedBytes(w register.File, o uint32, row int) (out [16]byte) {
	a := w.U32(o)
	for col := range out {
		out[col] = byte(a[col%8*4+row/2] >> (8 * (row%2 + col/8*2)))
	}
	return out
}
