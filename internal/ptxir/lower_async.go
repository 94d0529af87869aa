// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"github.com/cudago/cudago/internal/ptx"
)

// cpAsync lowers cp.async [dst], [src], size [, src-size | ignore-src]
// [, policy].
//
// PTX ISA, "Data Movement and Conversion Instructions: cp.async".
func cpAsync(b *body) {
	ops := b.ins.Operands
	if b.v.has("L2::cache_hint") && len(ops) > 3 {
		ops = ops[:len(ops)-1]
	}
	if len(ops) != 3 && len(ops) != 4 {
		b.invalid("%s takes 3 or 4 operands, got %d", b.ins.Mnemonic, len(ops))
	}
	in := b.instr()
	size := b.constant(&ops[2])
	if size != 16 && (b.v.form.name == "cp.async.cg" || size != 4 && size != 8) {
		b.invalid("%s cannot copy %d bytes", b.ins.Mnemonic, size)
	}
	in.Src = b.regs(b.wholeAddress(&ops[0], SpaceShared), b.wholeAddress(&ops[1], SpaceGlobal))
	in.Space, in.Imm = SpaceGlobal, int64(size)
	if len(ops) == 4 {
		in.Src = b.regs(in.Src[0], in.Src[1], b.sizeOrIgnore(&in, &ops[3]))
	}
	b.emit(in)
}

func (b *body) sizeOrIgnore(in *Instr, x *ptx.Operand) Reg {
	if n, _ := b.find(x.Name); x.Kind == ptx.OperandName && n != nil && n.typ == Pred {
		in.Mod |= ModIgnoreSrc
		return b.predSource(x)
	}
	return b.source(x, U32)
}

// wholeAddress returns an address with its offset added, for instructions with
// two addresses.
func (b *body) wholeAddress(x *ptx.Operand, space Space) Reg {
	saved := b.v.space
	b.v.space = space
	var in Instr
	r := b.addressOf(&in, x)
	b.v.space = saved
	if in.Imm == 0 {
		return r
	}
	t := U32
	if b.f.Regs[r] == Class64 {
		t = U64
	}
	sum := b.newReg(t)
	b.emitPlain(Instr{Op: OpAdd, Type: t, Dst: b.regs(sum), Src: b.regs(r, b.constReg(t, uint64(in.Imm)&(1<<(8*t.Size()-1)<<1-1)))})
	return sum
}

func cpAsyncWaitAll(b *body) {
	b.count(0)
	b.emit(Instr{Op: OpCpAsyncWait, Imm: -1})
}

// mbarrierAddress lowers what takes only the barrier's address.
func mbarrierAddress(b *body) {
	b.count(1)
	in := b.instr()
	b.memory(&in, &b.ins.Operands[0])
	b.emit(in)
}

// mbarrierCount lowers what takes an address and a count.
func mbarrierCount(b *body) {
	b.count(2)
	in := b.instr()
	b.memory(&in, &b.ins.Operands[0])
	in.Src = b.regs(in.Src[0], b.source(&b.ins.Operands[1], U32))
	b.emit(in)
}

// cpAsyncMbarrier lowers cp.async.mbarrier.arrive, whose address may have 32
// bits without a space.
func cpAsyncMbarrier(b *body) {
	b.count(1)
	if n, _ := b.find(b.ins.Operands[0].Name); b.v.space == SpaceGeneric && n != nil && n.typ.Class() == Class32 {
		b.v.space = SpaceShared
		defer func() { b.v.space = SpaceGeneric }()
	}
	mbarrierAddress(b)
}

// mbarrierArrive lowers the arrive family: state or _, [address] [, count].
//
// PTX ISA, "mbarrier.arrive".
func mbarrierArrive(b *body) {
	ops := b.ins.Operands
	if len(ops) == 0 {
		b.invalid("%s needs an address", b.ins.Mnemonic)
	}
	in := b.instr()
	switch b.v.form.name {
	case "mbarrier.arrive_drop":
		in.Mod |= ModDrop
	case "mbarrier.arrive.expect_tx":
		in.Mod |= ModExpectTx
	case "mbarrier.arrive_drop.expect_tx":
		in.Mod |= ModDrop | ModExpectTx
	}
	in.Mod &^= ModRelease | ModVolatile
	sink := ops[0].Kind == ptx.OperandSink
	if b.v.has("shared::cluster") && !sink {
		b.invalid("%s: the state of another block's barrier is not known; write _", b.ins.Mnemonic)
	}
	in.Dst = b.regs(b.destOrSink(&ops[0], B64))
	ops = ops[1:]
	counted := in.Mod&(ModExpectTx|ModNoComplete) != 0
	if len(ops) != 2 && (len(ops) != 1 || counted) {
		b.invalid("%s takes a state or _, an address, and a count", b.ins.Mnemonic)
	}
	b.memory(&in, &ops[0])
	if len(ops) == 2 {
		in.Src = b.regs(in.Src[0], b.source(&ops[1], U32))
	}
	b.emit(in)
}

// mbarrierTest lowers test_wait and try_wait: p, [address], state or parity
// [, time limit].
func mbarrierTest(b *body) {
	if b.v.form.name == "mbarrier.try_wait" {
		b.count(3, 4)
	} else {
		b.count(3)
	}
	in := b.instr()
	in.Mod &= ModParity
	state := B64
	if in.Mod&ModParity != 0 {
		state = U32
	}
	if b.v.form.name == "mbarrier.try_wait" {
		in.Mod |= ModTry
	}
	ops := b.ins.Operands
	b.memory(&in, &ops[1])
	in.Dst = b.regs(b.dest(&ops[0], Pred))
	in.Src = b.regs(in.Src[0], b.source(&ops[2], state))
	b.emit(in)
}
