// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// floatOps is the table of floating-point operations. Frequent variants have
// functions of their own; the rest share one that looks at the instruction's
// rounding and flags for each lane (round: RoundRZ in a key stands for every
// directed rounding, variantAny for any mixture of flags).
//
// PTX ISA, "Floating Point Instructions" and "Half Precision Floating Point
// Instructions".
func floatOps() []op {
	var ops []op
	add := func(o op) { ops = append(ops, o) }
	f32Ops(add)
	f64Ops(add)
	for _, h := range []string{"F16", "BF16", "F16x2", "BF16x2"} {
		halfOps(h, add)
	}
	return ops
}

const (
	anyKey = ", round: variantAny"
	ftzKey = ", mod: ptxir.ModFtz"
)

func f32Ops(add func(op)) {
	const typ = "typ: ptxir.F32"
	fff := []string{"f32", "f32", "f32"}
	for _, o := range []struct{ name, expr, ftz string }{
		{"Add", "A + B", "numeric.Ftz(numeric.Ftz(A) + numeric.Ftz(B))"},
		{"Sub", "A - B", "numeric.Ftz(numeric.Ftz(A) - numeric.Ftz(B))"},
		{"Mul", "A * B", "numeric.MulFtz(A, B)"},
	} {
		lower := strings.ToLower(o.name)
		add(op{name: lower + "F32", op: o.name, key: typ, dst: "f32", src: fff[:2], expr: o.expr, nan: true})
		add(op{name: lower + "FtzF32", op: o.name, key: typ + ftzKey, dst: "f32", src: fff[:2], expr: o.ftz, nan: true, long: true})
		add(op{name: lower + "AnyF32", op: o.name, key: typ + anyKey, dst: "f32", src: fff[:2], expr: "numeric." + o.name + "32(in.IR, A, B)", nan: true, long: true})
	}
	add(op{name: "fmaQuickF32", op: "Fma", key: typ, dst: "f32", src: fff, expr: "IF s := float64(float64(A)*float64(B)) + float64(C); numeric.RoundsTwice(s) THEN float32(s)", redo: "numeric.Fma32(A, B, C)", entry: "fmaF32"})
	add(op{name: "fmaFusedF32", dst: "f32", src: fff, expr: "IF r := numeric.FusedSum(float64(A)*float64(B), float64(C)); r == r THEN r", redo: "numeric.Fma32(A, B, C)"})
	add(op{name: "fmaFtzF32", op: "Fma", key: typ + ftzKey, dst: "f32", src: fff, expr: "numeric.FmaFtz(A, B, C)", nan: true, long: true})
	add(op{name: "fmaAnyF32", op: "Fma", key: typ + anyKey, dst: "f32", src: fff, expr: "numeric.FmaAny32(in.IR, A, B, C)", nan: true, long: true})
	add(op{name: "divF32", op: "Div", key: typ, dst: "f32", src: fff[:2], expr: "A / B", nan: true})
	approx, wholly := ", mod: ptxir.ModApprox", ", mod: ptxir.ModFull"
	add(op{name: "divFastF32", op: "Div", key: typ + approx, dst: "f32", src: fff[:2], expr: "numeric.DivFast(A, B)", nan: true, long: true})
	add(op{name: "divFastFtzF32", op: "Div", key: typ + approx + " | ptxir.ModFtz", dst: "f32", src: fff[:2], expr: "numeric.Ftz(numeric.DivFast(numeric.Ftz(A), numeric.Ftz(B)))", nan: true, long: true})
	add(op{name: "divF32", op: "Div", key: typ + wholly, dst: "f32", src: fff[:2], expr: "A / B", nan: true})
	add(op{name: "divAnyF32", op: "Div", key: typ + anyKey, dst: "f32", src: fff[:2], expr: "numeric.Div32(in.IR, A, B)", nan: true, long: true})
	for _, o := range []struct{ op, fn string }{
		{"Rcp", "rcp32"}, {"Sqrt", "sqrt32"}, {"Rsqrt", "rsqrt32"}, {"Sin", "sin32"}, {"Cos", "cos32"},
		{"Lg2", "lg232"}, {"Ex2", "ex232"}, {"Tanh", "tanh32"},
	} {
		add(op{name: o.fn + "Lanes", op: o.op, key: typ + anyKey, dst: "f32", src: fff[:1], expr: "numeric." + title(o.fn) + "(in.IR, A)", nan: true, long: true})
		fast := o.fn[:len(o.fn)-2] + "Fast"
		approx := ", mod: ptxir.ModApprox"
		add(op{name: fast + "F32", op: o.op, key: typ + approx, dst: "f32", src: fff[:1], expr: "numeric." + title(fast) + "(A)", nan: true, long: true})
		add(op{name: fast + "FtzF32", op: o.op, key: typ + approx + " | ptxir.ModFtz", dst: "f32", src: fff[:1], expr: "numeric.Ftz(numeric." + title(fast) + "(numeric.Ftz(A)))", nan: true, long: true})
	}
	add(op{name: "minF32", op: "Min", key: typ, dst: "f32", src: fff[:2], expr: "numeric.Min32(A, B)", long: true})
	add(op{name: "maxF32", op: "Max", key: typ, dst: "f32", src: fff[:2], expr: "numeric.Max32(A, B)", long: true})
	add(op{name: "minAnyF32", op: "Min", key: typ + anyKey, dst: "f32", src: fff[:2], expr: "numeric.MinAny32(in.IR, A, B)", long: true})
	add(op{name: "maxAnyF32", op: "Max", key: typ + anyKey, dst: "f32", src: fff[:2], expr: "numeric.MaxAny32(in.IR, A, B)", long: true})
	for _, o := range []string{"min", "max"} {
		three := strings.ReplaceAll("FN(in.IR, FN(in.IR, A, B), C)", "FN", "numeric."+title(o)+"Any32")
		add(op{name: o + "3F32", op: title(o), key: typ + anyKey + ", mode: threeOperands", dst: "f32", src: fff, expr: three, long: true})
	}
	pairs := "typ: ptxir.F32x2" + anyKey
	for _, o := range []string{"add", "sub", "mul"} {
		add(op{name: o + "F32x2", op: title(o), key: pairs, dst: "u64", src: []string{"u64", "u64"}, expr: "numeric.FloatPair(in.IR, numeric." + title(o) + "32, A, B)", long: true})
	}
	add(op{name: "fmaF32x2", op: "Fma", key: pairs, dst: "u64", src: []string{"u64", "u64", "u64"}, expr: "numeric.FmaPair(in.IR, A, B, C)", long: true})
	uu := []string{"u32", "u32"}
	add(op{name: "absF32", op: "Abs", key: typ, dst: "u32", src: uu[:1], expr: "A &^ (1 << 31)"})
	add(op{name: "negF32", op: "Neg", key: typ, dst: "u32", src: uu[:1], expr: "A ^ 1<<31"})
	add(op{name: "absFtzF32", op: "Abs", key: typ + ftzKey, dst: "f32", src: fff[:1], expr: "numeric.Abs32(numeric.Ftz(A))"})
	add(op{name: "negFtzF32", op: "Neg", key: typ + ftzKey, dst: "f32", src: fff[:1], expr: "-numeric.Ftz(A)"})
	add(op{name: "copysignF32", op: "Copysign", key: typ, dst: "u32", src: uu, expr: "A&(1<<31) | B&^(1<<31)"})
	for _, m := range []string{"Finite", "Infinite", "Number", "NotANumber", "Normal", "Subnormal"} {
		add(op{name: "testp" + m + "F32", op: "Testp", key: typ + ", mode: ptxir.Mode" + m, dst: "pred", src: fff[:1], expr: "numeric.Testp(float64(A), 0x1p-126, numeric.Is" + m + ")", long: true})
		add(op{name: "testp" + m + "F64", op: "Testp", key: "typ: ptxir.F64, mode: ptxir.Mode" + m, dst: "pred", src: []string{"f64"}, expr: "numeric.Testp(A, 0x1p-1022, numeric.Is" + m + ")", long: true})
	}
}

