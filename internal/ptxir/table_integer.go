// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// int163264 are the integers that registers hold.
const int163264 = "u16 u32 u64 s16 s32 s64"

var integerForms = []form{
	{name: "add", types: "u16 u32 u64 s16 s64 u16x2 s16x2", op: OpAdd, args: "daa"},
	{name: "add", types: "s32", words: "sat", op: OpAdd, args: "daa"},

	{name: "add", types: "u32 u16x2 s16x2", words: "sat!", reason: reasonSaturate, hint: hintSaturate},
	{name: "add", types: "", words: "u8x4|s8x4! sat", reason: reasonBytes, hint: hintBytes},
	{name: "sub", types: "", words: "u8x4|s8x4! sat", reason: reasonBytes, hint: hintBytes},
	{name: "sub", types: "u16 u32 u64 s16 s64", op: OpSub, args: "daa"},
	{name: "sub", types: "s32", words: "sat", op: OpSub, args: "daa"},

	{name: "mul.wide", types: "u16 u32 s16 s32", op: OpMul, args: "waa", lower: wide},
	{name: "mul", types: int163264, words: "lo|hi!", op: OpMul, args: "daa"},
	{name: "mad.wide", types: "u16 u32 s16 s32", op: OpMad, args: "waaA", lower: wide},
	{name: "mad", types: int163264, words: "lo|hi!", op: OpMad, args: "daaa"},
	{name: "mad.sat", types: "s32", words: "hi!", op: OpMad, args: "daaa", lower: saturating},

	{name: "mul24", types: "u32 s32", words: "lo|hi!", op: OpMul24, args: "daa"},
	{name: "mad24", types: "u32 s32", words: "lo|hi!", op: OpMad24, args: "daaa"},
	{name: "mad24", types: "s32", words: "hi! sat!", op: OpMad24, args: "daaa"},

	{name: "div", types: int163264, op: OpDiv, args: "daa"},
	{name: "rem", types: int163264, op: OpRem, args: "daa"},
	{name: "sad", types: int163264, op: OpSad, args: "daaa"},
	{name: "abs", types: "s16 s32 s64", op: OpAbs, args: "da"},
	{name: "neg", types: "", words: "s8x4!", reason: reasonBytes, hint: hintBytes},
	{name: "neg", types: "s16 s32 s64", op: OpNeg, args: "da"},

	{name: "min", types: "u16 u32 u64 s16 s64", op: OpMin, args: "daa"},
	{name: "min", types: "s32", words: "relu", op: OpMin, args: "daa"},
	{name: "min", types: "u16x2", op: OpMin, args: "daa", lower: halves},
	{name: "min", types: "s16x2", words: "relu", op: OpMin, args: "daa", lower: halves},
	{name: "min", types: "", words: "u8x4!", reason: reasonBytes, hint: hintBytes},
	{name: "min", types: "", words: "s8x4! relu", reason: reasonBytes, hint: hintBytes},
	{name: "max", types: "", words: "u8x4!", reason: reasonBytes, hint: hintBytes},
	{name: "max", types: "", words: "s8x4! relu", reason: reasonBytes, hint: hintBytes},
	{name: "max", types: "u16 u32 u64 s16 s64", op: OpMax, args: "daa"},
	{name: "max", types: "s32", words: "relu", op: OpMax, args: "daa"},
	{name: "max", types: "u16x2", op: OpMax, args: "daa", lower: halves},
	{name: "max", types: "s16x2", words: "relu", op: OpMax, args: "daa", lower: halves},

	{name: "dp4a", types: "u32.u32 u32.s32 s32.u32 s32.s32", op: OpDp4a, args: "daaa"},
	{name: "dp2a", types: "u32.u32 u32.s32 s32.u32 s32.s32", words: "lo|hi!", op: OpDp2a, args: "daaa"},

	{name: "bfe", types: "u32 u64 s32 s64", op: OpBfe, args: "daii"},
	{name: "bfi", types: "b32 b64", op: OpBfi, args: "daaii"},
	{name: "bfind", types: "u32 u64 s32 s64", words: "shiftamt", op: OpBfind, args: "ua"},
	{name: "bmsk", types: "b32", words: "clamp|wrap!", op: OpBmsk, args: "daa"},
	{name: "szext", types: "u32 s32", words: "clamp|wrap!", op: OpSzext, args: "daa"},
	{name: "brev", types: "b32 b64", op: OpBrev, args: "da"},
	{name: "clz", types: "b32 b64", op: OpClz, args: "ua"},
	{name: "popc", types: "b32 b64", op: OpPopc, args: "ua"},
	{name: "fns", types: "b32", op: OpFns, args: "daaa"},
}

var extendedForms = []form{
	{name: "add.cc", types: "u32 s32 u64 s64", op: OpAddCC, args: "daa", lower: carry},
	{name: "addc", types: "u32 s32 u64 s64", op: OpAddC, args: "daa", lower: carry},
	{name: "addc", types: "u16 s16", reason: reasonUnwritten, hint: hint32},
	{name: "addc", types: "s32", words: "sat!", reason: reasonUnwritten, hint: hint32},
	{name: "addc.cc", types: "u32 s32 u64 s64", op: OpAddC, args: "daa", lower: carry},
	{name: "sub.cc", types: "u32 s32 u64 s64", op: OpSubCC, args: "daa", lower: carry},
	{name: "subc", types: "u32 s32 u64 s64", op: OpSubC, args: "daa", lower: carry},
	{name: "subc", types: "u16 s16", reason: reasonUnwritten, hint: hint32},
	{name: "subc", types: "s32", words: "sat!", reason: reasonUnwritten, hint: hint32},
	{name: "subc.cc", types: "u32 s32 u64 s64", op: OpSubC, args: "daa", lower: carry},
	{name: "mad.cc", types: "u32 s32 u64 s64", words: "lo|hi!", op: OpMadCC, args: "daaa", lower: carry},
	{name: "madc", types: "u32 s32 u64 s64", words: "lo|hi!", op: OpMadC, args: "daaa", lower: carry},
	{name: "madc", types: "u16 s16", words: "lo|hi!", reason: reasonUnwritten, hint: hint32},
	{name: "madc", types: "s32", words: "hi! sat!", reason: reasonUnwritten, hint: hint32},
	{name: "madc.cc", types: "u32 s32 u64 s64", words: "lo|hi!", op: OpMadC, args: "daaa", lower: carry},
}

const (
	reasonSaturate = "saturating addition of this type is not simulated"
	hintSaturate   = "compile for an architecture before sm_107"
	hintBytes      = "compile for an architecture before sm_107"
	// ptxas takes these; the PTX ISA document does not say what they do.
	reasonUnwritten = "the PTX ISA document does not describe this form"
	hint32          = "use the form on .u32 without .sat"
)
