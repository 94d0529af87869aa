// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

// The wmma instructions leave open which lane holds which element. Here a
// fragment is the fragments of mma.sync tiles one after the other, so that
// wmma.mma is a few mma.sync, and wmma.load and wmma.store are ordinary loads
// and stores of the elements that a lane holds.
//
// PTX ISA, "Matrix multiply-accumulate operation using wmma instructions", and
// the fragments of m16n8k16, m16n8k8 and m8n8k4 under "mma".

// tile says which elements of a tile a lane's registers hold. Lane l, with
// g = l/4 and t = l%4, has element (g+row, t*step+col) of A and C, and element
// (t*step+row, g+col) of B.
type tile struct {
	step int
	regs [][]element
}

type element struct{ row, col int }

var (
	tileA16  = tile{2, [][]element{{{0, 0}, {0, 1}}, {{8, 0}, {8, 1}}, {{0, 8}, {0, 9}}, {{8, 8}, {8, 9}}}}
	tileB16  = tile{2, [][]element{{{0, 0}, {1, 0}}, {{8, 0}, {9, 0}}}}
	tileA8   = tile{4, [][]element{{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, {{8, 0}, {8, 1}, {8, 2}, {8, 3}}}}
	tileB8   = tile{4, [][]element{{{0, 0}, {1, 0}, {2, 0}, {3, 0}}}}
	tileA32  = tile{1, [][]element{{{0, 0}}, {{8, 0}}, {{0, 4}}, {{8, 4}}}}
	tileB32  = tile{1, [][]element{{{0, 0}}, {{4, 0}}}}
	tileA64  = tile{1, [][]element{{{0, 0}}}}
	tileC16  = tile{2, [][]element{{{0, 0}, {0, 1}}, {{8, 0}, {8, 1}}}}
	tileC32  = tile{2, [][]element{{{0, 0}}, {{0, 1}}, {{8, 0}}, {{8, 1}}}}
	tileC64  = tile{2, [][]element{{{0, 0}}, {{0, 1}}}}
	wmmaTile = map[byte]map[Type]tile{
		'a': {F16: tileA16, BF16: tileA16, S8: tileA8, U8: tileA8, TF32: tileA32, F64: tileA64},
		'b': {F16: tileB16, BF16: tileB16, S8: tileB8, U8: tileB8, TF32: tileB32, F64: tileA64},
		'c': {F16: tileC16, F32: tileC32, S32: tileC32, F64: tileC64},
	}
)

// fragment is a matrix of a wmma instruction: its tiles in the order of its
// registers.
type fragment struct {
	typ        Type
	name       byte // 'a', 'b' or 'c'
	tile       tile
	rows, cols int
	// regs are the elements of each register, at their place in the matrix.
	regs [][]element
}

// wmmaShape is the m, n and k of the instruction.
func (b *body) wmmaShape() (m, n, k int) {
	for _, w := range b.v.words {
		if strings.HasPrefix(w, "m") && strings.Contains(w, "n") {
			return shape(w)
		}
	}
	panic("BUG: wmma without a shape")
}

func (b *body) wmmaFragment(name byte, t Type) fragment {
	m, n, k := b.wmmaShape()
	tl, ok := wmmaTile[name][t]
	if !ok || (k == 4) != (t == F64) || name != 'c' && (k == 8) != (t == TF32) {
		b.invalid("%s: the shape does not exist for .%s", b.ins.Mnemonic, t)
	}
	f := fragment{typ: t, name: name, tile: tl}
	high, wide := 16, 8 // of a tile
	switch name {
	case 'a':
		f.rows, f.cols, wide = m, k, k
	case 'b':
		f.rows, f.cols, high = k, n, k
	default:
		f.rows, f.cols = m, n
	}
	for row := 0; row < f.rows; row += high {
		for col := 0; col < f.cols; col += wide {
			for _, reg := range tl.regs {
				if f.rows == 8 && reg[0].row == 8 && name != 'b' {
					continue // beyond a matrix of 8 rows
				}
				place := make([]element, len(reg))
				for i, e := range reg {
					place[i] = element{row + e.row, col + e.col}
				}
				f.regs = append(f.regs, place)
			}
		}
	}
	return f
}

// registerType is the type of a fragment's registers.
func (f fragment) registerType() Type {
	switch {
	case f.typ == F64 || f.typ == F32:
		return f.typ
	}
	return B32
}

// operands returns the registers of a fragment. It may have more than are
// needed, which then repeat the others: those of f16 always have eight.
func (f fragment) operands(b *body, x *ptx.Operand, get func(*ptx.Operand, Type) Reg) []Reg {
	if x.Kind != ptx.OperandVector || len(x.Elems) < len(f.regs) || len(x.Elems) > max(8, len(f.regs)) {
		b.invalid("%s needs a vector of %d registers for the matrix %c", b.ins.Mnemonic, len(f.regs), f.name)
	}
	list := b.room(len(x.Elems))
	for i := range x.Elems {
		list = append(list, get(&x.Elems[i], f.registerType()))
	}
	return list
}

// wmmaLoad lowers wmma.load r, [p] [, stride].
func wmmaLoad(b *body) {
	b.count(2, 3)
	name := byte('c')
	for _, w := range []string{"a", "b"} {
		if b.v.has(w) {
			name = w[0]
		}
	}
	f := b.wmmaFragment(name, b.v.typ())
	to := f.operands(b, &b.ins.Operands[0], b.dest)
	walk := b.wmmaAddresses(f, &b.ins.Operands[1], 2)
	for i, r := range to {
		list := f.regs[i%len(f.regs)]
		parts := b.room(len(list))
		for _, e := range list {
			parts = append(parts, walk.load(e))
		}
		if len(parts) == 1 {
			b.emit(Instr{Op: OpMov, Type: f.registerType(), Dst: b.regs(r), Src: parts})
			continue
		}
		b.emit(Instr{Op: OpPack, Type: B32, Dst: b.regs(r), Src: parts})
	}
}

// wmmaStore lowers wmma.store [p], r [, stride].
func wmmaStore(b *body) {
	b.count(2, 3)
	f := b.wmmaFragment('c', b.v.typ())
	from := f.operands(b, &b.ins.Operands[1], b.source)
	walk := b.wmmaAddresses(f, &b.ins.Operands[0], 2)
	for i, list := range f.regs {
		if len(list) == 1 {
			walk.store(list[0], from[i])
			continue
		}
		low, high := b.newReg(B16), b.newReg(B16)
		b.emitPlain(Instr{Op: OpUnpack, Type: B32, Dst: b.regs(low, high), Src: b.regs(from[i])})
		walk.store(list[0], low)
		walk.store(list[1], high)
	}
}

// wmmaWalk makes the addresses of one lane's elements.
type wmmaWalk struct {
	b     *body
	typ   Type // of an element in memory
	space Space
	wide  Type // of addresses
	lane  Reg  // address of the lane's first element
	// pitch is the bytes between rows or columns, whichever are not adjacent.
	pitch Reg
	byRow bool
	// at holds lane plus a multiple of pitch.
	at map[int]Reg
}

// wmmaAddresses computes where the lane's elements begin. The stride is the
// operand at index stride; without one the matrix is dense.
func (b *body) wmmaAddresses(f fragment, p *ptx.Operand, stride int) *wmmaWalk {
	var in Instr
	base := b.addressOf(&in, p)
	w := &wmmaWalk{
		b: b, space: in.Space, byRow: b.v.has("row"), at: map[int]Reg{}, wide: U32,
		typ: map[int]Type{1: B8, 2: B16, 4: B32, 8: B64}[f.typ.Size()],
	}
	if b.f.Regs[base] == Class64 {
		w.wide = U64
	}
	dense := f.cols
	if !w.byRow {
		dense = f.rows
	}
	elements := b.constReg(U32, uint64(dense))
	if len(b.ins.Operands) > stride {
		elements = b.source(&b.ins.Operands[stride], U32)
	}
	size := b.constReg(w.wide, uint64(f.typ.Size()))
	w.pitch = b.wideOp(OpMul, w.wide, b.resized(elements, w.wide), size)
	lane := b.special(SpecialLaneid, U32, U32)
	major := b.wideOp(OpShr, U32, lane, b.constReg(U32, 2))
	minor := b.wideOp(OpAnd, B32, lane, b.constReg(U32, 3))
	minor = b.wideOp(OpMul, U32, minor, b.constReg(U32, uint64(f.tile.step)))
	row, col := b.resized(major, w.wide), b.resized(minor, w.wide)
	if f.name == 'b' {
		row, col = col, row
	}
	if !w.byRow {
		row, col = col, row
	}
	w.lane = b.wideOp(OpAdd, w.wide, base, b.wideOp(OpMul, w.wide, row, w.pitch))
	w.lane = b.wideOp(OpAdd, w.wide, w.lane, b.wideOp(OpMul, w.wide, col, size))
	if in.Imm != 0 {
		w.lane = b.wideOp(OpAdd, w.wide, w.lane, b.constReg(w.wide, uint64(in.Imm)&(1<<(8*w.wide.Size()-1)<<1-1)))
	}
	w.at[0] = w.lane
	return w
}

// resized extends a 32-bit register to the width of addresses.
func (b *body) resized(r Reg, t Type) Reg {
	if t == U32 {
		return r
	}
	wide := b.newReg(t)
	b.emitPlain(Instr{Op: OpCvt, Type: t, From: U32, Dst: b.regs(wide), Src: b.regs(r)})
	return wide
}

// address returns register and offset of an element.
func (w *wmmaWalk) address(e element) (r Reg, offset int64) {
	n, rest := e.row, e.col
	if !w.byRow {
		n, rest = e.col, e.row
	}
	r, ok := w.at[n]
	if !ok {
		r = w.b.wideOp(OpAdd, w.wide, w.lane, w.b.wideOp(OpMul, w.wide, w.pitch, w.b.constReg(w.wide, uint64(n))))
		w.at[n] = r
	}
	return r, int64(rest * w.typ.Size())
}

func (w *wmmaWalk) load(e element) Reg {
	r, offset := w.address(e)
	d := w.b.newReg(w.typ)
	w.b.emit(Instr{Op: OpLd, Type: w.typ, Space: w.space, Imm: offset, Dst: w.b.regs(d), Src: w.b.regs(r)})
	return d
}

func (w *wmmaWalk) store(e element, value Reg) {
	r, offset := w.address(e)
	w.b.emit(Instr{Op: OpSt, Type: w.typ, Space: w.space, Imm: offset, Src: w.b.regs(r, value)})
}

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
		for range len(rc) {
			result = append(result, b.newReg(sum))
		}
	}
	b.wmmaTiles(Instr{Op: OpMma, Type: sum, Mod: b.v.mod & ModSatFinite, Mma: &Mma{D: sum, A: ab, B: ab, C: sum, ColB: true}}, result, ra, rb, rc)
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
	if in.Mma.A == F64 {
		mm.M = 8
	}
	ta, tb, tc := wmmaTile['a'][mm.A], wmmaTile['b'][mm.B], wmmaTile['c'][mm.D]
	half := m == 8 && mm.M == 16
	kept := func(t tile) int {
		if half {
			return len(t.regs) / 2
		}
		return len(t.regs)
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
