// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// Data Movement and Conversion, Comparison and Selection Instructions, but for
// those that touch memory.
var moveForms = []form{
	{name: "mov", types: "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64", words: "v2|v4|v8", op: OpMov, lower: mov},

	{name: "cvt.pack", types: "*", words: "sat!", op: OpCvtPack, lower: cvtPack},
	{name: "cvt", types: "*", words: "rn|rz|rm|rp|rni|rzi|rmi|rpi|rna ftz sat|satfinite relu", op: OpCvt, lower: cvt},
	{name: "cvta", types: "u32 u64", words: "to global|shared|shared::cta|shared::cluster|local|const|param|param::entry!", op: OpCvta, lower: cvta},
	{name: "isspacep", types: "", words: "global|shared|shared::cta|shared::cluster|local|const|param|param::entry!", op: OpIsspacep, lower: isspacep},

	{name: "selp", types: "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", op: OpSelp, args: "daap"},
	{name: "slct", types: "b16.s32 b32.s32 b64.s32 u16.s32 u32.s32 u64.s32 s16.s32 s32.s32 s64.s32 f32.s32 f64.s32", op: OpSlct, args: "daaf"},
	{name: "slct", types: "b16.f32 b32.f32 b64.f32 u16.f32 u32.f32 u64.f32 s16.f32 s32.f32 s64.f32 f32.f32 f64.f32", words: "ftz", op: OpSlct, args: "daaf"},
	{name: "set", types: "*", words: comparisons + " and|or|xor ftz", op: OpSet, lower: set},
	{name: "setp", types: "b16 b32 b64", words: "eq|ne! and|or|xor", op: OpSetp, lower: setp},
	{name: "setp", types: int163264, words: "eq|ne|lt|le|gt|ge|lo|ls|hi|hs! and|or|xor", op: OpSetp, lower: setp},
	{name: "setp", types: "f32 f64 f16 f16x2 bf16 bf16x2", words: comparisons + " and|or|xor ftz", op: OpSetp, lower: setp},
}

const comparisons = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan!"
