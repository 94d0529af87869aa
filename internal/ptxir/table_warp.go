// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	matrixWords = "sync! aligned! "
	mmaWords    = "satfinite rn|rz|rm|rp xor|and popc row|col! row|col! "
	mmaShapes   = "m8n8k4|m8n8k16|m8n8k32|m8n8k128|m16n8k4|m16n8k8|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256! "
	wmmaShapes  = "m16n16k16|m8n32k16|m32n8k16|m16n16k8|m8n8k4|m8n8k32|m8n8k128! "
)

// warpForms are barriers and what lanes of a warp do together.
var warpForms = []form{
	{name: "bar.warp.sync", types: "", op: OpBarWarp, args: "i"},
	{name: "bar.sync", types: "", op: OpBar, lower: bar(ModeSync)},
	{name: "bar.cta.sync", types: "", op: OpBar, lower: bar(ModeSync)},
	{name: "bar.arrive", types: "", op: OpBar, lower: bar(ModeArrive)},
	{name: "bar.cta.arrive", types: "", op: OpBar, lower: bar(ModeArrive)},
	{name: "bar.red", types: "u32", words: "popc!", op: OpBar, lower: barRed},
	{name: "bar.red", types: "pred", words: "and|or!", op: OpBar, lower: barRed},
	{name: "bar.cta.red", types: "u32", words: "popc!", op: OpBar, lower: barRed},
	{name: "bar.cta.red", types: "pred", words: "and|or!", op: OpBar, lower: barRed},
	{name: "barrier.sync", types: "", words: "aligned", op: OpBar, lower: bar(ModeSync)},
	{name: "barrier.cta.sync", types: "", words: "aligned", op: OpBar, lower: bar(ModeSync)},
	{name: "barrier.arrive", types: "", words: "aligned", op: OpBar, lower: bar(ModeArrive)},
	{name: "barrier.cta.arrive", types: "", words: "aligned", op: OpBar, lower: bar(ModeArrive)},
	{name: "barrier.red", types: "u32", words: "popc! aligned", op: OpBar, lower: barRed},
	{name: "barrier.red", types: "pred", words: "and|or! aligned", op: OpBar, lower: barRed},
	{name: "barrier.cta.red", types: "u32", words: "popc! aligned", op: OpBar, lower: barRed},
	{name: "barrier.cta.red", types: "pred", words: "and|or! aligned", op: OpBar, lower: barRed},

	{name: "vote.sync", types: "pred", words: "all|any|uni!", op: OpVote, lower: vote},
	{name: "vote.sync", types: "b32", words: "ballot!", op: OpVote, lower: vote},
	{name: "vote", types: "pred", words: "all|any|uni!", op: OpVote, lower: vote},
	{name: "vote", types: "b32", words: "ballot!", op: OpVote, lower: vote},
	{name: "match.any.sync", types: "b32 b64", op: OpMatch, lower: match},
	{name: "match.all.sync", types: "b32 b64", op: OpMatch, lower: match},
	{name: "redux.sync", types: "u32 s32", words: "add|min|max!", op: OpRedux, args: "dai"},
	{name: "redux.sync", types: "b32", words: "and|or|xor!", op: OpRedux, args: "dai"},
	{name: "redux.sync", types: "f32", words: "min|max! abs NaN", op: OpRedux, lower: reduxFloat},
	{name: "elect.sync", types: "", op: OpElect, lower: elect},
	{name: "activemask", types: "b32", op: OpActivemask, args: "d"},
}

var matrixForms = []form{
	{name: "ldmatrix", types: "b16", words: matrixWords + "m8n8! x1|x2|x4! trans shared|shared::cta", op: OpLdmatrix, lower: ldmatrix},
	{name: "ldmatrix", types: "b8", words: matrixWords + "m16n16! x1|x2! trans! shared|shared::cta", op: OpLdmatrix, lower: ldmatrix},
	{name: "ldmatrix", types: "", words: matrixWords + "m8n16|m16n16! x1|x2|x4! trans shared|shared::cta b8x16! b4x16_p64|b6x16_p32!", op: OpLdmatrix, lower: ldmatrix},
	{name: "stmatrix", types: "b16", words: matrixWords + "m8n8! x1|x2|x4! trans shared|shared::cta", op: OpStmatrix, lower: stmatrix},
	{name: "stmatrix", types: "b8", words: matrixWords + "m16n8! x1|x2|x4! trans! shared|shared::cta", op: OpStmatrix, lower: stmatrix},
	{name: "movmatrix", types: "b16", words: matrixWords + "m8n8! trans!", op: OpMovmatrix, lower: movmatrix},
	{name: "mma", types: "*", words: matrixWords + mmaWords + mmaShapes, op: OpMma, lower: mma},
	{name: "mma.sp", types: "*", words: matrixWords + mmaWords + mmaShapes, op: OpMma, lower: mmaSparse},
	{name: "mma.sp::ordered_metadata", types: "*", words: matrixWords + mmaWords + mmaShapes, op: OpMma, lower: mmaSparse},
	{name: "wmma.load", types: "f16 bf16 tf32 s8 u8 s4 u4 b1 f32 s32 f64", words: matrixWords + "a|b|c! row|col! " + wmmaShapes + "global|shared|shared::cta", op: OpWmmaLoad, lower: wmmaLoad},
	{name: "wmma.store", types: "f16 f32 s32 f64", words: matrixWords + "d! row|col! " + wmmaShapes + "global|shared|shared::cta", op: OpWmmaStore, lower: wmmaStore},
	{name: "wmma.mma", types: "f16.f16 f16.f32 f32.f16 f32.f32", words: matrixWords + "row|col! row|col! " + wmmaShapes, op: OpWmmaMma, lower: wmmaMma},
	{name: "wmma.mma", types: "f32.bf16.bf16.f32 f32.tf32.tf32.f32", words: matrixWords + "row|col! row|col! " + wmmaShapes, op: OpWmmaMma, lower: wmmaMma},
	{name: "wmma.mma", types: "s32.s8.s8.s32 s32.u8.u8.s32", words: matrixWords + "satfinite row|col! row|col! " + wmmaShapes, op: OpWmmaMma, lower: wmmaMma},
	{name: "wmma.mma", types: "s32.s4.s4.s32 s32.u4.u4.s32", words: matrixWords + "satfinite row! col! " + wmmaShapes, op: OpWmmaMma, lower: wmmaMma},
	{name: "wmma.mma", types: "f64.f64.f64.f64", words: matrixWords + rounding + "row|col! row|col! " + wmmaShapes, op: OpWmmaMma, lower: wmmaMma},
	{name: "wmma.mma", types: "s32.b1.b1.s32", words: matrixWords + "xor|and! popc! row! col! " + wmmaShapes, op: OpWmmaMma, lower: wmmaMma},
}
