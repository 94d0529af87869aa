// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// goType is the Go type that an expression of a kind has.
func goType(k string) string {
	switch k[0] {
	case 'u':
		return "uint" + k[1:]
	case 's':
		return "int" + k[1:]
	}
	return "float" + k[1:]
}

// integerOps is the table of integer, bit and data movement operations.
// PTX ISA, "Integer Arithmetic Instructions" and "Logic and Shift Instructions".
func integerOps() []op {
	var ops []op
	add := func(o op) { ops = append(ops, o) }
	for _, bits := range []string{"16", "32", "64"} {
		u, b := "u"+bits, "typ: ptxir.B"+bits
		same := func(name, opName, key, expr string, n int) {
			src := []string{u, u, u, u}[:n]
			if key != "" {
				key = ", " + key
			}
			add(op{name: name + title(u), op: opName, key: b + key, dst: u, src: src, expr: expr})
		}
		same("add", "Add", "", "A + B", 2)
		same("sub", "Sub", "", "A - B", 2)
		same("mulLo", "Mul", "mode: ptxir.ModeLo", "A * B", 2)
		same("madLo", "Mad", "mode: ptxir.ModeLo", "A * B + C", 3)
		same("and", "And", "", "A & B", 2)
		same("or", "Or", "", "A | B", 2)
		same("xor", "Xor", "", "A ^ B", 2)
		same("not", "Not", "", "^A", 1)
		same("neg", "Neg", "", "-A", 1)
		same("cnot", "Cnot", "", "IF A == 0 THEN 1 ELSE 0", 1)
		add(op{name: "shl" + title(u), op: "Shl", key: b, dst: u, src: []string{u, "u32"}, expr: "A << B"})
		add(op{name: "selp" + title(u), op: "Selp", key: b, dst: u, src: []string{u, u, "pred"}, expr: "IF C THEN A ELSE B"})
		add(op{name: "slctS32" + title(u), op: "Slct", key: b + ", from: ptxir.S32", dst: u, src: []string{u, u, "s32"}, expr: "IF C >= 0 THEN A ELSE B"})
		add(op{name: "slctF32" + title(u), op: "Slct", key: b + ", from: ptxir.F32", dst: u, src: []string{u, u, "f32"}, expr: "numeric.SlctF32(A, B, C)"})
		add(op{name: "slctFtz" + title(u), op: "Slct", key: b + ", from: ptxir.F32, mod: ptxir.ModFtz", dst: u, src: []string{u, u, "f32"}, expr: "numeric.SlctF32(A, B, numeric.Ftz(C))"})
		for _, t := range []string{"u", "s"} {
			signedOps(t+bits, add)
		}
	}
	pairOps(add)
	bitOps(add)
	saturatedOps(add)
	return ops
}

