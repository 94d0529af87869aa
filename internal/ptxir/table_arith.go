// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// How to read the tables: form says what the columns mean, plain what the
// letters of args mean. Titles are those of the PTX ISA document.

const (
	int163264 = "u16 u32 u64 s16 s32 s64"
	rounding  = "rn|rz|rm|rp "
	// mustRound is where the ISA demands a rounding modifier.
	mustRound = "rn|rz|rm|rp! "
)

// Integer Arithmetic, Extended-Precision Integer Arithmetic, Floating Point,
// Half Precision Floating Point and Mixed Precision Floating Point
// Instructions.
var arithForms = []form{
	{name: "add", types: "u16 u32 u64 s16 s64 u16x2 s16x2", op: OpAdd, args: "daa"},
	{name: "add", types: "s32", words: "sat", op: OpAdd, args: "daa"},
	{name: "add", types: "f32", words: rounding + "ftz sat", op: OpAdd, args: "daa"},
	{name: "add", types: "f64", words: rounding, op: OpAdd, args: "daa"},
	{name: "add", types: "f16 f16x2", words: "rn ftz sat", op: OpAdd, args: "daa"},
	{name: "add", types: "bf16 bf16x2", words: "rn", op: OpAdd, args: "daa"},
	{name: "add", types: "f32x2", words: rounding + "ftz", op: OpAdd, args: "daa", lower: halves},
	{name: "add", types: "f32.f16 f32.bf16", words: rounding + "sat", op: OpAdd, args: "dfa", lower: mixed},

	{name: "sub", types: "u16 u32 u64 s16 s64", op: OpSub, args: "daa"},
	{name: "sub", types: "s32", words: "sat", op: OpSub, args: "daa"},
	{name: "sub", types: "f32", words: rounding + "ftz sat", op: OpSub, args: "daa"},
	{name: "sub", types: "f64", words: rounding, op: OpSub, args: "daa"},
	{name: "sub", types: "f16 f16x2", words: "rn ftz sat", op: OpSub, args: "daa"},
	{name: "sub", types: "bf16 bf16x2", words: "rn", op: OpSub, args: "daa"},
	{name: "sub", types: "f32x2", words: rounding + "ftz", op: OpSub, args: "daa", lower: halves},
	{name: "sub", types: "f32.f16 f32.bf16", words: rounding + "sat", op: OpSub, args: "dfa", lower: mixed},

	{name: "mul.wide", types: "u16 u32 s16 s32", op: OpMul, args: "waa", lower: wide},
	{name: "mul", types: int163264, words: "lo|hi!", op: OpMul, args: "daa"},
	{name: "mul", types: "f32", words: rounding + "ftz sat", op: OpMul, args: "daa"},
	{name: "mul", types: "f64", words: rounding, op: OpMul, args: "daa"},
	{name: "mul", types: "f16 f16x2", words: "rn ftz sat", op: OpMul, args: "daa"},
	{name: "mul", types: "bf16 bf16x2", words: "rn", op: OpMul, args: "daa"},
	{name: "mul", types: "f32x2", words: rounding + "ftz", op: OpMul, args: "daa", lower: halves},

	{name: "mad.wide", types: "u16 u32 s16 s32", op: OpMad, args: "waaA", lower: wide},
	{name: "mad", types: "u16 u32 u64 s16 s64", words: "lo|hi!", op: OpMad, args: "daaa"},
	{name: "mad", types: "s32", words: "lo|hi!", op: OpMad, args: "daaa"},
	{name: "mad", types: "f32", words: rounding + "ftz", op: OpFma, args: "daaa"},
	{name: "mad.sat", types: "s32", words: "hi!", op: OpMad, args: "daaa", lower: saturating},
	{name: "mad.sat", types: "f32", words: rounding + "ftz", op: OpFma, args: "daaa", lower: saturating},
	{name: "mad", types: "f64", words: mustRound, op: OpFma, args: "daaa"},

	{name: "fma", types: "f32", words: mustRound + "ftz sat", op: OpFma, args: "daaa"},
	{name: "fma", types: "f64", words: mustRound, op: OpFma, args: "daaa"},
	{name: "fma", types: "f16 f16x2", words: "rn! ftz sat relu oob", op: OpFma, args: "daaa"},
	{name: "fma", types: "bf16 bf16x2", words: "rn! relu oob", op: OpFma, args: "daaa"},
	{name: "fma", types: "f32x2", words: mustRound + "ftz", op: OpFma, args: "daaa", lower: halves},
	{name: "fma", types: "f32.f16 f32.bf16", words: mustRound + "sat", op: OpFma, args: "dffa", lower: mixed},

	{name: "mul24", types: "u32 s32", words: "lo|hi!", op: OpMul24, args: "daa"},
	{name: "mad24", types: "u32", words: "lo|hi!", op: OpMad24, args: "daaa"},
	{name: "mad24", types: "s32", words: "lo|hi! sat", op: OpMad24, args: "daaa"},

	{name: "add.cc", types: "u32 s32 u64 s64", op: OpAddCC, args: "daa", lower: carry},
	{name: "addc", types: "u32 s32 u64 s64", op: OpAddC, args: "daa", lower: carry},
	{name: "addc.cc", types: "u32 s32 u64 s64", op: OpAddC, args: "daa", lower: carry},
	{name: "sub.cc", types: "u32 s32 u64 s64", op: OpSubCC, args: "daa", lower: carry},
	{name: "subc", types: "u32 s32 u64 s64", op: OpSubC, args: "daa", lower: carry},
	{name: "subc.cc", types: "u32 s32 u64 s64", op: OpSubC, args: "daa", lower: carry},
	{name: "mad.cc", types: "u32 s32 u64 s64", words: "lo|hi!", op: OpMadCC, args: "daaa", lower: carry},
	{name: "madc", types: "u32 s32 u64 s64", words: "lo|hi!", op: OpMadC, args: "daaa", lower: carry},
	{name: "madc.cc", types: "u32 s32 u64 s64", words: "lo|hi!", op: OpMadC, args: "daaa", lower: carry},

	{name: "div", types: int163264, op: OpDiv, args: "daa"},
	{name: "div", types: "f32", words: "approx|full|rn|rz|rm|rp! ftz", op: OpDiv, args: "daa"},
	{name: "div", types: "f64", words: mustRound, op: OpDiv, args: "daa"},
	{name: "rem", types: int163264, op: OpRem, args: "daa"},
	{name: "sad", types: int163264, op: OpSad, args: "daaa"},

	{name: "abs", types: "s16 s32 s64 f64 bf16 bf16x2", op: OpAbs, args: "da"},
	{name: "abs", types: "f32 f16 f16x2", words: "ftz", op: OpAbs, args: "da"},
	{name: "neg", types: "s16 s32 s64 f64 bf16 bf16x2", op: OpNeg, args: "da"},
	{name: "neg", types: "f32 f16 f16x2", words: "ftz", op: OpNeg, args: "da"},

	{name: "min", types: "u16 u32 u64 s16 s64 f64", op: OpMin, args: "daa"},
	{name: "min", types: "s32", words: "relu", op: OpMin, args: "daa"},
	{name: "min", types: "u16x2", op: OpMin, args: "daa", lower: halves},
	{name: "min", types: "s16x2", words: "relu", op: OpMin, args: "daa", lower: halves},
	{name: "min", types: "f32", words: "ftz NaN xorsign abs", op: OpMin, args: "daaa?", lower: ofThree},
	{name: "min", types: "f16 f16x2", words: "ftz NaN xorsign abs", op: OpMin, args: "daa"},
	{name: "min", types: "bf16 bf16x2", words: "NaN xorsign abs", op: OpMin, args: "daa"},
	{name: "max", types: "u16 u32 u64 s16 s64 f64", op: OpMax, args: "daa"},
	{name: "max", types: "s32", words: "relu", op: OpMax, args: "daa"},
	{name: "max", types: "u16x2", op: OpMax, args: "daa", lower: halves},
	{name: "max", types: "s16x2", words: "relu", op: OpMax, args: "daa", lower: halves},
	{name: "max", types: "f32", words: "ftz NaN xorsign abs", op: OpMax, args: "daaa?", lower: ofThree},
	{name: "max", types: "f16 f16x2", words: "ftz NaN xorsign abs", op: OpMax, args: "daa"},
	{name: "max", types: "bf16 bf16x2", words: "NaN xorsign abs", op: OpMax, args: "daa"},

	{name: "rcp.approx", types: "f32", words: "ftz", op: OpRcp, args: "da", lower: approximate},
	{name: "rcp", types: "f32", words: mustRound + "ftz", op: OpRcp, args: "da"},
	{name: "rcp", types: "f64", words: mustRound + "ftz", op: OpRcp, args: "da"},
	{name: "rcp.approx", types: "f64", words: "ftz!", op: OpRcp, args: "da", lower: approximate},
	{name: "sqrt", types: "f32", words: "approx|rn|rz|rm|rp! ftz", op: OpSqrt, args: "da"},
	{name: "sqrt", types: "f64", words: mustRound, op: OpSqrt, args: "da"},
	{name: "rsqrt", types: "f32 f64", words: "approx! ftz", op: OpRsqrt, args: "da"},
	{name: "sin", types: "f32", words: "approx! ftz", op: OpSin, args: "da"},
	{name: "cos", types: "f32", words: "approx! ftz", op: OpCos, args: "da"},
	{name: "lg2", types: "f32", words: "approx! ftz", op: OpLg2, args: "da"},
	{name: "ex2", types: "f32", words: "approx! ftz", op: OpEx2, args: "da"},
	{name: "ex2", types: "f16 f16x2", words: "approx!", op: OpEx2, args: "da"},
	{name: "ex2", types: "bf16 bf16x2", words: "approx! ftz!", op: OpEx2, args: "da"},
	{name: "tanh", types: "f32 f16 f16x2 bf16 bf16x2", words: "approx!", op: OpTanh, args: "da"},
	{name: "copysign", types: "f32 f64", op: OpCopysign, args: "daa"},
	{name: "testp", types: "f32 f64", words: "finite|infinite|number|notanumber|normal|subnormal!", op: OpTestp, args: "Pa"},

	{name: "dp4a", types: "u32.u32 u32.s32 s32.u32 s32.s32", op: OpDp4a, args: "daaa"},
	{name: "dp2a", types: "u32.u32 u32.s32 s32.u32 s32.s32", words: "lo|hi!", op: OpDp2a, args: "daaa"},
}
