// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

const simdComparisons = "eq|ne|lt|le|gt|ge!"

// simdVideoForms are the SIMD Video Instructions, on the two halves or the four
// bytes of a register. CUDA's __vabsdiffu4 and __vsadu4 are such. They become
// ordinary instructions on 64 bits, for one element after the other.
var simdVideoForms = func() (forms []form) {
	for _, elements := range []string{"2", "4"} {
		for _, f := range []form{
			{name: "vadd", op: OpAdd}, {name: "vsub", op: OpSub}, {name: "vavrg", op: OpShr}, {name: "vabsdiff", op: OpSad},
			{name: "vmin", op: OpMin}, {name: "vmax", op: OpMax},
		} {
			f.name, f.types, f.words, f.lower = f.name+elements, videoTypes, "sat|add", simdVideo
			forms = append(forms, f)
		}
		forms = append(forms, form{
			name: "vset" + elements, types: "s32.s32 s32.u32 u32.s32 u32.u32", words: simdComparisons + " add", op: OpSetp, lower: simdVideo,
		})
	}
	return forms
}()

// elements is how a SIMD video instruction divides its registers.
type elements struct {
	letter byte // before the numbers in a selector
	count  int
	bits   uint64
}

// simdVideo lowers all of them.
//
// PTX ISA, "SIMD Video Instructions".
func simdVideo(b *body) {
	b.count(4)
	e := elements{letter: 'h', count: 2, bits: 16}
	if strings.HasSuffix(b.v.form.name, "4") {
		e = elements{letter: 'b', count: 4, bits: 8}
	}
	ops, t := b.ins.Operands, b.v.types
	dt, at, bt := U32, t[0], t[1] // comparisons give unsigned numbers
	if len(t) == 3 {
		dt, at, bt = t[0], t[1], t[2]
	}
	from := [2]Reg{b.simdSource(&ops[1], at), b.simdSource(&ops[2], bt)}
	as, bs := b.selector(&ops[1], e, 0), b.selector(&ops[2], e, e.count)
	results := map[int]Reg{}
	for _, i := range b.mask(&ops[0], e) {
		results[i] = b.simdElement(b.element(from, as[i], at, e), b.element(from, bs[i], bt, e))
		if b.v.has("sat") {
			results[i] = b.saturated(results[i], dt, e.bits)
		}
	}
	b.simdResult(results, dt, e)
}

// simdSource returns a source as a whole.
func (b *body) simdSource(x *ptx.Operand, t Type) Reg {
	plain := *x
	if plain.Kind != ptx.OperandName || plain.Minus {
		b.invalid("%s takes registers only", b.ins.Mnemonic)
	}
	plain.Component = ""
	return b.source(&plain, t)
}

// selector returns which of the elements of both sources stands in each place.
// Without one, they are those from first on.
func (b *body) selector(x *ptx.Operand, e elements, first int) []int {
	chosen := make([]int, e.count)
	if x.Component == "" {
		for i := range chosen {
			chosen[i] = first + i
		}
		return chosen
	}
	digits := b.digits(x, e, 2*e.count)
	if len(digits) != e.count {
		b.invalid("%s.%s does not select %d elements", x.Name, x.Component, e.count)
	}
	for i, n := range digits {
		chosen[e.count-1-i] = n
	}
	return chosen
}

// mask returns the places that are written, or summed up.
func (b *body) mask(x *ptx.Operand, e elements) []int {
	if x.Component == "" {
		return []int{0, 1, 2, 3}[:e.count]
	}
	digits := b.digits(x, e, e.count)
	for i := 1; i < len(digits); i++ {
		if digits[i] >= digits[i-1] {
			b.invalid("%s.%s: the places do not descend", x.Name, x.Component)
		}
	}
	return digits
}

// digits are the numbers of a selector, of which each is less than limit.
func (b *body) digits(x *ptx.Operand, e elements, limit int) (list []int) {
	for i, c := range []byte(x.Component) {
		switch n := int(c) - '0'; {
		case i == 0 && c == e.letter && len(x.Component) > 1:
		case i > 0 && n >= 0 && n < limit:
			list = append(list, n)
		default:
			b.invalid("%s has no parts .%s", x.Name, x.Component)
		}
	}
	return list
}

// element is number n of the elements of two sources, in 64 bits.
func (b *body) element(from [2]Reg, n int, t Type, e elements) Reg {
	wide := b.newReg(S64)
	b.emitPlain(Instr{Op: OpCvt, Type: S64, From: U32, Dst: b.regs(wide), Src: b.regs(from[n/e.count])})
	as := U64
	if t.Signed() {
		as = S64
	}
	return b.wideOp(OpBfe, as, wide, b.constReg(U32, uint64(n%e.count)*e.bits), b.constReg(U32, e.bits))
}

func (b *body) simdElement(x, y Reg) Reg {
	switch op := b.v.form.op; op {
	case OpSad:
		return b.wideOp(OpAbs, S64, b.wideOp(OpSub, S64, x, y))
	case OpShr: // an average, rounded to nearest, halves away from zero
		sum := b.wideOp(OpAdd, S64, x, y)
		up := b.wideOp(OpAdd, S64, sum, b.wideConst(1))
		return b.wideOp(OpShr, S64, b.chosenBy(CmpGe, sum, b.wideConst(0), up, sum), b.constReg(U32, 1))
	case OpSetp:
		return b.chosenBy(b.v.cmp, x, y, b.wideConst(1), b.wideConst(0))
	default:
		return b.wideOp(op, S64, x, y)
	}
}

// chosenBy is yes where x and y compare so, else no.
func (b *body) chosenBy(cmp Cmp, x, y, yes, no Reg) Reg {
	p := b.newReg(Pred)
	b.emitPlain(Instr{Op: OpSetp, Type: S64, From: S64, Cmp: cmp, Dst: b.regs(p), Src: b.regs(x, y)})
	return b.wideOp(OpSelp, S64, yes, no, p)
}

// simdResult adds the results to the last operand, or puts them into it.
func (b *body) simdResult(results map[int]Reg, t Type, e elements) {
	d, c := b.ins.Operands[0], &b.ins.Operands[3]
	if c.Component != "" {
		b.invalid("the last operand of %s has no parts", b.ins.Mnemonic)
	}
	d.Component = ""
	all := b.simdSource(c, t)
	for i := range e.count {
		r, ok := results[i]
		if !ok {
			continue
		}
		narrow, next := b.newReg(U32), b.newReg(U32)
		b.emitPlain(Instr{Op: OpCvt, Type: U32, From: U64, Dst: b.regs(narrow), Src: b.regs(r)})
		in := Instr{Op: OpBfi, Type: B32, Dst: b.regs(next), Src: b.regs(narrow, all, b.constReg(U32, uint64(i)*e.bits), b.constReg(U32, e.bits))}
		if b.v.has("add") {
			in = Instr{Op: OpAdd, Type: U32, Dst: b.regs(next), Src: b.regs(all, narrow)}
		}
		b.emitPlain(in)
		all = next
	}
	b.emit(Instr{Op: OpMov, Type: t, Dst: b.regs(b.dest(&d, t)), Src: b.regs(all)})
}
