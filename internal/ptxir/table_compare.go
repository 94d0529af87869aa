// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	comparisons = "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan! "
	signedOrder = "eq|ne|lt|le|gt|ge! "
	anyOrder    = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs! "
	combined    = "and|or|xor "
	// setResults are the results of set on the ordinary types.
	setResults = "u32|s32|f32|f16|bf16."
)

var compareForms = []form{
	{name: "set", types: setResults + "b16|b32|b64", words: "eq|ne! " + combined, op: OpSet, lower: set},
	{name: "set", types: setResults + "u16|u32|u64", words: anyOrder + combined, op: OpSet, lower: set},
	{name: "set", types: setResults + "s16|s32|s64", words: signedOrder + combined, op: OpSet, lower: set},
	{name: "set", types: "u32|s32|f32|f16.f32", words: comparisons + combined + "ftz", op: OpSet, lower: set},
	{name: "set", types: "bf16.f32 " + setResults + "f64", words: comparisons + combined, op: OpSet, lower: set},
	{name: "set", types: "u16x2", words: anyOrder, reason: reasonSetPairs, hint: "compare the halves one by one"},
	{name: "set", types: "s16x2", words: signedOrder, reason: reasonSetPairs, hint: "compare the halves one by one"},
	{name: "set", types: "", words: "u8x4|s8x4! " + anyOrder, reason: reasonBytes, hint: hintBytes},
	{name: "setp", types: "b16 b32 b64", words: "eq|ne! " + combined, op: OpSetp, lower: setp},
	{name: "setp", types: "u16 u32 u64", words: anyOrder + combined, op: OpSetp, lower: setp},
	{name: "setp", types: "s16 s32 s64", words: signedOrder + combined, op: OpSetp, lower: setp},
	{name: "setp", types: "f32", words: comparisons + combined + "ftz", op: OpSetp, lower: setp},
	{name: "setp", types: "f64", words: comparisons + combined, op: OpSetp, lower: setp},

	{name: "selp", types: "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", op: OpSelp, args: "daap"},
	{name: "slct", types: "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64.s32", op: OpSlct, args: "daaf"},
	{name: "slct", types: "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64.f32", words: "ftz", op: OpSlct, args: "daaf"},
}

var halfCompareForms = []form{
	{name: "set", types: "u16|s16|u32|s32|f16.f16 u32|s32|f16x2.f16x2", words: comparisons + combined + "ftz", op: OpSet, lower: set},
	{name: "set", types: "bf16.f16 u16|s16|u32|s32|bf16.bf16 u32|s32|bf16x2.bf16x2", words: comparisons + combined, op: OpSet, lower: set},
	{name: "setp", types: "f16 f16x2", words: comparisons + combined + "ftz", op: OpSetp, lower: setp},
	{name: "setp", types: "bf16 bf16x2", words: comparisons + combined, op: OpSetp, lower: setp},
}

const reasonSetPairs = "set on pairs of 16-bit integers is not simulated"
