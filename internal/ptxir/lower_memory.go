// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"github.com/cudago/cudago/internal/ptx"
)

// ld loads a value or vector.
//
// PTX ISA, "Data Movement and Conversion Instructions: ld, ld.global.nc, ldu".
func ld(b *body) {
	in := b.instr()
	b.cachePolicy(2)
	if b.ins.Operands[0].Kind == ptx.OperandSink {
		b.invalid("%s: only elements of a vector can be left out", b.ins.Mnemonic)
	}
	b.memory(&in, &b.ins.Operands[1])
	in.Dst = b.transfer(&b.ins.Operands[0], in.Type, b.loaded)
	b.wholeAccess(&in, &in.Dst)
	b.emit(in)
}

// st stores a value or vector.
func st(b *body) {
	in := b.instr()
	b.cachePolicy(2)
	b.memory(&in, &b.ins.Operands[0])
	if in.Space == SpaceParam {
		b.invalid("a kernel's parameters cannot be written")
	}
	values := b.transfer(&b.ins.Operands[1], in.Type, b.stored)
	b.wholeAccess(&in, &values)
	src := b.room(1 + len(values))
	in.Src = append(append(src, in.Src[0]), values...)
	b.emit(in)
}

// cachePolicy requires n operands, and one more with a cache hint: the policy,
// which has no effect here.
func (b *body) cachePolicy(n int) {
	if b.v.has("L2::cache_hint") {
		b.count(n + 1)
		return
	}
	b.count(n)
}

// memory fills in the address, its offset and the space.
func (b *body) memory(in *Instr, x *ptx.Operand) {
	in.Src = b.regs(b.addressOf(in, x))
}

// addressOf returns the address register of a memory operand; it fills in
// offset and space.
func (b *body) addressOf(in *Instr, x *ptx.Operand) Reg {
	element := x.Kind == ptx.OperandElement
	if !element && (x.Kind != ptx.OperandAddress || len(x.Elems) > 0) {
		b.invalid("%s: expected an address in brackets", b.ins.Mnemonic)
	}
	in.Space = b.v.space
	if x.Name == "" {
		in.Imm = 0
		return b.constReg(U64, x.Value.Bits)
	}
	if n, index := b.find(x.Name); n != nil && n.typ != TypeNone {
		if n.vector == 1 && n.typ.Class() == Class16 && !n.typ.Float() {
			b.refuse(hintWide, "the address %s has %d bits", x.Name, 8*n.typ.Size())
		}
		if n.vector > 1 || n.typ.Float() || n.typ.Class() != Class32 && n.typ.Class() != Class64 || n.typ == B128 {
			b.invalid("%s cannot be an address", x.Name)
		}
		if element {
			b.invalid("%s is a register, not an array", x.Name)
		}
		in.Imm = int64(x.Value.Bits)
		if in.Space == SpaceParam && !b.entry {
			// Parameters of a .func lie in its frame.
			in.Space = SpaceLocal
		}
		switch wide := n.typ.Class() == Class64; {
		case !wide && in.Space == SpaceConst:
			b.refuse(hintWide, "constant memory at 32-bit addresses is not simulated")
		case !wide && (in.Space == SpaceGeneric || in.Space == SpaceGlobal):
			b.invalid("%s: the address %s needs 64 bits", b.ins.Mnemonic, x.Name)
		}
		return b.register(n, index, 0)
	}
	v, ok := b.variable(x.Name)
	if !ok {
		b.invalid("%s is not a declared register or variable", x.Name)
	}
	b.checkSpace(in, v)
	in.Imm = int64(x.Value.Bits)
	if element {
		in.Imm *= int64(v.Type.Size())
	}
	return b.indexed(x, v, b.address(v))
}

