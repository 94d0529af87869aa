// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// The lane functions of f32. PTX ISA, "Floating Point Instructions".

// NaN32 is the NaN that f32 operations return: PTX promises this one pattern,
// whatever NaN went in.
var NaN32 = math.Float32frombits(0x7fffffff)

// Ftz flushes a subnormal to zero of its sign.
func Ftz(x float32) float32 {
	if b := math.Float32bits(x); b&0x7f800000 == 0 {
		return math.Float32frombits(b & (1 << 31))
	}
	return x
}

// Abs32 is the magnitude of a number or NaN.
func Abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// Sat32 clamps to [0, 1]; NaN becomes 0, and -0 becomes +0.
func Sat32(x float32) float32 {
	switch {
	case x >= 1:
		return 1
	case x > 0:
		return x
	}
	return 0
}

// RoundsTwice reports whether an f64 sum of an exact product and an f32 may be
// rounded again, to f32, and give the result of fma. It may unless it is inexact
// and lies half-way between two f32, or below the normal range of f32, where f32
// has fewer bits. The answer is false for every sum that could be one of these,
// and for what is not finite. A sum of zero is exact. The function is small
// enough to be inlined.
func RoundsTwice(sum float64) bool {
	u := math.Float64bits(sum)
	return u&0x1fffffff != 0x10000000 && (u<<1>>53-897 < 2047-897 || u<<1 == 0)
}

// FusedSum rounds the sum once, whatever it is: it is sumToOdd without branches,
// and twice as slow as rounding twice. NaN stands for every result that is not
// finite: Fma32 tells those apart.
func FusedSum(p, c float64) float32 {
	s := p + c
	b := s - p
	err := math.Float64bits((p - (s - b)) + (c - b))
	bits := math.Float64bits(s)
	step := (err&^(1<<63) + (1<<63 - 1)) >> 63 &^ bits // 1 where the sum is inexact and even
	down := uint64(int64(err^bits) >> 63)              // all ones where the sum is too large
	return float32(math.Float64frombits(bits + (step ^ down) - down))
}

// Fma32 is a*b + c rounded once.
func Fma32(a, b, c float32) float32 {
	if r := float32(sumToOdd(float64(a)*float64(b), float64(c))); r == r {
		return r
	}
	return NaN32
}

// sumToOdd returns a+b rounded to odd: where the sum is inexact, the last bit of
// the result is 1. Rounding that to a format with at least two bits less gives
// what rounding the exact sum would (Boldo and Melquiond, "Emulation of FMA and
// correctly rounded sums", 2008). It holds for sums that are not subnormal in
// f64, which sums of f32 and of products of f32 never are.
func sumToOdd(a, b float64) float64 {
	s := a + b
	bb := s - a
	err := (a - (s - bb)) + (b - bb)
	if err == 0 || err != err || math.IsInf(s, 0) {
		return s
	}
	return oddBy(s, err > 0)
}

