// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

const border = "pyext/border/"

// writeBorder writes the driver calls that the border makes in C: the table of
// their addresses, and for drivers without addresses the way through Go.
func writeBorder(calls []call, a *abi) {
	var members, list, exports, raws bytes.Buffer
	for i := range calls {
		c := &calls[i]
		if !c.border {
			continue
		}
		fmt.Fprintf(&members, "    CUresult (*%s)(%s);\n", c.name, strings.ReplaceAll(strings.Join(c.types, ", "), "const ", "")) // as cgo declares them
		fmt.Fprintf(&list, " \\\n    X(%s, cudago%s)", c.name, c.raw())
		if !c.byHand && c.isPlain() {
			c.writeExport(&exports, a)
			c.writeRaw(&raws, a)
		}
	}
	writeText(border+"zcalls.h", banner+a.stamp()+`#ifndef CUDAGO_ZCALLS_H
#define CUDAGO_ZCALLS_H

#include <stddef.h>

#include "../../cuda/internal/driver/zabi.h"

/* Entry points with the C ABI of cuda.h: libcuda's own, or the exported Go functions of ztrampoline.go and trampoline.go
 * where the driver has none (simulated, fault, trace). Filled once by cudago_open. */
typedef struct {
`+members.String()+`} cudago_calls;

/* X(call, the Go function) for each member. */
#define CUDAGO_CALLS(X)`+list.String()+"\n\n#endif\n")
	writeGo(border+"ztrampoline.go", banner+"//go:build pyext\n\npackage border\n\n// #include \"border.h\"\nimport \"C\"\n\n"+
		"import \"unsafe\"\n"+exports.String())
	writeGo("cuda/zraw.go", banner+"package cuda\n\nimport \"github.com/cudago/cudago/cuda/internal/driver\"\n"+raws.String())
}

// isPlain reports whether all parameters are numbers, handles and results. The
// Go functions of other calls are written by hand.
func (c *call) isPlain() bool {
	return len(c.with(value))+len(c.with(output)) == len(c.slots)
}

// raw is the method of cuda.Driver with the call's parameters in C.
func (c *call) raw() string { return "Raw" + c.name[len("cu"):] }

// variable is the name of what s passes.
func (c *call) variable(s slot) string {
	if s.role == output {
		return c.method.results[s.at]
	}
	return c.method.params[s.at]
}

// goKind is the type that a parameter has above the seam, where handles are
// numbers.
func goKind(ctype string, a *abi) string {
	if k := a.kind(ctype); k != "" {
		return k
	}
	return goTypes[ctype][0]
}

// writeExport writes the Go function that C calls.
func (c *call) writeExport(b *bytes.Buffer, a *abi) {
	var params, args []string
	for _, s := range c.slots {
		name := c.variable(s)
		if s.role == output {
			params = append(params, name+" *C."+cgoName(s.base))
			args = append(args, fmt.Sprintf("(*%s)(unsafe.Pointer(%s))", goKind(s.base, a), name))
			continue
		}
		params = append(params, name+" C."+cgoName(s.ctype))
		args = append(args, goKind(s.ctype, a)+"("+name+")")
	}
	name := "cudago" + c.raw()
	fmt.Fprintf(b, "\n//export %s\nfunc %s(%s) (result C.CUresult) {\n", name, name, strings.Join(params, ", "))
	fmt.Fprintf(b, "\tdefer recoverRaw(&result)\n\treturn C.CUresult(Driver.Load().%s(%s))\n}\n", c.raw(), strings.Join(args, ", "))
}

// writeRaw writes the method of cuda.Driver.
func (c *call) writeRaw(b *bytes.Buffer, a *abi) {
	m := c.method
	var params, args []string
	var stores strings.Builder
	for _, s := range c.slots {
		name := c.variable(s)
		if s.role == output {
			kind := goKind(s.base, a)
			params = append(params, name+" *"+kind)
			fmt.Fprintf(&stores, "\t*%s = %s(v%d)\n", name, kind, s.at)
			continue
		}
		params = append(params, name+" "+goKind(s.ctype, a))
		args = append(args, m.types[s.at]+"("+name+")")
	}
	expr := fmt.Sprintf("d.api.%s(%s)", m.name, strings.Join(args, ", "))
	fmt.Fprintf(b, "\n// %s is %s.\nfunc (d *Driver) %s(%s) int32 {\n", c.raw(), c.name, c.raw(), strings.Join(params, ", "))
	if stores.Len() == 0 {
		fmt.Fprintf(b, "\treturn int32(%s)\n}\n", expr)
		return
	}
	var results []string
	for i := range m.results[1:] {
		results = append(results, fmt.Sprintf("v%d", i))
	}
	fmt.Fprintf(b, "\t%s, r := %s\n%s\treturn int32(r)\n}\n", strings.Join(results, ", "), expr, stores.String())
}
