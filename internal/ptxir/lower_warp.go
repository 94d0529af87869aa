// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

// bar lowers bar.sync and bar.arrive: a [, b].
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: bar,
// barrier".
func bar(mode Mode) func(*body) {
	return func(b *body) {
		in := b.instr()
		in.Mode, in.Mod = mode, in.Mod|b.aligned()
		if mode == ModeArrive {
			b.count(2)
		} else {
			b.count(1, 2)
		}
		for i := range b.ins.Operands {
			in.Src = b.push(in.Src, b.source(&b.ins.Operands[i], U32))
		}
		b.checkBarrier(b.ins.Operands)
		b.emit(in)
	}
}

// checkBarrier refuses constants that are no barrier or no number of threads.
func (b *body) checkBarrier(ops []ptx.Operand) {
	if x := &ops[0]; x.Kind == ptx.OperandImmediate && x.Value.Bits > 15 {
		b.invalid("%s: there are barriers 0 to 15, not %s", b.ins.Mnemonic, x.Value)
	}
	if len(ops) == 1 || ops[1].Kind != ptx.OperandImmediate {
		return
	}
	if n := ops[1].Value; n.Bits%32 != 0 || n.Bits == 0 && b.v.form.arrives() {
		b.invalid("%s: %s threads are no whole warps", b.ins.Mnemonic, n)
	}
}

func (f *form) arrives() bool { return strings.HasSuffix(f.name, ".arrive") }

// aligned is ModAligned for bar, which is short for barrier.aligned, and for that.
func (b *body) aligned() Mod {
	if strings.HasPrefix(b.v.form.name, "bar.") || b.v.has("aligned") {
		return ModAligned
	}
	return 0
}

// barRed lowers bar.red: d, a [, b], p.
func barRed(b *body) {
	b.count(3, 4)
	in := b.instr()
	in.Mod |= b.aligned()
	if (in.Mode == ModeRedPopc) != (in.Type == U32) {
		b.invalid("%s: popc gives a .u32, and and or give a .pred", b.ins.Mnemonic)
	}
	ops := b.ins.Operands
	b.checkBarrier(ops[1 : len(ops)-1])
	threads := NoReg
	if len(ops) == 4 {
		threads = b.source(&ops[2], U32)
	}
	in.Dst = b.regs(b.dest(&ops[0], in.Type))
	in.Src = b.regs(b.source(&ops[1], U32), threads, b.predSource(&ops[len(ops)-1]))
	b.emit(in)
}

// members returns the member mask: the operand at index i, or for the forms
// from before sm_70, which have none, the lanes that are here.
func (b *body) members(i int) Reg {
	if b.v.form.name == "shfl" || b.v.form.name == "vote" {
		b.count(i)
		mask := b.newReg(B32)
		b.emitPlain(Instr{Op: OpActivemask, Type: B32, Dst: b.regs(mask)})
		return mask
	}
	b.count(i + 1)
	return b.source(&b.ins.Operands[i], B32)
}

// shfl lowers shfl.sync d[|p], a, b, c, mask.
func shfl(b *body) {
	mask := b.members(4)
	in := b.instr()
	ops := b.ins.Operands
	in.Dst = b.withPredicate(&ops[0], B32)
	in.Src = b.regs(b.source(&ops[1], B32), b.source(&ops[2], B32), b.source(&ops[3], B32), mask)
	b.emit(in)
}

// withPredicate returns the registers of d or d|p.
func (b *body) withPredicate(x *ptx.Operand, t Type) []Reg {
	if x.Kind != ptx.OperandPair {
		return b.regs(b.dest(x, t))
	}
	d, p := b.pair(x)
	if d.Kind == ptx.OperandSink && p.Kind == ptx.OperandSink {
		b.invalid("%s: one of the results must be wanted", b.ins.Mnemonic)
	}
	return b.regs(b.destOrSink(d, t), b.destOrSink(p, Pred))
}

// vote lowers vote.sync d, {!}p, mask.
func vote(b *body) {
	mask := b.members(2)
	in := b.instr()
	in.Dst = b.regs(b.dest(&b.ins.Operands[0], in.Type))
	in.Src = b.regs(b.predSource(&b.ins.Operands[1]), mask)
	b.emit(in)
}

// match lowers match.any.sync d, a, mask and match.all.sync d[|p], a, mask.
func match(b *body) {
	b.count(3)
	in := b.instr()
	in.Mode = ModeAny
	if b.v.form.name == "match.all.sync" {
		in.Mode = ModeAll
	}
	ops := b.ins.Operands
	in.Dst = b.withPredicate(&ops[0], B32)
	if in.Mode == ModeAny && len(in.Dst) == 2 {
		b.invalid("match.any has one destination")
	}
	in.Src = b.regs(b.source(&ops[1], in.Type), b.source(&ops[2], B32))
	b.emit(in)
}

// elect lowers elect.sync d|p, mask.
func elect(b *body) {
	b.count(2)
	in := b.instr()
	in.Type = B32
	in.Dst = b.withPredicate(&b.ins.Operands[0], B32)
	if len(in.Dst) != 2 || in.Dst[1] == NoReg {
		b.invalid("%s needs a predicate for its result", b.ins.Mnemonic)
	}
	in.Src = b.regs(b.source(&b.ins.Operands[1], B32))
	b.emit(in)
}

// reduxFloat lowers redux.sync.min.f32 and max: d, a, mask.
func reduxFloat(b *body) {
	b.count(3)
	in := b.instr()
	ops := b.ins.Operands
	a := b.source(&ops[1], F32)
	if b.v.has("abs") {
		magnitude := b.newReg(F32)
		b.emitPlain(Instr{Op: OpAbs, Type: F32, Dst: b.regs(magnitude), Src: b.regs(a)})
		a = magnitude
	}
	in.Dst, in.Src = b.regs(b.dest(&ops[0], F32)), b.regs(a, b.source(&ops[2], B32))
	b.emit(in)
}
