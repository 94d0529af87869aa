// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "slices"

// wmmaMma lowers wmma.mma d, a, b, c to one mma.sync for each tile of d.
func wmmaMma(b *body) {
	b.count(4)
	t := b.v.types
	d, ab, c := t[0], F16, t[len(t)-1]
	if len(t) == 4 {
		ab = t[1]
	}
	ops := b.ins.Operands
	fd, fa, fb, fc := b.wmmaFragment('c', d), b.wmmaFragment('a', ab), b.wmmaFragment('b', ab), b.wmmaFragment('c', c)
	// Products of halves are summed in f32 unless c and d are halves.
	sum := d
	if c != d {
		sum = F32
	}
	to := fd.operands(b, &ops[0], b.dest)
	ra, rb := fa.operands(b, &ops[1], b.source), fb.operands(b, &ops[2], b.source)
	rc := b.converted(fc.operands(b, &ops[3], b.source)[:len(fc.regs)], c, sum)
	result := to[:len(fd.regs)]
	if sum != d {
		result = b.room(2 * len(to))
		for range rc {
			result = append(result, b.newReg(sum))
		}
	}
	m := &Mma{D: sum, A: ab, B: ab, C: sum, ColB: true}
	for _, w := range []string{"xor", "and"} {
		if b.v.has(w) {
			m.Op = words[w].bool
		}
	}
	b.wmmaTiles(Instr{Op: OpMma, Type: sum, Mod: b.v.mod & ModSatFinite, Round: b.v.round, Mma: m}, result, ra, rb, rc)
	if sum != d {
		for i, r := range b.converted(result, sum, d) {
			b.emit(Instr{Op: OpMov, Type: B32, Dst: b.regs(to[i]), Src: b.regs(r)})
		}
	}
}

// converted changes the registers of a fragment between f16 and f32.
func (b *body) converted(list []Reg, from, to Type) []Reg {
	if from == to {
		return list
	}
	var out []Reg
	for i := 0; i < len(list); i++ {
		low, high := b.newReg(to), b.newReg(to)
		if to == F32 {
			l, h := b.newReg(F16), b.newReg(F16)
			b.emitPlain(Instr{Op: OpUnpack, Type: B32, Dst: b.regs(l, h), Src: b.regs(list[i])})
			b.emitPlain(Instr{Op: OpCvt, Type: F32, From: F16, Dst: b.regs(low), Src: b.regs(l)})
			b.emitPlain(Instr{Op: OpCvt, Type: F32, From: F16, Dst: b.regs(high), Src: b.regs(h)})
			out = append(out, low, high)
			continue
		}
		b.emitPlain(Instr{Op: OpCvt, Type: F16, From: F32, Round: RoundRN, Dst: b.regs(low), Src: b.regs(list[i])})
		b.emitPlain(Instr{Op: OpCvt, Type: F16, From: F32, Round: RoundRN, Dst: b.regs(high), Src: b.regs(list[i+1])})
		packed := b.newReg(B32)
		b.emitPlain(Instr{Op: OpPack, Type: B32, Dst: b.regs(packed), Src: b.regs(low, high)})
		out = append(out, packed)
		i++
	}
	return out
}

// wmmaTiles emits an mma for each tile of the result. Where the matrix has 8
// rows the lower half of a tile is zero and its results are dropped.
func (b *body) wmmaTiles(in Instr, rd, ra, rb, rc []Reg) {
	m, n, k := b.wmmaShape()
	mm := in.Mma
	mm.M, mm.N, mm.K = min(max(m, 16), 16), 8, k
	if mm.A == F64 || mm.A.Bits() < 8 {
		mm.M = 8
	}
	ta, tb, tc := wmmaTile['a'][mm.A], wmmaTile['b'][mm.B], wmmaTile['c'][mm.D]
	half := m == 8 && mm.M == 16
	kept := func(t tile) (n int) {
		for _, reg := range t.regs {
			if m > 8 || reg[0].row < 8 {
				n++
			}
		}
		return n
	}
	na, nb, nc := kept(ta), len(tb.regs), kept(tc)
	for i := range max(m/16, 1) {
		for j := range n / 8 {
			at := (i*(n/8) + j) * nc
			step := in
			step.Dst = b.filled(tc, rd[at:at+nc], half, mm.D, true)
			step.Src = slices.Concat(
				b.filled(ta, ra[i*na:(i+1)*na], half, B32, false), rb[j*nb:(j+1)*nb],
				b.filled(tc, rc[at:at+nc], half, mm.D, false))
			b.emit(step)
		}
	}
}

// filled returns the registers of a whole tile: those of rows 8 to 15 are zero
// or scratch where the matrix has none.
func (b *body) filled(t tile, list []Reg, half bool, typ Type, scratch bool) []Reg {
	if !half {
		return list
	}
	if typ != F32 {
		typ = B32
	}
	var whole []Reg
	for _, reg := range t.regs {
		switch {
		case reg[0].row == 0:
			whole = append(whole, list[0])
			list = list[1:]
		case scratch:
			whole = append(whole, b.newReg(typ))
		default:
			whole = append(whole, b.constReg(typ, 0))
		}
	}
	return whole
}
