// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"
	"strings"
)

const (
	just8or16 = "b8 b16 u8 u16 s8 s16"
	just32    = "b32 u32 s32 f32"
	just64    = "b64 u64 s64 f64"

	scopes      = "cta|cluster|gpu|sys! "
	sharedSpace = "shared|shared::cta|shared::cluster! "
	prefetched  = "L2::64B|L2::128B|L2::256B "
	completes   = "mbarrier::complete_tx::bytes! L2::cache_hint"
	ranks       = "1d|2d|3d|4d|5d! "
	inL1        = "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"
	inL2        = "L2::evict_normal|L2::evict_first|L2::evict_last "
	loadCache   = "ca|cg|cs|lu|cv|" + inL1 + " L2::cache_hint " + prefetched
	storeCache  = "wb|cg|cs|wt|" + inL1 + " L2::cache_hint "
	eviction    = "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged! L2::evict_first|L2::evict_unchanged "
)

// accessForms have rows for each size of the elements: a vector is at most 16
// bytes long, in global memory 32, and then it can say how to keep it in L2.
var accessForms = slices.Concat(
	globalLoads(just8or16, "v2|v4|v8 "), globalLoads(just32, "v2|v4 "), globalLoads(just64, "v2 "), globalLoads("b128", ""),
	globalLoads(just32, "v8! "+inL2), globalLoads(just64, "v4! "+inL2),
	otherLoads(just8or16, "v2|v4|v8 "), otherLoads(just32, "v2|v4 "), otherLoads(just64, "v2 "), otherLoads("b128", ""),
	globalStores(just8or16, "v2|v4|v8 "), globalStores(just32, "v2|v4 "), globalStores(just64, "v2 "), globalStores("b128", ""),
	globalStores(just32, "v8! "+inL2), globalStores(just64, "v4! "+inL2),
	otherStores(just8or16, "v2|v4|v8 "), otherStores(just32, "v2|v4 "), otherStores(just64, "v2 "), otherStores("b128", ""),
	[]form{
		{name: "prefetch", types: "", words: "global|local L1|L2!", op: OpPrefetch, lower: prefetch},
		{name: "prefetch", types: "", words: "global L2::evict_last|L2::evict_normal!", op: OpPrefetch, lower: prefetch},
		{name: "prefetchu", types: "", words: "L1!", op: OpPrefetch, lower: prefetch},
		{name: "discard", types: "", words: "global L2!", op: OpNop, lower: cacheLine},
		{name: "applypriority", types: "", words: "global L2::evict_normal!", op: OpNop, lower: cacheLine},
		{name: "createpolicy.fractional", types: "b64", words: eviction, op: OpMov, lower: createPolicy},
		{name: "createpolicy.range", types: "b64", words: "global " + eviction, op: OpMov, lower: createPolicy},
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

// otherLoads are those from elsewhere, and what both have.
func otherLoads(types, vector string) []form {
	return []form{
		{name: "ld", types: types, words: "mmio! relaxed! sys! global", op: OpLd, lower: ld},
		{name: "ld", types: types, words: "weak shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func! ca|cg|cs|lu|cv " + vector, op: OpLd, lower: ld},
		{name: "ld", types: types, words: "volatile! shared|shared::cta|shared::cluster|local! " + vector, op: OpLd, lower: ld},
		{name: "ld", types: types, words: "relaxed|acquire! " + scopes + sharedSpace + vector, op: OpLd, lower: ld},
		{name: "ldu", types: types, words: "global " + strings.ReplaceAll(vector, "|v8", ""), op: OpLdu, lower: ld},
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

// otherStores are those to elsewhere, and what both have.
func otherStores(types, vector string) []form {
	return []form{
		{name: "st", types: types, words: "mmio! relaxed! sys! global", op: OpSt, lower: st},
		{name: "st", types: types, words: "weak shared|shared::cta|shared::cluster|local|param|param::func! wb|cg|cs|wt " + vector, op: OpSt, lower: st},
		{name: "st", types: types, words: "volatile! shared|shared::cta|shared::cluster|local! " + vector, op: OpSt, lower: st},
		{name: "st", types: types, words: "relaxed|release! " + scopes + sharedSpace + vector, op: OpSt, lower: st},
	}
}

var textureForms = []form{
	{name: "tex", types: "f32|s32|u32.s32|f32", words: "base|level 1d|2d|3d|a1d|a2d! v4!", op: OpTex, lower: tex},
	{name: "tex", types: "f32|s32|u32.f32", words: "grad! 1d|2d|3d|a1d|a2d! v4!", op: OpTex, lower: tex},
	{name: "tex", types: "f32|s32|u32.f32", words: "base|level|grad cube|acube! v4!", op: OpTex, lower: tex},
}

var surfaceForms = []form{
	{name: "suld.b", types: "b8|b16|b32", words: "1d|2d|3d|a1d|a2d! ca|cg|cs|cv v2|v4 trap|clamp|zero!", op: OpSurfLoad, lower: suld},
	{name: "suld.b", types: "b64", words: "1d|2d|3d|a1d|a2d! ca|cg|cs|cv v2 trap|clamp|zero!", op: OpSurfLoad, lower: suld},
	{name: "sust.b", types: "b8|b16|b32", words: "1d|2d|3d|a1d|a2d! wb|cg|cs|wt v2|v4 trap|clamp|zero!", op: OpSurfStore, lower: sust},
	{name: "sust.b", types: "b64", words: "1d|2d|3d|a1d|a2d! wb|cg|cs|wt v2 trap|clamp|zero!", op: OpSurfStore, lower: sust},
}

var copyForms = []form{
	{name: "cp.async.ca", types: "", words: "shared|shared::cta! global! L2::cache_hint " + prefetched, op: OpCpAsync, lower: cpAsync},
	{name: "cp.async.cg", types: "", words: "shared|shared::cta! global! L2::cache_hint " + prefetched, op: OpCpAsync, lower: cpAsync},
	{name: "cp.async.commit_group", types: "", op: OpCpAsyncCommit, args: ""},
	{name: "cp.async.wait_group", types: "", op: OpCpAsyncWait, args: "n"},
	{name: "cp.async.wait_all", types: "", op: OpCpAsyncWait, lower: cpAsyncWaitAll},

	// A cluster is always one block here, so what goes to the cluster's shared memory
	// goes to the block's.
	{name: "cp.async.bulk", types: "", words: "shared::cluster|shared::cta! global! " + completes, op: OpBulkLoad, lower: bulkCopy},
	{name: "cp.async.bulk", types: "", words: "global! shared::cta! bulk_group! L2::cache_hint", op: OpBulkStore, lower: bulkCopy},
	{name: "cp.async.bulk.prefetch", types: "", words: "L2! global! L2::cache_hint", op: OpPrefetch, lower: bulkPrefetch},
	{name: "cp.async.bulk.tensor", types: "", words: ranks + "shared::cluster|shared::cta! global! tile " + completes, op: OpTensorLoad, lower: tensorCopy},
	{name: "cp.async.bulk.tensor", types: "", words: ranks + "global! shared::cta! tile bulk_group! L2::cache_hint", op: OpTensorStore, lower: tensorCopy},
	{name: "cp.async.bulk.prefetch.tensor", types: "", words: ranks + "L2! global! tile L2::cache_hint", op: OpPrefetch, lower: tensorPrefetch},
	{name: "cp.async.bulk.commit_group", types: "", op: OpCpAsyncCommit, args: ""},
	{name: "cp.async.bulk.wait_group", types: "", words: "read", op: OpCpAsyncWait, args: "n"},
	{name: "prefetch.tensormap", types: "", words: "const|param", op: OpPrefetch, lower: prefetch},
}
