// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

const (
	atomPlaces      = "cta|cluster|gpu|sys global|shared|shared::cta|shared::cluster L2::cache_hint "
	atomScopes      = "relaxed|acquire|release|acq_rel " + atomPlaces
	redScopes       = "relaxed|release " + atomPlaces
	vectorPlaces    = "cta|cluster|gpu|sys global L2::cache_hint "
	vectorScopes    = "relaxed|acquire|release|acq_rel " + vectorPlaces
	vectorRedScopes = "relaxed|release " + vectorPlaces
)

var syncForms = []form{
	{name: "atom", types: "u32 s32 u64", words: "add|min|max! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "s64", words: "min|max! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "u32", words: "inc|dec! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "b32 b64", words: "and|or|xor|exch|cas! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "b128", words: "exch|cas! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "b16", words: "cas! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f32 f64", words: "add! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f16 f16x2 bf16 bf16x2", words: "add! noftz! " + atomScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f32", words: "add! v2|v4! " + vectorScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f16 bf16", words: "add|min|max! noftz! v2|v4|v8! " + vectorScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f16x2 bf16x2", words: "add|min|max! noftz! v2|v4! " + vectorScopes, op: OpAtom, lower: atom},
	{name: "atom", types: "f32", words: "add! noftz! v2|v4 " + atomScopes, reason: reasonUnwritten, hint: "leave out .noftz"},

	{name: "red", types: "u32 s32 u64", words: "add|min|max! " + redScopes, op: OpAtom, lower: red},
	{name: "red", types: "s64", words: "min|max! " + redScopes, op: OpAtom, lower: red},
	{name: "red", types: "u32", words: "inc|dec! " + redScopes, op: OpAtom, lower: red},
	{name: "red", types: "b32 b64", words: "and|or|xor! " + redScopes, op: OpAtom, lower: red},
	{name: "red", types: "f32 f64", words: "add! " + redScopes, op: OpAtom, lower: red},
	{name: "red", types: "f16 f16x2 bf16 bf16x2", words: "add! noftz! " + redScopes, op: OpAtom, lower: red},
	{name: "red", types: "f32", words: "add! v2|v4! " + vectorRedScopes, op: OpAtom, lower: red},
	{name: "red", types: "f16 bf16", words: "add|min|max! noftz! v2|v4|v8! " + vectorRedScopes, op: OpAtom, lower: red},
	{name: "red", types: "f16x2 bf16x2", words: "add|min|max! noftz! v2|v4! " + vectorRedScopes, op: OpAtom, lower: red},
	{name: "red", types: "f32", words: "add! noftz! v2|v4 " + redScopes, reason: reasonUnwritten, hint: "leave out .noftz"},

	{name: "membar", types: "", words: "cta|gl|sys!", op: OpFence, args: ""},
	{name: "fence", types: "", words: "sc|acq_rel|acquire|release cta|cluster|gpu|sys!", op: OpFence, args: ""},
	{name: "fence", types: "", words: "acquire! sync_restrict::shared::cluster! cluster!", op: OpFence, args: ""},
	{name: "fence", types: "", words: "release! sync_restrict::shared::cta! cluster!", op: OpFence, args: ""},
	{name: "fence.mbarrier_init", types: "", words: "release! cluster!", op: OpFence, args: ""},
	// All proxies see the same memory here.
	{name: "fence.proxy.alias", types: "", op: OpFence, args: ""},
	{name: "fence.proxy.async", types: "", words: "global|shared::cta|shared::cluster", op: OpFence, args: ""},
	{name: "fence.proxy.async::generic", types: "", words: "acquire! sync_restrict::shared::cluster! cluster! global|shared::cta|shared::cluster", op: OpFence, args: ""},
	{name: "fence.proxy.async::generic", types: "", words: "release! sync_restrict::shared::cta! cluster! global|shared::cta|shared::cluster", op: OpFence, args: ""},
	{name: "membar.proxy.alias", types: "", op: OpFence, args: ""},
	{name: "membar.proxy.async", types: "", op: OpFence, args: ""},

	{name: "cp.async.mbarrier.arrive", types: "b64", words: "noinc shared|shared::cta", op: OpCpAsyncMbarrier, lower: cpAsyncMbarrier},
	{name: "mbarrier.init", types: "b64", words: "shared|shared::cta", op: OpMbarInit, lower: mbarrierCount},
	{name: "mbarrier.inval", types: "b64", words: "shared|shared::cta", op: OpMbarInval, lower: mbarrierAddress},
	{name: "mbarrier.arrive", types: "b64", words: "shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive", types: "b64", words: "release|relaxed! cta|cluster! shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive", types: "b64", words: "noComplete! shared|shared::cta", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive", types: "b64", words: "noComplete! release! cta! shared|shared::cta", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop", types: "b64", words: "shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop", types: "b64", words: "release|relaxed! cta|cluster! shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop", types: "b64", words: "noComplete! shared|shared::cta", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop", types: "b64", words: "noComplete! release! cta! shared|shared::cta", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive.expect_tx", types: "b64", words: "shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive.expect_tx", types: "b64", words: "release|relaxed! cta|cluster! shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop.expect_tx", types: "b64", words: "shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.arrive_drop.expect_tx", types: "b64", words: "release|relaxed! cta|cluster! shared|shared::cta|shared::cluster", op: OpMbarArrive, lower: mbarrierArrive},
	{name: "mbarrier.test_wait", types: "b64", words: "parity shared|shared::cta", op: OpMbarTest, lower: mbarrierTest},
	{name: "mbarrier.test_wait", types: "b64", words: "parity acquire|relaxed! cta|cluster! shared|shared::cta", op: OpMbarTest, lower: mbarrierTest},
	{name: "mbarrier.try_wait", types: "b64", words: "parity shared|shared::cta", op: OpMbarTest, lower: mbarrierTest},
	{name: "mbarrier.try_wait", types: "b64", words: "parity acquire|relaxed! cta|cluster! shared|shared::cta", op: OpMbarTest, lower: mbarrierTest},
	{name: "mbarrier.pending_count", types: "b64", op: OpMbarPending, args: "ua"},
	{name: "mbarrier.expect_tx", types: "b64", words: "shared|shared::cta|shared::cluster", op: OpMbarExpectTx, lower: mbarrierCount},
	{name: "mbarrier.expect_tx", types: "b64", words: "relaxed! cta|cluster! shared|shared::cta|shared::cluster", op: OpMbarExpectTx, lower: mbarrierCount},

	{name: "griddepcontrol", types: "", words: "launch_dependents|wait!", op: OpGridDepControl, args: ""},
}
