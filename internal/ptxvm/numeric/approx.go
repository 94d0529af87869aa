// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// The approximate operations. PTX bounds their error and leaves the bits open;
// these are as good as f64 arithmetic rounded to f32, so within every bound,
// but not the bits of any GPU.

// exp2Table holds 2^(i/32).
var exp2Table = func() (t [32]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 32)
	}
	return t
}()

// exp2 is 2^x to about 1e-12: 2^(k/32) from a table, and a polynomial for the
// rest, which is at most 1/64.
func exp2(x float64) float64 {
	if !(x > -1000 && x < 1000) {
		return math.Exp2(x)
	}
	const round = 0x1.8p52 // adding it rounds to an integer, in the low bits
	t := x*32 + round
	k := int64(int32(math.Float64bits(t)))
	r := (x*32 - (t - round)) * (math.Ln2 / 32)
	p := 1 + r*(1+r*(1.0/2+r*(1.0/6+r*(1.0/24))))
	return p * math.Float64frombits(math.Float64bits(exp2Table[k&31])+uint64(k>>5)<<52)
}

// The …Fast functions are the approximate operations without modifiers.
func RcpFast(x float32) float32   { return 1 / x }
func SqrtFast(x float32) float32  { return float32(math.Sqrt(float64(x))) }
func RsqrtFast(x float32) float32 { return float32(1 / math.Sqrt(float64(x))) }
func SinFast(x float32) float32   { return float32(math.Sin(float64(x))) }
func CosFast(x float32) float32   { return float32(math.Cos(float64(x))) }
func Lg2Fast(x float32) float32   { return float32(math.Log2(float64(x))) }
func Ex2Fast(x float32) float32   { return float32(exp2(float64(x))) }
func TanhFast(x float32) float32  { return float32(math.Tanh(float64(x))) }

func Sin32(ir *ptxir.Instr, x float32) float32   { return out32(ir, SinFast(in32(ir, x))) }
func Cos32(ir *ptxir.Instr, x float32) float32   { return out32(ir, CosFast(in32(ir, x))) }
func Lg232(ir *ptxir.Instr, x float32) float32   { return out32(ir, Lg2Fast(in32(ir, x))) }
func Ex232(ir *ptxir.Instr, x float32) float32   { return out32(ir, Ex2Fast(in32(ir, x))) }
func Tanh32(ir *ptxir.Instr, x float32) float32  { return out32(ir, TanhFast(in32(ir, x))) }
func Rsqrt32(ir *ptxir.Instr, x float32) float32 { return out32(ir, RsqrtFast(in32(ir, x))) }
