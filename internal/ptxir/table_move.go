// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

var moveForms = []form{
	{name: "mov", types: "pred b128", op: OpMov, lower: mov},
	{name: "mov", types: "b16 b32 u16 u32 s16 s32 f32", words: "v2|v4", op: OpMov, lower: mov},
	{name: "mov", types: "b64 u64 s64 f64", words: "v2", op: OpMov, lower: mov},
	{name: "prmt", types: "b32", words: "f4e|b4e|rc8|ecl|ecr|rc16", op: OpPrmt, args: "daaa"},
	{name: "cvta", types: "u64", words: "to global|shared|shared::cta|shared::cluster|local|const|param|param::entry!", op: OpCvta, lower: cvta},
	{name: "isspacep", types: "", words: "global|shared|shared::cta|shared::cluster|local|const|param|param::entry!", op: OpIsspacep, lower: isspacep},
	{name: "shfl.sync", types: "b32", words: "up|down|bfly|idx!", op: OpShfl, lower: shfl},
	{name: "shfl", types: "b32", words: "up|down|bfly|idx!", op: OpShfl, lower: shfl},
}
