// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"log"
	"strings"
)

// method is one driver call of the seam.
type method struct {
	name                 string   // CuStreamSynchronize
	params, types        []string // types as package driver's users write them
	results, resultTypes []string // the last is "result", a driver.CUresult
}

// writeWrappers writes the drivers around a driver, fault and trace, and the one
// that does nothing.
func writeWrappers(methods []method) {
	var base, fault, trace bytes.Buffer
	for _, m := range methods {
		m.writeBase(&base)
		m.writeFault(&fault)
		m.writeTrace(&trace)
	}
	writeGo("cuda/internal/driver/zbase.go", banner+"package driver\n\nimport \"unsafe\"\n"+strings.ReplaceAll(base.String(), "driver.", ""))
	const imports = "import (\n%s\t\"unsafe\"\n\n\t\"github.com/cudago/cudago/cuda/internal/driver\"\n)\n"
	writeGo("cuda/internal/driver/fault/zcalls_unsafe.go", banner+"package fault\n\n"+fmt.Sprintf(imports, "")+fault.String())
	writeGo("cuda/internal/driver/trace/zcalls_unsafe.go", banner+"package trace\n\n"+fmt.Sprintf(imports, "")+trace.String())
}

// readMethods returns the seam's methods that are driver calls.
func readMethods() []method {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "cuda/internal/driver/api.go", nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	var methods []method
	ast.Inspect(f, func(n ast.Node) bool {
		i, ok := n.(*ast.InterfaceType)
		if !ok {
			return true
		}
		for _, field := range i.Methods.List {
			if len(field.Names) == 1 && strings.HasPrefix(field.Names[0].Name, "Cu") {
				methods = append(methods, readMethod(fset, field.Names[0].Name, field.Type.(*ast.FuncType)))
			}
		}
		return true
	})
	return methods
}

func readMethod(fset *token.FileSet, name string, f *ast.FuncType) method {
	m := method{name: name}
	for i, p := range f.Params.List {
		typ := qualified(fset, p.Type)
		if len(p.Names) == 0 {
			m.params, m.types = append(m.params, fmt.Sprintf("p%d", i)), append(m.types, typ)
		}
		for _, n := range p.Names {
			m.params, m.types = append(m.params, n.Name), append(m.types, typ)
		}
	}
	for _, r := range f.Results.List {
		typ := qualified(fset, r.Type)
		if len(r.Names) == 0 {
			m.results, m.resultTypes = append(m.results, fmt.Sprintf("out%d", len(m.results))), append(m.resultTypes, typ)
		}
		for _, n := range r.Names {
			m.results, m.resultTypes = append(m.results, n.Name), append(m.resultTypes, typ)
		}
	}
	m.results[len(m.results)-1] = "result"
	return m
}

// qualified prints a type of package driver as another package writes it.
func qualified(fset *token.FileSet, typ ast.Expr) string {
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false // unsafe.Pointer
		case *ast.Ident:
			if ast.IsExported(n.Name) {
				n.Name = "driver." + n.Name
			}
		}
		return true
	})
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, typ); err != nil {
		log.Fatal(err)
	}
	return b.String()
}

// call is the name in cuda.h.
func (m method) call() string { return "c" + m.name[1:] }

// head writes the signature of a method of recv, with named results.
func (m method) head(b *bytes.Buffer, doc, recv string) {
	var params, results []string
	for i, p := range m.params {
		params = append(params, p+" "+m.types[i])
	}
	for i, r := range m.results {
		results = append(results, r+" "+m.resultTypes[i])
	}
	fmt.Fprintf(b, "\n%sfunc (d *%s) %s(%s) (%s) {\n", doc, recv, m.name, strings.Join(params, ", "), strings.Join(results, ", "))
}

func (m method) writeBase(b *bytes.Buffer) {
	m.head(b, "", "Base")
	fmt.Fprintf(b, "\tresult = d.answer(%q)\n\treturn\n}\n", m.call())
}

func (m method) writeFault(b *bytes.Buffer) {
	m.head(b, "// "+m.name+" calls the wrapped driver, unless it is to fail.\n", "Driver")
	fmt.Fprintf(b, "\tif result = d.next(%q); result != driver.CUDA_SUCCESS {\n\t\treturn\n\t}\n\treturn d.API.%s(%s)\n}\n",
		m.name, m.name, strings.Join(m.params, ", "))
}

func (m method) writeTrace(b *bytes.Buffer) {
	m.head(b, "", "tracer")
	fmt.Fprintf(b, "\tcall := d.begin(%q, %s)\n\t%s = d.API.%s(%s)\n\tcall.end(result, %s)\n\treturn\n}\n",
		m.call(), fields(m.params), strings.Join(m.results, ", "), m.name, strings.Join(m.params, ", "),
		fields(m.results[:len(m.results)-1]))
}

// fields is a literal of the names and the values of variables.
func fields(names []string) string {
	items := make([]string, len(names))
	for i, n := range names {
		items[i] = fmt.Sprintf("{%q, %s}", n, n)
	}
	return "[]field{" + strings.Join(items, ", ") + "}"
}
