// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// The approximate operations, held to the errors that the PTX ISA (9.1) states
// in the section of each, and to its tables of special values. The references
// are computed another way than the operations: TestReferenceFunctions checks
// them against math/big.

// An approximation says what an operation may return.
type approximation struct {
	name string
	ftz  bool // has a form with .ftz
	// special is the exact result for what is not finite, zeros and, where the
	// function is not defined, negative numbers; ok is false for the rest.
	special func(x refNumber) (want uint64, ok bool)
	// f is the function, and near reports whether got is near enough to its value.
	f    func(x float64) float64
	near func(x, want, got float64) bool
}

const (
	one32, minusOne32 = 0x3f800000, 0xbf800000
	inf32, minusInf32 = 0x7f800000, 0xff800000
	zero32, minus0    = 0, 0x80000000
	theNaN32          = 0x7fffffff
)

// table builds special from the results for -Inf, -normal, -0, +0, +Inf; of
// these, -normal may be absent. NaN gives NaN everywhere.
func table(minusInf, minusZero, zero, inf uint64, negative ...uint64) func(x refNumber) (uint64, bool) {
	return func(x refNumber) (uint64, bool) {
		switch {
		case x.nan():
			return theNaN32, true
		case x.inf() && x.neg:
			return minusInf, true
		case x.inf():
			return inf, true
		case x.m == 0 && x.neg:
			return minusZero, true
		case x.m == 0:
			return zero, true
		case x.neg && negative != nil:
			return negative[0], true
		}
		return 0, false
	}
}

// relative allows a relative error; the references are off by 2^-31 at most.
func relative(bound float64) func(x, want, got float64) bool {
	return func(_, want, got float64) bool { return math.Abs(got-want) <= (bound-0x1p-30)*math.Abs(want) }
}

// ulps allows so many units in the last place of f32 from the correctly rounded
// result.
func ulps(n int64) func(x, want, got float64) bool {
	return func(_, want, got float64) bool {
		rounded := refF32.round(refF64.number(math.Float64bits(want)), ptxir.RoundRN)
		return steps(rounded, uint64(math.Float32bits(float32(got)))) <= n
	}
}

// steps counts the f32 from one to another, infinities included.
func steps(a, b uint64) int64 {
	order := func(b uint64) int64 {
		if b>>31 != 0 {
			return -int64(b & 0x7fffffff)
		}
		return int64(b)
	}
	d := order(a) - order(b)
	return max(d, -d)
}

// wave allows the errors of sin and cos, which depend on the range.
func wave(x, want, got float64) bool {
	switch {
	case math.Abs(x) <= 2*math.Pi:
		return math.Abs(got-want) <= 0x1.6a09e667p-21 // 2^-20.5
	case math.Abs(x) <= 100*math.Pi:
		return math.Abs(got-want) <= 0x1.3b2c47bfp-15 // 2^-14.7
	}
	return math.Abs(got) <= 1 // no promise
}

// nearLog2 allows an absolute error near 1, and a relative one elsewhere.
func nearLog2(x, want, got float64) bool {
	if x > 0.5 && x < 2 {
		return math.Abs(got-want) <= 0x1p-22
	}
	return math.Abs(got-want) <= 0x1p-22*math.Abs(want)
}

var approximations = []approximation{
	{"ex2.approx", true, table(zero32, one32, one32, inf32), math.Exp2, ulps(2)},
	{"lg2.approx", true, table(theNaN32, minusInf32, minusInf32, inf32, theNaN32), refLog2, nearLog2},
	{"sin.approx", true, table(theNaN32, minus0, zero32, theNaN32), refSin, wave},
	{"cos.approx", true, table(theNaN32, one32, one32, theNaN32), refCos, wave},
	{"rcp.approx", true, table(minus0, minusInf32, inf32, zero32), func(x float64) float64 { return 1 / x }, ulps(1)},
	{"rsqrt.approx", true, table(theNaN32, minusInf32, inf32, zero32, theNaN32),
		func(x float64) float64 { return 1 / refSqrt(x) }, relative(0x1.125fbee2p-23)}, // 2^-22.9
	{"sqrt.approx", true, table(theNaN32, minus0, zero32, inf32, theNaN32), refSqrt, relative(0x1p-23)},
	{"tanh.approx", false, table(minusOne32, minus0, zero32, one32), refTanh, relative(0x1p-11)},
}

