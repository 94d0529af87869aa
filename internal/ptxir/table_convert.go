// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// The rows of cvt are one for each set of modifiers, because most pairs of types
// have their own. A pair may be in more than one row.
const (
	anyInt   = "u8|u16|u32|u64|s8|s16|s32|s64"
	smallFP8 = "e4m3x2|e5m2x2"
	// toReal and toIntegral are the rounding that the ISA demands.
	toReal     = mustRound
	toIntegral = "rni|rzi|rmi|rpi! "
	integral   = "rni|rzi|rmi|rpi "
	// newerPairs are formats of sm_100 and later.
	newerPairs = "e2m1x2|e2m3x2|e3m2x2|ue8m0x2|e4m3x4|e5m2x4|e2m1x4|e2m3x4|e3m2x4! "
)

const (
	// widening is to integers that hold every value of the source.
	widening = "u8|u16|u32|u64|s16|s32|s64.u8 u16|u32|u64|s32|s64.u16 u32|u64|s64.u32 u64.u64 " +
		"s8|s16|s32|s64.s8 s16|s32|s64.s16 s32|s64.s32 s64.s64"
	narrowing = "s8.u8 u8|s8|s16.u16 u8|u16|s8|s16|s32.u32 u8|u16|u32|s8|s16|s32|s64.u64 " +
		"u8|u16|u32|u64.s8 u8|u16|u32|u64|s8.s16 u8|u16|u32|u64|s8|s16.s32 u8|u16|u32|u64|s8|s16|s32.s64"
)

// convertForms are the rows of cvt and cvt.pack.
//
// PTX ISA, "Data Movement and Conversion Instructions: cvt".
var convertForms = []form{
	{name: "cvt", types: widening, op: OpCvt, lower: cvt},
	{name: "cvt", types: narrowing, words: "sat", op: OpCvt, lower: cvt},

	{name: "cvt", types: "f16|f64." + anyInt + " f16.f64", words: toReal + "sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: "f32." + anyInt + " f32.f64 f16.f32", words: toReal + "ftz sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: "bf16." + anyInt + "|f64", words: toReal, op: OpCvt, lower: cvt},
	{name: "cvt", types: "bf16.f32", words: toReal + "ftz", op: OpCvt, lower: cvt},
	{name: "cvt", types: "f16|bf16.f32", words: "rn|rz! relu satfinite", op: OpCvt, lower: cvt},
	{name: "cvt", types: "tf32.f32", words: "rn|rz! relu satfinite", op: OpCvt, lower: cvt},
	{name: "cvt", types: "tf32.f32", words: "rna! satfinite", op: OpCvt, lower: cvt},

	{name: "cvt", types: anyInt + ".f16|f64", words: toIntegral + "sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: anyInt + ".f32", words: toIntegral + "ftz sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: anyInt + ".bf16", words: toIntegral, op: OpCvt, lower: cvt},

	{name: "cvt", types: "f16.f16 f64.f64", words: integral + "sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: "f32.f32", words: integral + "ftz sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: "bf16.bf16", words: integral, op: OpCvt, lower: cvt},
	{name: "cvt", types: "f64.f16", words: "sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: "f32.f16 f64.f32", words: "ftz sat", op: OpCvt, lower: cvt},
	{name: "cvt", types: "f16|f64.bf16 bf16.f16", words: rounding, op: OpCvt, lower: cvt},
	{name: "cvt", types: "f32.bf16", words: rounding + "ftz", op: OpCvt, lower: cvt},

	{name: "cvt", types: "f16x2|bf16x2.f32", words: "rn|rz! relu satfinite", op: OpCvt, lower: cvt},
	{name: "cvt", types: smallFP8 + ".f32|f16x2|bf16x2", words: "rn|rz! satfinite! relu", op: OpCvt, lower: cvt},
	{name: "cvt", types: "f16x2." + smallFP8, words: "rn! relu", op: OpCvt, lower: cvt},
	{name: "cvt", types: "bf16x2." + smallFP8, words: "rn! relu satfinite", op: OpCvt, lower: cvt},
	{name: "cvt", types: "bf16x2." + smallFP8, words: "rn! scaled::n2::ue8m0! satfinite relu", reason: reasonScaled, hint: hintOlder},
	{name: "cvt", types: "f16x2|bf16x2.f32", words: "rs! relu satfinite", reason: reasonStochastic, hint: hintOlder},
	{name: "cvt", types: "f32 f16x2 bf16x2", words: newerPairs + "rn|rz|rp|rs! satfinite relu scaled::n2::ue8m0", reason: reasonFP4, hint: hintOlder},

	{name: "cvt.pack", types: "u16|s16.s32 u8|s8|u4|s4|u2|s2.s32.b32", words: "sat!", op: OpCvtPack, lower: cvtPack},
}

const (
	reasonFP4        = "formats of less than 8 bits, blocks of four and scale factors are not simulated"
	reasonScaled     = "scale factors are not simulated"
	reasonStochastic = "stochastic rounding is not simulated"
)