func f64Ops(add func(op)) {
	const typ = "typ: ptxir.F64"
	ddd := []string{"f64", "f64", "f64"}
	add(op{name: "addF64", op: "Add", key: typ, dst: "f64", src: ddd[:2], expr: "A + B"})
	add(op{name: "subF64", op: "Sub", key: typ, dst: "f64", src: ddd[:2], expr: "A - B"})
	add(op{name: "mulF64", op: "Mul", key: typ, dst: "f64", src: ddd[:2], expr: "A * B"})
	add(op{name: "divF64", op: "Div", key: typ, dst: "f64", src: ddd[:2], expr: "A / B"})
	add(op{name: "fmaF64", op: "Fma", key: typ, dst: "f64", src: ddd, expr: "math.FMA(A, B, C)"})
	add(op{name: "addAnyF64", op: "Add", key: typ + anyKey, dst: "f64", src: ddd[:2], expr: "numeric.Add64(in.IR, A, B)", long: true})
	add(op{name: "subAnyF64", op: "Sub", key: typ + anyKey, dst: "f64", src: ddd[:2], expr: "numeric.Sub64(in.IR, A, B)", long: true})
	add(op{name: "mulAnyF64", op: "Mul", key: typ + anyKey, dst: "f64", src: ddd[:2], expr: "numeric.Mul64(in.IR, A, B)", long: true})
	add(op{name: "divAnyF64", op: "Div", key: typ + anyKey, dst: "f64", src: ddd[:2], expr: "numeric.Div64(in.IR, A, B)", long: true})
	add(op{name: "fmaAnyF64", op: "Fma", key: typ + anyKey, dst: "f64", src: ddd, expr: "numeric.Fma64(in.IR, A, B, C)", long: true})
	for _, o := range []struct{ op, fn string }{{"Rcp", "rcp64"}, {"Sqrt", "sqrt64"}, {"Rsqrt", "rsqrt64"}} {
		add(op{name: o.fn + "Lanes", op: o.op, key: typ + anyKey, dst: "f64", src: ddd[:1], expr: "numeric." + title(o.fn) + "(in.IR, A)", long: true})
	}
	add(op{name: "minF64", op: "Min", key: typ, dst: "f64", src: ddd[:2], expr: "numeric.Min64(A, B)", long: true})
	add(op{name: "maxF64", op: "Max", key: typ, dst: "f64", src: ddd[:2], expr: "numeric.Max64(A, B)", long: true})
	uu := []string{"u64", "u64"}
	add(op{name: "absF64", op: "Abs", key: typ, dst: "u64", src: uu[:1], expr: "IF A&^(1<<63) > 0x7ff<<52 THEN A ELSE A &^ (1 << 63)"}) // a NaN passes unchanged
	add(op{name: "negF64", op: "Neg", key: typ, dst: "u64", src: uu[:1], expr: "A ^ 1<<63"})
	add(op{name: "copysignF64", op: "Copysign", key: typ, dst: "u64", src: uu, expr: "A&(1<<63) | B&^(1<<63)"})
}

