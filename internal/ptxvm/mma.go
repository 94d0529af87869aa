// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
)

// mma.sync multiplies matrices that the warp's lanes hold together. With
// g = lane/4, t = lane%4 and w elements in a 32-bit register (1 in a wider one)
// all shapes but m8n8k4 of halves (mma_quarter.go) follow one rule: element i
// of register r is
//
//	A: row g + 8(r%2) (m16) or g (m8), column tw + i + 4w(r/2) (m16) or + 4wr (m8)
//	B: row tw + i + 4wr, column g
//	C, D: element j: row g + 8(j/2), column 2t + j%2
//
// The columns of a sparse A are those of the elements that are kept; where they
// stand in the whole row is in mma_sparse.go.
//
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
//
// Products and sums are computed in f64 and rounded once at the end; hardware
// rounds partial sums of its own order, so the low bits differ. Integers are
// exact, and so is f64: an H200 too adds one product after the other, fused.

// fragment says how a matrix is spread over registers.
type fragment struct {
	typ    ptxir.Type
	bits   int // of an element
	regs   []uint32
	wide   bool // Class64 registers
	perReg int
}

func (s *selection) mma() error {
	ir, in := s.ir, s.in
	m := ir.Mma
	if m == nil {
		return errNoExecutor
	}
	p := &product{m: m, ir: ir, k: m.K, rows: m.M, saturate: ir.Mod&ptxir.ModSatFinite != 0, metadata: noOperand}
	each, kept := 1, m.K
	in.fn = mma
	if m.K == 4 && m.A == ptxir.F16 {
		each, in.fn = 4, mmaQuarters
	} else if m.ColA || !m.ColB {
		return errNoExecutor
	}
	rest := ir.Src
	if m.Sparse {
		kept = m.K / 2
		last := len(rest) - 1
		if err := s.take(&p.metadata, rest[last], class32); err != nil {
			return err
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
			return fmt.Errorf("%d registers are too few", len(ir.Src))
		}
		if err := s.fragment(f.to, f.typ, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if len(rest) != 0 || len(ir.Dst) != registersOf(m.D, each*m.M*m.N) {
		return fmt.Errorf("wrong number of registers")
	}
	in.product = p
	return s.fragment(&p.d, m.D, ir.Dst)
}

// registersOf is how many registers of a lane hold its share of n elements.
func registersOf(t ptxir.Type, n int) int {
	return n / lanes * t.Bits() / max(32, t.Bits())
}

func (s *selection) fragment(f *fragment, t ptxir.Type, regs []ptxir.Reg) error {
	f.typ, f.bits = t, t.Bits()
	f.wide = f.bits == 64
	f.perReg = max(1, 32/f.bits)
	class := ptxir.Class32
	if f.wide {
		class = ptxir.Class64
	}
	for _, r := range regs {
		o, err := s.d.operand(r, class)
		if err != nil {
			return err
		}
		f.regs = append(f.regs, o)
	}
	return nil
}

// product is a decoded mma.
type product struct {
	m          *ptxir.Mma
	ir         *ptxir.Instr
	rows, k    int
	a, b, c, d fragment
	saturate   bool
	metadata   uint32 // sparse
}

// number decodes element i of a register.
func (f *fragment) number(raw uint64, i int) float64 {
	switch f.typ {
	case ptxir.F64:
		return math.Float64frombits(raw)
	case ptxir.F32:
		return float64(math.Float32frombits(uint32(raw)))
	case ptxir.TF32: // the low bits are ignored
		return float64(math.Float32frombits(uint32(raw) &^ 0x1fff))
	case ptxir.F16:
		return float64(numeric.FromHalf(uint16(raw >> (16 * i))))
	case ptxir.BF16:
		return float64(numeric.FromBFloat(uint16(raw >> (16 * i))))
	case ptxir.E4M3:
		return valuesE4M3()[uint8(raw>>(8*i))]
	case ptxir.E5M2:
		return valuesE5M2()[uint8(raw>>(8*i))]
	}
	v := raw >> (f.bits * i) << (64 - f.bits)
	if f.typ.Signed() {
		return float64(int64(v) >> (64 - f.bits))
	}
	return float64(v >> (64 - f.bits))
}

// The 256 numbers of 8 bits each have.
var (
	valuesE4M3 = sync.OnceValue(func() *[256]float64 { return allValues(numeric.E4m3) })
	valuesE5M2 = sync.OnceValue(func() *[256]float64 { return allValues(numeric.E5m2) })
)

func allValues(f numeric.Format) *[256]float64 {
	var list [256]float64
	for i := range list {
		list[i] = f.Value(uint16(i))
	}
	return &list
}

const maxMma = 256 // the largest k

// mmaOperands are the gathered operands, kept from one mma to the next because
// they are large.
type mmaOperands struct {
	a [16][maxMma]float64
	b [8][maxMma]float64
}

// gather reads A (by rows) and B (by columns).
func (p *product) gather(w *warp, a *[16][maxMma]float64, b *[8][maxMma]float64) {
	if p.m.Sparse {
		for row := range a {
			clear(a[row][:p.k])
		}
	}
	for l := range lanes {
		g, t := l/4, l%4
		for r, o := range p.a.regs {
			row, step := g, r
			if p.rows == 16 {
				row, step = g+8*(r&1), r/2
			}
			raw := w.register(o, p.a.wide, l)
			for i := range p.a.perReg {
				col := (t+4*step)*p.a.perReg + i
				if p.m.Sparse {
					col = p.column(w, row, col)
				}
				a[row][col] = p.a.number(raw, i)
			}
		}
		for r, o := range p.b.regs {
			raw := w.register(o, p.b.wide, l)
			for i := range p.b.perReg {
				b[g][(t+4*r)*p.b.perReg+i] = p.b.number(raw, i)
			}
		}
	}
}

func (w *warp) register(o uint32, wide bool, l int) uint64 {
	if wide {
		return w.u64(o)[l]
	}
	return uint64(w.u32(o)[l])
}

func mma(w *warp, in *inst, m uint32) {
	p := in.product
	if w.cta.operands == nil {
		w.cta.operands = new(mmaOperands)
	}
	a, b := &w.cta.operands.a, &w.cta.operands.b
	p.gather(w, a, b)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		g, t := l/4, l%4
		for r := range p.d.regs {
			var out uint64
			c := w.register(p.c.regs[r*len(p.c.regs)/len(p.d.regs)], p.c.wide, l)
			for i := range p.d.perReg {
				j := r*p.d.perReg + i
				if p.c.perReg != p.d.perReg { // f16 beside f32
					c = w.register(p.c.regs[j/p.c.perReg], p.c.wide, l)
				}
				v := p.dot(&a[g+8*(j/2)], &b[2*t+j%2], p.c.number(c, j%p.c.perReg))
				out |= p.encode(v) << (p.d.bits * i)
			}
			if p.d.wide {
				w.u64(p.d.regs[r])[l] = out
			} else {
				w.u32(p.d.regs[r])[l] = uint32(out)
			}
		}
	}
}

// dot multiplies a row and a column and adds c. D may share registers with C
// but each lane reads only its own elements, before it writes them.
func (p *product) dot(a, b *[maxMma]float64, c float64) float64 {
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

func (p *product) encode(v float64) uint64 {
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
