// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	// ordering of ld and st, their scopes and spaces, and cache operators.
	loadOrder  = "weak|volatile|relaxed|acquire mmio "
	storeOrder = "weak|volatile|relaxed|release mmio "
	scopes     = "cta|cluster|gpu|sys "
	spaces     = "global|shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func "
	cacheHints = "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate " +
		"L2::evict_normal|L2::evict_first|L2::evict_last L2::cache_hint L2::64B|L2::128B|L2::256B unified "
	memoryTypes = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
	atomScopes  = "relaxed|acquire|release|acq_rel cta|cluster|gpu|sys global|shared|shared::cta|shared::cluster L2::cache_hint "
)

// The memory side of Data Movement and Conversion, Parallel Synchronization
// and Communication: atom, red, fences, asynchronous copies and mbarriers.
var memoryForms = []form{
	{name: "ld", types: memoryTypes, words: loadOrder + scopes + spaces + cacheHints + "ca|cg|cs|lu|cv|nc nc v2|v4|v8", op: OpLd, lower: ld},
	{name: "ldu", types: memoryTypes, words: "global v2|v4", op: OpLdu, lower: ld},
	{name: "st", types: memoryTypes, words: storeOrder + scopes + spaces + cacheHints + "wb|cg|cs|wt v2|v4|v8", op: OpSt, lower: st},

	{name: "atom", types: "u32 s32 u64 s64", words: "add|min|max|inc|dec|exch|cas|and|or|xor! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "b32 b64", words: "and|or|xor|exch|cas! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "b16", words: "cas! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "b128", words: "exch|cas! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f32", words: "add! v2|v4 " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f64", words: "add! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f16 f16x2 bf16 bf16x2", words: "add|min|max! noftz! v2|v4|v8 " + atomScopes, op: OpAtom, lower: atom},
	{name: "red", types: "u32 s32 u64 s64", words: "add|min|max|inc|dec|and|or|xor! " + atomScopes, op: OpAtom, lower: red},
	{name: "red", types: "b32 b64", words: "and|or|xor! " + atomScopes, op: OpAtom, lower: red},
	{name: "red", types: "f32", words: "add! v2|v4 " + atomScopes, op: OpAtom, lower: red},
	{name: "red", types: "f64", words: "add! " + atomScopes, op: OpAtom, lower: red},
	{name: "red", types: "f16 f16x2 bf16 bf16x2", words: "add|min|max! noftz! v2|v4|v8 " + atomScopes, op: OpAtom, lower: red},

	{name: "membar", types: "", words: "cta|gl|sys!", op: OpFence, args: ""},
	{name: "fence", types: "", words: "sc|acq_rel|acquire|release cta|cluster|gpu|sys! sync_restrict::shared::cta|sync_restrict::shared::cluster", op: OpFence, args: ""},
	{name: "fence.mbarrier_init", types: "", words: "release cluster", op: OpFence, args: ""},
	// All proxies see the same memory here.
	{name: "fence.proxy.alias", types: "", op: OpFence, args: ""},
	{name: "fence.proxy.async", types: "", words: "global|shared::cta|shared::cluster", op: OpFence, args: ""},
	{name: "fence.proxy.async::generic", types: "", words: "acquire|release! sync_restrict::shared::cta|sync_restrict::shared::cluster! cluster", op: OpFence, args: ""},
	{name: "membar.proxy.alias", types: "", op: OpFence, args: ""},
	{name: "membar.proxy.async", types: "", words: "global|shared::cta|shared::cluster", op: OpFence, args: ""},

	{name: "prefetch", types: "", words: "global|local L1|L2|L2::evict_last|L2::evict_normal!", op: OpPrefetch, lower: prefetch},
	{name: "prefetchu", types: "", words: "L1!", op: OpPrefetch, lower: prefetch},
	{name: "discard", types: "", words: "global L2!", op: OpNop, lower: nop},
	{name: "applypriority", types: "", words: "global L2::evict_normal!", op: OpNop, lower: nop},
	{name: "createpolicy", types: "*", words: "*", op: OpMov, lower: createPolicy},

	{name: "cp.async.ca", types: "", words: "shared|shared::cta! global! L2::cache_hint L2::64B|L2::128B|L2::256B", op: OpCpAsync, lower: cpAsync},
	{name: "cp.async.cg", types: "", words: "shared|shared::cta! global! L2::cache_hint L2::64B|L2::128B|L2::256B", op: OpCpAsync, lower: cpAsync},
	{name: "cp.async.commit_group", types: "", op: OpCpAsyncCommit, args: ""},
	{name: "cp.async.wait_group", types: "", op: OpCpAsyncWait, args: "n"},
	{name: "cp.async.wait_all", types: "", op: OpCpAsyncWait, lower: cpAsyncWaitAll},
	{name: "cp.async.mbarrier.arrive", types: "b64", words: "noinc shared|shared::cta", op: OpCpAsyncMbarrier, lower: mbarrierAddress},

	{name: "mbarrier.init", types: "b64", words: "shared|shared::cta", op: OpMbarInit, lower: mbarrierCount},
	{name: "mbarrier.inval", types: "b64", words: "shared|shared::cta", op: OpMbarInval, lower: mbarrierAddress},
	{name: "mbarrier.arrive", types: "b64", words: mbarrierWords + "noComplete", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop", types: "b64", words: mbarrierWords + "noComplete", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive.expect_tx", types: "b64", words: mbarrierWords, op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop.expect_tx", types: "b64", words: mbarrierWords, op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.test_wait", types: "b64", words: "parity acquire|relaxed cta|cluster shared|shared::cta", op: OpMbarTest, lower: mbarrierTest},
	{name: "mbarrier.try_wait", types: "b64", words: "parity acquire|relaxed cta|cluster shared|shared::cta", op: OpMbarTest, lower: mbarrierTest},
	{name: "mbarrier.pending_count", types: "b64", op: OpMbarPending, args: "ua"},
	{name: "mbarrier.expect_tx", types: "b64", words: "relaxed cta|cluster shared|shared::cta|shared::cluster", op: OpMbarExpectTx, lower: mbarrierCount},
}

const mbarrierWords = "release|relaxed cta|cluster shared|shared::cta|shared::cluster "
