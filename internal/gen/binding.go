// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"log"
	"strings"
)

const nvidia = "cuda/internal/driver/nvidia/"

// writeBinding writes what of package nvidia is one to one.
func writeBinding(calls []call, a *abi) {
	var names, entries, methods, trampolines bytes.Buffer
	for i := range calls {
		c := &calls[i]
		fmt.Fprintf(&names, "\t%s\n", c.name)
		fmt.Fprintf(&entries, "\t%s: {%q, %s, %q, %s},\n", c.name, c.name, c.version, c.suffix, c.need)
		if !c.byHand {
			c.writeMethod(&methods, a)
			c.writeTrampoline(&trampolines)
		}
	}
	names.Truncate(len(bytes.TrimSpace(names.Bytes())) + 1)
	first := calls[0].name
	writeGo(nvidia+"zentry.go", banner+"package nvidia\n\n// The driver calls, as indices into entries and binding.fn.\nconst (\n"+
		strings.Replace(names.String(), first, first+" = iota", 1)+"\n\n\tentryCount\n)\n\n"+
		"// entries lists every call that is looked up.\nvar entries = [entryCount]entry{\n"+entries.String()+"}\n")
	writeGo(nvidia+"zcalls.go", banner+"package nvidia\n\n// #include <stdlib.h>\n// #include \"calls.h\"\nimport \"C\"\n\nimport (\n\t\"unsafe\"\n\n"+
		"\t\"github.com/cudago/cudago/cuda/internal/driver\"\n)\n\n"+sizes(a)+methods.String())
	writeText(nvidia+"zcalls.h", banner+a.stamp()+"// The trampolines of calls that a method maps to one by one. calls.h includes this.\n"+trampolines.String())
}

// sizes lets the compiler compare the structs of Go and C.
func sizes(a *abi) string {
	var b strings.Builder
	b.WriteString("// The structs of C have the sizes of those in package driver, or this does not compile.\nvar (\n")
	for _, s := range a.structs {
		name := s.Name.Name
		fmt.Fprintf(&b, "\t_ [unsafe.Sizeof(driver.%s{})]byte = [C.sizeof_%s]byte{}\n", name, name)
	}
	return b.String() + ")\n"
}

// writeMethod writes the method of the binding.
func (c *call) writeMethod(b *bytes.Buffer, a *abi) {
	m := c.method
	m.head(b, "", "binding")
	c.checkLengths(b)
	for _, s := range c.with(text) {
		name := m.params[s.at]
		fmt.Fprintf(b, "\tc%s := C.CString(%s)\n\tdefer C.free(unsafe.Pointer(c%s))\n", name, name, name)
	}
	args := []string{"d.fn[" + c.name + "]"}
	for _, s := range c.slots {
		if s.role != output {
			args = append(args, c.argument(s, a))
		}
	}
	expr := fmt.Sprintf("C.%s(%s)", c.name, strings.Join(args, ", "))
	outputs := c.with(output)
	if len(m.results) == 1 {
		fmt.Fprintf(b, "\treturn driver.CUresult(%s)\n}\n", expr)
		return
	}
	results := append([]string(nil), m.results...)
	results[len(results)-1] = "driver.CUresult(o)"
	if len(outputs) > 0 {
		results[len(results)-1] = "driver.CUresult(o.r)"
	}
	for i, s := range outputs {
		member := []string{"o.first", "o.second"}[i]
		if len(outputs) == 1 {
			member = "o.value"
		}
		results[s.at] = m.resultTypes[s.at] + "(" + member + ")"
		if m.resultTypes[s.at] == "bool" {
			results[s.at] = member + " != 0"
		}
	}
	fmt.Fprintf(b, "\to := %s\n\treturn %s\n}\n", expr, strings.Join(results, ", "))
}

// checkLengths refuses slices that share a length and differ in it.
func (c *call) checkLengths(b *bytes.Buffer) {
	first := "" // of those that share the next length
	for _, s := range c.slots {
		switch {
		case s.role == length:
			first = ""
		case s.role == list && first == "":
			first = c.method.params[s.at]
		case s.role == list:
			fmt.Fprintf(b, "\tif len(%s) != len(%s) {\n\t\tresult = driver.CUDA_ERROR_INVALID_VALUE\n\t\treturn\n\t}\n", first, c.method.params[s.at])
		}
	}
}