// halfOps are the 16-bit formats, scalar and packed. They look at the
// instruction for each lane: the formats are rare and the code is small.
func halfOps(T string, add func(op)) {
	k := "u16"
	if strings.HasSuffix(T, "x2") {
		k = "u32"
	}
	lane := map[string]string{"F16": "numeric.HalfLane", "BF16": "numeric.BFloatLane", "F16x2": "numeric.HalfPair", "BF16x2": "numeric.BFloatPair"}[T]
	three := []string{k, k, k}
	key := "typ: ptxir." + T + anyKey
	for _, o := range []struct {
		op, fn string
		n      int
	}{
		{"Add", "halfAdd", 2}, {"Sub", "halfSub", 2}, {"Mul", "halfMul", 2}, {"Fma", "halfFma", 3},
		{"Min", "halfMin", 2}, {"Max", "halfMax", 2},
		{"Ex2", "halfEx2", 1}, {"Tanh", "halfTanh", 1},
	} {
		call := lane + "(in.IR, numeric.Op" + o.fn[len("half"):] + ", " + []string{"A, 0, 0", "A, B, 0", "A, B, C"}[o.n-1] + ")"
		add(op{name: o.fn + T + "Lanes", op: o.op, key: key, dst: k, src: three[:o.n], expr: call, long: true})
	}
	signs := "0x8000"
	if k == "u32" {
		signs = "0x80008000"
	}
	plain := "typ: ptxir." + T
	add(op{name: "halfAbs" + T, op: "Abs", key: plain, dst: k, src: three[:1], expr: "A &^ " + signs})
	add(op{name: "halfNeg" + T, op: "Neg", key: plain, dst: k, src: three[:1], expr: "A ^ " + signs})
	if T == "F16" || T == "F16x2" {
		flush := map[string]string{"F16": "numeric.FtzHalf", "F16x2": "numeric.FtzHalves"}[T]
		add(op{name: "halfAbsFtz" + T, op: "Abs", key: plain + ftzKey, dst: k, src: three[:1], expr: flush + "(A) &^ " + signs, long: true})
		add(op{name: "halfNegFtz" + T, op: "Neg", key: plain + ftzKey, dst: k, src: three[:1], expr: flush + "(A) ^ " + signs, long: true})
	}
}
