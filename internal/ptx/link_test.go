// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const linkMain = `.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) helper (.param .b32 a);
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .global .align 4 .u32 table[4];
.extern .shared .align 4 .b8 buf[];
.file 1 "main.cu"
.global .u32 own = 1; // own is a name; "own" is not
.visible .entry run (.param .u64 p)
{
	.reg .b32 %r<3>;
	.loc 1 5 0
	ld.global.u32 %r1, [own];
	ld.global.u32 %r2, [table+4];
	ret;
}
`

const linkHelper = `.version 8.1
.target sm_86, debug
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .shared .align 4 .b8 buf[];
.file 1 "helper.cu"
.visible .global .u64 at = generic(own);
.global .u32 own = 2;
.visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .func (.param .b32 r) helper (.param .b32 a)
{
	.reg .b32 %own;
	.loc 1 7 0
	ld.global.u32 %own, [own];
	st.param.b32 [r], %own;
	ret;
}
`

func TestLink(t *testing.T) {
	text, err := Link([]Part{{"main", linkMain}, {"helper", linkHelper}})
	require.NoError(t, err)
	m, err := Parse(text)
	require.NoError(t, err, text)
	require.Equal(t, []int{8, 1}, []int{m.Major, m.Minor})
	require.Equal(t, []string{"sm_86", "debug"}, m.Target)
	require.Equal(t, map[int]string{1: "main.cu", 1001: "helper.cu"}, m.Files)
	require.Contains(t, text, ".loc 1001 7 0")
	require.Contains(t, text, "ld.global.u32 %own, [own__2];", "the helper's own, and not its register")
	require.Contains(t, text, "ld.global.u32 %r1, [own];")
	require.NotContains(t, text, ".extern .global")

	count := map[string]int{}
	var order []string
	for _, item := range m.Items {
		name, _, _ := named(item)
		count[name]++
		order = append(order, name)
	}
	require.Equal(t, map[string]int{"vprintf": 1, "buf": 1, "helper": 2, "table": 1, "own": 1, "own__2": 1, "at": 1, "run": 1}, count)
	require.Equal(t, "at", order[6], "behind what it names")
	// Linking is the same the other way round, and of one part.
	_, err = Link([]Part{{"helper", linkHelper}, {"main", linkMain}})
	require.NoError(t, err)
	_, err = Link([]Part{{"all", text}})
	require.NoError(t, err)
}

func TestLinkWeak(t *testing.T) {
	weak := ".version 7.0\n.target sm_75\n.address_size 64\n.weak .func f () { ret; }\n"
	strong := ".version 7.0\n.target sm_75\n.address_size 64\n.visible .func f () { trap; ret; }\n"
	for _, parts := range [][]Part{{{"a", weak}, {"b", strong}, {"c", weak}}, {{"a", strong}, {"b", weak}}} {
		text, err := Link(parts)
		require.NoError(t, err)
		require.Contains(t, text, "trap;")
		require.NotContains(t, text, ".weak")
	}
	_, err := Link([]Part{{"a", weak}, {"b", weak}})
	require.NoError(t, err)
	_, err = Link([]Part{{"a", strong}, {"b", strong}})
	require.EqualError(t, err, "f is defined in a and in b")
}

func TestLinkErrors(t *testing.T) {
	_, err := Link([]Part{{"main", linkMain}})
	require.EqualError(t, err, "nothing defines helper, which main uses; nor table, which main uses")
	_, err = Link([]Part{{"main", linkMain}, {"broken", ".version 7.0\n.target sm_75\n.func {"}})
	require.ErrorContains(t, err, "broken: ")
}

func FuzzLink(f *testing.F) {
	f.Add(linkMain, linkHelper)
	f.Fuzz(func(t *testing.T, a, b string) {
		text, err := Link([]Part{{"a", a}, {"b", b}})
		if err != nil {
			return
		}
		_, err = Parse(text)
		require.NoError(t, err, text)
	})
}
