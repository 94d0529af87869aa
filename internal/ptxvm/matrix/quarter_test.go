// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// TestMmaQuarters multiplies the four pairs of matrices of m8n8k4 with halves.
func TestMmaQuarters(t *testing.T) {
	for i, types := range []string{"f32.f16.f16.f32", "f16.f16.f16.f16", "f32.f16.f16.f16"} {
		for j, layouts := range []string{"row.col", "row.row", "col.row", "col.col"} {
			t.Run(types+"."+layouts, func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				var a, b [2][register.Lanes]uint64
				var c, want [][register.Lanes]uint64
				var x *mmaCase
				for q := range 4 {
					x = newMmaCase(t, mmaShape{"m8n8k4", types, ""}, r)
					placeQuarter(a[:], x.a, q, layouts[:3] == "col")
					placeQuarter(b[:], x.b, q, layouts[4:] == "row")
					c = placeSums(c, x.c, x.tc, q)
					want = placeSums(want, x.product(x.a), x.td, q)
				}
				require.Equal(t, want, x.run(t, layouts, a[:], b[:], c, len(want)))
			})
		}
	}
}

// placeQuarter gives a quarter of the warp an A, or the columns of a B, of 8x4:
// a lane has a row, or half a column if across.
func placeQuarter(regs [][register.Lanes]uint64, x [][]int, q int, across bool) {
	for n := range 8 { // of the quarter's lanes
		l := 4*q + n%4 + n/4*16
		for i := range 4 {
			v := x[n][i]
			if across {
				v = x[n/4*4+i][n%4]
			}
			regs[i/2][l] |= element(ptxir.F16, v) << (i % 2 * 16)
		}
	}
}

// placeSums does it for C and D: with f32, the bits of lane and element number
// alternate in those of row and column.
func placeSums(regs [][register.Lanes]uint64, x [][]int, t ptxir.Type, q int) [][register.Lanes]uint64 {
	perReg := 32 / t.Bits()
	if regs == nil {
		regs = make([][register.Lanes]uint64, 8/perReg)
	}
	bit := func(v, i int) int { return v >> i & 1 }
	for n := range 8 {
		l := 4*q + n%4 + n/4*16
		for i := range 8 {
			row, col := n, i
			if t == ptxir.F32 {
				row = bit(n, 2)<<2 | bit(i, 1)<<1 | bit(n, 0)
				col = bit(i, 2)<<2 | bit(n, 1)<<1 | bit(i, 0)
			}
			regs[i/perReg][l] |= element(t, x[row][col]) << (i % perReg * t.Bits())
		}
	}
	return regs
}
