// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// Format describes a floating-point format of at most 16 bits.
type Format struct {
	fraction int // bits
	least    int // exponent of the smallest normal number
	largest  float64
	infinity uint16 // the NaN for E4M3, which has no infinity
	nan      uint16
	Bits     int
}

// The formats: f16, bf16 and the two of 8 bits.
var (
	Half   = Format{fraction: 10, least: -14, largest: 65504, infinity: 0x7c00, nan: 0x7fff, Bits: 16}
	BFloat = Format{fraction: 7, least: -126, largest: 0x1.fep127, infinity: 0x7f80, nan: 0x7fff, Bits: 16}
	E4M3   = Format{fraction: 3, least: -6, largest: 448, infinity: 0x7f, nan: 0x7f, Bits: 8}
	E5M2   = Format{fraction: 2, least: -14, largest: 57344, infinity: 0x7c, nan: 0x7f, Bits: 8}
)

// Value is what the bits of a number mean.
func (f Format) Value(h uint16) float64 {
	sign := 1.0
	if h>>(f.Bits-1) != 0 {
		sign = -1
	}
	h &= 1<<(f.Bits-1) - 1
	if h >= f.infinity {
		if h == f.infinity && f.infinity != f.nan {
			return math.Inf(int(sign))
		}
		return math.NaN()
	}
	exp, frac := int(h>>f.fraction), float64(h&(1<<f.fraction-1))
	if exp == 0 {
		return sign * math.Ldexp(frac, f.least-f.fraction)
	}
	return sign * math.Ldexp(frac+math.Ldexp(1, f.fraction), exp-1+f.least-f.fraction)
}

// RoundTo rounds a value that is exact, or rounded to odd, to a format.
func RoundTo(x float64, f Format, mode ptxir.Round) uint16 {
	if x != x {
		return f.nan
	}
	var sign uint16
	if math.Signbit(x) {
		sign, x = 1<<(f.Bits-1), -x
	}
	if math.IsInf(x, 0) {
		return sign | f.infinity
	}
	if x == 0 {
		return sign
	}
	exp := max(int(math.Float64bits(x)>>52)-1023, f.least)
	unit := math.Float64frombits(uint64(exp-f.fraction+1023) << 52)
	n := x / unit // exact: a power of two
	var r float64
	switch {
	case mode == ptxir.RoundRZ, mode == ptxir.RoundRM && sign == 0, mode == ptxir.RoundRP && sign != 0:
		r = math.Floor(n)
	case mode == ptxir.RoundRM, mode == ptxir.RoundRP:
		r = math.Ceil(n)
	case mode == ptxir.RoundRNA:
		r = math.Floor(n + 0.5)
	default:
		r = math.RoundToEven(n)
	}
	v := r * unit
	if v > f.largest {
		if mode == ptxir.RoundRZ || mode == ptxir.RoundRM && sign == 0 || mode == ptxir.RoundRP && sign != 0 {
			return sign | f.infinity - 1
		}
		return sign | f.infinity
	}
	// r counts units; the hidden bit carries into the exponent field by itself.
	biased := uint16(exp-f.least) << f.fraction
	return sign | biased + uint16(r)
}

// PackedFormats are those of types that hold two numbers.
var PackedFormats = map[ptxir.Type]Format{
	ptxir.F16x2: Half, ptxir.BF16x2: BFloat, ptxir.E4M3x2: E4M3, ptxir.E5M2x2: E5M2,
}

// Pack rounds one number of a pair, with .relu and .satfinite.
func Pack(ir *ptxir.Instr, f Format, x float64) uint32 {
	return uint32(RoundTo(clamped(ir, x, f.largest), f, ir.Round))
}
