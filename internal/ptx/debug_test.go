// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/growth"
)

// written returns the parameters of each entry as C++ declares them.
func written(text string) map[string]string {
	all := map[string]string{}
	for symbol, params := range DebugParams(text) {
		list := make([]string, len(params))
		for i, p := range params {
			list[i] = strings.TrimRight(p.Type+" "+p.Name, " ")
		}
		all[symbol] = strings.Join(list, ", ")
	}
	return all
}

func TestDebugParamsOfNVRTC(t *testing.T) {
	require.Equal(t, map[string]string{
		"_ZN2ns5scaleIdLi4EEEvPT_PKS1_": "double* x, const double* y",
		"scalars": "bool b, char c, signed char sc, unsigned char uc, short s, unsigned int u, int i, long l, " +
			"long long ll, unsigned long long ull, unsigned long z, float f, double r, enum Mode m",
		"pointers": "float* f, const double* r, const int* const i, void* v, const void* cv, struct float4* f4, " +
			"const struct Range* range, float** ff, float (*)[] rows, void (*)() call, unsigned long* z",
		"structs":       "struct Params p, struct float4 f",
		"_Z7unnamedPdi": "double* d, int",
	}, written(read(t, "debug/types.ptx")))
	require.Empty(t, DebugParams(read(t, "nvrtc/saxpy_lineinfo.ptx")))
}

// byHand is DWARF 4 with strings in a section of their own, which a compiler
// built on LLVM may write: names by labels, a type that is made of itself, a
// number with a name of another language.
const byHand = `.version 8.0 .target sm_80 .address_size 64
.visible .entry k(.param .u64 a) { ret; }
.visible .entry circle(.param .u64 a) { ret; }
.visible .entry other(.param .u32 a) { ret; }
.section .debug_str { $L_none: .b8 0 $L_k: .b8 107,0 $L_x: .b8 120,0
  $L_circle: .b8 99,105,114,99,108,101,0 $L_other: .b8 111,116,104,101,114,0 }
.section .debug_abbrev {
.b8 1,17,1,0,0
.b8 2,46,1,110,14,3,14,0,0
.b8 3,5,0,3,14,73,19,0,0
.b8 4,15,0,73,19,0,0
.b8 5,36,0,3,8,62,11,11,11,0,0
.b8 7,22,0,73,19,0,0
.b8 0 }
.section .debug_info {
.b32 88 .b16 4 .b32 .debug_abbrev .b8 8 .b8 1
.b8 5,102,51,50,0,4,4      // 12: f32
.b8 4 .b32 12              // 19: a pointer to it
.b8 7 .b32 29              // 24 and 29: a circle
.b8 7 .b32 24
.b8 2 .b32 $L_k, $L_none   // 34
.b8 3 .b32 $L_x, 19
.b8 0
.b8 2 .b32 $L_circle, $L_circle
.b8 3 .b32 $L_x, 24
.b8 0
.b8 2 .b32 $L_other, $L_k+0
.b8 3 .b32 $L_x, 19        // a pointer, which is no .u32
.b8 0
.b8 0 }`

func TestDebugParamsOfOthers(t *testing.T) {
	require.Equal(t, map[string]string{"k": "float* x"}, written(byHand))
}

func TestDebugParamsThatDisagreeAreNotKnown(t *testing.T) {
	twice := strings.Replace(byHand, ".b8 2 .b32 $L_circle, $L_circle\n.b8 3 .b32 $L_x, 24", ".b8 2 .b32 $L_k, $L_k\n.b8 3 .b32 $L_k, 19", 1)
	require.NotEqual(t, byHand, twice)
	require.Empty(t, written(twice))
}

// Sections that are cut, or of which a number is another one, describe less.
func TestMalformedDebugInformation(t *testing.T) {
	for _, text := range []string{
		".section .debug_info {",
		".section .debug_info { .b8 }",
		".section .debug_info { .b8 x",
		".section .debug_info { .f32 1.0 }",
		".section .debug_info { label .b8 1 }",
		".section .debug_info { .b32 4294967295 .b8 4,0 }",
		".section .debug_info { .b32 .debug_abbrev-1 }",
		"\x01debug_info",
	} {
		require.Empty(t, DebugParams(text), text)
	}
	number := regexp.MustCompile(`\b\d+\b`)
	start := strings.Index(byHand, ".section .debug_abbrev")
	for _, at := range number.FindAllStringIndex(byHand[start:], -1) {
		for _, other := range []int{0, 1, 3, 17, 24, 127, 255, 1 << 30, 1<<32 - 1} {
			text := fmt.Sprintf("%s%d%s", byHand[:start+at[0]], other, byHand[start+at[1]:])
			DebugParams(text)
		}
	}
	for end := range len(byHand) {
		DebugParams(byHand[:end])
		DebugParams(byHand[:end] + "}")
	}
}

// FuzzDebugParams requires of any DWARF that it describes something or nothing.
func FuzzDebugParams(f *testing.F) {
	p := newParser(read(f, "debug/types.ptx"))
	p.skipBodies, p.debug = true, newDebugSections()
	p.module()
	f.Add(p.debug.data["debug_abbrev"], p.debug.data["debug_info"], []byte("k\x00"))
	f.Fuzz(func(t *testing.T, abbrev, info, strs []byte) {
		text := ".entry scalars(.param .u64 x) {}"
		for name, data := range map[string][]byte{"abbrev": abbrev, "info": info, "str": strs} {
			text += " .section .debug_" + name + " {"
			for _, b := range data {
				text += fmt.Sprintf(".b8 %d ", b)
			}
			text += "}"
		}
		for _, params := range DebugParams(text) {
			require.Len(t, params, 1)
		}
	})
}

// Each of many types that are made of one with a long name would repeat that.
func TestTypesOfALongName(t *testing.T) {
	text := func(n int) string {
		name, pointers := n/2, n/20
		var params, of, described strings.Builder
		for i := range pointers {
			at := 12 + name + 2 + 5*i
			fmt.Fprintf(&params, ".param .u64 p%d,", i)
			of.WriteString(".b8 4 .b32 12\n")
			fmt.Fprintf(&described, ".b8 3 .b32 %d .b8 112,0\n", at)
		}
		length := 8 + name + 2 + 5*pointers + 3 + 7*pointers + 2
		return ".version 8.0 .target sm_80 .address_size 64\n.entry k(" + strings.TrimRight(params.String(), ",") + ") {ret;}\n" +
			".section .debug_abbrev { .b8 1,17,1,0,0 .b8 2,46,1,3,8,0,0 .b8 3,5,0,73,19,3,8,0,0 .b8 4,15,0,73,19,0,0 .b8 5,19,0,3,8,0,0 .b8 0 }\n" +
			fmt.Sprintf(".section .debug_info { .b32 %d .b16 4 .b32 .debug_abbrev .b8 8 .b8 1\n.b8 5", length) + strings.Repeat(",120", name) + ",0\n" +
			of.String() + ".b8 2,107,0\n" + described.String() + ".b8 0,0 }"
	}
	require.Equal(t, "struct "+strings.Repeat("x", 50)+"* p", strings.Split(written(text(100))["k"], ", ")[0])
	growth.RequireLinear(t, 20_000, text, func(text string) { DebugParams(text) })
}
