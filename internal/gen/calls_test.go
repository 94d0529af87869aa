// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testABI has a handle and a struct.
func testABI(t *testing.T) *abi {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "abi.go", `package driver
type CUstream uintptr
type CUplace struct {
	_ structs.HostLayout
	Type int32
	_ [4]byte
	Stream CUstream
}
type CaptureInfo struct { Deps []CUstream }
const CU_STREAM_LEGACY CUstream = 1
const CU_DEVICE_CPU int32 = -1
const ours = 5
`, 0)
	require.NoError(t, err)
	a := new(abi)
	for _, d := range f.Decls {
		a.read(d.(*ast.GenDecl))
	}
	return a
}

// fitted is a call of a method with the types of a line of calls.txt.
func fitted(t *testing.T, signature, types string) (*call, error) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "api.go", "package driver\ntype API interface { CuCall"+signature+" }\n", 0)
	require.NoError(t, err)
	field := f.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec).Type.(*ast.InterfaceType).Methods.List[0]
	m := readMethod(fset, "CuCall", field.Type.(*ast.FuncType))
	c := &call{name: m.call(), method: &m, types: strings.Split(types, ", ")}
	return c, c.fit(testABI(t))
}

func TestFit(t *testing.T) {
	tests := []struct {
		name, signature, types string
		want                   []role
	}{
		{"numbers", "(s CUstream, on bool, n uint64) CUresult", "CUstream, unsigned, size_t", []role{value, value, value}},
		{"result first", "(n uint64) (p uintptr, r CUresult)", "void **, size_t", []role{output, value}},
		{"results last", "(s CUstream) (a, b int32, r CUresult)", "CUstream, int *, int *", []role{value, output, output}},
		{"struct by value", "(p CUplace) CUresult", "CUplace", []role{value}},
		{"struct by value, by address in C", "(p CUplace) CUresult", "CUplace *", []role{copied}},
		{"struct that is read", "(p *CUplace) CUresult", "const CUplace *", []role{copied}},
		{"struct that may be left out", "(p *CUplace) CUresult", "const CUplace * or null", []role{shared}},
		{"struct that is written to", "(p *CUplace) CUresult", "CUplace *", []role{shared}},
		{"struct that is returned", "() (CUplace, CUresult)", "CUplace *", []role{filled}},
		{"string", "(name string) CUresult", "const char *", []role{text}},
		{"slices of one length", "(a, b []CUstream, n uint64) CUresult", "const CUstream *, const CUstream *, size_t, size_t",
			[]role{list, list, length, value}},
		{"narrow length", "(a []CUstream, s CUstream) CUresult", "const CUstream *, unsigned, CUstream", []role{list, length, value}},
		{"bytes", "(data []int32, n uint64) CUresult", "void *, size_t, size_t", []role{list, length, value}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := fitted(t, tt.signature, tt.types)
			require.NoError(t, err)
			var roles []role
			for _, s := range c.slots {
				roles = append(roles, s.role)
			}
			require.Equal(t, tt.want, roles)
		})
	}
}

func TestMisfit(t *testing.T) {
	tests := []struct{ name, signature, types, want string }{
		{"width", "(n uint32) CUresult", "size_t", "size_t fits neither the next parameter of the method (uint32) nor result 0"},
		{"order", "(s CUstream, n uint32) CUresult", "unsigned, CUstream", "unsigned fits neither the next parameter of the method (driver.CUstream) nor result 0"},
		{"another struct", "(p *CUplace) CUresult", "const CUother *", "const CUother * fits neither"},
		{"result that is read only", "() (n int32, r CUresult)", "const int *", "const int * fits neither"},
		{"number that may be left out", "(n uint64) CUresult", "size_t or null", "only a struct that is read"},
		{"no length", "(a []CUstream) CUresult", "const CUstream *", "the method has more parameters or results"},
		{"parameter too many", "(a, b int32) CUresult", "int", "the method has more parameters or results"},
		{"result too many", "() (a, b int32, r CUresult)", "int *", "the method has more parameters or results"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := fitted(t, tt.signature, tt.types)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestMethodRefusesSlicesOfTwoLengths(t *testing.T) {
	c, err := fitted(t, "(a, b []CUstream) CUresult", "const CUstream *, const CUstream *, size_t")
	require.NoError(t, err)
	var b bytes.Buffer
	c.writeMethod(&b, testABI(t))
	require.Contains(t, b.String(), "if len(a) != len(b) {")
}

func TestHeader(t *testing.T) {
	require.Equal(t, `#ifndef CUDAGO_ZABI_H
#define CUDAGO_ZABI_H

#include <stdint.h>

// Types of package driver, which says where they come from. Pointers and handles are numbers.

typedef uintptr_t CUstream;

typedef struct {
	int32_t Type;
	uint8_t pad0[4];
	CUstream Stream;
} CUplace;

enum {
	CU_STREAM_LEGACY = 1,
	CU_DEVICE_CPU = -1,
};

#endif
`, testABI(t).header())
}

func TestReadCall(t *testing.T) {
	c, err := readCall(row{"cuCall", "12040  _v2 optional,border  by hand: CUstream, int *"})
	require.NoError(t, err)
	require.Equal(t, call{name: "cuCall", version: "12040", suffix: "_v2", need: "optional", border: true, byHand: true,
		types: []string{"CUstream", "int *"}}, c)
	c, err = readCall(row{"cuCall", "2000 - required void"})
	require.NoError(t, err)
	require.Equal(t, call{name: "cuCall", version: "2000", need: "required"}, c)
	for text, want := range map[string]string{
		"2000 - required":                "want a version, a suffix, a need, and parameters",
		"2000 - needed void":             "want required or optional, got needed",
		"2000 - required,border by hand": "the border needs the parameters of a call by hand too",
	} {
		_, err := readCall(row{"cuCall", text})
		require.EqualError(t, err, want)
	}
}

func TestEnumeration(t *testing.T) {
	require.Equal(t, []string{"A_B", "C"}, enumeration("int x;\nenum kind {\n    A_B = 0,\n    C,\n};\n", "kind"))
}
