// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	rounding = "rn|rz|rm|rp "
	// mustRound is where the ISA demands a rounding modifier.
	mustRound = "rn|rz|rm|rp! "
)

var floatForms = []form{
	{name: "add", types: "f32", words: rounding + "ftz sat", op: OpAdd, args: "daa"},
	{name: "add", types: "f64", words: rounding, op: OpAdd, args: "daa"},
	{name: "add", types: "f32x2", words: rounding + "ftz", op: OpAdd, args: "daa", lower: halves},

	{name: "sub", types: "f32", words: rounding + "ftz sat", op: OpSub, args: "daa"},
	{name: "sub", types: "f64", words: rounding, op: OpSub, args: "daa"},
	{name: "sub", types: "f32x2", words: rounding + "ftz", op: OpSub, args: "daa", lower: halves},

	{name: "mul", types: "f32", words: rounding + "ftz sat", op: OpMul, args: "daa"},
	{name: "mul", types: "f64", words: rounding, op: OpMul, args: "daa"},
	{name: "mul", types: "f32x2", words: rounding + "ftz", op: OpMul, args: "daa", lower: halves},

	{name: "mad", types: "f32", words: mustRound + "ftz", op: OpFma, args: "daaa"},
	{name: "mad.sat", types: "f32", words: mustRound + "ftz", op: OpFma, args: "daaa", lower: saturating},
	{name: "mad", types: "f64", words: mustRound, op: OpFma, args: "daaa"},

	{name: "fma", types: "f32", words: mustRound + "ftz sat", op: OpFma, args: "daaa"},
	{name: "fma", types: "f64", words: mustRound, op: OpFma, args: "daaa"},
	{name: "fma", types: "f32x2", words: mustRound + "ftz", op: OpFma, args: "daaa", lower: halves},

	{name: "div", types: "f32", words: "approx|full|rn|rz|rm|rp! ftz", op: OpDiv, args: "daa"},
	{name: "div", types: "f64", words: mustRound, op: OpDiv, args: "daa"},

	{name: "abs", types: "f64", op: OpAbs, args: "da"},
	{name: "abs", types: "f32", words: "ftz", op: OpAbs, args: "da"},
	{name: "neg", types: "f64", op: OpNeg, args: "da"},
	{name: "neg", types: "f32", words: "ftz", op: OpNeg, args: "da"},

	{name: "min", types: "f64", op: OpMin, args: "daa"},
	{name: "min", types: "f32", words: "ftz NaN", op: OpMin, args: "daaa?", lower: ofThree},
	{name: "min", types: "f32", words: "abs! ftz NaN", op: OpMin, args: "daaa", lower: ofThree},
	{name: "min", types: "f32", words: "xorsign! abs! ftz NaN", op: OpMin, args: "daa"},
	{name: "max", types: "f64", op: OpMax, args: "daa"},
	{name: "max", types: "f32", words: "ftz NaN", op: OpMax, args: "daaa?", lower: ofThree},
	{name: "max", types: "f32", words: "abs! ftz NaN", op: OpMax, args: "daaa", lower: ofThree},
	{name: "max", types: "f32", words: "xorsign! abs! ftz NaN", op: OpMax, args: "daa"},

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
	{name: "tanh", types: "f32", words: "approx!", op: OpTanh, args: "da"},
	{name: "copysign", types: "f32 f64", op: OpCopysign, args: "daa"},
	{name: "testp", types: "f32 f64", words: "finite|infinite|number|notanumber|normal|subnormal!", op: OpTestp, args: "Pa"},
	{name: "testp", types: "f32 f64", reason: reasonUnwritten, hint: "say which class to test for"},
}

var halfForms = []form{
	{name: "add", types: "f16 f16x2", words: "rn ftz sat", op: OpAdd, args: "daa"},
	{name: "add", types: "bf16 bf16x2", words: "rn", op: OpAdd, args: "daa"},

	{name: "sub", types: "f16 f16x2", words: "rn ftz sat", op: OpSub, args: "daa"},
	{name: "sub", types: "bf16 bf16x2", words: "rn", op: OpSub, args: "daa"},

	{name: "mul", types: "f16 f16x2", words: "rn ftz sat", op: OpMul, args: "daa"},
	{name: "mul", types: "bf16 bf16x2", words: "rn", op: OpMul, args: "daa"},

	{name: "fma", types: "f16 f16x2", words: "rn! ftz sat|relu", op: OpFma, args: "daaa"},
	{name: "fma", types: "f16 f16x2", words: "rn! oob! sat|relu", op: OpFma, args: "daaa"},
	{name: "fma", types: "bf16 bf16x2", words: "rn! relu oob", op: OpFma, args: "daaa"},
	{name: "fma", types: "bf16 bf16x2", words: "rz|rm|rp! relu oob", reason: reasonUnwritten, hint: "use .rn"},

	{name: "abs", types: "bf16 bf16x2", op: OpAbs, args: "da"},
	{name: "abs", types: "f16 f16x2", words: "ftz", op: OpAbs, args: "da"},
	{name: "neg", types: "bf16 bf16x2", op: OpNeg, args: "da"},
	{name: "neg", types: "f16 f16x2", words: "ftz", op: OpNeg, args: "da"},

	{name: "min", types: "f16 f16x2", words: "ftz NaN", op: OpMin, args: "daa"},
	{name: "min", types: "f16 f16x2", words: "xorsign! abs! ftz NaN", op: OpMin, args: "daa"},
	{name: "min", types: "bf16 bf16x2", words: "NaN", op: OpMin, args: "daa"},
	{name: "min", types: "bf16 bf16x2", words: "xorsign! abs! NaN", op: OpMin, args: "daa"},
	{name: "max", types: "f16 f16x2", words: "ftz NaN", op: OpMax, args: "daa"},
	{name: "max", types: "f16 f16x2", words: "xorsign! abs! ftz NaN", op: OpMax, args: "daa"},
	{name: "max", types: "bf16 bf16x2", words: "NaN", op: OpMax, args: "daa"},
	{name: "max", types: "bf16 bf16x2", words: "xorsign! abs! NaN", op: OpMax, args: "daa"},

	{name: "ex2", types: "f16 f16x2", words: "approx!", op: OpEx2, args: "da"},
	{name: "ex2", types: "bf16 bf16x2", words: "approx! ftz!", op: OpEx2, args: "da"},
	{name: "tanh", types: "f16 f16x2 bf16 bf16x2", words: "approx!", op: OpTanh, args: "da"},
}

var mixedForms = []form{
	{name: "add", types: "f32.f16 f32.bf16", words: rounding + "sat", op: OpAdd, args: "dfa", lower: mixed},

	{name: "sub", types: "f32.f16 f32.bf16", words: rounding + "sat", op: OpSub, args: "dfa", lower: mixed},

	{name: "fma", types: "f32.f16 f32.bf16", words: mustRound + "sat", op: OpFma, args: "dffa", lower: mixed},
}
