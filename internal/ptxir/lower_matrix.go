// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"strconv"
	"strings"

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

// mma lowers mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype
// d, a, b, c.
//
// PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
func mma(b *body) {
	b.count(4)
	m := &Mma{}
	in := b.instr()
	in.Mma = m
	layouts := 0
	for _, w := range b.v.words {
		switch {
		case w == "row" || w == "col":
			if layouts == 0 {
				m.ColA = w == "col"
			} else {
				m.ColB = w == "col"
			}
			layouts++
		case w == "xor" || w == "and":
			m.Op = words[w].bool
		case w == "e4m3" || w == "e5m2":
			b.refuse("mma with 8-bit floating point is not implemented")
		case strings.HasPrefix(w, "m"):
			m.M, m.N, m.K = shape(w)
		}
	}
	m.D, m.A, m.B, m.C = b.mmaTypes()
	in.Type = m.D
	if m.M == 8 && m.K == 4 && m.D != F64 {
		b.refuseWith(UnsupportedError{
			Reason:  "mma.m8n8k4 on halves is not simulated",
			Section: "Warp Level Matrix Instructions: mma",
			Hint:    "use m16n8k8 or m16n8k16, as code for sm_75 and later does",
		})
	}
	b.fragments(&in)
	b.emit(in)
}

// mmaTypes are those of the modifiers; f64 and integers spell all four, and so
// do the others today.
func (b *body) mmaTypes() (d, a, bt, c Type) {
	if len(b.v.types) != 4 {
		b.invalid("%s needs four types", b.ins.Mnemonic)
	}
	t := b.v.types
	return t[0], t[1], t[2], t[3]
}

func shape(w string) (m, n, k int) {
	f := strings.FieldsFunc(w, func(c rune) bool { return c == 'm' || c == 'n' || c == 'k' })
	if len(f) != 3 {
		return 0, 0, 0
	}
	m, _ = strconv.Atoi(f[0])
	n, _ = strconv.Atoi(f[1])
	k, _ = strconv.Atoi(f[2])
	return m, n, k
}

// fragments fills in the registers of d, a, b and c, whose numbers must be
// what shape and types make of a warp's 32 lanes.
func (b *body) fragments(in *Instr) {
	m := in.Mma
	ops := b.ins.Operands
	in.Dst = b.fragment(&ops[0], m.D, m.M*m.N, b.dest)
	all := b.room(32)
	all = append(all, b.fragment(&ops[1], m.A, m.M*m.K, b.source)...)
	all = append(all, b.fragment(&ops[2], m.B, m.K*m.N, b.source)...)
	in.Src = append(all, b.fragment(&ops[3], m.C, m.M*m.N, b.source)...)
}

// fragment returns one lane's registers of a matrix of n elements. m8n8k4 with
// halves is four products at once, each by a quarter of the warp.
func (b *body) fragment(x *ptx.Operand, t Type, n int, get func(*ptx.Operand, Type) Reg) []Reg {
	if m := b.ins.Mnemonic.String(); strings.Contains(m, "m8n8k4") && !strings.Contains(m, "f64") {
		n *= 4
	}
	reg := t
	bits := t.Size() * 8
	switch t {
	case S4, U4:
		bits = 4
	case B1:
		bits = 1
	}
	if bits < 32 {
		reg, bits = B32, n*bits/32
	} else {
		bits = n * bits / 32
	}
	count := max(bits/(8*reg.Size()), 1)
	if x.Kind != ptx.OperandVector {
		if count != 1 {
			b.invalid("%s needs a vector of %d registers", b.ins.Mnemonic, count)
		}
		return b.regs(get(x, reg))
	}
	if len(x.Elems) != count {
		b.invalid("%s needs a vector of %d registers, got %d", b.ins.Mnemonic, count, len(x.Elems))
	}
	list := b.room(count)
	for i := range x.Elems {
		list = append(list, get(&x.Elems[i], reg))
	}
	return list
}