// argument is what a method passes to its trampoline.
func (c *call) argument(s slot, a *abi) string {
	if s.role == filled {
		return fmt.Sprintf("(*C.%s)(unsafe.Pointer(&%s))", s.base, c.method.results[s.at])
	}
	name, typ := c.method.params[s.at], c.method.types[s.at]
	address := "unsafe.Pointer(" + name + ")"
	if typ[0] != '*' {
		address = "unsafe.Pointer(&" + name + ")"
	}
	switch {
	case s.role == text:
		return "c" + name
	case s.role == shared:
		return fmt.Sprintf("(*C.%s)(%s)", s.base, address)
	case s.role == copied, s.role == value && a.isStruct(s.ctype):
		return fmt.Sprintf("*(*C.%s)(%s)", s.base, address)
	case s.role == list && s.base == "void":
		return fmt.Sprintf("unsafe.Pointer(unsafe.SliceData(%s))", name)
	case s.role == list:
		return fmt.Sprintf("(*C.%s)(unsafe.Pointer(unsafe.SliceData(%s)))", s.base, name)
	case s.role == length && c.inBytes(s.at):
		return fmt.Sprintf("C.size_t(len(%s)) * C.size_t(unsafe.Sizeof(%s[0]))", name, name)
	case s.role == length:
		return fmt.Sprintf("C.%s(len(%s))", cgoName(s.ctype), name)
	case typ == "bool":
		return "flag(" + name + ")"
	}
	return fmt.Sprintf("C.%s(%s)", cgoName(s.ctype), name)
}

// inBytes says whether the length of a slice is asked for in bytes.
func (c *call) inBytes(at int) bool {
	for _, s := range c.with(list) {
		if s.at == at {
			return s.base == "void"
		}
	}
	return false
}

// cgoName is a type of C as cgo calls it.
func cgoName(ctype string) string {
	switch ctype {
	case "void *":
		return "uintptr_t"
	case "unsigned":
		return "uint"
	}
	return strings.Replace(strings.ReplaceAll(ctype, " ", ""), "unsigned", "u", 1)
}

// writeTrampoline writes the function in C that a method calls.
func (c *call) writeTrampoline(b *bytes.Buffer) {
	params, types, args := []string{"address fn"}, []string{}, []string{}
	var locals []string
	for i, s := range c.slots {
		name := string(rune('a' + i))
		switch typ := plain(s.base); s.role {
		case output:
			locals = append(locals, typ+" "+name+" = 0;")
			types, args = append(types, typ+" *"), append(args, "&"+name)
		case copied:
			params = append(params, declare(typ, name))
			types, args = append(types, s.ctype), append(args, "&"+name)
		case value:
			typ = plain(s.ctype)
			params = append(params, declare(typ, name))
			types, args = append(types, typ), append(args, name)
		default:
			params = append(params, declare(s.ctype, name))
			types, args = append(types, s.ctype), append(args, name)
		}
	}
	if len(types) == 0 {
		types = []string{"void"}
	}
	expr := fmt.Sprintf("CAST((%s))(%s)", strings.Join(types, ", "), strings.Join(args, ", "))
	result, members := c.returned()
	fmt.Fprintf(b, "\nstatic inline %s %s(%s)\n{\n", result, c.name, strings.Join(params, ", "))
	if len(locals) == 0 {
		fmt.Fprintf(b, "\treturn fn ? %s : CUDA_ERROR_NOT_SUPPORTED;\n}\n", expr)
		return
	}
	fmt.Fprintf(b, "\tGUARD(%s)\n\t%s\n\tCUresult r = %s;\n\t%s o = {r%s};\n\treturn o;\n}\n",
		result, strings.Join(locals, "\n\t"), expr, result, members)
}

// declare is a variable's declaration in C.
func declare(typ, name string) string {
	if strings.HasSuffix(typ, "*") {
		return typ + name
	}
	return typ + " " + name
}

// returned is what the trampoline returns, and its members behind the result.
func (c *call) returned() (typ, members string) {
	outputs := c.with(output)
	for i, s := range c.slots {
		if s.role == output {
			cast := "(uint64_t)"
			if s.base == "float" {
				cast = ""
			}
			members += ", " + cast + string(rune('a'+i))
		}
	}
	switch {
	case len(outputs) == 0:
		return "CUresult", ""
	case len(outputs) == 1 && outputs[0].base == "float":
		return "out_float", members
	case len(outputs) == 1:
		return "out", members
	case len(outputs) == 2:
		return "out_pair", members
	}
	log.Fatalf("calls.txt: %s: has %d results; a trampoline returns two", c.name, len(outputs))
	return "", ""
}

// plain is a type of C, with addresses as numbers.
func plain(ctype string) string {
	if ctype == "void *" {
		return "uintptr_t"
	}
	return ctype
}
