// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// The approximate operations: those with .approx. PTX bounds their error and
// leaves the bits open. These compute in f64 and round to f32, so they are within
// every bound, but do not give the bits of any GPU.
//
// Each comes twice: NameFast for the instruction without modifiers, and Name32,
// which reads the modifiers from the instruction.

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

// RcpFast is rcp.approx.f32. One division rounds correctly already; with other
// modifiers the operation is [Rcp32]. PTX ISA, "rcp".
func RcpFast(x float32) float32 { return 1 / x }

// SqrtFast is sqrt.approx.f32; with other modifiers it is [Sqrt32]. PTX ISA,
// "sqrt".
func SqrtFast(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// RsqrtFast is rsqrt.approx.f32: 1/√x, infinite for zeros and with their sign.
// PTX ISA, "rsqrt".
func RsqrtFast(x float32) float32 { return float32(1 / math.Sqrt(float64(x))) }

// SinFast is sin.approx.f32, of x in radians. A GPU's error grows with |x|; this
// one's does not. PTX ISA, "sin".
func SinFast(x float32) float32 { return float32(math.Sin(float64(x))) }

// CosFast is cos.approx.f32, of x in radians, as exact as [SinFast]. PTX ISA,
// "cos".
func CosFast(x float32) float32 { return float32(math.Cos(float64(x))) }

// Lg2Fast is lg2.approx.f32, the logarithm to base 2. PTX ISA, "lg2".
func Lg2Fast(x float32) float32 { return float32(math.Log2(float64(x))) }

// Ex2Fast is ex2.approx.f32, 2 to the power of x. PTX ISA, "ex2".
func Ex2Fast(x float32) float32 { return float32(exp2(float64(x))) }

// TanhFast is tanh.approx.f32, which has no .ftz: subnormals stay. PTX ISA,
// "tanh".
func TanhFast(x float32) float32 { return float32(math.Tanh(float64(x))) }

// Sin32 is [SinFast] with any modifiers.
func Sin32(ir *ptxir.Instr, x float32) float32 { return out32(ir, SinFast(in32(ir, x))) }

// Cos32 is [CosFast] with any modifiers.
func Cos32(ir *ptxir.Instr, x float32) float32 { return out32(ir, CosFast(in32(ir, x))) }

// Lg232 is [Lg2Fast] with any modifiers. With .ftz a subnormal x counts as zero,
// so its logarithm is -∞.
func Lg232(ir *ptxir.Instr, x float32) float32 { return out32(ir, Lg2Fast(in32(ir, x))) }

// Ex232 is [Ex2Fast] with any modifiers. With .ftz a subnormal result is zero.
func Ex232(ir *ptxir.Instr, x float32) float32 { return out32(ir, Ex2Fast(in32(ir, x))) }

// Tanh32 is [TanhFast]: tanh has no modifiers, but the generator treats it like
// the others.
func Tanh32(ir *ptxir.Instr, x float32) float32 { return out32(ir, TanhFast(in32(ir, x))) }

// Rsqrt32 is [RsqrtFast] with any modifiers. With .ftz a subnormal x counts as
// zero, so the result is infinite.
func Rsqrt32(ir *ptxir.Instr, x float32) float32 { return out32(ir, RsqrtFast(in32(ir, x))) }
