// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "strings"

// wide sets the mode that the name already says.
func wide(b *body) {
	in := b.instr()
	in.Mode = ModeWide
	b.operands(&in)
	b.emit(in)
}

// approximate sets the flag that the name already says.
func approximate(b *body) {
	in := b.instr()
	in.Mod |= ModApprox
	b.operands(&in)
	b.emit(in)
}

// mixed converts the sources of the narrow type first, which is exact.
func mixed(b *body) {
	in := b.instr()
	b.operands(&in)
	for i := range len(in.Src) - 1 {
		wide := b.newReg(F32)
		b.emitPlain(Instr{Op: OpCvt, Type: F32, From: in.From, Dst: b.regs(wide), Src: b.regs(in.Src[i])})
		in.Src[i] = wide
	}
	in.From = TypeNone
	b.emit(in)
}

// carry adds the carry flag, a predicate register that the function has one
// of: read by the c forms, written by the .cc forms. Subtraction keeps the
// flag as the hardware does, as the carry of a+^b+1, which is no borrow; the
// difference shows where additions and subtractions share the flag.
func carry(b *body) {
	in := b.instr()
	b.operands(&in)
	flag := b.carryFlag()
	sub := in.Op == OpSubCC || in.Op == OpSubC
	if in.Op == OpAddC || in.Op == OpSubC || in.Op == OpMadC {
		from := flag
		if sub {
			from = b.newReg(Pred)
			b.emitPlain(Instr{Op: OpNot, Type: Pred, Dst: b.regs(from), Src: b.regs(flag)})
		}
		in.Src = append(in.Src, from)
	}
	writes := strings.HasSuffix(b.v.form.name, ".cc")
	if !writes {
		b.emit(in)
		return
	}
	to := flag
	if sub {
		to = b.newReg(Pred)
	}
	in.Dst = append(in.Dst, to)
	b.emit(in)
	if sub {
		b.emit(Instr{Op: OpNot, Type: Pred, Dst: b.regs(flag), Src: b.regs(to)})
	}
}

// saturating sets the flag that the name already says.
func saturating(b *body) {
	in := b.instr()
	in.Mod |= ModSat
	b.operands(&in)
	b.emit(in)
}

// ofThree makes a minimum or maximum of three out of two of two.
func ofThree(b *body) {
	in := b.instr()
	b.operands(&in)
	if len(in.Src) == 3 {
		pair := in
		pair.Dst, pair.Src = b.regs(b.newReg(in.Type)), in.Src[:2]
		b.emitPlain(pair)
		in.Src = b.regs(pair.Dst[0], in.Src[2])
	}
	b.emit(in)
}

// halves does an operation on two packed values one after the other.
func halves(b *body) {
	in := b.instr()
	b.operands(&in)
	whole := map[Type]Type{F32x2: B64, U16x2: B32, S16x2: B32}[in.Type]
	half := map[Type]Type{F32x2: F32, U16x2: U16, S16x2: S16}[in.Type]
	relu := in.Mod&ModRelu != 0
	low, high := in, in
	low.Type, high.Type = half, half
	low.Mod, high.Mod = in.Mod&^ModRelu, in.Mod&^ModRelu
	low.Src, high.Src = nil, nil
	for _, r := range in.Src {
		l, h := b.newReg(half), b.newReg(half)
		b.emitPlain(Instr{Op: OpUnpack, Type: whole, Dst: b.regs(l, h), Src: b.regs(r)})
		low.Src, high.Src = b.push(low.Src, l), b.push(high.Src, h)
	}
	results := b.room(2)
	for _, part := range []Instr{low, high} {
		part.Dst = b.regs(b.newReg(half))
		b.emitPlain(part)
		if relu {
			b.emitPlain(Instr{Op: OpMax, Type: half, Dst: part.Dst, Src: b.regs(part.Dst[0], b.constReg(half, 0))})
		}
		results = append(results, part.Dst[0])
	}
	b.emit(Instr{Op: OpPack, Type: whole, Dst: in.Dst, Src: results})
}