// oddBy makes s odd, given that the exact value is above it (or below).
func oddBy(s float64, above bool) float64 {
	bits := math.Float64bits(s)
	if bits&1 != 0 {
		return s
	}
	if above == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// round32 rounds a value that is exact, or rounded to odd, to f32.
func round32(x float64, mode ptxir.Round) float32 {
	r := float32(x)
	if mode <= ptxir.RoundRN || float64(r) == x || x != x {
		return r
	}
	up := float64(r) > x
	switch mode {
	case ptxir.RoundRZ:
		if up == (x > 0) {
			return toward32(r, x > 0)
		}
	case ptxir.RoundRM:
		if up {
			return toward32(r, true)
		}
	case ptxir.RoundRP:
		if !up {
			return toward32(r, false)
		}
	}
	return r
}

// toward32 returns the f32 next below (or above) x.
func toward32(x float32, below bool) float32 {
	if below {
		return math.Nextafter32(x, float32(math.Inf(-1)))
	}
	return math.Nextafter32(x, float32(math.Inf(1)))
}

// in32 and out32 apply an instruction's flags to an operand and to a result.
func in32(ir *ptxir.Instr, x float32) float32 {
	if ir.Mod&ptxir.ModFtz != 0 {
		return Ftz(x)
	}
	return x
}

func out32(ir *ptxir.Instr, x float32) float32 {
	if ir.Mod&ptxir.ModFtz != 0 {
		x = Ftz(x)
	}
	if ir.Mod&ptxir.ModSat != 0 {
		x = Sat32(x)
	}
	if ir.Mod&ptxir.ModRelu != 0 {
		if x != x {
			return NaN32
		}
		x = max(x, 0)
	}
	return x
}

// flushed flushes a result that is exact, or rounded to odd, as .ftz does. What
// would lie below the normal range if the format had smaller normal numbers is
// zero, even where rounding as a subnormal would have lifted it to the smallest
// normal number. PTX leaves that open; an H200 does it.
func flushed(x float64, f normals, mode ptxir.Round) float64 {
	a := math.Abs(x)
	if !(a < f.least) || a > f.below && liftedFrom(x, a, f, mode) {
		return x
	}
	return math.Copysign(0, x)
}

// normals describes where a format's normal numbers begin: the smallest, and
// the number that would be next below it.
type normals struct{ least, below float64 }

var (
	normals32   = normals{0x1p-126, 0x0.ffffffp-126}
	normalsHalf = normals{0x1p-14, 0x0.ffep-14}
	normalsBF16 = normals{0x1p-126, 0x0.ffp-126}
)

// liftedFrom reports whether rounding lifts x, of magnitude a between the two,
// to the smallest normal number.
func liftedFrom(x, a float64, f normals, mode ptxir.Round) bool {
	switch mode {
	case ptxir.RoundRZ:
		return false
	case ptxir.RoundRM:
		return x < 0
	case ptxir.RoundRP:
		return x > 0
	}
	return a >= (f.least+f.below)/2 // half-way goes to the even one, which has more zeros
}

// rounded32 turns a result that is exact, or rounded to odd, into an f32 as the
// instruction says.
func rounded32(ir *ptxir.Instr, x float64) float32 {
	if ir.Mod&ptxir.ModFtz != 0 {
		x = flushed(x, normals32, ir.Round)
	}
	return out32(ir, round32(x, ir.Round))
}

// MulFtz is mul.ftz.f32, without other modifiers.
func MulFtz(a, b float32) float32 {
	return float32(flushed(float64(Ftz(a))*float64(Ftz(b)), normals32, ptxir.RoundRN))
}

// FmaFtz is fma.rn.ftz.f32, without other modifiers.
func FmaFtz(a, b, c float32) float32 {
	return float32(flushed(sumToOdd(float64(Ftz(a))*float64(Ftz(b)), float64(Ftz(c))), normals32, ptxir.RoundRN))
}

// directedZero gives an exact zero sum its sign: -0 when rounding down.
func directedZero(s float64, a, b float64, mode ptxir.Round) float64 {
	if s == 0 && mode == ptxir.RoundRM && (math.Signbit(a) || math.Signbit(b)) {
		return math.Copysign(0, -1)
	}
	return s
}

// Add32 is add.f32 with any modifiers.
func Add32(ir *ptxir.Instr, x, y float32) float32 {
	a, b := float64(in32(ir, x)), float64(in32(ir, y))
	s := directedZero(sumToOdd(a, b), a, b, ir.Round)
	return rounded32(ir, s)
}

// Sub32 is sub.f32 with any modifiers. It may add -y, unlike [Sub64]: the sign of
// a NaN is lost in f32 anyway.
func Sub32(ir *ptxir.Instr, x, y float32) float32 { return Add32(ir, x, -y) }

// Mul32 is mul.f32 with any modifiers. The f64 product of two f32 is exact.
func Mul32(ir *ptxir.Instr, x, y float32) float32 {
	return rounded32(ir, float64(in32(ir, x))*float64(in32(ir, y)))
}

// FmaAny32 is fma.f32 with any modifiers; [Fma32] is the one without.
func FmaAny32(ir *ptxir.Instr, x, y, z float32) float32 {
	p, c := float64(in32(ir, x))*float64(in32(ir, y)), float64(in32(ir, z))
	return rounded32(ir, directedZero(sumToOdd(p, c), p, c, ir.Round))
}

// Div32 is div.f32 with a rounding and any modifiers.
func Div32(ir *ptxir.Instr, x, y float32) float32 {
	x, y = in32(ir, x), in32(ir, y)
	return rounded32(ir, quotientToOdd(float64(x), float64(y)))
}

// DivFast is div.approx.f32: x * (1/y), where 1/y is flushed to zero if y is
// beyond 2^126. PTX ISA, "div".
func DivFast(x, y float32) float32 {
	if m := Abs32(y); m > 0x1p126 && m <= math.MaxFloat32 {
		return x * float32(math.Copysign(0, float64(y)))
	}
	return x / y
}

// quotientToOdd is x/y rounded to odd, for x and y that are f32.
func quotientToOdd(x, y float64) float64 {
	q := x / y
	if q == 0 || math.IsInf(q, 0) || q != q {
		return q
	}
	if r := math.FMA(-q, y, x); r != 0 {
		return oddBy(q, (r > 0) == (y > 0))
	}
	return q
}

// Rcp32 is rcp.f32 with any modifiers. What .approx.ftz flushes is the rounded
// result, and what .rnd.ftz flushes the exact one.
func Rcp32(ir *ptxir.Instr, x float32) float32 {
	x = in32(ir, x)
	if ir.Mod&ptxir.ModApprox != 0 {
		return out32(ir, 1/x)
	}
	return rounded32(ir, quotientToOdd(1, float64(x)))
}

// Sqrt32 is sqrt.f32 with any modifiers. A root is never subnormal, so .ftz
// concerns the operand alone.
func Sqrt32(ir *ptxir.Instr, x float32) float32 {
	x = in32(ir, x)
	s := math.Sqrt(float64(x))
	if ir.Round > ptxir.RoundRN && s > 0 && !math.IsInf(s, 0) {
		if r := math.FMA(-s, s, float64(x)); r != 0 {
			s = oddBy(s, r > 0)
		}
	}
	return out32(ir, round32(s, ir.Round))
}

// Min32 is min.f32: a NaN loses against a number, and -0 is less than +0. PTX
// ISA, "min".
func Min32(a, b float32) float32 {
	switch {
	case a < b:
		return a
	case b < a:
		return b
	case a == b:
		return math.Float32frombits(math.Float32bits(a) | math.Float32bits(b)) // zeros
	case a == a:
		return a
	case b == b:
		return b
	}
	return NaN32
}

// Max32 is max.f32, with NaN and zeros as in [Min32]. PTX ISA, "max".
func Max32(a, b float32) float32 {
	switch {
	case a > b:
		return a
	case b > a:
		return b
	case a == b:
		return math.Float32frombits(math.Float32bits(a) & math.Float32bits(b))
	case a == a:
		return a
	case b == b:
		return b
	}
	return NaN32
}

// MinAny32 is min.f32 with any modifiers.
func MinAny32(ir *ptxir.Instr, a, b float32) float32 { return extreme32(ir, a, b, Min32) }

// MaxAny32 is max.f32 with any modifiers.
func MaxAny32(ir *ptxir.Instr, a, b float32) float32 { return extreme32(ir, a, b, Max32) }

// extreme32 is min and max with .ftz, .NaN and .xorsign.abs.
func extreme32(ir *ptxir.Instr, a, b float32, pick func(a, b float32) float32) float32 {
	a, b = in32(ir, a), in32(ir, b)
	if ir.Mod&ptxir.ModNaN != 0 && (a != a || b != b) {
		return NaN32
	}
	if ir.Mod&ptxir.ModXorSignAbs != 0 {
		sign := (math.Float32bits(a) ^ math.Float32bits(b)) & (1 << 31)
		r := pick(Abs32(a), Abs32(b))
		if r != r {
			return NaN32 // a NaN takes no sign
		}
		return math.Float32frombits(math.Float32bits(r) | sign)
	}
	return out32(ir, pick(a, b))
}

// FloatTest is one of testp's questions.
type FloatTest uint8

// The questions.
const (
	IsFinite FloatTest = iota
	IsInfinite
	IsNumber
	IsNotANumber
	IsNormal
	IsSubnormal
)

// Testp answers a question about x; least is the smallest normal number.
func Testp(x, least float64, test FloatTest) bool {
	switch m := math.Abs(x); test {
	case IsFinite:
		return m <= math.MaxFloat64
	case IsInfinite:
		return m > math.MaxFloat64
	case IsNumber:
		return x == x
	case IsNotANumber:
		return x != x
	case IsNormal: // zeros are normal numbers here
		return m >= least && m <= math.MaxFloat64 || m == 0
	default:
		return m < least && m > 0
	}
}

// FloatPair applies an f32 operation to two numbers side by side.
func FloatPair(ir *ptxir.Instr, op func(ir *ptxir.Instr, x, y float32) float32, a, b uint64) uint64 {
	lo := op(ir, math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b)))
	hi := op(ir, math.Float32frombits(uint32(a>>32)), math.Float32frombits(uint32(b>>32)))
	return pairOf(lo, hi)
}

// FmaPair is fma of two numbers side by side.
func FmaPair(ir *ptxir.Instr, a, b, c uint64) uint64 {
	lo := FmaAny32(ir, math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b)), math.Float32frombits(uint32(c)))
	hi := FmaAny32(ir, math.Float32frombits(uint32(a>>32)), math.Float32frombits(uint32(b>>32)), math.Float32frombits(uint32(c>>32)))
	return pairOf(lo, hi)
}

func pairOf(lo, hi float32) uint64 {
	if lo != lo {
		lo = NaN32
	}
	if hi != hi {
		hi = NaN32
	}
	return uint64(math.Float32bits(lo)) | uint64(math.Float32bits(hi))<<32
}
