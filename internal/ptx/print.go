// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// String returns the module as PTX. Parsing that gives the same tree, but for
// lines, columns and Text.
func (m *Module) String() string {
	w := &printer{}
	w.linef(".version ", strconv.Itoa(m.Major), ".", strconv.Itoa(m.Minor))
	if len(m.Target) > 0 {
		w.linef(".target ", strings.Join(m.Target, ", "))
	}
	if m.AddressSize != 0 {
		w.linef(".address_size ", strconv.Itoa(m.AddressSize))
	}
	for _, n := range slices.Sorted(maps.Keys(m.Files)) {
		w.linef(".file ", strconv.Itoa(n), " \"", m.Files[n], "\"")
	}
	for _, item := range m.Items {
		w.linef()
		w.item(item)
	}
	return w.String()
}

// String returns the instruction without its guard, as PTX on one line.
func (i *Instruction) String() string {
	w := &printer{}
	w.instruction(i)
	return w.String()
}

// String returns the opcode with its modifiers.
func (m *Mnemonic) String() string {
	if len(m.Modifiers) == 0 {
		return m.Op
	}
	return m.Op + "." + strings.Join(m.Modifiers, ".")
}

type printer struct {
	strings.Builder
	indent int
}

func (w *printer) put(parts ...string) {
	for _, s := range parts {
		w.WriteString(s)
	}
}

func (w *printer) linef(parts ...string) {
	if len(parts) > 0 {
		for range w.indent {
			w.WriteByte('\t')
		}
	}
	w.put(parts...)
	w.WriteByte('\n')
}

func (w *printer) item(item Item) {
	switch x := item.(type) {
	case *Variable:
		w.linef(w.variable(x), ";")
	case *Function:
		w.function(x)
	case *Alias:
		w.linef(".alias ", x.Name, ", ", x.Target, ";")
	case *Pragma:
		w.pragma(x)
	}
}

func (w *printer) pragma(x *Pragma) {
	w.linef(".pragma \"", strings.Join(x.Texts, "\", \""), "\";")
}

// variable returns a declaration without its semicolon.
func (*printer) variable(v *Variable) string {
	var b strings.Builder
	if v.Linkage != Internal {
		b.WriteString("." + v.Linkage.String() + " ")
	}
	b.WriteString("." + v.Space.String())
	for _, a := range v.Attributes {
		b.WriteString(" .attribute(." + a + ")")
	}
	if v.Align != 0 {
		b.WriteString(" .align " + strconv.Itoa(int(v.Align)))
	}
	if v.Vector != 0 {
		b.WriteString(" .v" + strconv.Itoa(int(v.Vector)))
	}
	b.WriteString(" ." + v.Type.String())
	if p := v.Pointer; p != nil {
		b.WriteString(" .ptr")
		if p.Space != SpaceGeneric {
			b.WriteString(" ." + p.Space.String())
		}
		if p.Align != 0 {
			b.WriteString(" .align " + strconv.Itoa(int(p.Align)))
		}
	}
	b.WriteString(" " + v.Name)
	if v.Range != 0 {
		b.WriteString("<" + strconv.Itoa(int(v.Range)) + ">")
	}
	for i, n := range v.Dims {
		if i == 0 && n == 0 {
			b.WriteString("[]")
			continue
		}
		b.WriteString("[" + strconv.Itoa(int(n)) + "]")
	}
	if v.Init != nil {
		b.WriteString(" = ")
		initText(&b, v.Init)
	}
	return b.String()
}

func initText(b *strings.Builder, x *Init) {
	switch x.Kind {
	case InitValue:
		b.WriteString(x.Value.String())
	case InitList:
		b.WriteByte('{')
		for i := range x.Elems {
			if i > 0 {
				b.WriteString(", ")
			}
			initText(b, &x.Elems[i])
		}
		b.WriteByte('}')
	case InitSymbol:
		if x.Mask != 0 {
			b.WriteString("0x" + strconv.FormatUint(x.Mask, 16) + "(")
		}
		if x.Generic {
			b.WriteString("generic(" + x.Symbol + ")")
		} else {
			b.WriteString(x.Symbol)
		}
		b.WriteString(offsetText(x.Offset))
		if x.Mask != 0 {
			b.WriteByte(')')
		}
	}
}

func offsetText(n int64) string {
	if n == 0 {
		return ""
	}
	return "+" + strconv.FormatInt(n, 10)
}

func (w *printer) parameterList(list []*Variable) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = w.variable(v)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

func (w *printer) function(f *Function) {
	if f.Linkage != Internal {
		w.put(".", f.Linkage.String(), " ")
	}
	if f.Entry {
		w.put(".entry ")
	} else {
		w.put(".func ")
	}
	for _, a := range f.Attributes {
		w.put(".attribute(.", a, ") ")
	}
	w.signature(f)
	if f.Body == nil {
		w.linef(";")
		return
	}
	w.linef()
	w.block(f.Body)
}

