// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"math/bits"
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
	tileWord = tile{1, [][]element{{{0, 0}}}}
	tileC16  = tile{2, [][]element{{{0, 0}, {0, 1}}, {{8, 0}, {8, 1}}}}
	tileC32  = tile{2, [][]element{{{0, 0}}, {{0, 1}}, {{8, 0}}, {{8, 1}}}}
	tileC64  = tile{2, [][]element{{{0, 0}}, {{0, 1}}}}
	wmmaTile = map[byte]map[Type]tile{
		'a': {F16: tileA16, BF16: tileA16, S8: tileA8, U8: tileA8, TF32: tileA32, F64: tileA64, S4: tileWord, U4: tileWord, B1: tileWord},
		'b': {F16: tileB16, BF16: tileB16, S8: tileB8, U8: tileB8, TF32: tileB32, F64: tileA64, S4: tileWord, U4: tileWord, B1: tileWord},
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
	// packed is how many elements of less than 8 bits stand for one here: tile,
	// rows, cols and regs count them by words of 32 bits.
	packed int
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
	if !ok || !wmmaHas(name, t, k) {
		b.invalid("%s: the shape does not exist for .%s", b.ins.Mnemonic, t)
	}
	f := fragment{typ: t, name: name, tile: tl, packed: 1}
	if t.Bits() < 8 {
		f.packed = 32 / t.Bits()
		if load := b.v.has("a") || b.v.has("b"); load && b.v.has("row") != (name == 'a') {
			b.invalid("%s: a is .row and b is .col", b.ins.Mnemonic)
		}
	}
	high, wide := 16, 8 // of a tile
	switch name {
	case 'a':
		f.rows, f.cols, wide = m, k/f.packed, k
	case 'b':
		f.rows, f.cols, high = k/f.packed, n, k
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

// wmmaHas reports whether a shape with k columns of A takes a type.
func wmmaHas(name byte, t Type, k int) bool {
	if name == 'c' {
		switch k {
		case 4:
			return t == F64
		case 8:
			return t == F32
		case 32, 128:
			return t == S32
		}
		return t != F64
	}
	want, ok := map[Type]int{F64: 4, TF32: 8, S4: 32, U4: 32, B1: 128}[t]
	if !ok {
		want = 16
	}
	return k == want
}

// registerType is the type of a fragment's registers.
func (f fragment) registerType() Type {
	if f.typ == F64 || f.typ == F32 {
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
		typ: map[int]Type{0: B32, 1: B8, 2: B16, 4: B32, 8: B64}[f.typ.Size()],
	}
	if b.f.Regs[base] == Class64 {
		w.wide = U64
	}
	dense := f.cols
	if !w.byRow {
		dense = f.rows
	}
	elements := b.constReg(U32, uint64(dense*f.packed))
	if len(b.ins.Operands) > stride {
		elements = b.source(&b.ins.Operands[stride], U32)
	}
	size := b.constReg(w.wide, uint64(w.typ.Size()))
	w.pitch = b.wideOp(OpMul, w.wide, b.resized(elements, w.wide), size)
	if f.packed > 1 {
		w.pitch = b.wideOp(OpShr, w.wide, w.pitch, b.constReg(U32, uint64(bits.TrailingZeros(uint(f.packed)))))
	}
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
