// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"
	"math/big"

	"github.com/cudago/cudago/internal/ptxir"
)

// The lane functions of f64 beyond what Go's operators do. Directed rounding
// is rare in f64, so it is computed exactly with math/big.

// exactBits is enough for every finite sum and product of f64: exponents span
// 2^-2148 … 2^2048.
const exactBits = 4400

func exact(x float64) *big.Float { return new(big.Float).SetPrec(exactBits).SetFloat64(x) }

// round64 rounds an exact value to f64 in a direction.
func round64(x *big.Float, mode ptxir.Round) float64 {
	r, acc := x.Float64() // to nearest
	if acc == big.Exact {
		return r
	}
	up := acc == big.Above
	switch {
	case mode == ptxir.RoundRZ && up == (x.Sign() > 0), mode == ptxir.RoundRM && up:
		return math.Nextafter(r, map[bool]float64{true: math.Inf(-1), false: math.Inf(1)}[mode == ptxir.RoundRM || x.Sign() > 0])
	case mode == ptxir.RoundRP && !up:
		return math.Nextafter(r, math.Inf(1))
	}
	return r
}

func finite(xs ...float64) bool {
	for _, x := range xs {
		if math.IsInf(x, 0) || x != x {
			return false
		}
	}
	return true
}

// Add64 is add.f64 with any rounding.
func Add64(ir *ptxir.Instr, a, b float64) float64 {
	if ir.Round <= ptxir.RoundRN || !finite(a, b) {
		return a + b
	}
	s := exact(a)
	s.Add(s, exact(b))
	if s.Sign() == 0 {
		return directedZero(a+b, a, b, ir.Round)
	}
	return round64(s, ir.Round)
}

// Sub64 is sub.f64 with any rounding. It leaves a NaN its sign, which adding -b
// would not.
func Sub64(ir *ptxir.Instr, a, b float64) float64 {
	if b != b {
		return a - b
	}
	return Add64(ir, a, -b)
}

// Mul64 is mul.f64 with any rounding.
func Mul64(ir *ptxir.Instr, a, b float64) float64 {
	if ir.Round <= ptxir.RoundRN || !finite(a, b) || a == 0 || b == 0 {
		return a * b
	}
	p := exact(a)
	return round64(p.Mul(p, exact(b)), ir.Round)
}

// Fma64 is fma.f64 with any rounding: a*b + c, rounded once.
func Fma64(ir *ptxir.Instr, a, b, c float64) float64 {
	if ir.Round <= ptxir.RoundRN || !finite(a, b, c) {
		return math.FMA(a, b, c)
	}
	p := exact(a)
	p.Mul(p, exact(b))
	p.Add(p, exact(c))
	if p.Sign() == 0 {
		return directedZero(math.FMA(a, b, c), a*b, c, ir.Round)
	}
	return round64(p, ir.Round)
}

// Div64 is div.f64 with any rounding.
func Div64(ir *ptxir.Instr, a, b float64) float64 {
	if ir.Round <= ptxir.RoundRN || !finite(a, b) || a == 0 || b == 0 {
		return a / b
	}
	// Cut off at 2200 bits; an inexact quotient never has so many zeros in a row
	// that what is left looks exact.
	q := new(big.Float).SetPrec(2200).SetMode(big.ToZero).Quo(exact(a), exact(b))
	return round64(q, ir.Round)
}

// Rcp64 is rcp.f64 with any rounding, and rcp.approx.ftz.f64, which computes with
// the upper halves of numbers.
func Rcp64(ir *ptxir.Instr, x float64) float64 {
	if ir.Mod&ptxir.ModApprox != 0 {
		return approx64(1/upper(x), x)
	}
	return Div64(ir, 1, x)
}

// Sqrt64 is sqrt.f64 with any rounding.
func Sqrt64(ir *ptxir.Instr, x float64) float64 {
	if ir.Round <= ptxir.RoundRN || !finite(x) || x <= 0 {
		return math.Sqrt(x)
	}
	return round64(new(big.Float).SetPrec(2200).Sqrt(exact(x)), ir.Round)
}

// Rsqrt64 is rsqrt.approx.f64, here in full precision, and rsqrt.approx.ftz.f64,
// which computes with the upper halves of numbers.
func Rsqrt64(ir *ptxir.Instr, x float64) float64 {
	if ir.Mod&ptxir.ModFtz == 0 {
		return 1 / math.Sqrt(x)
	}
	return approx64(1/math.Sqrt(upper(x)), x)
}

// upper keeps the top 32 bits of x: the approximate f64 operations read and
// return no more, and flush subnormals. PTX ISA, "rcp.approx.ftz.f64".
func upper(x float64) float64 {
	b := math.Float64bits(x) &^ (1<<32 - 1)
	if b>>52&0x7ff == 0 {
		b &= 1 << 63
	}
	return math.Float64frombits(b)
}

func approx64(r, x float64) float64 {
	if x != x || r != r {
		return math.Float64frombits(0x7fffffff << 32)
	}
	return upper(r)
}

// Min64 is min.f64: a NaN loses against a number, and -0 is less than +0. PTX
// ISA, "min".
func Min64(a, b float64) float64 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return min(a, b)
}

// Max64 is max.f64, with NaN and zeros as in [Min64]. PTX ISA, "max".
func Max64(a, b float64) float64 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return max(a, b)
}
