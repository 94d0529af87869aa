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
	{name: "pmevent", types: "", words: "mask", op: OpPmevent, args: "n"},
	// A hint about the number of registers; there are always enough.
	{name: "setmaxnreg", types: "u32 s32", words: "inc|dec! sync! aligned!", op: OpNop, lower: nop},
}

// nop lowers what has no effect here.
func nop(b *body) { b.emit(Instr{Op: OpNop}) }
