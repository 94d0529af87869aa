// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

func nvrtcFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/nvrtc/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestCompilerOutputSurvivesPrinting(t *testing.T) {
	for _, file := range nvrtcFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			m, err := Parse(string(text))
			require.NoError(t, err)
			require.Equal(t, 9, m.Major)
			once := m.String()
			again, err := Parse(once)
			require.NoError(t, err)
			require.Equal(t, once, again.String())
		})
	}
}

func TestUnusualSpellingSurvivesPrinting(t *testing.T) {
	m, err := Parse(read(t, "spelling.ptx"))
	require.NoError(t, err)
	once := m.String()
	again, err := Parse(once)
	require.NoError(t, err)
	require.Equal(t, once, again.String())
	require.Equal(t, map[int]string{1: `a \" quoted.cu`, 2: "header.h"}, m.Files)
	require.Equal(t, []string{"sm_80", "texmode_independent", "debug"}, m.Target)
}

// statements parses the body of a function.
func statements(t *testing.T, body string) []Statement {
	t.Helper()
	m, err := Parse(".func f(){\n" + body + "\n}")
	require.NoError(t, err)
	return m.Items[0].(*Function).Body.Statements
}

func TestInstruction(t *testing.T) {
	list := statements(t, "\t@!%p1 ld .global.L1::evict_last.v2.f32\n {%f1, _}, [%rd1+-4];")
	require.Equal(t, []Statement{&Instruction{
		Line: 2, Column: 8,
		Guard:    Guard{Name: "%p1", Negated: true},
		Mnemonic: &Mnemonic{Op: "ld", Modifiers: []string{"global", "L1::evict_last", "v2", "f32"}},
		Operands: []Operand{
			{Kind: OperandVector, Elems: []Operand{{Name: "%f1"}, {Kind: OperandSink}}},
			{Kind: OperandAddress, Name: "%rd1", Value: Literal{Bits: ^uint64(3)}},
		},
		Text: "ld .global.L1::evict_last.v2.f32\n {%f1, _}, [%rd1+-4]",
	}}, list)
}

func TestMnemonicsAreShared(t *testing.T) {
	list := statements(t, "add.s32 a, b, c; add.s32 c, b, a;")
	require.Same(t, list[0].(*Instruction).Mnemonic, list[1].(*Instruction).Mnemonic)
}

func TestInlinedLocation(t *testing.T) {
	list := statements(t, ".loc 2 7 9, function_name Lf+4, inlined_at 1 10 3")
	require.Equal(t, []Statement{&Loc{
		PTXLine: 2, File: 2, Line: 7, Column: 9, FunctionName: "Lf", FunctionOffset: 4,
		InlinedAt: &Loc{PTXLine: 2, File: 1, Line: 10, Column: 3},
	}}, list)
}

func TestInitialiser(t *testing.T) {
	m, err := Parse(".global .u64 x[2][] = {{1, a+4}, {generic(b)+-8, 0xff00(c)}};")
	require.NoError(t, err)
	require.Equal(t, &Init{Kind: InitList, Elems: []Init{
		{Kind: InitList, Elems: []Init{{Value: Literal{Bits: 1}}, {Kind: InitSymbol, Symbol: "a", Offset: 4}}},
		{Kind: InitList, Elems: []Init{
			{Kind: InitSymbol, Symbol: "b", Offset: -8, Generic: true},
			{Kind: InitSymbol, Symbol: "c", Mask: 0xff00},
		}},
	}}, m.Items[0].(*Variable).Init)
}

// TestTargets: .target may be repeated, and the last one counts.
func TestTargets(t *testing.T) {
	m, err := Parse(".version 8.0\n.target sm_90\n.target sm_75, debug\n.target texmode_unified\n.func f(){ .target sm_86\n ret; }")
	require.NoError(t, err)
	require.Equal(t, []string{"sm_86", "texmode_unified", "debug"}, m.Target)
}

