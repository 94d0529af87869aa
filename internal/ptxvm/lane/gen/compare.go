// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// comparison is one setp.cmp of one type.
type comparison struct {
	typ, cmp string
	ftz      bool
	kind     string
	expr     string
	unroll   bool
}

// comparisons is the table of setp and set. PTX ISA, "Comparison and Selection
// Instructions".
func comparisons() []comparison {
	var list []comparison
	ordered := [][2]string{{"Lt", "<"}, {"Le", "<="}, {"Gt", ">"}, {"Ge", ">="}}
	for _, bits := range []string{"16", "32", "64"} {
		list = append(list, comparison{"B" + bits, "Eq", false, "u" + bits, "A == B", true}, comparison{"B" + bits, "Ne", false, "u" + bits, "A != B", true})
		for _, c := range ordered {
			for _, s := range []string{"u", "s"} {
				list = append(list, comparison{strings.ToUpper(s) + bits, c[0], false, s + bits, "A " + c[1] + " B", true})
			}
		}
	}
	for _, f := range []struct{ typ, kind, load string }{
		{"F32", "f32", "%s"}, {"F32", "f32", "numeric.Ftz(%s)"}, {"F64", "f64", "%s"},
		{"F16", "u16", "numeric.FromHalf(%s)"}, {"BF16", "u16", "numeric.FromBFloat(%s)"},
	} {
		a, b := fmt.Sprintf(f.load, "A"), fmt.Sprintf(f.load, "B")
		plain := f.load == "%s"
		add := func(cmp, expr string) {
			list = append(list, comparison{f.typ, cmp, f.load == "numeric.Ftz(%s)", f.kind, expr, plain})
		}
		add("Eq", a+" == "+b)
		add("Ne", "numeric.LessOrGreater("+a+", "+b+")")
		add("Equ", "!numeric.LessOrGreater("+a+", "+b+")")
		add("Neu", a+" != "+b)
		for _, c := range ordered {
			inverse := map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[c[1]]
			add(c[0], a+" "+c[1]+" "+b)
			add(c[0]+"u", "!("+a+" "+inverse+" "+b+")")
		}
		add("Num", a+" == "+a+" && "+b+" == "+b)
		add("Nan", a+" != "+a+" || "+b+" != "+b)
	}
	return list
}

// compares writes the comparisons. Each computes the mask of lanes for which
// the comparison holds and leaves the rest of setp and set to finish.
func compares(table *bytes.Buffer) string {
	var b strings.Builder
	for _, c := range comparisons() {
		name, mod := "setp"+c.cmp+c.typ, ""
		if c.ftz {
			name, mod = "setpFtz"+c.cmp+c.typ, ", mod: ptxir.ModFtz"
		}
		k := kinds[c.kind]
		fmt.Fprintf(&b, "func %s(w *Warp, in *Inst, m uint32) {\nvar r uint32\n", name)
		expr := func(i string) string {
			e := replaceWord(c.expr, "A", fmt.Sprintf(k.load, "a"+i))
			return replaceWord(e, "B", fmt.Sprintf(k.load, "b"+i))
		}
		// All lanes are cheaper than many of them: the loop is unrolled, and what
		// lanes outside of the mask compare does not matter.
		b.WriteString("if bits.OnesCount32(m) > 6 {\n")
		if c.unroll {
			fmt.Fprintf(&b, "a, b := w.%sx8(in.A), w.%sx8(in.B)\nfor i := range a {\na, b := &a[i], &b[i]\nvar s uint32\n", k.row, k.row)
			for j := range 8 {
				fmt.Fprintf(&b, "if %s {\ns |= 1 << %d\n}\n", expr(fmt.Sprintf("[%d]", j)), j)
			}
			b.WriteString("r |= s << (8 * i)\n}\n")
		} else {
			fmt.Fprintf(&b, "a, b := w.%s(in.A), w.%s(in.B)\nfor l := range a {\nif %s {\nr |= 1 << l\n}\n}\n", k.row, k.row, expr("[l]"))
		}
		fmt.Fprintf(&b, "} else {\na, b := w.%s(in.A), w.%s(in.B)\nfor n := m; n != 0; n &= n - 1 {\nl := bits.TrailingZeros32(n) & 31\nif %s {\nr |= 1 << l\n}\n}\n}\nfinishCompare(w, in, r, m)\n}\n\n",
			k.row, k.row, expr("[l]"))
		fmt.Fprintf(table, "{opKey{op: ptxir.OpSetp, typ: ptxir.%s, cmp: ptxir.Cmp%s%s}, %s, register.ClassPred, []register.Class{%s, %s}},\n",
			c.typ, c.cmp, mod, name, k.class, k.class)
	}
	return b.String()
}
