// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"log"
	"path/filepath"
	"regexp"
	"strings"
)

// abi is what package driver says about types of cuda.h.
type abi struct {
	scalars []scalar
	structs []*ast.TypeSpec
	consts  []*ast.ValueSpec
}

// scalar is a handle, a number or an enumeration: CUstream is a uintptr.
type scalar struct{ name, kind string }

// cKinds are the types in C of Go's. Pointers are numbers, so that cgo does not
// look at what is behind them.
var cKinds = map[string]string{
	"byte": "uint8_t", "float32": "float", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
	"int32": "int32_t", "int64": "int64_t", "uintptr": "uintptr_t", "unsafe.Pointer": "uintptr_t",
}

// cName matches the constants that are spelled as in C.
var cName = regexp.MustCompile(`^CU(DA|DAGO)?_`)

// readABI reads package driver.
func readABI() *abi {
	files, err := filepath.Glob("cuda/internal/driver/*.go")
	if err != nil {
		log.Fatal(err)
	}
	a := new(abi)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				a.read(d)
			}
		}
	}
	return a
}

func (a *abi) read(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			if d.Tok == token.CONST && cName.MatchString(s.Names[0].Name) {
				a.consts = append(a.consts, s)
			}
		case *ast.TypeSpec:
			switch t := s.Type.(type) {
			case *ast.Ident:
				a.scalars = append(a.scalars, scalar{s.Name.Name, t.Name})
			case *ast.StructType:
				if hostLayout(t) {
					a.structs = append(a.structs, s)
				}
			}
		}
	}
}

// hostLayout says whether a struct is one of the ABI: those say so.
func hostLayout(t *ast.StructType) bool {
	return len(t.Fields.List) > 0 && typeText(t.Fields.List[0].Type) == "structs.HostLayout"
}

// kind is the Go type of a scalar; empty if name is none.
func (a *abi) kind(name string) string {
	for _, s := range a.scalars {
		if s.name == name {
			return s.kind
		}
	}
	return ""
}

func (a *abi) isStruct(name string) bool {
	for _, s := range a.structs {
		if s.Name.Name == name {
			return true
		}
	}
	return false
}

// writeHeader writes the types for C. The two edges include it: package nvidia
// and the border.
func (a *abi) writeHeader() { writeText("cuda/internal/driver/zabi.h", banner+a.header()) }

// stamp is a comment for a header beside Go files that include zabi.h. Go sees
// a package's own headers, and not that one.
func (a *abi) stamp() string {
	return fmt.Sprintf("// zabi.h of package driver has the CRC-32 %08x: when it changes this does, and Go builds the package again.\n\n",
		crc32.ChecksumIEEE([]byte(a.header())))
}

func (a *abi) header() string {
	var b bytes.Buffer
	b.WriteString("#ifndef CUDAGO_ZABI_H\n#define CUDAGO_ZABI_H\n\n#include <stdint.h>\n\n" +
		"// Types of package driver, which says where they come from. Pointers and handles are numbers.\n\n")
	for _, s := range a.scalars {
		fmt.Fprintf(&b, "typedef %s %s;\n", a.cType(s.kind), s.name)
	}
	for _, s := range a.structs {
		fmt.Fprintf(&b, "\ntypedef struct {\n")
		pads := 0
		for _, f := range s.Type.(*ast.StructType).Fields.List[1:] {
			typ, dimension := a.field(f.Type)
			name := f.Names[0].Name
			if name == "_" {
				name = fmt.Sprintf("pad%d", pads)
				pads++
			}
			fmt.Fprintf(&b, "\t%s %s%s;\n", typ, name, dimension)
		}
		fmt.Fprintf(&b, "} %s;\n", s.Name.Name)
	}
	b.WriteString("\nenum {\n")
	for _, c := range a.consts {
		fmt.Fprintf(&b, "\t%s = %s,\n", c.Names[0].Name, valueText(c.Values[0]))
	}
	b.WriteString("};\n\n#endif\n")
	return b.String()
}

// valueText is the source of a constant's number.
func valueText(v ast.Expr) string {
	if u, ok := v.(*ast.UnaryExpr); ok {
		return u.Op.String() + valueText(u.X)
	}
	return v.(*ast.BasicLit).Value
}

// field is the type of a struct's field in C, and what stands behind its name.
func (a *abi) field(t ast.Expr) (typ, dimension string) {
	if array, ok := t.(*ast.ArrayType); ok {
		return a.cType(typeText(array.Elt)), "[" + array.Len.(*ast.BasicLit).Value + "]"
	}
	return a.cType(typeText(t)), ""
}

// cType is the type in C of one in package driver, whose own have the same name.
func (a *abi) cType(t string) string {
	if c, ok := cKinds[t]; ok {
		return c
	}
	if a.kind(t) == "" && !a.isStruct(t) {
		log.Fatalf("package driver: no type in C for %s", t)
	}
	return t
}

// typeText is the source of a type's name.
func typeText(t ast.Expr) string {
	if s, ok := t.(*ast.SelectorExpr); ok {
		return typeText(s.X) + "." + s.Sel.Name
	}
	if i, ok := t.(*ast.Ident); ok {
		return i.Name
	}
	return ""
}