func TestSyntaxErrors(t *testing.T) {
	tests := []struct {
		name, text string
		line, col  int
		msg        string
	}{
		{"no directive", "mov", 1, 1, `expected a directive, found "mov"`},
		{"unknown directive", ".version 8.0\n.frob x;", 2, 1, "unknown directive .frob"},
		{"bad version", ".version eight", 1, 10, `expected a version such as 8.0, found "eight"`},
		{"missing semicolon", ".func f(){\n add.u32 a, b, c\n}", 3, 1, "expected \";\", found \"}\""},
		{"missing operand", ".func f(){ add.u32 a, ; }", 1, 23, `expected a constant, found ";"`},
		{"open body", ".func f()\n{ ret;", 2, 1, "brace is not closed"},
		{"open comment", ".func f(){} /* ", 1, 13, "comment is not closed"},
		{"open string", ".file 1 \"abc\n", 1, 9, "string is not closed"},
		{"control character", ".func f(){ \x01 }", 1, 12, `unexpected character '\x01'`},
		{"bad number", ".global .u32 x = 09;", 1, 18, `"09" is not a number`},
		{"short float bits", ".global .f32 x = 0f3F8;", 1, 18, `"0f3F8" is not a number`},
		{"division by zero", ".global .u32 x = 1/0;", 1, 19, "division by zero"},
		{"guarded label", ".func f(){ @p L: }", 1, 16, "a label cannot have a guard"},
		{"alignment", ".global .align 3 .u32 x;", 1, 16, "alignment must be a power of two, got 3"},
		{"two types", ".global .u32 .u64 x;", 1, 14, "second type .u64"},
		{"target first", ".target sm_80\n.version 8.0", 1, 1, ".version and .target begin a module, in this order"},
		{"expression in a directive", ".func f(){ .reg .b32 x<2+3>; }", 1, 25, `expected ">", found "+"`},
		{"sum as an alignment", ".global .align (8) .u32 x;", 1, 16, `alignment must be an integer from 0 to 1048576, found "("`},
		{"kernel's directive on a function", ".func f() .maxntid 32 {ret;}", 1, 11, ".maxntid is for .entry"},
		{"function's directive on a kernel", ".entry k() .noreturn {ret;}", 1, 12, ".noreturn is for .func"},
		{"no threads", ".entry k() .reqntid 0 {ret;}", 1, 21, "reqntid must be more than 0"},
		{"four dimensions", ".entry k() .reqntid 1,1,1,1 {ret;}", 1, 26, `expected a body or ";", found ","`},
		{"parameter without a name", ".func f(.param .b32) {ret;}", 1, 20, `expected a name, found ")"`},
		{"sink as a parameter", ".func f(.param .b32 _) {ret;}", 1, 21, `expected a name, found "_"`},
		{"sink as a variable", ".global .u32 _;", 1, 14, `expected a name, found "_"`},
		{"sink as a label", ".func f(){ _: ret; }", 1, 13, "a label cannot be called _"},
		{"prototype with a name", ".func f(){ p: .callprototype _ (); q: .callprototype g (); }", 1, 56, `a prototype's name is "_", not g`},
		{"offset inside generic", ".global .u64 x = generic(y+8);", 1, 27, `expected ")", found "+"`},
		{"missing brace", ".entry k()\n.reg .b32 x;\nmov.b32 x, 1; }", 2, 1, ".reg is declared in functions"},
		{"late target", ".version 8.0\n.target sm_80\n.address_size 64\n.target sm_80", 4, 1, ".version and .target begin a module, in this order"},
		{"backslash in an instruction", ".func f(){ ret\\; }", 1, 15, `expected a constant, found "\"`},
		{"fraction and integer", ".global .f32 x = 1.0+2;", 1, 21, "+ needs two integers or two decimal fractions"},
		{"not of a fraction", ".global .u32 x = !1.0;", 1, 22, "! needs an integer"},
		{"choice of two kinds", ".global .f32 x = 1 ? 1.0 : 2;", 1, 29, "? chooses between two integers or two fractions"},
		{"minus of bits", ".global .f32 x = -0f3F800000;", 1, 29, "0f3F800000 cannot be negated: set its first bit"},
		{"far overflow", ".global .u64 x = 99999999999999999999;", 1, 18, `"99999999999999999999" is not a number`},
		{"second version", ".version 8.0\n.target sm_80\n.version 8.0", 3, 1, ".version and .target begin a module, in this order"},
		{"late address size", ".global .u32 x;\n.address_size 64", 2, 1, ".address_size stands once, before all declarations"},
		{"short addresses", ".address_size 16", 1, 15, "address size must be 32 or 64, got 16"},
		{"empty statement", ".func f(){ ret;; }", 1, 16, `expected a statement, found ";"`},
		{"linkage inside", ".func f(){ .extern .shared .b8 x[]; }", 1, 12, ".extern is for declarations of the module"},
		{"predicate in memory", ".global .pred x;", 1, 9, "a predicate must be in .reg, not .global"},
		{"vector of predicates", ".func f(){ .reg .v2 .pred x; }", 1, 21, "predicates have no vectors"},
		{"vector after the type", ".global .u32 .v2 x;", 1, 14, ".v2 stands before the type"},
		{"vector of eight", ".global .v8 .u32 x;", 1, 9, "unknown type .v8"},
		{"alternate format", ".func f(){ .reg .bf16 x; }", 1, 17, "nothing can be declared .bf16; its bits are .b16"},
		{"vector as a parameter", ".entry k(.param .v2 .f32 x){}", 1, 27, "x: a parameter cannot be a vector, but an array of them"},
		{"trailing comma", ".global .u32 x[2] = {1,};", 1, 24, `expected an initial value, found "}"`},
		{"kernel in registers", ".entry k(.reg .b32 x){}", 1, 20, "a parameter must be .param, not .reg"},
		{"kernel parameter without a size", ".entry k(.param .b8 x[]){}", 1, 24, "a kernel's parameter x needs a size"},
		{"float as a condition", ".global .u32 x = 1.0 ? 2 : 3;", 1, 24, "a condition must be an integer, got 0d3FF0000000000000"},
		{"offset that is taken off", ".func f(){ ld.b32 x, [y-4]; }", 1, 24, `expected ",", found "-"`},
		{"guard outside", "@p bra L;", 1, 2, "expected a directive, found a guard outside of a function"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.text)
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Equal(t, tt.msg, syntax.Msg)
			require.Equal(t, [2]int{tt.line, tt.col}, [2]int{syntax.Line, syntax.Column})
		})
	}
}

