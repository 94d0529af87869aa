// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"

	"github.com/cudago/cudago/internal/ptx"
)

// mov moves a value, takes an address, or packs and unpacks.
//
// PTX ISA, "Data Movement and Conversion Instructions: mov".
func mov(b *body) {
	b.count(2)
	d, a := &b.ins.Operands[0], &b.ins.Operands[1]
	t := b.v.typ()
	d, a = b.spread(d), b.spread(a)
	switch {
	case b.v.vector > 1:
		b.movVector(d, a, t)
	case d.Kind == ptx.OperandVector && a.Kind == ptx.OperandVector:
		b.invalid("%s splits or joins, but not both", b.ins.Mnemonic)
	case d.Kind == ptx.OperandVector:
		if !slices.ContainsFunc(d.Elems, func(e ptx.Operand) bool { return e.Kind != ptx.OperandSink }) {
			b.invalid("%s: an element at least must be wanted", b.ins.Mnemonic)
		}
		b.unpack(b.parts(d, t, false), t, b.source(a, t))
	case a.Kind == ptx.OperandVector:
		b.pack(b.dest(d, t), t, b.parts(a, t, true))
	default:
		b.emit(Instr{Op: OpMov, Type: t, Dst: b.regs(b.dest(d, t)), Src: b.regs(b.source(a, t))})
	}
}

// pack joins parts. Of 128 bits the halves are joined first.
func (b *body) pack(d Reg, t Type, parts []Reg) {
	for t == B128 && len(parts) > 2 {
		var halves []Reg
		for n := len(parts) / 2; len(parts) > 0; parts = parts[n:] {
			h := b.newReg(B64)
			b.emitPlain(Instr{Op: OpPack, Type: B64, Dst: b.regs(h), Src: parts[:n:n]})
			halves = append(halves, h)
		}
		parts = halves
	}
	b.emit(Instr{Op: OpPack, Type: t, Dst: b.regs(d), Src: parts})
}

// unpack is the reverse of pack.
func (b *body) unpack(parts []Reg, t Type, a Reg) {
	n := len(parts) / 2
	if t != B128 || n == 1 {
		b.emit(Instr{Op: OpUnpack, Type: t, Dst: parts, Src: b.regs(a)})
		return
	}
	low, high := b.newReg(B64), b.newReg(B64)
	b.emitPlain(Instr{Op: OpUnpack, Type: t, Dst: b.regs(low, high), Src: b.regs(a)})
	b.emit(Instr{Op: OpUnpack, Type: B64, Dst: parts[:n:n], Src: b.regs(low)})
	b.emit(Instr{Op: OpUnpack, Type: B64, Dst: parts[n:], Src: b.regs(high)})
}

// spread turns the name of a vector register into its elements.
func (b *body) spread(x *ptx.Operand) *ptx.Operand {
	if x.Kind != ptx.OperandName || x.Component != "" {
		return x
	}
	n, _ := b.find(x.Name)
	if n == nil || n.vector < 2 || n.vector > 4 {
		return x
	}
	v := &ptx.Operand{Kind: ptx.OperandVector}
	for _, c := range "xyzw"[:n.vector] {
		v.Elems = append(v.Elems, ptx.Operand{Name: x.Name, Component: string(c)})
	}
	return v
}

// parts returns the registers of the elements that a value of type t is packed
// from, or unpacked to.
func (b *body) parts(x *ptx.Operand, t Type, source bool) []Reg {
	n := len(x.Elems)
	if !isBits(t) || n < 2 || n > 8 || t.Size()%n != 0 {
		b.invalid("a .%s cannot be split into %d parts", t, n)
	}
	part, ok := map[int]Type{1: B8, 2: B16, 4: B32, 8: B64}[t.Size()/n]
	if !ok {
		b.invalid("a .%s cannot be split into %d parts", t, n)
	}
	b.sameElements(x)
	list := b.room(n)
	for i := range x.Elems {
		if source {
			list = append(list, b.source(&x.Elems[i], part))
		} else {
			list = append(list, b.destOrSink(&x.Elems[i], part))
		}
	}
	return list
}

// movVector moves vectors element by element. All sources are read before the
// first write: {a, b} = {b, a} is a swap.
func (b *body) movVector(d, a *ptx.Operand, t Type) {
	n := b.v.vector
	to := b.elements(d, n, t, b.destOrSink)
	from := b.elements(a, n, t, b.source)
	for i := range from {
		for _, written := range to[:i] {
			if from[i] == written {
				saved := b.newReg(t)
				b.emitPlain(Instr{Op: OpMov, Type: t, Dst: b.regs(saved), Src: b.regs(from[i])})
				from[i] = saved
			}
		}
	}
	for i := range to {
		if to[i] != NoReg {
			b.emit(Instr{Op: OpMov, Type: t, Dst: b.regs(to[i]), Src: b.regs(from[i])})
		}
	}
}

