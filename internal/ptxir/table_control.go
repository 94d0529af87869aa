// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

var controlForms = []form{
	{name: "bra", types: "", words: "uni", lower: bra},
	{name: "brx.idx", types: "", words: "uni", lower: brx},
	{name: "call", types: "", words: "uni", lower: call},
	{name: "ret", types: "", words: "uni", lower: ret},
	{name: "exit", types: "", lower: exit},
}

var miscForms = []form{
	{name: "trap", types: "", op: OpTrap, args: ""},
	{name: "brkpt", types: "", op: OpBrkpt, args: ""},
	{name: "nanosleep", types: "u32", op: OpNanosleep, args: "a"},
	{name: "pmevent", types: "", words: "mask", op: OpPmevent, lower: pmevent},
	// A hint about the number of registers; there are always enough.
	{name: "setmaxnreg", types: "u32 s32", words: "inc|dec! sync! aligned!", op: OpNop, lower: setMaxRegisters},
}

// nop lowers what has no effect here.
func nop(b *body) { b.emit(Instr{Op: OpNop}) }

// setMaxRegisters checks the number of registers, of which there are always enough.
func setMaxRegisters(b *body) {
	b.count(1)
	if n := b.constant(&b.ins.Operands[0]); n < 24 || n > 256 || n%8 != 0 {
		b.invalid("%s: expected a multiple of 8 from 24 to 256, got %d", b.ins.Mnemonic, n)
	}
	nop(b)
}

// pmevent checks the number of an event, or the mask of some.
func pmevent(b *body) {
	b.count(1)
	in := b.instr()
	in.Imm = int64(b.constant(&b.ins.Operands[0]))
	most := int64(15)
	if b.v.has("mask") {
		most = 1<<16 - 1
	}
	if in.Imm < 0 || in.Imm > most {
		b.invalid("%s: expected 0 to %d, got %d", b.ins.Mnemonic, most, in.Imm)
	}
	b.emit(in)
}

// cacheLine is an effect on a line of the cache, which has none here.
func cacheLine(b *body) {
	b.count(2)
	in := b.instr()
	b.memory(&in, &b.ins.Operands[0])
	if n := b.constant(&b.ins.Operands[1]); n != 128 {
		b.invalid("%s: expected 128 bytes, got %d", b.ins.Mnemonic, n)
	}
	nop(b)
}
