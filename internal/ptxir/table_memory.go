// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "slices"

const (
	memoryTypes = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
	scopes      = "cta|cluster|gpu|sys! "
	sharedSpace = "shared|shared::cta|shared::cluster! "
	prefetched  = "L2::64B|L2::128B|L2::256B "
	inL1        = "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"
	inL2        = "L2::evict_normal|L2::evict_first|L2::evict_last "
	loadCache   = "ca|cg|cs|lu|cv|" + inL1 + " L2::cache_hint " + prefetched
	storeCache  = "wb|cg|cs|wt|" + inL1 + " L2::cache_hint "
)

var accessForms = slices.Concat(
	globalLoads(memoryTypes, "v2|v4 "),
	// 32 bytes at once can say how to keep them in L2.
	globalLoads("b32 u32 s32 f32", "v8! "+inL2),
	globalLoads("b64 u64 s64 f64", "v4! "+inL2),
	[]form{
		{name: "ld", types: memoryTypes, words: "mmio! relaxed! sys! global", op: OpLd, lower: ld},
		{name: "ld", types: memoryTypes, words: "weak shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func! ca|cg|cs|lu|cv v2|v4", op: OpLd, lower: ld},
		{name: "ld", types: memoryTypes, words: "volatile! shared|shared::cta|shared::cluster|local! v2|v4", op: OpLd, lower: ld},
		{name: "ld", types: memoryTypes, words: "relaxed|acquire! " + scopes + sharedSpace + "v2|v4", op: OpLd, lower: ld},
		{name: "ldu", types: memoryTypes, words: "global v2|v4", op: OpLdu, lower: ld},
	},
	globalStores(memoryTypes, "v2|v4 "),
	globalStores("b32 u32 s32 f32", "v8! "+inL2),
	globalStores("b64 u64 s64 f64", "v4! "+inL2),
	[]form{
		{name: "st", types: memoryTypes, words: "mmio! relaxed! sys! global", op: OpSt, lower: st},
		{name: "st", types: memoryTypes, words: "weak shared|shared::cta|shared::cluster|local|param|param::func! wb|cg|cs|wt v2|v4", op: OpSt, lower: st},
		{name: "st", types: memoryTypes, words: "volatile! shared|shared::cta|shared::cluster|local! v2|v4", op: OpSt, lower: st},
		{name: "st", types: memoryTypes, words: "relaxed|release! " + scopes + sharedSpace + "v2|v4", op: OpSt, lower: st},
		{name: "prefetch", types: "", words: "global|local L1|L2!", op: OpPrefetch, lower: prefetch},
		{name: "prefetch", types: "", words: "global L2::evict_last|L2::evict_normal!", op: OpPrefetch, lower: prefetch},
		{name: "prefetchu", types: "", words: "L1!", op: OpPrefetch, lower: prefetch},
		{name: "discard", types: "", words: "global L2!", op: OpNop, lower: nop},
		{name: "applypriority", types: "", words: "global L2::evict_normal!", op: OpNop, lower: nop},
		{name: "createpolicy.fractional", types: "b64", words: "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged! L2::evict_first|L2::evict_unchanged",
			op: OpMov, lower: createPolicy},
		{name: "createpolicy.range", types: "b64", words: "global L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged! L2::evict_first|L2::evict_unchanged",
			op: OpMov, lower: createPolicy},
		{name: "createpolicy.cvt", types: "b64", words: "L2!", op: OpMov, lower: createPolicy},
	},
)

// globalLoads are the loads from global memory and generic addresses.
func globalLoads(types, vector string) []form {
	return []form{
		{name: "ld", types: types, words: "weak global " + loadCache + vector, op: OpLd, lower: ld},
		{name: "ld", types: types, words: "global! nc! ca|cg|cs|" + inL1 + " L2::cache_hint " + prefetched + vector, op: OpLd, lower: ld},
		{name: "ld", types: types, words: "volatile! global " + prefetched + vector, op: OpLd, lower: ld},
		{name: "ld", types: types, words: "relaxed|acquire! " + scopes + "global " + inL1 + " L2::cache_hint " + prefetched + vector, op: OpLd, lower: ld},
	}
}

// globalStores are the stores to global memory and generic addresses.
func globalStores(types, vector string) []form {
	return []form{
		{name: "st", types: types, words: "weak global " + storeCache + vector, op: OpSt, lower: st},
		{name: "st", types: types, words: "volatile! global " + vector, op: OpSt, lower: st},
		{name: "st", types: types, words: "relaxed|release! " + scopes + "global " + inL1 + " L2::cache_hint " + vector, op: OpSt, lower: st},
	}
}

var copyForms = []form{
	{name: "cp.async.ca", types: "", words: "shared|shared::cta! global! L2::cache_hint " + prefetched, op: OpCpAsync, lower: cpAsync},
	{name: "cp.async.cg", types: "", words: "shared|shared::cta! global! L2::cache_hint " + prefetched, op: OpCpAsync, lower: cpAsync},
	{name: "cp.async.commit_group", types: "", op: OpCpAsyncCommit, args: ""},
	{name: "cp.async.wait_group", types: "", op: OpCpAsyncWait, args: "n"},
	{name: "cp.async.wait_all", types: "", op: OpCpAsyncWait, lower: cpAsyncWaitAll},
}
