// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
)

// writeStandin writes what the stand-in for libcuda has for calls whose
// parameters are numbers and handles, unless it has one by hand, and the table of
// all that it has.
func writeStandin(calls []call, a *abi) {
	var byHand []byte
	for _, name := range []string{"libcuda.c", "libcuda_graph.h"} {
		text, err := os.ReadFile(nvidia + "testdata/" + name)
		if err != nil {
			log.Fatal(err)
		}
		byHand = append(byHand, text...)
	}
	var functions, table bytes.Buffer
	for i := range calls {
		c := &calls[i]
		exported := c.name + c.suffix
		if !bytes.Contains(byHand, []byte("EXPORT CUresult "+exported+"(")) {
			if !c.plain(a) {
				continue
			}
			c.writeStandin(&functions, a)
		}
		fmt.Fprintf(&table, "\t{%q, (void *)%s},\n", c.name, exported)
	}
	writeText(nvidia+"testdata/zlibcuda.h", banner+
		"// Calls of numbers and handles: they note what came and return what arguments_test.go expects.\n"+
		functions.String()+"\n#ifndef WITHOUT_GET_PROC_ADDRESS\nstatic const struct { const char *name; void *address; } calls[] = {\n"+
		table.String()+"};\n#endif\n")
}

// plain says whether a call has no structs, slices and strings.
func (c *call) plain(a *abi) bool {
	for _, s := range c.slots {
		if s.role != value && s.role != output || a.isStruct(s.ctype) {
			return false
		}
	}
	return !c.byHand
}

func (c *call) writeStandin(b *bytes.Buffer, a *abi) {
	params, formats, args := []string{}, []string{c.name}, []string{""}
	var outputs strings.Builder
	for i, s := range c.slots {
		name, typ := string(rune('a'+i)), standinType(s.base, a)
		if s.role == output {
			params = append(params, typ+" *"+name)
			fmt.Fprintf(&outputs, "\t*%s = OUTPUT(%s, %d);\n", name, typ, s.at)
			continue
		}
		typ = standinType(s.ctype, a)
		params = append(params, declare(typ, name))
		if typ == "int" {
			formats, args = append(formats, "%d"), append(args, name)
		} else {
			formats, args = append(formats, "%llu"), append(args, "NUMBER("+name+")")
		}
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	fmt.Fprintf(b, "\nEXPORT CUresult %s%s(%s)\n{\n\tnote(\"%s\"%s);\n%s\treturn 0;\n}\n", c.name, c.suffix,
		strings.Join(params, ", "), strings.Join(formats, " "), strings.Join(args, ", "), outputs.String())
}

// standinType is a type of C as libcuda.c has it.
func standinType(ctype string, a *abi) string {
	switch a.kind(ctype) {
	case "uintptr":
		return "handle"
	case "int32":
		return "int"
	case "uint64":
		return "uint64_t"
	}
	return ctype
}