func TestErrorShowsTheLine(t *testing.T) {
	_, err := Parse(".func f(){\n\tadd.u32 a b;\n}")
	require.EqualError(t, err, "ptx: line 2, column 12: expected \";\", found \"b\"\n\t\tadd.u32 a b;\n\t\t          ^")
}

func BenchmarkParse(b *testing.B) {
	text := read(b, "nvrtc/unrolled.ptx")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignatures(b *testing.B) {
	text := read(b, "nvrtc/unrolled.ptx")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Signatures(text); err != nil {
			b.Fatal(err)
		}
	}
}

// A generated text may be one line: each instruction knows its column, and none
// searches the line for its beginning.
func TestColumnsOfALongLine(t *testing.T) {
	const n = 100_000
	body := strings.Repeat("add.u32 %r1, %r1, 1; ", n) + "\n  ret;"
	m, err := Parse(".version 7.0 .target sm_75\n.entry k() { .reg .b32 %r<2>; " + body + " }")
	require.NoError(t, err)
	statements := m.Items[0].(*Function).Body.Statements
	last, ret := statements[n].(*Instruction), statements[n+1].(*Instruction)
	require.EqualValues(t, 2, last.Line)
	require.EqualValues(t, 1+len(".entry k() { .reg .b32 %r<2>; ")+(n-1)*len("add.u32 %r1, %r1, 1; "), last.Column)
	require.Equal(t, []int32{3, 3}, []int32{ret.Line, ret.Column})
}

func TestLongNamesAreCutInErrors(t *testing.T) {
	_, err := Parse(".version 7.0 .target sm_75 " + strings.Repeat("x", 1_000_000))
	require.ErrorContains(t, err, "xxx...")
	require.Less(t, len(err.Error()), 2000)
}
