// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"github.com/cudago/cudago/internal/ptx"
)

// ldmatrix lowers ldmatrix d, [a].
//
// PTX ISA, "Warp Level Matrix Instructions: ldmatrix".
func ldmatrix(b *body) {
	b.count(2)
	in := b.instr()
	n := b.matrixRegisters(&in)
	in.Dst = b.elementsOrOne(&b.ins.Operands[0], n, b.dest)
	in.Src = b.regs(b.sharedAddress(&b.ins.Operands[1]))
	in.Space, in.Imm = SpaceShared, int64(n)
	if b.v.space == SpaceGeneric {
		in.Space = SpaceGeneric
	}
	b.emit(in)
}

func stmatrix(b *body) {
	b.count(2)
	in := b.instr()
	n := b.matrixRegisters(&in)
	values := b.elementsOrOne(&b.ins.Operands[1], n, b.source)
	in.Src = append(append(b.room(n+1), b.sharedAddress(&b.ins.Operands[0])), values...)
	in.Space, in.Imm = SpaceShared, int64(n)
	if b.v.space == SpaceGeneric {
		in.Space = SpaceGeneric
	}
	b.emit(in)
}

// sharedAddress returns an address with its offset added: Imm is taken.
func (b *body) sharedAddress(x *ptx.Operand) Reg { return b.wholeAddress(x, b.v.space) }

// matrixRegisters says what the elements are and returns how many registers
// hold them, one for each 8 rows in memory.
func (b *body) matrixRegisters(in *Instr) int {
	n := 1
	switch {
	case b.v.has("x4"):
		n = 4
	case b.v.has("x2"):
		n = 2
	}
	in.Type, in.From = B32, B16
	if b.v.has("m8n8") {
		return n
	}
	in.From = B8
	switch {
	case b.v.has("b4x16_p64"):
		in.Mode = ModePacked4
	case b.v.has("b6x16_p32"):
		in.Mode = ModePacked6
	}
	tall := b.v.has("m16n16")
	if b.v.form.name == "ldmatrix" && tall != (in.Mod&ModTrans != 0) {
		b.invalid("%s: .m16n16 is transposed, .m8n16 is not", b.ins.Mnemonic)
	}
	if tall {
		n *= 2
	}
	if n > 4 {
		b.invalid("%s: there are at most two matrices of 16 rows", b.ins.Mnemonic)
	}
	return n
}

// elementsOrOne accepts a register in place of a vector of one.
func (b *body) elementsOrOne(x *ptx.Operand, n int, get func(*ptx.Operand, Type) Reg) []Reg {
	if n == 1 && x.Kind != ptx.OperandVector {
		return b.regs(get(x, B32))
	}
	return b.elements(x, n, B32, get)
}

func movmatrix(b *body) {
	b.count(2)
	in := b.instr()
	in.Type = B32
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], B32))
	in.Src = b.regs(b.source(&b.ins.Operands[1], B32))
	b.emit(in)
}
