// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"github.com/cudago/cudago/internal/ptx"
)

// cvt converts. Registers may be wider than the types: a source is cut, a
// destination extended, by instructions of their own, so that the conversion
// itself sees registers of just its types.
//
// PTX ISA, "Data Movement and Conversion Instructions: cvt".
func cvt(b *body) {
	in := b.instr()
	if packed(in.Type) && !packed(in.From) {
		b.cvtPacked(in)
		return
	}
	b.count(2)
	if in.Type == BF16 || in.From == BF16 {
		// As ptxas has it, these registers may not be wider.
		for i, t := range []Type{in.Type, in.From} {
			if _, rt, ok := b.declared(&b.ins.Operands[i]); ok {
				b.fits(&b.ins.Operands[i], rt, t)
			}
		}
	}
	if in.Round == RoundNone && (in.Type == BF16 || in.From == BF16) && in.Type.Size() <= in.From.Size() {
		in.Round = RoundRN
	}
	in.Src = b.regs(b.narrowed(&b.ins.Operands[1], in.From))
	d := &b.ins.Operands[0]
	if d.Kind == ptx.OperandSink {
		return
	}
	r, rt, ok := b.declared(d)
	if !ok {
		b.invalid("%s is not a declared register", d.Name)
	}
	if !agree(rt, in.Type) {
		b.fits(d, rt, in.Type)
	}
	// An 8-bit value in a register of 16 bits is extended as well.
	if rt.Size() == in.Type.Size() || rt.Class() == in.Type.Class() && in.Type.Size() > 1 || packed(in.Type) {
		b.fits(d, rt, in.Type)
		in.Dst = b.regs(r)
		b.emit(in)
		return
	}
	b.extended(in, d, r, rt)
}

// extended emits the conversion and then extends its result to a wider
// destination: by its sign if the type has one, else by zeros.
func (b *body) extended(in Instr, d *ptx.Operand, r Reg, rt Type) {
	wide := unsigned(rt)
	if rt == Pred || rt.Size() < in.Type.Size() || rt == B128 {
		b.fits(d, rt, in.Type)
	}
	from := in.Type
	if from.Signed() {
		wide = map[Type]Type{U16: S16, U32: S32, U64: S64}[wide]
	} else {
		// A float's bits are extended by zeros.
		from = map[int]Type{1: U8, 2: U16, 4: U32, 8: U64}[from.Size()]
	}
	tmp := b.newReg(in.Type)
	in.Dst = b.regs(tmp)
	b.emitPlain(in)
	b.emit(Instr{Op: OpCvt, Type: wide, From: from, Dst: b.regs(r), Src: b.regs(tmp)})
}

// narrowed returns a register of just type t; the operand may be wider.
func (b *body) narrowed(x *ptx.Operand, t Type) Reg {
	if x.Kind != ptx.OperandName {
		return b.source(x, t)
	}
	r, rt, ok := b.declared(x)
	if !ok {
		return b.source(x, t)
	}
	if !agree(rt, t) {
		b.fits(x, rt, t)
	}
	r = b.plus(x, r, rt)
	if rt.Class() == t.Class() {
		return r
	}
	if rt == Pred || rt.Size() < t.Size() || rt == B128 {
		b.fits(x, rt, t)
	}
	cut := b.newReg(t)
	b.emitPlain(Instr{Op: OpCvt, Type: unsigned(t), From: unsigned(rt), Dst: b.regs(cut), Src: b.regs(r)})
	return cut
}

func packed(t Type) bool {
	switch t {
	case F16x2, BF16x2, E4M3x2, E5M2x2:
		return true
	}
	return false
}

// cvtPacked lowers conversions that put two values into one register.
func (b *body) cvtPacked(in Instr) {
	b.count(3)
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], in.Type))
	in.Src = b.regs(b.source(&b.ins.Operands[1], in.From), b.source(&b.ins.Operands[2], in.From))
	b.emit(in)
}

func isBits(t Type) bool { return t >= B8 && t <= B128 }

// cvtPack lowers cvt.pack.sat.dtype.s32 d, a, b and the forms with a third
// source that is packed below.
func cvtPack(b *body) {
	in := b.instr()
	b.count(len(b.v.types) + 1)
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], B32))
	for i := 1; i < len(b.ins.Operands); i++ {
		in.Src = b.push(in.Src, b.source(&b.ins.Operands[i], B32))
	}
	b.emit(in)
}
