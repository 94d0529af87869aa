// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

var logicForms = []form{
	{name: "and", types: "pred b16 b32 b64", op: OpAnd, args: "daa"},
	{name: "or", types: "pred b16 b32 b64", op: OpOr, args: "daa"},
	{name: "xor", types: "pred b16 b32 b64", op: OpXor, args: "daa"},
	{name: "not", types: "pred b16 b32 b64", op: OpNot, args: "da"},
	{name: "cnot", types: "b16 b32 b64", op: OpCnot, args: "da"},
	{name: "lop3", types: "b32", words: "and|or", op: OpLop3, lower: lop3},
	{name: "shl", types: "b16 b32 b64", op: OpShl, args: "dai"},
	{name: "shr", types: "b16 b32 b64 u16 u32 u64 s16 s32 s64", op: OpShr, args: "dai"},
	{name: "shf", types: "b32", words: "l|r! clamp|wrap!", op: OpShf, args: "daai"},
}

// lop3 lowers lop3.b32 d, a, b, c, lut and lop3.BoolOp.b32 d|p, a, b, c, lut, q.
func lop3(b *body) {
	in := b.instr()
	ops := b.ins.Operands
	if b.v.bool == BoolNone {
		b.count(5)
		in.Dst = b.regs(b.dest(&ops[0], B32))
	} else {
		b.count(6)
		d, p := b.pair(&ops[0])
		in.Dst = b.regs(b.destOrSink(d, B32), b.destOrSink(p, Pred))
	}
	in.Src = b.regs(b.source(&ops[1], B32), b.source(&ops[2], B32), b.source(&ops[3], B32))
	in.Imm = int64(b.constant(&ops[4]) & 0xff)
	if b.v.bool != BoolNone {
		in.Src = append(in.Src, b.predSource(&ops[5]))
	}
	b.emit(in)
}