// refSqrt is the square root to 31 bits, by integers.
func refSqrt(x float64) float64 {
	n := refF32.number(uint64(math.Float32bits(float32(x)))).squareRoot()
	return math.Ldexp(float64(n.m), n.e)
}

// refLog2 sums the series of the inverse hyperbolic tangent.
func refLog2(x float64) float64 {
	frac, exp := math.Frexp(x)
	if frac < math.Sqrt2/2 {
		frac, exp = 2*frac, exp-1
	}
	s := (frac - 1) / (frac + 1) // at most 0.172, so that 12 terms do
	sum, s2 := 0.0, s*s
	for k := 23; k > 0; k -= 2 {
		sum = sum*s2 + 1/float64(k)
	}
	return float64(exp) + 2*s*sum/math.Ln2
}

// quadrant reduces x by multiples of π/2, for |x| up to 1000 or so: k has 10
// bits, so that the two products are exact enough by FMA.
func quadrant(x float64) (r float64, k int) {
	const low = 6.123233995736766e-17 // π/2 less its f64
	n := math.Round(x * (2 / math.Pi))
	return math.FMA(-n, low, math.FMA(-n, math.Pi/2, x)), int(n) & 3
}

// taylor sums the series of the sine, or of the cosine: for |r| up to π/4 what
// is left out is below 2^-60.
func taylor(r float64, cosine bool) float64 {
	first, factor := 17.0, r
	if cosine {
		first, factor = 16, 1
	}
	sum := 1.0
	for k := first; k > 1; k -= 2 {
		sum = 1 - sum*r*r/(k*(k-1))
	}
	return factor * sum
}

func refSin(x float64) float64 {
	r, k := quadrant(x)
	v := taylor(r, k&1 != 0)
	if k&2 != 0 {
		return -v
	}
	return v
}

func refCos(x float64) float64 {
	r, k := quadrant(x)
	v := taylor(r, k&1 == 0)
	if k == 1 || k == 2 {
		return -v
	}
	return v
}

// refTanh uses the exponential. Above 20 the result is 1 in f64.
func refTanh(x float64) float64 {
	a := math.Abs(x)
	if a > 20 {
		return math.Copysign(1, x)
	}
	e := math.Expm1(2 * a)
	return math.Copysign(e/(e+2), x)
}

// sweep makes the sweep of a form.
func (a *approximation) sweep(ftz bool) sweep {
	name := a.name + ".f32"
	if ftz {
		name = a.name + ".ftz.f32"
	}
	return sweep{name: name, body: name + " Y, X;", fits: func(x uint32, got uint64) bool {
		if ftz {
			x = uint32(refFlush(uint64(x)))
		}
		if want, ok := a.special(number32(x)); ok {
			return got == want
		}
		value := float64(math.Float32frombits(x))
		if !ftz || got&0x7fffffff >= 0x800000 {
			return got>>32 == 0 && a.near(value, a.f(value), float64(math.Float32frombits(uint32(got))))
		}
		// Flushed: right if the value lies below the normal range, or is as near to
		// its first number as to allow that.
		want := a.f(value)
		least := math.Copysign(0x1p-126, want)
		return got == uint64(math.Float32bits(float32(want)))&minus0 && (math.Abs(want) < 0x1p-126 || a.near(value, want, least))
	}}
}

func approximateSweeps() []sweep {
	var list []sweep
	for i := range approximations {
		a := &approximations[i]
		list = append(list, a.sweep(false))
		if a.ftz {
			list = append(list, a.sweep(true))
		}
	}
	return list
}

func TestSweepApproximate(t *testing.T) { sweepAll(t, inputs32(), approximateSweeps()) }
