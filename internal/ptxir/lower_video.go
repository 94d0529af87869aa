// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"math"
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

const (
	videoTypes  = "s32.s32.s32 s32.s32.u32 s32.u32.s32 s32.u32.u32 u32.s32.s32 u32.s32.u32 u32.u32.s32 u32.u32.u32"
	shiftTypes  = "s32.s32.u32 s32.u32.u32 u32.s32.u32 u32.u32.u32"
	secondaryOp = "add|min|max"
)

// videoForms are the Scalar Video Instructions. They become ordinary
// instructions on 64 bits, in which nothing overflows.
var videoForms = []form{
	{name: "vadd", types: videoTypes, words: "sat " + secondaryOp, op: OpAdd, lower: video},
	{name: "vsub", types: videoTypes, words: "sat " + secondaryOp, op: OpSub, lower: video},
	{name: "vabsdiff", types: videoTypes, words: "sat " + secondaryOp, op: OpSad, lower: video},
	{name: "vmin", types: videoTypes, words: "sat " + secondaryOp, op: OpMin, lower: video},
	{name: "vmax", types: videoTypes, words: "sat " + secondaryOp, op: OpMax, lower: video},
	{name: "vshl", types: shiftTypes, words: "sat clamp|wrap! " + secondaryOp, op: OpShl, lower: video},
	{name: "vshr", types: shiftTypes, words: "sat clamp|wrap! " + secondaryOp, op: OpShr, lower: video},
	{name: "vset", types: "s32.s32 s32.u32 u32.s32 u32.u32", words: "eq|ne|lt|le|gt|ge! " + secondaryOp, op: OpSetp, lower: vset},
	{name: "vmad", types: videoTypes, words: "po sat shr7|shr15", op: OpMad, lower: vmad},
}

// wideOp emits an instruction on 64-bit integers and returns its result.
func (b *body) wideOp(op Op, t Type, src ...Reg) Reg {
	d := b.newReg(t)
	in := Instr{Op: op, Type: t, Dst: b.regs(d), Src: b.regs(src...)}
	if op == OpMul {
		in.Mode = ModeLo
	}
	b.emitPlain(in)
	return d
}

func (b *body) wideConst(n int64) Reg { return b.constReg(S64, uint64(n)) }

// selected returns a source in 64 bits: the byte, half or word that its
// component names, extended by its type.
func (b *body) selected(x *ptx.Operand, t Type) Reg {
	plain := *x
	plain.Component, plain.Minus = "", false
	r := b.source(&plain, t)
	d := b.newReg(S64)
	b.emitPlain(Instr{Op: OpCvt, Type: S64, From: t, Dst: b.regs(d), Src: b.regs(r)})
	if x.Component == "" {
		return d
	}
	pos, bits := b.part(x)
	from := U64
	if t.Signed() {
		from = S64
	}
	return b.wideOp(OpBfe, from, d, b.constReg(U32, pos), b.constReg(U32, bits))
}

// part is the position and width of a component.
func (b *body) part(x *ptx.Operand) (pos, bits uint64) {
	if c := x.Component; len(c) == 2 {
		n := uint64(c[1] - '0')
		switch {
		case c[0] == 'b' && n < 4:
			return 8 * n, 8
		case c[0] == 'h' && n < 2:
			return 16 * n, 16
		}
	}
	b.invalid("%s has no part .%s", x.Name, x.Component)
	return 0, 0
}

// video lowers vadd, vsub, vabsdiff, vmin, vmax, vshl and vshr.
//
// PTX ISA, "Scalar Video Instructions".
func video(b *body) {
	b.count(3, 4)
	ops, t := b.ins.Operands, b.v.types
	a, c := b.selected(&ops[1], t[1]), b.selected(&ops[2], t[2])
	var r Reg
	switch op := b.v.form.op; op {
	case OpSad:
		r = b.wideOp(OpAbs, S64, b.wideOp(OpSub, S64, a, c))
	case OpShl, OpShr:
		r = b.videoShift(op, a, c)
	default:
		r = b.wideOp(op, S64, a, c)
	}
	b.videoResult(r, t[0])
}

func (b *body) videoShift(op Op, a, n Reg) Reg {
	if b.v.has("clamp") {
		n = b.wideOp(OpMin, U64, n, b.wideConst(32))
	} else {
		n = b.wideOp(OpAnd, B64, n, b.wideConst(31))
	}
	count := b.newReg(U32)
	b.emitPlain(Instr{Op: OpCvt, Type: U32, From: U64, Dst: b.regs(count), Src: b.regs(n)})
	t := S64
	if op == OpShl {
		t = B64
	}
	return b.wideOp(op, t, a, count)
}