// signature writes from the return parameters to the directives.
func (w *printer) signature(f *Function) {
	if len(f.Returns) > 0 {
		w.put(w.parameterList(f.Returns), " ")
	}
	w.put(f.Name, " ", w.parameterList(f.Params))
	for _, d := range f.Directives {
		if d.Name == "pragma" {
			w.put(" .pragma \"", d.Text, "\";")
			continue
		}
		w.put(" .", d.Name)
		for i, n := range d.Args {
			if i > 0 {
				w.put(",")
			}
			w.put(" ", strconv.FormatUint(n, 10))
		}
	}
}

func (w *printer) block(b *Block) {
	w.linef("{")
	w.indent++
	for _, s := range b.Statements {
		w.statement(s)
	}
	w.indent--
	w.linef("}")
}

func (w *printer) statement(s Statement) {
	switch x := s.(type) {
	case *Instruction:
		for range w.indent {
			w.put("\t")
		}
		if x.Guard.Name != "" {
			w.put("@")
			if x.Guard.Negated {
				w.put("!")
			}
			w.put(x.Guard.Name, " ")
		}
		w.instruction(x)
		w.put(";\n")
	case *Label:
		w.put(x.Name, ":\n")
	case *Variable:
		w.linef(w.variable(x), ";")
	case *Block:
		w.block(x)
	case *Loc:
		w.linef(locText(x))
	case *Pragma:
		w.pragma(x)
	case *Targets:
		w.targets(x)
	}
}

func (w *printer) targets(x *Targets) {
	w.put(x.Label, ": ")
	switch x.Kind {
	case BranchTargets:
		w.put(".branchtargets ", strings.Join(x.Names, ", "))
	case CallTargets:
		w.put(".calltargets ", strings.Join(x.Names, ", "))
	case CallPrototype:
		w.put(".callprototype ")
		w.signature(x.Prototype)
	}
	w.put(";\n")
}

func locText(x *Loc) string {
	s := ".loc " + strconv.Itoa(x.File) + " " + strconv.Itoa(x.Line) + " " + strconv.Itoa(x.Column)
	if in := x.InlinedAt; in != nil {
		s += ", function_name " + x.FunctionName + offsetText(int64(x.FunctionOffset)) + ", inlined_at " +
			strconv.Itoa(in.File) + " " + strconv.Itoa(in.Line) + " " + strconv.Itoa(in.Column)
	}
	return s
}

func (w *printer) instruction(i *Instruction) {
	w.put(i.Mnemonic.String())
	for n := range i.Operands {
		if n > 0 {
			w.put(",")
		}
		w.put(" ")
		w.operand(&i.Operands[n])
	}
}

func (w *printer) operand(x *Operand) {
	if x.Negated {
		w.put("!")
	}
	if x.Minus {
		w.put("-")
	}
	switch x.Kind {
	case OperandName:
		w.put(x.Name)
		if x.Component != "" {
			w.put(".", x.Component)
		}
		w.put(offsetText(int64(x.Value.Bits)))
	case OperandImmediate:
		w.put(x.Value.String())
	case OperandElement:
		w.put(x.Name)
		if len(x.Elems) > 0 {
			w.operands("[", x.Elems, "", "]")
			return
		}
		w.put("[", x.Value.String(), "]")
	case OperandSink:
		w.put("_")
	case OperandVector:
		w.operands("{", x.Elems, ", ", "}")
	case OperandList:
		w.operands("(", x.Elems, ", ", ")")
	case OperandPair:
		w.operands("", x.Elems, "|", "")
	case OperandAddress:
		w.bracketed(x)
	}
}

func (w *printer) operands(open string, list []Operand, between, closing string) {
	w.put(open)
	for i := range list {
		if i > 0 {
			w.put(between)
		}
		w.operand(&list[i])
	}
	w.put(closing)
}

func (w *printer) bracketed(x *Operand) {
	w.put("[")
	switch {
	case x.Name != "":
		w.put(x.Name, offsetText(int64(x.Value.Bits)))
	case x.Value.Bits != 0 || x.Value.Kind != LiteralInt || len(x.Elems) == 0:
		w.put(x.Value.String())
	case x.Elems[0].Kind != OperandVector:
		w.put("0")
	}
	for i := range x.Elems {
		if i > 0 || x.Name != "" || x.Value.Bits != 0 || x.Elems[0].Kind != OperandVector {
			w.put(", ")
		}
		w.operand(&x.Elems[i])
	}
	w.put("]")
	if x.Component != "" {
		w.put(".", x.Component)
	}
}
