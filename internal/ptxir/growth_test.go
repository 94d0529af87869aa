// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/growth"
	"github.com/cudago/cudago/internal/ptx"
	"github.com/cudago/cudago/internal/ptxir"
)

const head = ".version 8.0\n.target sm_75\n.address_size 64\n"

// each returns the text that f makes of each number below n.
func each(n int, f string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(f, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// row returns what stands first, and the text that format makes of each number and the next.
func row(n int, first, format string) string {
	var b strings.Builder
	b.WriteString(first)
	for i := range n {
		fmt.Fprintf(&b, format, i, i+1)
	}
	return b.String()
}

func again(n int, s string) string { return strings.Repeat(s, n/len(s)+1) }

func kernel(body string) string { return head + ".visible .entry k(.param .u64 p) {" + body + "ret;}" }

func function(body string) string { return head + ".func f() {" + body + "ret;}" }

// texts are modules of about n bytes, and texts that are none.
var texts = map[string]func(n int) string{
	"spaces":             func(n int) string { return again(n, " ") },
	"lines":              func(n int) string { return again(n, "\n") + "x" },
	"zeros":              func(n int) string { return again(n, "\x00") },
	"no comment's end":   func(n int) string { return head + "/*" + again(n, "/*") },
	"comments":           func(n int) string { return head + again(n, "/**/") },
	"line comments":      func(n int) string { return head + again(n, "//x\n") },
	"quotes":             func(n int) string { return head + again(n, "\"") },
	"strings":            func(n int) string { return head + again(n, "\"\" ") },
	"a name":             func(n int) string { return head + again(n, "a") },
	"dots":               func(n int) string { return head + again(n, ".") },
	"a modifier":         func(n int) string { return function("add" + again(n, ".u32") + " %a, %b, %c;") },
	"digits":             func(n int) string { return head + ".global .u32 x = " + again(n, "9") + ";" },
	"hexadecimal":        func(n int) string { return head + ".global .u32 x = 0x" + again(n, "f") + ";" },
	"a fraction":         func(n int) string { return head + ".global .f64 x = 0." + again(n, "9") + ";" },
	"an exponent":        func(n int) string { return head + ".global .f64 x = 1e" + again(n, "9") + ";" },
	"a sum":              func(n int) string { return head + ".global .u32 x = 1" + again(n, "+1") + ";" },
	"a sum of names":     func(n int) string { return head + ".global .u64 x = 1; .global .u64 y = x" + again(n, "+x") + ";" },
	"numbers":            func(n int) string { return head + ".global .u8 x[] = {0" + again(n, ",1") + "};" },
	"lists":              func(n int) string { return head + ".global .u8 x[][1] = {{0}" + again(n, ",{1}") + "};" },
	"addresses":          func(n int) string { return head + ".global .u64 y; .global .u64 x[] = {y" + again(n, ",y") + "};" },
	"dimensions":         func(n int) string { return head + ".global .u8 x" + again(n, "[1]") + ";" },
	"a long array":       func(n int) string { return head + fmt.Sprintf(".global .u8 x[%d] = {1};", n<<10) },
	"variables":          func(n int) string { return head + each(n/20, ".global .u32 x#;") },
	"names of a list":    func(n int) string { return head + ".global .u32 x" + each(n/8, ",x#") + ";" },
	"one variable":       func(n int) string { return head + again(n, ".global .u32 x;") },
	"in each other":      func(n int) string { return head + ".global .u64 x0;" + each(n/30, ".global .u64 y# = x0;") },
	"forward":            func(n int) string { return head + each(n/40, ".extern .global .u64 x#; .global .u64 x#;") },
	"files":              func(n int) string { return head + each(n/20, ".file # \"a\"\n") },
	"pragmas":            func(n int) string { return head + again(n, ".pragma \"x\";") },
	"versions":           func(n int) string { return again(n, head) },
	"targets":            func(n int) string { return ".version 8.0\n.target sm_75" + again(n, ",debug") },
	"aliases":            func(n int) string { return head + ".func f() {ret;}" + each(n/40, ".func a#(); .alias a#, f;") },
	"kernels":            func(n int) string { return head + each(n/24, ".entry k#() {ret;}\n") },
	"one kernel":         func(n int) string { return head + again(n, ".entry k() {ret;}\n") },
	"declared functions": func(n int) string { return head + each(n/24, ".extern .func f#();\n") },
	"parameters":         func(n int) string { return head + ".entry k(.param .u32 p" + each(n/16, ",.param .u8 p#") + "){ret;}" },
	"directives":         func(n int) string { return head + ".entry k() " + again(n, ".maxntid 1 ") + "{ret;}" },
	"a chain of calls": func(n int) string {
		return head + ".func f0() {ret;}" + each(n/40, ".func g#() {call f0; ret;}") + ".entry k(){ret;}"
	},
	"calls in a row": func(n int) string {
		k := n / 40
		var b strings.Builder
		b.WriteString(head + ".func f0() {ret;}")
		for i := range k {
			fmt.Fprintf(&b, ".func f%d() {call f%d; ret;}", i+1, i)
		}
		fmt.Fprintf(&b, ".entry k() {call f%d; ret;}", k)
		return b.String()
	},
	"kernels that call one": func(n int) string {
		return head + ".func f() {ret;}" + each(n/40, ".entry k#() {call f; ret;}")
	},
	"calls":      func(n int) string { return head + ".func f() {ret;}" + ".entry k() {" + again(n, "call f;") + "ret;}" },
	"calls back": func(n int) string { return head + ".func f() {" + again(n, "call f;") + "ret;}" },
	"arguments": func(n int) string {
		return head + ".extern .func f(.param .u32 a); .entry k() {call f, (0" + again(n, ",0") + "); ret;}"
	},
	"prototypes":       func(n int) string { return function(each(n/30, "P#: .callprototype _ ();")) },
	"blocks":           func(n int) string { return kernel(again(n, "{}")) },
	"registers":        func(n int) string { return kernel(each(n/20, ".reg .u32 %r#;")) },
	"a range":          func(n int) string { return kernel(fmt.Sprintf(".reg .u32 %%r<%d>;", n/10)) },
	"ranges":           func(n int) string { return kernel(each(n/20, ".reg .u32 %r#a<9>;")) },
	"begun ranges":     func(n int) string { return kernel(each(n/20, ".reg .u32 %r#<9999>;")) },
	"names in blocks":  func(n int) string { return kernel(".reg .u32 %r;" + again(n, "{.reg .u32 %r; mov.u32 %r, 1;}")) },
	"labels":           func(n int) string { return kernel(each(n/8, "L#:")) },
	"one label":        func(n int) string { return kernel(again(n, "L:")) },
	"branches":         func(n int) string { return kernel("L:" + again(n, "bra L;")) },
	"branches on":      func(n int) string { return kernel(".reg .pred %p;" + again(n, "@%p bra L;") + "L:") },
	"branches forward": func(n int) string { return kernel(".reg .pred %p;" + each(n/24, "@%p bra L#; L#:")) },
	"branches back":    func(n int) string { return kernel(".reg .pred %p;" + each(n/24, "L#: @%p bra L#;")) },
	"branches to all":  func(n int) string { return kernel(".reg .pred %p;" + each(n/24, "@%p bra L#;") + each(n/24, "L#:")) },
	"jumps":            func(n int) string { return kernel(each(n/24, "L#: bra M#; M#:")) },
	"jumps onward": func(n int) string {
		return kernel(row(n/24, "bra L0;", "L%[1]d: bra L%[2]d;") + "L" + fmt.Sprint(n/24) + ":")
	},
	"jumps in a ring": func(n int) string {
		return kernel(row(n/24, "", "L%[1]d: bra L%[2]d;") + "L" + fmt.Sprint(n/24) + ": bra L0;")
	},
	"jumps backwards": func(n int) string {
		k := n / 50
		return kernel(".reg .pred %p; .reg .u32 %r; @%p bra L" + fmt.Sprint(k) + "; bra L" + fmt.Sprint(k) + "; L0: ret;" + row(k, "", "L%[2]d: add.u32 %%r, %%r, 1; bra L%[1]d;"))
	},
	"a name of digits": func(n int) string { return kernel(".reg .u32 %r<9>; mov.u32 %r" + again(n, "1") + ", 1;") },
	"a name of zeros":  func(n int) string { return kernel(".reg .u32 %r<9>; mov.u32 %r" + again(n, "0") + "1, 1;") },
	"kernels with many functions": func(n int) string {
		k := n / 80
		return head + ".func f0() {ret;}" + row(k, "", ".func f%[2]d() {call f%[1]d; ret;}") + each(k, ".entry k#() {call f"+fmt.Sprint(k)+"; ret;}")
	},
	"kernels without a function": func(n int) string {
		k := n / 80
		return head + ".func f0() {brkpt; nonsense; ret;}" + row(k, "", ".func f%[2]d() {call f%[1]d; ret;}") + each(k, ".entry k#() {call f"+fmt.Sprint(k)+"; ret;}")
	},
	"call targets": func(n int) string {
		k := n / 60
		return head + each(k, ".func f#() {ret;}") + ".entry k() {.reg .u64 %f; T: .calltargets f0" + each(k, ",f#") + ";" + again(k*20, "call %f, T;") + "ret;}"
	},
	"loops in loops": func(n int) string {
		k := n / 24
		return kernel(".reg .pred %p;" + each(k, "L#:") + each(k, "@%p bra L#;"))
	},
	"ladders": func(n int) string {
		k := n / 40
		return kernel(".reg .pred %p; .reg .u32 %r;" + each(k, "@%p bra A#; add.u32 %r, %r, 1;") + each(k, "A#: add.u32 %r, %r, 1;"))
	},
	"a table": func(n int) string {
		k := n / 12
		return kernel(".reg .u32 %i; T: .branchtargets L" + each(k, ",L#") + "; brx.idx %i, T; L:" + each(k, "L#:"))
	},
	"tables": func(n int) string {
		return kernel(".reg .u32 %i; L:" + each(n/40, "T#: .branchtargets L; brx.idx %i, T#;"))
	},
	"one target": func(n int) string {
		return kernel(".reg .u32 %i; L: T: .branchtargets L" + again(n, ",L") + "; brx.idx %i, T;")
	},
	"sums":   func(n int) string { return kernel(".reg .u32 %r;" + again(n, "add.u32 %r, %r, 1;")) },
	"values": func(n int) string { return kernel(each(n/50, ".reg .u32 %r#; mov.u32 %r#, #; add.u32 %r#, %r#, #;")) },
	"long lives": func(n int) string {
		k := n / 60
		return kernel(each(k, ".reg .u32 %r#; mov.u32 %r#, #;") + each(k, "add.u32 %r0, %r0, %r#;"))
	},
	"lives over branches": func(n int) string {
		k := n / 90
		return kernel(".reg .pred %p;" + each(k, ".reg .u32 %r#; mov.u32 %r#, #;") + each(k, "@%p bra L#; add.u32 %r#, %r#, 1; L#:"))
	},
	"predicates":      func(n int) string { return kernel(".reg .pred %p; .reg .u32 %r;" + again(n, "@%p add.u32 %r, %r, 1;")) },
	"vectors":         func(n int) string { return kernel(".reg .b32 %r; .reg .b64 %d;" + again(n, "mov.b64 %d, {%r,%r};")) },
	"a vector":        func(n int) string { return kernel(".reg .b32 %r; mov.b32 %r, {%r" + again(n, ",%r") + "};") },
	"operands":        func(n int) string { return kernel(".reg .b32 %r; add.u32 %r" + again(n, ",%r") + ";") },
	"locations":       func(n int) string { return head + ".file 1 \"a\"\n.entry k() {" + each(n/20, ".loc 1 # 0\n") + "ret;}" },
	"locals":          func(n int) string { return kernel(each(n/20, ".local .u32 x#;")) },
	"shared":          func(n int) string { return kernel(each(n/20, ".shared .u8 x#;")) },
	"params of calls": func(n int) string { return kernel(each(n/24, ".param .u32 x#;")) },
	"wrong words":     func(n int) string { return kernel(again(n, "nonsense;")) },
	"words that are not done": func(n int) string {
		return kernel(".reg .b32 %r;" + again(n, "tcgen05.alloc.cta_group::1.b32 [%r], %r;"))
	},
	"unknown names":       func(n int) string { return kernel(each(n/24, "mov.u32 %r#, 1;")) },
	"sections":            func(n int) string { return head + again(n, ".section .debug_str {}") },
	"a section":           func(n int) string { return head + ".section .debug_str {.b8 0" + again(n, ",1") + "}" },
	"lines of a section":  func(n int) string { return head + ".section .debug_str {" + again(n, ".b8 1\n") + "}" },
	"labels of a section": func(n int) string { return head + ".section .debug_info {" + each(n/16, "L#: .b8 1\n") + "}" },
	"begun blocks":        func(n int) string { return head + ".func f()" + again(n, "{") },
	"ended blocks":        func(n int) string { return head + again(n, "}") },
	"semicolons":          func(n int) string { return head + again(n, ";") },
	"a line":              func(n int) string { return head + ".entry k(){" + again(n, ";") + "!" },
	"at signs":            func(n int) string { return kernel(again(n, "@")) },
	"textures":            func(n int) string { return head + each(n/24, ".global .texref t#;") },
}

func TestReadingCostsAsMuchAsTheTextIsLong(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			growth.RequireLinear(t, bytesOfText, text, func(s string) { _, _ = ptxir.Load("growth", s) })
			growth.RequireLinear(t, bytesOfText, text, func(s string) {
				_, _ = ptx.Signatures(s)
				_, _ = ptx.Stores(s)
				_, _ = ptx.Variables(s)
				ptx.DebugParams(s)
			})
			growth.RequireLinear(t, bytesOfText, text, func(s string) {
				_, _ = ptx.Link([]ptx.Part{{Name: "a", Text: s}, {Name: "b", Text: s}})
				if m, err := ptx.Parse(s); err == nil {
					_ = m.String()
				}
			})
		})
	}
}

const bytesOfText = 20_000

// Each of n states branches to all: what is made of it is n times as long as the text.
func TestAListOfManyBranches(t *testing.T) {
	states := func(n int) string {
		return kernel(".reg .u32 %i; T: .branchtargets L0" + each(n, ",L#") + ";" + each(n, "L#: brx.idx %i, T;"))
	}
	_, err := ptxir.Load("states", states(200))
	require.NoError(t, err)
	_, err = ptxir.Load("states", states(10_000))
	require.ErrorContains(t, err, "all lists of all brx.idx in this function have more than 1048576 labels")
}

// A loop is walked once for each loop around it.
func TestLoopsAreNestedSoDeep(t *testing.T) {
	loops := func(n int) string {
		var ends strings.Builder
		for i := n - 1; i >= 0; i-- {
			fmt.Fprintf(&ends, "@%%p bra L%d;", i)
		}
		return kernel(".reg .pred %p; .reg .u32 %r;" + each(n, "L#: mov.u32 %r, 1;") + ends.String())
	}
	_, err := ptxir.Load("loops", loops(1000))
	require.NoError(t, err)
	_, err = ptxir.Load("loops", loops(30_000))
	require.ErrorContains(t, err, "loops are nested deeper than 1000")
}