// indexed adds the register index of name[register] to an address. As ptxas
// does, the index is scaled in 32 bits and extended by zeros.
func (b *body) indexed(x *ptx.Operand, v *Var, base Reg) Reg {
	if len(x.Elems) == 0 {
		return base
	}
	offset := b.newReg(U32)
	size := b.constReg(U32, uint64(v.Type.Size()))
	b.emitPlain(Instr{Op: OpMul, Type: U32, Mode: ModeLo, Dst: b.regs(offset), Src: b.regs(b.narrowed(&x.Elems[0], U32), size)})
	t := U32
	if b.f.Regs[base] == Class64 {
		t = U64
		wide := b.newReg(U64)
		b.emitPlain(Instr{Op: OpCvt, Type: U64, From: U32, Dst: b.regs(wide), Src: b.regs(offset)})
		offset = wide
	}
	return b.wideOp(OpAdd, t, base, offset)
}

// checkSpace takes the space from the variable, which the instruction must
// agree with: .param covers a kernel's parameters and the frame of a call.
func (b *body) checkSpace(in *Instr, v *Var) {
	declared := b.v.space
	if declared == SpaceGeneric {
		// Without a space the address would be generic, which the name's own is
		// not; the name can only mean the variable.
		if v.Space == SpaceParam {
			b.invalid("%s is declared in .param, which has no generic loads", v.Name)
		}
		in.Space = v.Space
		return
	}
	if b.v.has("param::func") && v.Space == SpaceParam {
		b.invalid("%s is a parameter of a kernel, not of a function", v.Name)
	}
	in.Space = v.Space
	if declared != v.Space && !(declared == SpaceParam && v.Space == SpaceLocal) &&
		!(declared == SpaceLocal && b.v.has("param::func")) {
		b.invalid("%s is declared in .%s, not .%s", v.Name, v.Space, declared)
	}
}

// transfer returns the registers of a loaded or stored value or vector.
func (b *body) transfer(x *ptx.Operand, t Type, get func(*ptx.Operand, Type) Reg) []Reg {
	if n := b.v.vector; n > 1 {
		return b.elements(x, n, t, get)
	}
	if x.Kind == ptx.OperandVector && len(x.Elems) == 1 {
		x = &x.Elems[0]
	}
	return b.regs(get(x, t))
}

// wholeAccess turns an access of 128 bits into one of two words, unless it must
// be whole in the eyes of others: volatile and ordered accesses stay B128.
func (b *body) wholeAccess(in *Instr, list *[]Reg) {
	t := in.Type
	b.wholeWords(&t, list)
	if in.Space == SpaceShared || in.Mod&(ModVolatile|ModAcquire|ModRelease) == 0 {
		in.Type = t
	}
}

// wholeWords turns elements of 128 bits into two of 64 each.
func (b *body) wholeWords(t *Type, list *[]Reg) {
	if *t != B128 {
		return
	}
	words := b.room(2 * len(*list))
	for _, r := range *list {
		high := r + 1
		if r == NoReg {
			high = NoReg
		}
		words = append(words, r, high)
	}
	*t, *list = B64, words
}

// loaded is a destination of at least the width of t.
func (b *body) loaded(x *ptx.Operand, t Type) Reg {
	if x.Kind == ptx.OperandSink {
		return NoReg
	}
	r, rt, ok := b.declared(x)
	if !ok {
		b.invalid("%s is not a declared register", x.Name)
	}
	if x.Value.Bits != 0 {
		b.invalid("%s: nothing can be added to a destination", x.Name)
	}
	b.fitsMemory(x, rt, t)
	return r
}

// stored is a source of at least the width of t.
func (b *body) stored(x *ptx.Operand, t Type) Reg {
	if x.Kind == ptx.OperandName {
		if r, rt, ok := b.declared(x); ok {
			b.fitsMemory(x, rt, t)
			return b.plus(x, r, rt)
		}
	}
	return b.source(x, t)
}

// fitsMemory requires a register of type got that is at least as wide as want.
//
// PTX ISA, "Operand Size Exceeding Instruction-Type Size".
func (b *body) fitsMemory(x *ptx.Operand, got, want Type) {
	if got != Pred && !agree(got, want) {
		b.fits(x, got, want)
	}
	if got == Pred || got.Size() < want.Size() || (want == B128) != (got == B128) {
		b.invalid("%s is declared .%s, which is too narrow for the .%s of %s", x.Name, got, want, b.ins.Mnemonic)
	}
}

func prefetch(b *body) {
	b.count(1)
	in := b.instr()
	b.memory(&in, &b.ins.Operands[0])
	b.emit(in)
}