// elements returns the n registers of a vector operand: {a, b}, the name of a
// vector register, or of a special register with dimensions.
func (b *body) elements(x *ptx.Operand, n int, t Type, get func(*ptx.Operand, Type) Reg) []Reg {
	list := b.room(n)
	if x.Kind == ptx.OperandVector {
		if len(x.Elems) != n {
			b.invalid("%s needs %d elements, got %d", b.ins.Mnemonic, n, len(x.Elems))
		}
		b.sameElements(x)
		for i := range x.Elems {
			list = append(list, get(&x.Elems[i], t))
		}
		return list
	}
	if x.Kind != ptx.OperandName || x.Component != "" {
		b.invalid("%s needs a vector of %d elements", b.ins.Mnemonic, n)
	}
	for i := range n {
		e := *x
		e.Component = "xyzw"[min(i, 3):][:1]
		if local, index := b.find(x.Name); local != nil && local.typ != TypeNone {
			if int(local.vector) != n {
				b.invalid("%s is no vector of %d elements", x.Name, n)
			}
			b.fitsMemory(&e, local.typ, t)
			list = append(list, b.register(local, index, uint32(i)))
			continue
		}
		list = append(list, get(&e, t))
	}
	return list
}

// sameElements requires registers of one width, and of types that agree: where
// an instruction would take a wider register alone, all elements are wide.
func (b *body) sameElements(x *ptx.Operand) {
	first := TypeNone
	for i := range x.Elems {
		e := &x.Elems[i]
		if e.Kind != ptx.OperandName {
			continue
		}
		_, t, ok := b.declared(e)
		switch {
		case !ok:
		case first == TypeNone:
			first = t
		case t.Size() != first.Size() || !agree(t, first):
			b.invalid("the elements of a vector are of one type, not .%s and .%s", first, t)
		}
	}
}

// cvta converts an address between a space and the generic one.
func cvta(b *body) {
	b.count(2)
	in := b.instr()
	d, a := &b.ins.Operands[0], &b.ins.Operands[1]
	in.Dst = b.regs(b.dest(d, in.Type))
	if b.isAddress(a) && in.Mod&ModTo == 0 {
		// cvta.global.u64 %rd1, symbol
		b.emit(Instr{Op: OpMov, Type: in.Type, Dst: in.Dst, Src: b.regs(b.genericAddress(a, in.Type))})
		return
	}
	in.Src = b.regs(b.source(a, in.Type))
	b.emit(in)
}

// isAddress reports a name that is neither a register nor a special register.
func (b *body) isAddress(x *ptx.Operand) bool {
	if x.Kind != ptx.OperandName {
		return x.Kind == ptx.OperandElement
	}
	if n, _ := b.find(x.Name); n != nil {
		return n.v != nil
	}
	return b.symbol(x.Name) != nil
}

func (b *body) genericAddress(x *ptx.Operand, t Type) Reg {
	v, ok := b.variable(x.Name)
	if !ok {
		return b.symbolAddress(x, t)
	}
	addend := x.Value.Bits
	if x.Kind == ptx.OperandElement {
		addend *= uint64(v.Type.Size())
	}
	return b.indexed(x, v, b.addressReg(addressKey{v: v, addend: addend, class: t.Class(), generic: true}))
}

func isspacep(b *body) {
	b.count(2)
	in := b.instr()
	in.Type = U64
	a := &b.ins.Operands[1]
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], Pred))
	if x, _ := b.find(a.Name); x != nil && x.typ.Class() == Class32 {
		wide := b.newReg(U64)
		b.emitPlain(Instr{Op: OpCvt, Type: U64, From: U32, Dst: b.regs(wide), Src: b.regs(b.source(a, U32))})
		in.Src = b.regs(wide)
	} else {
		in.Src = b.regs(b.source(a, U64))
	}
	b.emit(in)
}

// createPolicy makes a cache policy, which nothing reads.
func createPolicy(b *body) {
	switch b.v.form.name {
	case "createpolicy.range":
		b.count(4)
	case "createpolicy.cvt":
		b.count(2)
	default:
		b.count(2, 1)
	}
	b.emit(Instr{Op: OpMov, Type: B64, Dst: b.regs(b.dest(&b.ins.Operands[0], B64)), Src: b.regs(b.constReg(B64, 0))})
}
