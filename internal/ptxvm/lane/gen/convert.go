// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// convertOps are the conversions that deserve their own loops: extensions of
// integers, and the usual ones between integers and floats. All
// others run through one general function. The key carries the classes of both
// registers, since cvt takes the low bits of wider ones and extends into them.
func convertOps() []op {
	var ops []op
	for _, from := range []string{"u8", "s8", "u16", "s16", "u32", "s32", "u64"} {
		for _, fromClass := range classesFor(from) {
			for _, toClass := range []string{"class16", "class32", "class64"} {
				if narrow := "u" + toClass[5:]; len(from) > 2 && from[1:] > narrow[1:] {
					continue
				}
				ops = append(ops, extension(from, fromClass, toClass))
			}
		}
	}
	for _, i := range []string{"u32", "s32", "u64", "s64"} {
		class := "class" + i[1:]
		toInteger := "numeric.To"
		if class == "class32" {
			toInteger = "numeric.DoubleTo" // NaN is another number there
		}
		ops = append(ops,
			conversion("f32", i, "class32", class, "float32(A)", "f32", i, ", round: ptxir.RoundRN", false),
			conversion("f64", i, "class64", class, "float64(A)", "f64", i, ", round: ptxir.RoundRN", false),
			conversion(i, "f32", class, "class32", "numeric.To"+title(i)+"(float64(A))", i, "f32", ", round: ptxir.RoundRZI", true),
			conversion(i, "f64", class, "class64", toInteger+title(i)+"(A)", i, "f64", ", round: ptxir.RoundRZI", true),
		)
	}
	nan := conversion("f32", "f64", "class32", "class64", "float32(A)", "f32", "f64", ", round: ptxir.RoundRN", false)
	nan.nan = true
	ops = append(ops, nan,
		conversion("f64", "f32", "class64", "class32", "float64(A)", "f64", "f32", "", false),
		conversion("f32", "f16", "class32", "class16", "numeric.FromHalf(A)", "f32", "u16", "", true),
		conversion("f32", "bf16", "class32", "class16", "numeric.FromBFloat(A)", "f32", "u16", "", true),
		conversion("f16", "f32", "class16", "class32", "numeric.ToHalf(A)", "u16", "f32", ", round: ptxir.RoundRN", true),
		conversion("bf16", "f32", "class16", "class32", "numeric.ToBFloat(A)", "u16", "f32", ", round: ptxir.RoundRN", true),
	)
	sat := conversion("f32", "f32", "class32", "class32", "numeric.Sat32(A)", "f32", "f32", ", mod: ptxir.ModSat", true)
	sat.name = "cvtSatF32"
	return append(ops, sat)
}

// extension takes the low bits of a register and extends them into another:
// every conversion between integers without saturation is one.
func extension(from, fromClass, toClass string) op {
	src, dst := fitted(from, fromClass), "u"+toClass[5:]
	return op{
		name: "extend" + title(from) + "Of" + fromClass[5:] + "To" + toClass[5:], op: "Cvt", dst: dst, src: []string{src},
		expr: fmt.Sprintf("%s(A)", goType(dst)),
		key:  fmt.Sprintf("typ: ptxir.%s, dst: register.%s, src: register.%s", title(from), title(toClass), title(fromClass)),
	}
}

func conversion(to, from, toClass, fromClass, expr, dst, src, key string, long bool) op {
	name := "cvt" + title(dst) + "From" + title(src)
	typ := func(t string) string {
		if t == "bf16" {
			return "BF16"
		}
		return title(t)
	}
	if from == "f16" || from == "bf16" || to == "f16" || to == "bf16" {
		name = "cvt" + typ(to) + "From" + typ(from)
	}
	return op{
		name: name, op: "Cvt", dst: dst, src: []string{src}, expr: expr, long: long,
		key: fmt.Sprintf("typ: ptxir.%s, from: ptxir.%s, dst: register.%s, src: register.%s%s", typ(to), typ(from), title(toClass), title(fromClass), key),
	}
}

// classesFor returns the register classes that may hold an integer type.
func classesFor(t string) []string {
	switch t[1:] {
	case "64":
		return []string{"class64"}
	case "32":
		return []string{"class32", "class64"}
	}
	return []string{"class16", "class32", "class64"}
}

// fitted is the kind for a type in a register of a class.
func fitted(t, class string) string {
	if "class"+t[1:] == class {
		return t
	}
	return t + "in" + class[len("class"):]
}
