// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"

	"github.com/cudago/cudago/internal/ptx"
)

// atom lowers atom d, [a], b and atom.cas d, [a], b, c.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: atom".
func atom(b *body) {
	n := 3
	if b.v.atom == AtomCas {
		n = 4
	}
	in := b.instr()
	if !b.idleSource() {
		b.cachePolicy(n)
	}
	b.memory(&in, &b.ins.Operands[1])
	if d := &b.ins.Operands[0]; b.v.vector == 1 || d.Kind != ptx.OperandSink {
		in.Dst = b.atomOperand(d, in.Type, b.destOrSink)
	}
	b.atomSources(&in, b.ins.Operands[2:n])
	b.emitAtom(in)
}

// idleSource reports a fourth operand that ptxas takes, and leaves unused, where
// the three of the operation would do: a register.
func (b *body) idleSource() bool {
	switch {
	case len(b.ins.Operands) != 4 || b.v.has("L2::cache_hint"):
		return false
	case b.v.typ() == B128 && b.v.atom == AtomExch:
	case b.v.typ() != B32 || !slices.Contains([]AtomOp{AtomAnd, AtomOr, AtomXor, AtomExch}, b.v.atom):
		return false
	}
	_, t, ok := b.declared(&b.ins.Operands[3])
	return ok && t.Size() == b.v.typ().Size()
}

// red is atom without a result.
func red(b *body) {
	b.cachePolicy(2)
	in := b.instr()
	b.memory(&in, &b.ins.Operands[0])
	b.atomSources(&in, b.ins.Operands[1:2])
	b.emit(in)
}

func (b *body) atomSources(in *Instr, list []ptx.Operand) {
	switch {
	case in.Space != SpaceGeneric && in.Space != SpaceGlobal && in.Space != SpaceShared:
		b.invalid("%s works on .global and .shared, not .%s", b.ins.Mnemonic.Op, in.Space)
	case b.v.vector > 1 && in.Space == SpaceShared:
		b.invalid("%s: vectors are in .global", b.ins.Mnemonic)
	}
	for i := range list {
		in.Src = append(in.Src, b.atomOperand(&list[i], in.Type, b.source)...)
	}
}

// atomOperand is the registers of an operand: a vector's elements, or the two
// halves of 128 bits.
func (b *body) atomOperand(x *ptx.Operand, t Type, get func(*ptx.Operand, Type) Reg) []Reg {
	list := b.transfer(x, t, get)
	b.wholeWords(&t, &list)
	return list
}

// emitAtom emits an atom. Elements of a vector are done one after the other, so
// where a result would replace an element still to come, results wait.
func (b *body) emitAtom(in Instr) {
	results := in.Dst
	if len(results) == 1 || in.Type == B128 || !slices.ContainsFunc(results, func(r Reg) bool { return slices.Contains(in.Src, r) }) {
		b.emit(in)
		return
	}
	in.Dst = b.room(len(results))
	for range results {
		in.Dst = append(in.Dst, b.newReg(in.Type))
	}
	b.emit(in)
	for i, r := range results {
		if r != NoReg {
			b.emit(Instr{Op: OpMov, Type: in.Type, Dst: b.regs(r), Src: b.regs(in.Dst[i])})
		}
	}
}