// signedOps are the operations whose result depends on the sign of the type.
func signedOps(k string, add func(op)) {
	T, typ, bits := title(k), "typ: ptxir."+title(k), k[1:]
	two := []string{k, k}
	three := []string{k, k, k}
	add(op{name: "min" + T, op: "Min", key: typ, dst: k, src: two, expr: "min(A, B)"})
	add(op{name: "max" + T, op: "Max", key: typ, dst: k, src: two, expr: "max(A, B)"})
	add(op{name: "shr" + T, op: "Shr", key: typ, dst: k, src: []string{k, "u32"}, expr: "A >> B"})
	add(op{name: "div" + T, op: "Div", key: typ, dst: k, src: two, expr: "numeric.DivInt(A, B)", long: true})
	add(op{name: "rem" + T, op: "Rem", key: typ, dst: k, src: two, expr: "numeric.RemInt(A, B)", long: true})
	add(op{name: "sad" + T, op: "Sad", key: typ, dst: k, src: three, expr: "C + max(A, B) - min(A, B)"})
	if k[0] == 's' {
		add(op{name: "abs" + T, op: "Abs", key: typ, dst: k, src: []string{k}, expr: "max(A, -A)"})
	}
	hi := fmt.Sprintf("numeric.MulHi%s(A, B)", T)
	add(op{name: "mulHi" + T, op: "Mul", key: typ + ", mode: ptxir.ModeHi", dst: k, src: two, expr: hi})
	add(op{name: "madHi" + T, op: "Mad", key: typ + ", mode: ptxir.ModeHi", dst: k, src: three, expr: hi + " + C"})
	if bits != "64" {
		wide := map[string]string{"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}[k]
		w := goType(wide)
		e := fmt.Sprintf("%s(A) * %s(B)", w, w)
		add(op{name: "mulWide" + T, op: "Mul", key: typ + ", mode: ptxir.ModeWide", dst: wide, src: two, expr: e})
		add(op{name: "madWide" + T, op: "Mad", key: typ + ", mode: ptxir.ModeWide", dst: wide, src: []string{k, k, wide}, expr: e + " + C"})
	}
	if bits != "16" {
		add(op{name: "bfe" + T, op: "Bfe", key: typ, dst: k, src: []string{k, "u32", "u32"}, expr: "numeric.Bfe" + T + "(A, B, C)"})
		add(op{name: "bfind" + T, op: "Bfind", key: typ, dst: "u32", src: []string{k}, expr: "numeric.Bfind" + T + "(A)"})
		add(op{name: "bfindShift" + T, op: "Bfind", key: typ + ", mod: ptxir.ModShiftAmt", dst: "u32", src: []string{k}, expr: "numeric.BfindShift" + T + "(A)"})
	}
	if bits == "32" {
		for _, m := range []string{"Lo", "Hi"} {
			e := fmt.Sprintf("numeric.Mul24%s%s(A, B)", m, T)
			add(op{name: "mul24" + m + T, op: "Mul24", key: typ + ", mode: ptxir.Mode" + m, dst: k, src: two, expr: e})
			add(op{name: "mad24" + m + T, op: "Mad24", key: typ + ", mode: ptxir.Mode" + m, dst: k, src: three, expr: e + " + C"})
		}
		for _, from := range []string{"u", "s"} {
			f := "from: ptxir." + title(from) + "32"
			fn := title(k[:1]) + title(from)
			add(op{name: "dp4a" + fn, op: "Dp4a", key: typ + ", " + f, dst: "u32", src: []string{"u32", "u32", "u32"}, expr: "numeric.Dp4a" + fn + "(A, B, C)", long: true})
			for _, m := range []string{"Lo", "Hi"} {
				add(op{name: "dp2a" + m + fn, op: "Dp2a", key: typ + ", " + f + ", mode: ptxir.Mode" + m, dst: "u32", src: []string{"u32", "u32", "u32"}, expr: "numeric.Dp2a" + m + fn + "(A, B, C)", long: true})
			}
		}
	}
}

// pairOps are two 16-bit integers side by side.
func pairOps(add func(op)) {
	uu := []string{"u32", "u32"}
	for _, t := range []string{"U16x2", "S16x2"} {
		typ := "typ: ptxir." + t
		add(op{name: "addPair", op: "Add", key: typ, dst: "u32", src: uu, expr: "(A&0x7fff7fff + B&0x7fff7fff) ^ (A^B)&0x80008000"})
		for _, o := range []string{"Min", "Max"} {
			lower := strings.ToLower(o)
			add(op{name: lower + t, op: o, key: typ, dst: "u32", src: uu, expr: "numeric." + o + "Of" + t + "(A, B)", long: true})
			if t == "S16x2" {
				add(op{name: lower + "Relu" + t, op: o, key: typ + ", mod: ptxir.ModRelu", dst: "u32", src: uu, expr: "numeric.MaxOfS16x2(numeric." + o + "OfS16x2(A, B), 0)", long: true})
			}
		}
	}
}

// bitOps are the typeless operations on bits.
func bitOps(add func(op)) {
	for _, u := range []string{"u32", "u64"} {
		bits, T := u[1:], title(u)
		typ := "typ: ptxir.B" + bits
		add(op{name: "popc" + T, op: "Popc", key: typ, dst: "u32", src: []string{u}, expr: "uint32(bits.OnesCount" + bits + "(A))"})
		add(op{name: "clz" + T, op: "Clz", key: typ, dst: "u32", src: []string{u}, expr: "uint32(bits.LeadingZeros" + bits + "(A))"})
		add(op{name: "brev" + T, op: "Brev", key: typ, dst: u, src: []string{u}, expr: "bits.Reverse" + bits + "(A)"})
		add(op{name: "bfi" + T, op: "Bfi", key: typ, dst: u, src: []string{u, u, "u32", "u32"}, expr: "numeric.Bfi" + T + "(A, B, C, D)", long: true})
	}
	b32 := "typ: ptxir.B32"
	uuu := []string{"u32", "u32", "u32"}
	add(op{name: "bmskClamp", op: "Bmsk", key: b32 + ", mod: ptxir.ModClamp", dst: "u32", src: uuu[:2], expr: "numeric.BmskClamp32(A, B)"})
	add(op{name: "bmskWrap", op: "Bmsk", key: b32, dst: "u32", src: uuu[:2], expr: "numeric.BmskWrap32(A, B)"})
	add(op{name: "shfLClamp", op: "Shf", key: b32 + ", mode: ptxir.ModeShfL, mod: ptxir.ModClamp", dst: "u32", src: uuu, expr: "uint32((uint64(B)<<32 | uint64(A)) << min(C, 32) >> 32)"})
	add(op{name: "shfRClamp", op: "Shf", key: b32 + ", mode: ptxir.ModeShfR, mod: ptxir.ModClamp", dst: "u32", src: uuu, expr: "uint32((uint64(B)<<32 | uint64(A)) >> min(C, 32))"})
	add(op{name: "shfLWrap", op: "Shf", key: b32 + ", mode: ptxir.ModeShfL", dst: "u32", src: uuu, expr: "uint32((uint64(B)<<32 | uint64(A)) << (C & 31) >> 32)"})
	add(op{name: "shfRWrap", op: "Shf", key: b32 + ", mode: ptxir.ModeShfR", dst: "u32", src: uuu, expr: "uint32((uint64(B)<<32 | uint64(A)) >> (C & 31))"})
	for _, m := range []string{"None", "PrmtF4E", "PrmtB4E", "PrmtRC8", "PrmtECL", "PrmtECR", "PrmtRC16"} {
		add(op{name: "prmtLanes", op: "Prmt", key: b32 + ", mode: ptxir.Mode" + m, dst: "u32", src: uuu, expr: "numeric.Prmt(A, B, C, in.Mode)", long: true})
	}
	add(op{name: "lop3Lanes", op: "Lop3", key: b32, dst: "u32", src: uuu, expr: "numeric.Lop3(A, B, C, uint32(in.Imm))", long: true})
	add(op{name: "fnsLanes", op: "Fns", key: b32, dst: "u32", src: []string{"u32", "u32", "s32"}, expr: "numeric.Fns(A, B, C)", long: true})
	for _, t := range []string{"u32", "s32"} {
		for _, m := range []string{"Clamp", "Wrap"} {
			key := "typ: ptxir." + title(t)
			if m == "Clamp" {
				key += ", mod: ptxir.ModClamp"
			}
			add(op{name: "szext" + m + title(t), op: "Szext", key: key, dst: t, src: []string{t, "u32"}, expr: "numeric.Szext" + m + title(t) + "(A, B)"})
		}
	}
}

// saturatedOps are the .sat and .relu forms of 32-bit integers.
func saturatedOps(add func(op)) {
	ss := []string{"s32", "s32", "s32"}
	sat := "typ: ptxir.S32, mod: ptxir.ModSat"
	add(op{name: "addSatS32", op: "Add", key: sat, dst: "s32", src: ss[:2], expr: "numeric.SatS32(int64(A) + int64(B))"})
	add(op{name: "subSatS32", op: "Sub", key: sat, dst: "s32", src: ss[:2], expr: "numeric.SatS32(int64(A) - int64(B))"})
	add(op{name: "madHiSatS32", op: "Mad", key: sat + ", mode: ptxir.ModeHi", dst: "s32", src: ss, expr: "numeric.SatS32(int64(numeric.MulHiS32(A, B)) + int64(C))"})
	add(op{name: "mad24HiSatS32", op: "Mad24", key: sat + ", mode: ptxir.ModeHi", dst: "s32", src: ss, expr: "numeric.SatS32(int64(numeric.Mul24HiS32(A, B)) + int64(C))"})
	relu := "typ: ptxir.S32, mod: ptxir.ModRelu"
	add(op{name: "minReluS32", op: "Min", key: relu, dst: "s32", src: ss[:2], expr: "max(min(A, B), 0)"})
	add(op{name: "maxReluS32", op: "Max", key: relu, dst: "s32", src: ss[:2], expr: "max(A, B, 0)"})
}
