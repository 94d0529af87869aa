// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// The 16-bit formats f16 (1+5+10 bits) and bf16 (1+8+7 bits). Sums and products
// are computed in f64, rounded to odd where inexact, and rounded once to the
// format. PTX ISA, "Half Precision Floating Point Instructions".

// FromHalf is the value of an f16.
func FromHalf(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch {
	case exp == 31 && frac != 0:
		return NaN32
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000)
	case exp == 0:
		v := float32(frac) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// FromBFloat is the value of a bf16.
func FromBFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToHalf rounds to the nearest f16, to the even one if two are equally near.
func ToHalf(x float32) uint16 { return RoundTo(float64(x), Half, ptxir.RoundRN) }

// ToBFloat rounds to the nearest bf16, as [ToHalf] does.
func ToBFloat(x float32) uint16 { return RoundTo(float64(x), BFloat, ptxir.RoundRN) }

// HalfOp is an operation on the values of one to three 16-bit numbers. Its result
// is exact, or rounded to odd, or approximate: [HalfLane] and [BFloatLane] round
// it to the format and apply the modifiers.
type HalfOp func(ir *ptxir.Instr, a, b, c float64) float64

// OpAdd is add.
func OpAdd(_ *ptxir.Instr, a, b, _ float64) float64 { return sumToOdd(a, b) }

// OpSub is sub.
func OpSub(_ *ptxir.Instr, a, b, _ float64) float64 { return sumToOdd(a, -b) }

// OpMul is mul. f64 holds the product of two 16-bit numbers exactly. The
// conversion keeps the compiler from fusing it with an addition.
func OpMul(_ *ptxir.Instr, a, b, _ float64) float64 { return float64(a * b) }

// OpFma is fma. The product is exact, as in [OpMul], and only the sum is rounded.
func OpFma(_ *ptxir.Instr, a, b, c float64) float64 { return sumToOdd(float64(a*b), c) }

// OpEx2 is ex2.approx.
func OpEx2(_ *ptxir.Instr, a, _, _ float64) float64 { return exp2(a) }

// OpTanh is tanh.approx.
func OpTanh(_ *ptxir.Instr, a, _, _ float64) float64 {
	return math.Tanh(a)
}

// OpMin is min, with .NaN and .xorsign.abs.
func OpMin(ir *ptxir.Instr, a, b, _ float64) float64 { return extremeHalf(ir, a, b, Min64) }

// OpMax is max, with .NaN and .xorsign.abs.
func OpMax(ir *ptxir.Instr, a, b, _ float64) float64 { return extremeHalf(ir, a, b, Max64) }

func extremeHalf(ir *ptxir.Instr, a, b float64, pick func(a, b float64) float64) float64 {
	if ir.Mod&ptxir.ModNaN != 0 && (a != a || b != b) {
		return math.NaN()
	}
	if ir.Mod&ptxir.ModXorSignAbs != 0 {
		r := pick(math.Abs(a), math.Abs(b))
		if math.Signbit(a) != math.Signbit(b) {
			r = math.Copysign(r, -1)
		}
		return r
	}
	return pick(a, b)
}

// HalfLane applies an operation to f16 numbers.
func HalfLane(ir *ptxir.Instr, op HalfOp, a, b, c uint16) uint16 {
	if outOfBounds(ir, a, b) {
		return 0
	}
	r := op(ir, float64(InHalf(ir, a)), float64(InHalf(ir, b)), float64(InHalf(ir, c)))
	if ir.Mod&ptxir.ModFtz != 0 {
		r = flushed(r, normalsHalf, ir.Round)
	}
	return outHalf(ir, RoundTo(r, Half, ir.Round))
}

// outOfBounds is the question of fma.oob: is a factor the NaN that tensor copies
// fill in beyond a tensor's bounds? PTX does not say which bits that is, or
// whether the addend counts; an H200 takes 0x7ff7 of either sign in both
// formats, and does not ask about the addend.
func outOfBounds(ir *ptxir.Instr, a, b uint16) bool {
	const mark = 0x7ff7
	return ir.Mod&ptxir.ModOOB != 0 && (a&0x7fff == mark || b&0x7fff == mark)
}

// FtzHalf flushes a subnormal f16 to zero of its sign.
func FtzHalf(h uint16) uint16 {
	if h&0x7c00 == 0 {
		return h & (1 << 15)
	}
	return h
}

// FtzHalves is [FtzHalf] for each of two numbers side by side.
func FtzHalves(h uint32) uint32 {
	return uint32(FtzHalf(uint16(h))) | uint32(FtzHalf(uint16(h>>16)))<<16
}

// InHalf is the value of an operand. A NaN keeps its sign, which .xorsign reads.
func InHalf(ir *ptxir.Instr, h uint16) float32 {
	if ir.Mod&ptxir.ModFtz != 0 {
		h = FtzHalf(h)
	}
	v := FromHalf(h)
	if v != v && h>>15 != 0 {
		return -v
	}
	return v
}

func outHalf(ir *ptxir.Instr, h uint16) uint16 {
	if ir.Mod&ptxir.ModSat != 0 {
		switch v := FromHalf(h); {
		case v >= 1:
			h = 0x3c00
		case v > 0:
		default:
			h = 0
		}
	}
	if ir.Mod&ptxir.ModRelu != 0 && h>>15 != 0 && FromHalf(h) == FromHalf(h) {
		h = 0
	}
	return h
}

// BFloatLane applies an operation to bf16 numbers.
func BFloatLane(ir *ptxir.Instr, op HalfOp, a, b, c uint16) uint16 {
	if outOfBounds(ir, a, b) {
		return 0
	}
	r := op(ir, float64(FromBFloat(a)), float64(FromBFloat(b)), float64(FromBFloat(c)))
	if ir.Mod&ptxir.ModFtz != 0 {
		r = flushed(r, normalsBF16, ir.Round)
	}
	h := RoundTo(r, BFloat, ir.Round)
	if ir.Mod&ptxir.ModRelu != 0 && h>>15 != 0 && r == r {
		h = 0
	}
	return h
}

// HalfPair is [HalfLane] for each of two numbers side by side: the type f16x2.
func HalfPair(ir *ptxir.Instr, op HalfOp, a, b, c uint32) uint32 {
	return uint32(HalfLane(ir, op, uint16(a), uint16(b), uint16(c))) |
		uint32(HalfLane(ir, op, uint16(a>>16), uint16(b>>16), uint16(c>>16)))<<16
}

// BFloatPair is [BFloatLane] for each of two numbers side by side: the type
// bf16x2.
func BFloatPair(ir *ptxir.Instr, op HalfOp, a, b, c uint32) uint32 {
	return uint32(BFloatLane(ir, op, uint16(a), uint16(b), uint16(c))) |
		uint32(BFloatLane(ir, op, uint16(a>>16), uint16(b>>16), uint16(c>>16)))<<16
}
