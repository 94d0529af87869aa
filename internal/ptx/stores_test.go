// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is an entry with parameters a, b and n, whose values are in %a, %b and %n.
func entry(body string) string {
	return `.version 8.0 .target sm_90 .address_size 64
.global .u64 kept;
.func callee(.param .b64 p);
.entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
	.reg .b64 %a, %b, %x, %y, %z;
	.reg .b32 %n, %r, %lo, %hi;
	.reg .pred %p;
	.local .b64 stack;
	ld.param.u64 %a, [a];
	ld.param.u64 %b, [b];
	ld.param.u32 %n, [n];
	` + body + `
	ret;
}`
}

func TestStores(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		a, b bool
	}{
		"nothing":                 {``, false, false},
		"a load":                  {`ld.global.u32 %r, [%a+4];`, false, false},
		"a load through a cache":  {`cvta.to.global.u64 %x, %a; ld.global.nc.u32 %r, [%x];`, false, false},
		"a store":                 {`st.global.u32 [%a], %r;`, true, false},
		"of what was loaded":      {`ld.global.u32 %r, [%a]; st.global.u32 [%b], %r;`, false, true},
		"to what was loaded":      {`ld.global.u64 %x, [%a]; st.global.u32 [%x], 0;`, false, false},
		"computed":                {`mul.wide.s32 %x, %r, 4; add.s64 %y, %a, %x; st.u32 [%y], %r;`, true, false},
		"computed later":          {`st.u32 [%y], %r; add.s64 %y, %x, 8; mov.u64 %x, %b;`, false, true},
		"in halves":               {`mov.b64 {%lo, %hi}, %a; mov.b64 %x, {%lo, %hi}; st.u32 [%x], 1;`, true, false},
		"selected":                {`selp.b64 %x, %a, %b, %p; st.u32 [%x], 1;`, true, true},
		"compared":                {`setp.eq.s64 %p, %a, 0; selp.b64 %x, 1, 2, %p; st.u64 [%b], %x;`, false, true},
		"an atomic operation":     {`atom.global.add.u32 %r, [%a], 1;`, true, false},
		"a reduction":             {`red.global.add.u32 [%b], 1;`, false, true},
		"kept in memory":          {`st.local.u64 [stack], %a;`, true, false},
		"kept in a variable":      {`st.global.u64 [kept], %b;`, false, true},
		"exchanged":               {`atom.global.exch.b64 %x, [kept], %a;`, true, false},
		"passed on":               {`{ .param .b64 q; st.param.b64 [q], %a; call callee, (q); }`, true, false},
		"in a scope":              {`{ .reg .b64 %s; mov.b64 %s, %b; { st.u32 [%s], 0; } }`, false, true},
		"shuffled":                {`shfl.sync.idx.b32 %lo|%p, %n, 0, 31, -1;`, false, false},
		"copied from":             {`cp.async.ca.shared.global [%x], [%a], 16;`, false, false},
		"copied to":               {`cp.async.ca.shared.global [%a], [%b], 16;`, true, false},
		"reduced in bulk":         {`cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%x], 16;`, false, true},
		"prefetched":              {`prefetch.global.L2 [%a];`, false, false},
		"discarded":               {`discard.global.L2 [%a], 128;`, true, false},
		"a parameter's address":   {`mov.b64 %x, a; ld.param.u64 %y, [%x]; st.u32 [%y], 0;`, true, false},
		"through generic loads":   {`cvta.param.u64 %x, b; ld.u64 %y, [%x]; st.u32 [%y], 0;`, false, true},
		"a matrix":                {`wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r}, [%a]; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%b], {%r};`, false, true},
		"what is not known":       {`frobnicate.global [%a], %r;`, true, false},
		"under a predicate":       {`@%p st.global.u32 [%b], 0;`, false, true},
		"an index":                {`mul.wide.u32 %x, %n, 4; add.s64 %y, %b, %x; st.u32 [%y], %n;`, false, true},
		"a reader's cache policy": {`ld.global.L2::cache_hint.u32 %r, [%a], %x;`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Stores(entry(c.body))
			require.NoError(t, err)
			require.Equal(t, []bool{c.a, c.b}, got["k"][:2])
		})
	}
}

func TestStoresOfManyParameters(t *testing.T) {
	text := ".version 8.0 .target sm_90 .entry k("
	for i := range 70 {
		if i > 0 {
			text += ", "
		}
		text += ".param .u64 p" + string(rune('0'+i/10)) + string(rune('0'+i%10))
	}
	got, err := Stores(text + ") { .reg .b64 %x; ld.param.u64 %x, [p69]; st.u32 [%x], 0; }")
	require.NoError(t, err)
	list := got["k"]
	require.Len(t, list, 70)
	require.False(t, list[0])
	require.False(t, list[62])
	require.True(t, list[69])
}

func TestStoresOfTextThatIsNone(t *testing.T) {
	_, err := Stores("nonsense")
	require.Error(t, err)
}
