// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"

	"github.com/cudago/cudago/internal/ptx"
)

// cvt converts. Registers may be wider than the types: a source is cut, a
// destination extended, by instructions of their own, so that the conversion
// itself sees registers of just its types.
//
// PTX ISA, "Data Movement and Conversion Instructions: cvt".
func cvt(b *body) {
	if len(b.v.types) != 2 {
		b.invalid("cvt needs two types")
	}
	in := b.instr()
	if packed(in.Type) && !packed(in.From) {
		b.cvtPacked(in)
		return
	}
	b.count(2)
	b.checkConversion(in)
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
	if in.From != F32 {
		b.refuse("cvt from .%s to .%s is not implemented", in.From, in.Type)
	}
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], in.Type))
	in.Src = b.regs(b.source(&b.ins.Operands[1], in.From), b.source(&b.ins.Operands[2], in.From))
	b.emit(in)
}

// checkConversion requires the modifiers that the ISA demands, and no others.
func (b *body) checkConversion(in Instr) {
	if in.Type == Pred || in.From == Pred || isBits(in.Type) || isBits(in.From) {
		b.invalid("cvt does not exist for these types")
	}
	integral := in.Round >= RoundRNI && in.Round <= RoundRPI
	real := in.Round >= RoundRN && in.Round <= RoundRP
	ok, want := true, ""
	switch {
	case in.Round == RoundRNA:
		ok, want = in.Type == TF32, "no .rna"
	case !in.From.Float() && !in.Type.Float():
		ok, want = in.Round == RoundNone, "no rounding modifier"
	case !in.From.Float():
		ok, want = real, "one of .rn, .rz, .rm, .rp"
	case !in.Type.Float():
		ok, want = integral, "one of .rni, .rzi, .rmi, .rpi"
	case packed(in.From) || in.Type != in.From && in.From != F32 && (in.Type == BF16 || in.From == BF16):
		// Some of these may be written with and without one.
		ok, want = !integral, "one of .rn, .rz, .rm, .rp"
	case in.Type.Size() < in.From.Size() || in.Type != in.From && in.Type.Size() == in.From.Size():
		ok, want = real, "one of .rn, .rz, .rm, .rp"
	default:
		ok, want = !real, "no rounding modifier but .rni, .rzi, .rmi, .rpi"
	}
	if !ok {
		b.invalid("%s needs %s", b.ins.Mnemonic, want)
	}
	if in.Mod&ModFtz != 0 && in.Type != F32 && in.From != F32 {
		b.invalid("%s: .ftz applies to .f32 only", b.ins.Mnemonic)
	}
	if in.Mod&(ModRelu|ModSatFinite) != 0 && in.From != F32 && in.From != F16x2 && !packed(in.From) {
		b.invalid("%s: .relu and .satfinite convert from .f32 only", b.ins.Mnemonic)
	}
}

func isBits(t Type) bool { return t >= B8 && t <= B128 }

// cvtPack lowers cvt.pack.sat.dtype.s32 d, a, b and the forms with a third
// source that is packed below.
func cvtPack(b *body) {
	in := b.instr()
	ok := in.From == S32 && slices.Contains([]Type{U16, S16, U8, S8, U4, S4}, in.Type)
	if !ok || len(b.v.types) > 3 || len(b.v.types) == 3 && b.v.types[2] != B32 {
		b.invalid("cvt.pack does not exist for these types")
	}
	// The sub-word forms take what they shift up; those of 16 bits fill d.
	if (len(b.v.types) == 3) == (in.Type.Size() == 2) {
		b.invalid("cvt.pack does not exist for these types")
	}
	b.count(len(b.v.types) + 1)
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], B32))
	for i := 1; i < len(b.ins.Operands); i++ {
		in.Src = b.push(in.Src, b.source(&b.ins.Operands[i], B32))
	}
	b.emit(in)
}
