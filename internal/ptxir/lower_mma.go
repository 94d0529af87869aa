// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

// mmaKind says which shapes exist for the types of a mma. A and B may have any
// two of the elements, C and D one of the sums.
type mmaKind struct{ elements, sums, shapes, sparse string }

// PTX ISA, "Matrix multiply-accumulate operation using mma instruction" and
// "… using mma.sp instruction with sparse matrix A".
var mmaKinds = []mmaKind{
	{"f16", "f16 f32", "m8n8k4 m16n8k8 m16n8k16", "m16n8k16 m16n8k32"},
	{"bf16", "f32", "m16n8k8 m16n8k16", "m16n8k16 m16n8k32"},
	{"tf32", "f32", "m16n8k4 m16n8k8", "m16n8k8 m16n8k16"},
	{"e4m3 e5m2", "f16 f32", "m16n8k16 m16n8k32", "m16n8k64"},
	{"f64", "f64", "m8n8k4 m16n8k4 m16n8k8 m16n8k16", ""},
	{"s8 u8", "s32", "m8n8k16 m16n8k16 m16n8k32", "m16n8k32 m16n8k64"},
	{"s4 u4", "s32", "m8n8k32 m16n8k32 m16n8k64", "m16n8k64 m16n8k128"},
	{"b1", "s32", "m8n8k128 m16n8k128 m16n8k256", ""},
}

// mma lowers mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype
// d, a, b, c.
func mma(b *body) {
	b.count(4)
	in := b.mmaInstr()
	b.fragments(&in)
	b.emit(in)
}

// mmaSparse lowers mma.sp…: d, a, b, c, e, f. Of A there are the elements that
// are not zero; e says where they stand, and f which lanes' e counts.
func mmaSparse(b *body) {
	b.count(6)
	in := b.mmaInstr()
	in.Mma.Sparse = true
	b.fragments(&in)
	in.Src = b.push(in.Src, b.source(&b.ins.Operands[4], B32))
	in.Mma.Selector = int(b.constant(&b.ins.Operands[5]))
	if n := in.Mma.selectors(); in.Mma.Selector < 0 || in.Mma.Selector >= n {
		b.invalid("%s: the selector must be less than %d, got %d", b.ins.Mnemonic, n, in.Mma.Selector)
	}
	b.emit(in)
}

// selectors is how many choices there are of the lanes that give the metadata:
// among four, as many as are needed for the 2 rows that they share.
func (m *Mma) selectors() int {
	bits := 2 * m.K // of a row and the one 8 further down, for 16-bit elements
	switch m.A {
	case TF32:
		bits *= 2
	case S4, U4:
		bits /= 2
	}
	return 4 * 32 / bits
}

// mmaInstr reads the modifiers.
func (b *body) mmaInstr() Instr {
	m := &Mma{}
	in := b.instr()
	in.Mma, in.Round = m, b.v.round
	layouts := 0
	var named string
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
		case strings.HasPrefix(w, "m"):
			named = w
			m.M, m.N, m.K = shape(w)
		}
	}
	// Integers and f64 spell all four types, and so do the others today.
	t := b.v.types
	if len(t) != 4 {
		b.invalid("%s needs four types", b.ins.Mnemonic)
	}
	m.D, m.A, m.B, m.C = t[0], t[1], t[2], t[3]
	in.Type = m.D
	b.checkMma(in, named)
	return in
}

// checkMma requires a combination of shape, types and modifiers that exists.
func (b *body) checkMma(in Instr, shape string) {
	m := in.Mma
	i := slices.IndexFunc(mmaKinds, func(k mmaKind) bool { return k.holds(k.elements, m.A) && k.holds(k.elements, m.B) })
	if i < 0 || !mmaKinds[i].holds(mmaKinds[i].sums, m.C) || !mmaKinds[i].holds(mmaKinds[i].sums, m.D) {
		b.invalid("%s does not exist for these types", b.ins.Mnemonic)
	}
	k, quarters := mmaKinds[i], m.quarters()
	shapes := k.shapes
	if b.v.form.name != "mma" {
		shapes = k.sparse
	}
	switch {
	case !slices.Contains(strings.Fields(shapes), shape):
		b.invalid("%s: the shape does not exist for .%s", b.ins.Mnemonic, m.A)
	case m.C != m.D && !(quarters && m.D == F32):
		b.invalid("%s: the types of c and d differ", b.ins.Mnemonic)
	case !quarters && (m.ColA || !m.ColB):
		b.invalid("%s: a is .row and b is .col", b.ins.Mnemonic)
	case (m.Op != BoolNone) != (m.A == B1) || b.v.has("popc") != (m.A == B1):
		b.invalid("%s: .b1, and only that, takes .xor.popc or .and.popc", b.ins.Mnemonic)
	case in.Round != RoundNone && m.A != F64, in.Mod&ModSatFinite != 0 && (m.D != S32 || m.A == B1):
		b.invalid("%s: the modifier does not exist for these types", b.ins.Mnemonic)
	}
}

func (k mmaKind) holds(list string, t Type) bool {
	return slices.Contains(strings.Fields(list), t.String())
}

// quarters reports m8n8k4 with halves: four products at once, each by a
// quarter of the warp.
func (m *Mma) quarters() bool { return m.A == F16 && m.K == 4 }

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
	each, kept := 1, m.K
	if m.quarters() {
		each = 4
	}
	if m.Sparse {
		kept /= 2
	}
	in.Dst = b.fragment(&ops[0], m.D, each*m.M*m.N, b.dest)
	all := b.room(32)
	all = append(all, b.fragment(&ops[1], m.A, each*m.M*kept, b.source)...)
	all = append(all, b.fragment(&ops[2], m.B, each*m.K*m.N, b.source)...)
	in.Src = append(all, b.fragment(&ops[3], m.C, each*m.M*m.N, b.source)...)
}

// fragment returns one lane's registers of a matrix of n elements.
func (b *body) fragment(x *ptx.Operand, t Type, n int, get func(*ptx.Operand, Type) Reg) []Reg {
	reg, bits := t, n*t.Bits()/32
	if t.Bits() < 32 {
		reg = B32
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
