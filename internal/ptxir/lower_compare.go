// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"

	"github.com/cudago/cudago/internal/ptx"
)

// setp compares into predicates.
//
// PTX ISA, "Comparison and Selection Instructions: setp".
func setp(b *body) {
	in := b.instr()
	in.From = in.Type
	ops := b.comparands(&in, in.Type)
	d := &ops[0]
	if d.Kind == ptx.OperandPair {
		p, q := b.pair(d)
		if p.Kind == ptx.OperandSink && q.Kind == ptx.OperandSink {
			b.invalid("%s: one of the results must be wanted", b.ins.Mnemonic)
		}
		if in.Type == F16 || in.Type == BF16 {
			b.invalid("%s has one result", b.ins.Mnemonic)
		}
		in.Dst = b.regs(b.destOrSink(p, Pred), b.destOrSink(q, Pred))
	} else {
		in.Dst = b.regs(b.destOrSink(d, Pred))
		if in.Type == F16x2 || in.Type == BF16x2 {
			// The upper half's result is not wanted.
			in.Dst = b.regs(in.Dst[0], NoReg)
		}
	}
	if slices.ContainsFunc(in.Dst, func(r Reg) bool { return r != NoReg }) {
		b.emit(in)
	}
}

// set compares into a number: all ones or 1.0 for true.
//
// PTX ISA, "Comparison and Selection Instructions: set".
func set(b *body) {
	in := b.instr()
	ops := b.comparands(&in, in.From)
	in.Dst = b.regs(b.dest(&ops[0], in.Type))
	b.emit(in)
}

// comparands fills in the two sources, and the third of a boolean operation.
func (b *body) comparands(in *Instr, t Type) []ptx.Operand {
	n := 3
	if in.Bool != BoolNone {
		n = 4
	}
	b.count(n)
	ops := b.ins.Operands
	in.Src = b.regs(b.source(&ops[1], t), b.source(&ops[2], t))
	if in.Bool != BoolNone {
		in.Src = b.regs(in.Src[0], in.Src[1], b.predSource(&ops[3]))
	}
	return ops
}
