// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// mma.sync multiplies matrices that the warp's lanes hold together. With
// g = lane/4, t = lane%4 and w elements in a 32-bit register (1 in a wider one)
// all shapes but m8n8k4 of halves (quarter.go) follow one rule: element i
// of register r is
//
//	A: row g + 8(r%2) (m16) or g (m8), column tw + i + 4w(r/2) (m16) or + 4wr (m8)
//	B: row tw + i + 4wr, column g
//	C, D: element j: row g + 8(j/2), column 2t + j%2
//
// The columns of a sparse A are those of the elements that are kept; where they
// stand in the whole row is in sparse.go.
//
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
//
// Products and sums are computed in f64 and rounded once at the end; hardware
// rounds partial sums of its own order, so the low bits differ. Integers are
// exact, and so is f64: an H200 too adds one product after the other, fused.

// Product is a decoded mma.
type Product struct {
	quarters   bool // four products at once
	m          *ptxir.Mma
	ir         *ptxir.Instr
	rows, k    int
	a, b, c, d fragment
	saturate   bool
	metadata   uint32 // sparse
}

// Runs reports whether NewProduct knows the shape and the layouts.
func Runs(m *ptxir.Mma) bool { return isQuarters(m) || !m.ColA && m.ColB }

func isQuarters(m *ptxir.Mma) bool { return m.K == 4 && m.A == ptxir.F16 }

// NewProduct decodes an mma that runs.
func NewProduct(ir *ptxir.Instr, place placeFn) (*Product, error) {
	m := ir.Mma
	p := &Product{m: m, ir: ir, k: m.K, rows: m.M, saturate: ir.Mod&ptxir.ModSatFinite != 0, metadata: register.None, quarters: isQuarters(m)}
	each, kept := 1, m.K
	if p.quarters {
		each = 4
	}
	rest := ir.Src
	if m.Sparse {
		kept = m.K / 2
		last := len(rest) - 1
		var err error
		if p.metadata, err = place(rest[last], ptxir.Class32); err != nil {
			return nil, err
		}
		rest = rest[:last]
	}
	for _, f := range []struct {
		to    *fragment
		typ   ptxir.Type
		count int
	}{{&p.a, m.A, m.M * kept}, {&p.b, m.B, m.K * m.N}, {&p.c, m.C, m.M * m.N}} {
		n := registersOf(f.typ, each*f.count)
		if n > len(rest) {
			return nil, fmt.Errorf("%d registers are too few", len(ir.Src))
		}
		if err := f.to.set(f.typ, rest[:n], place); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	if len(rest) != 0 || len(ir.Dst) != registersOf(m.D, each*m.M*m.N) {
		return nil, fmt.Errorf("wrong number of registers")
	}
	return p, p.d.set(m.D, ir.Dst, place)
}

const maxMma = 256 // the largest k

// Operands are the gathered operands, kept from one mma to the next because
// they are large.
type Operands struct {
	a [16][maxMma]float64
	b [8][maxMma]float64
}

// gather reads A (by rows) and B (by columns).
func (p *Product) gather(w register.File, a *[16][maxMma]float64, b *[8][maxMma]float64) {
	if p.m.Sparse {
		for row := range a {
			clear(a[row][:p.k])
		}
	}
	for l := range register.Lanes {
		g, t := l/4, l%4
		for r, o := range p.a.regs {
			row, step := g, r
			if p.rows == 16 {
				row, step = g+8*(r&1), r/2
			}
			raw := w.Value(o, p.a.wide, l)
			for i := range p.a.perReg {
				col := (t+4*step)*p.a.perReg + i
				if p.m.Sparse {
					col = p.column(w, row, col)
				}
				a[row][col] = p.a.number(raw, i)
			}
		}
		for r, o := range p.b.regs {
			raw := w.Value(o, p.b.wide, l)
			for i := range p.b.perReg {
				b[g][(t+4*r)*p.b.perReg+i] = p.b.number(raw, i)
			}
		}
	}
}

// Multiply computes the results of the lanes of m. The operands are scratch.
func (p *Product) Multiply(w register.File, scratch *Operands, m uint32) {
	if p.quarters {
		p.multiplyQuarters(w, m)
		return
	}
	a, b := &scratch.a, &scratch.b
	p.gather(w, a, b)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		g, t := l/4, l%4
		for r := range p.d.regs {
			var out uint64
			c := w.Value(p.c.regs[r*len(p.c.regs)/len(p.d.regs)], p.c.wide, l)
			for i := range p.d.perReg {
				j := r*p.d.perReg + i
				if p.c.perReg != p.d.perReg { // f16 beside f32
					c = w.Value(p.c.regs[j/p.c.perReg], p.c.wide, l)
				}
				v := p.dot(&a[g+8*(j/2)], &b[2*t+j%2], p.c.number(c, j%p.c.perReg))
				out |= p.encode(v) << (p.d.bits * i)
			}
			if p.d.wide {
				w.U64(p.d.regs[r])[l] = out
			} else {
				w.U32(p.d.regs[r])[l] = uint32(out)
			}
		}
	}
}

// dot multiplies a row and a column and adds c. D may share registers with C
// but each lane reads only its own elements, before it writes them.
func (p *Product) dot(a, b *[maxMma]float64, c float64) float64 {
	if p.m.A == ptxir.B1 {
		for i := range p.k {
			x, y := a[i] != 0, b[i] != 0
			if p.m.Op == ptxir.BoolXor && x != y || p.m.Op == ptxir.BoolAnd && x && y {
				c++
			}
		}
		return c
	}
	if p.d.typ == ptxir.F64 {
		for i := range p.k {
			c = numeric.Fma64(p.ir, a[i], b[i], c)
		}
		return c
	}
	var sum float64
	for i := range p.k {
		sum += float64(a[i] * b[i])
	}
	return sum + c
}

func (p *Product) encode(v float64) uint64 {
	switch p.d.typ {
	case ptxir.F64:
		return math.Float64bits(v)
	case ptxir.F32:
		if v != v {
			return 0x7fffffff
		}
		return uint64(math.Float32bits(float32(v)))
	case ptxir.F16:
		return uint64(numeric.RoundTo(v, numeric.Half, ptxir.RoundRN))
	}
	if p.saturate {
		return uint64(uint32(int32(min(max(v, -1<<31), 1<<31-1))))
	}
	return uint64(uint32(int64(v)))
}
