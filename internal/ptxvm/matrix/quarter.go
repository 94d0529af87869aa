// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// mma.m8n8k4 of halves is four products at once, the tensor cores of sm_70:
// quarter q of the warp is lanes 4q…4q+3 and 16+4q…16+4q+3. With u = lane%4 and
// h = 4 for lanes from 16 on, else 0, a lane holds of its quarter's matrices
//
//	A: row u+h, or column u from row h on if A is .col
//	B: row u from column h on, or column u+h if B is .col
//	C, D of f16: row u+h
//	C, D of f32: element i: row u%2 + (i&2) + h, column (i&4) + (u&2) + i%2
//
// PTX ISA, "Matrix fragments for mma.m8n8k4 with .f16 floating point type".

// quarters are the operands of the four products.
type quarters [4]struct {
	a [8][4]float64
	b [4][8]float64
	c [8][8]float64
}

func (p *Product) multiplyQuarters(w register.File, m uint32) {
	var x quarters
	for l := range register.Lanes {
		p.gatherQuarter(w, &x, l)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		q := &x[l/4%4]
		for r, o := range p.d.regs {
			var out uint32
			for i := range p.d.perReg {
				row, col := quarterPlace(p.d.typ, l, r*p.d.perReg+i)
				sum := 0.0
				for k := range q.b {
					sum += float64(q.a[row][k] * q.b[k][col])
				}
				out |= uint32(p.encode(sum+q.c[row][col])) << (p.d.bits * i)
			}
			w.U32(o)[l] = out
		}
	}
}

// gatherQuarter reads a lane's elements.
func (p *Product) gatherQuarter(w register.File, x *quarters, l int) {
	q, u, h := &x[l/4%4], l%4, l/16*4
	for i := range 4 {
		a := p.a.number(uint64(w.U32(p.a.regs[i/2])[l]), i%2)
		if p.m.ColA {
			q.a[h+i][u] = a
		} else {
			q.a[u+h][i] = a
		}
		b := p.b.number(uint64(w.U32(p.b.regs[i/2])[l]), i%2)
		if p.m.ColB {
			q.b[i][u+h] = b
		} else {
			q.b[u][h+i] = b
		}
	}
	for i := range 8 {
		row, col := quarterPlace(p.c.typ, l, i)
		q.c[row][col] = p.c.number(uint64(w.U32(p.c.regs[i/p.c.perReg])[l]), i%p.c.perReg)
	}
}

// quarterPlace is where element i of a lane's C or D stands.
func quarterPlace(t ptxir.Type, l, i int) (row, col int) {
	u, h := l%4, l/16*4
	if t == ptxir.F16 {
		return u + h, i
	}
	return u&1 + i&2 + h, i&4 + u&2 + i&1
}