func vset(b *body) {
	b.count(3, 4)
	ops, t := b.ins.Operands, b.v.types
	a, c := b.selected(&ops[1], t[0]), b.selected(&ops[2], t[1])
	b.videoResult(b.chosenBy(b.v.cmp, a, c, b.wideConst(1), b.wideConst(0)), U32)
}

// videoResult saturates, merges with the last operand or combines with it, and
// writes the destination.
func (b *body) videoResult(r Reg, t Type) {
	ops := b.ins.Operands
	d := ops[0]
	pos, bits := uint64(0), uint64(32)
	if d.Component != "" {
		pos, bits = b.part(&d)
	}
	if b.v.has("sat") {
		r = b.saturated(r, t, bits)
	}
	secondary := ""
	for _, w := range b.v.words {
		if strings.Contains(secondaryOp, w) {
			secondary = w
		}
	}
	switch merges := d.Component != ""; {
	case merges && secondary != "":
		b.invalid("%s cannot both merge and combine", b.ins.Mnemonic)
	case (merges || secondary != "") && len(ops) == 3:
		b.invalid("%s needs a third source to merge or combine with", b.ins.Mnemonic)
	}
	narrow := b.newReg(U32)
	b.emitPlain(Instr{Op: OpCvt, Type: U32, From: U64, Dst: b.regs(narrow), Src: b.regs(r)})
	d.Component = ""
	out := Instr{Op: OpMov, Type: t, Dst: b.regs(b.dest(&d, t)), Src: b.regs(narrow)}
	switch {
	case bits != 32:
		out.Op, out.Type = OpBfi, B32
		out.Src = b.regs(narrow, b.source(&ops[3], t), b.constReg(U32, pos), b.constReg(U32, bits))
	case secondary != "":
		out.Op = map[string]Op{"add": OpAdd, "min": OpMin, "max": OpMax}[secondary]
		out.Src = b.regs(narrow, b.source(&ops[3], t))
	}
	b.emit(out)
}

// saturated clamps to the range of a type of so many bits.
func (b *body) saturated(r Reg, t Type, bits uint64) Reg {
	low, high := int64(0), int64(1)<<bits-1
	if t.Signed() {
		low, high = -1<<(bits-1), 1<<(bits-1)-1
	}
	return b.wideOp(OpMin, S64, b.wideOp(OpMax, S64, r, b.wideConst(low)), b.wideConst(high))
}

// vmad multiplies and adds, scales, and saturates.
//
// PTX ISA, "Scalar Video Instructions: vmad". The sum is kept in 64 bits, so
// that the negated product of two unsigned words above 2^63 saturates wrongly.
// An H200 takes whole unsigned words as signed; here they are what the document
// says.
func vmad(b *body) {
	b.count(4)
	ops, t := b.ins.Operands, b.v.types
	if b.v.has("po") && (ops[1].Minus || ops[2].Minus || ops[3].Minus) {
		b.invalid("%s: nothing can be negated", b.ins.Mnemonic)
	}
	minusProduct, minusC := ops[1].Minus != ops[2].Minus, ops[3].Minus
	signed := t[1].Signed() || t[2].Signed() || minusProduct || minusC
	ct := U32
	if signed {
		ct = S32
	}
	r := b.wideOp(OpMul, S64, b.selected(&ops[1], t[1]), b.selected(&ops[2], t[2]))
	c := b.selected(&ops[3], ct)
	switch {
	case b.v.has("po"):
		c = b.wideOp(OpAdd, S64, c, b.wideConst(1))
	case minusProduct:
		r = b.wideOp(OpNeg, S64, r)
	case minusC:
		c = b.wideOp(OpNeg, S64, c)
	}
	r = b.wideOp(OpAdd, S64, r, c)
	wide, most := U64, int64(math.MaxUint32)
	if signed {
		wide, most = S64, math.MaxInt32
	}
	for word, n := range map[string]uint64{"shr7": 7, "shr15": 15} {
		if b.v.has(word) {
			r = b.wideOp(OpShr, wide, r, b.constReg(U32, n))
		}
	}
	if b.v.has("sat") {
		if signed {
			r = b.wideOp(OpMax, S64, r, b.wideConst(math.MinInt32))
		}
		r = b.wideOp(OpMin, wide, r, b.wideConst(most))
	}
	narrow := b.newReg(U32)
	b.emitPlain(Instr{Op: OpCvt, Type: U32, From: U64, Dst: b.regs(narrow), Src: b.regs(r)})
	b.emit(Instr{Op: OpMov, Type: t[0], Dst: b.regs(b.dest(&ops[0], t[0])), Src: b.regs(narrow)})
}
