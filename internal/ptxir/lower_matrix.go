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
	n := b.matrices()
	in.Type = B32
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
	n := b.matrices()
	in.Type = B32
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

func (b *body) matrices() int {
	switch {
	case b.v.has("x4"):
		return 4
	case b.v.has("x2"):
		return 2
	}
	return 1
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
