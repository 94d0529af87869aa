// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// The reference of the sweeps: numbers as integers times powers of two, rounded
// by integer arithmetic alone. The code under test works in f64 and rounds to
// odd; the two share nothing but the formats. TestReferenceRounds checks this
// one against math/big.

// refFormat is a binary floating-point format of IEEE 754's layout.
type refFormat struct {
	width, frac, least int    // bits, bits of fraction, exponent of the smallest normal number
	top                uint64 // bits of the largest finite number
	inf, nan           uint64 // canonical NaN; inf is 0 if there is none
}

var (
	refF64  = &refFormat{64, 52, -1022, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7fffffffffffffff}
	refF32  = &refFormat{32, 23, -126, 0x7f7fffff, 0x7f800000, 0x7fffffff}
	refTF32 = &refFormat{19, 10, -126, 0x3fbff, 0x3fc00, 0x3ffff} // the top 19 bits of an f32
	refF16  = &refFormat{16, 10, -14, 0x7bff, 0x7c00, 0x7fff}
	refBF16 = &refFormat{16, 7, -126, 0x7f7f, 0x7f80, 0x7fff}
	refE4M3 = &refFormat{8, 3, -6, 0x7e, 0, 0x7f}
	refE5M2 = &refFormat{8, 2, -14, 0x7b, 0x7c, 0x7f}
)

// refNumber is ±m·2^e, or what its class says. Four fields: Go keeps a struct
// with more of them in memory, which made the sweeps twice as slow.
type refNumber struct {
	m     uint64
	e     int
	neg   bool
	class refClass
}

type refClass uint8

const (
	refExact refClass = iota
	// refRest is more than m·2^e by less than a unit of m. Such a number has at
	// least two bits more than any format it is rounded to.
	refRest
	refInf
	refNaN
)

func (x refNumber) rest() bool { return x.class == refRest }
func (x refNumber) inf() bool  { return x.class == refInf }
func (x refNumber) nan() bool  { return x.class == refNaN }

// leaving is the class of what a division or a root leaves over.
func leaving(rest uint64) refClass {
	if rest != 0 {
		return refRest
	}
	return refExact
}

// number is the value of a format's bits.
func (f *refFormat) number(b uint64) refNumber {
	sign := uint64(1) << (f.width - 1)
	x := refNumber{neg: b&sign != 0}
	b &= sign - 1
	switch {
	case b > f.top:
		x.class = refNaN
		if b == f.inf {
			x.class = refInf
		}
		return x
	case b>>f.frac == 0:
		x.m, x.e = b, f.least-f.frac
	default:
		x.m, x.e = b&(1<<f.frac-1)|1<<f.frac, int(b>>f.frac)-1+f.least-f.frac
	}
	return x
}

// number32 is refF32.number, which most sweeps spend their time in.
func number32(b uint32) refNumber {
	x := refNumber{neg: b>>31 != 0, m: uint64(b & 0x7fffff), e: -149}
	switch exp := b >> 23 & 255; exp {
	case 0:
	case 255:
		if x.m != 0 {
			return refNumber{neg: x.neg, class: refNaN}
		}
		return refNumber{neg: x.neg, class: refInf}
	default:
		x.m |= 1 << 23
		x.e = int(exp) - 150
	}
	return x
}

// round returns the bits of x in a format.
func (f *refFormat) round(x refNumber, mode ptxir.Round) uint64 {
	var sign uint64
	if x.neg {
		sign = 1 << (f.width - 1)
	}
	switch {
	case x.nan():
		return f.nan
	case x.inf():
		return sign | f.overflow(ptxir.RoundRN, x.neg)
	case x.m == 0:
		return sign
	}
	lead := x.e + bits.Len64(x.m) - 1
	if lead > 1100 { // beyond every format, and shifting by it would wrap
		return sign | f.overflow(mode, x.neg)
	}
	unit := max(lead, f.least) - f.frac // exponent of the last place
	n := x.shifted(unit, mode)
	if n>>(f.frac+1) > 1 {
		panic("BUG: rounded to more than the format holds")
	}
	b := uint64(unit+f.frac-f.least)<<f.frac + n // the hidden bit raises the exponent field
	if b > f.top {
		return sign | f.overflow(mode, x.neg)
	}
	return sign | b
}

// overflow is the magnitude of a result above the largest finite number.
func (f *refFormat) overflow(mode ptxir.Round, neg bool) uint64 {
	if mode == ptxir.RoundRZ || mode == ptxir.RoundRM && !neg || mode == ptxir.RoundRP && neg {
		return f.top
	}
	if f.inf == 0 {
		return f.nan
	}
	return f.inf
}

// shifted is x in units of 2^unit, rounded to an integer without its sign.
func (x refNumber) shifted(unit int, mode ptxir.Round) uint64 {
	drop := unit - x.e
	if drop <= 0 {
		return x.m << -drop
	}
	n, lost, half := uint64(0), x.m, uint64(math.MaxUint64) // less than half, unless:
	if drop < 64 {
		n, lost, half = x.m>>drop, x.m&(1<<drop-1), 1<<(drop-1)
	}
	exact := lost == 0 && !x.rest()
	var up bool
	switch mode {
	case ptxir.RoundRM, ptxir.RoundRMI:
		up = x.neg && !exact
	case ptxir.RoundRP, ptxir.RoundRPI:
		up = !x.neg && !exact
	case ptxir.RoundRZ, ptxir.RoundRZI:
	case ptxir.RoundRNA:
		up = lost >= half
	default:
		up = lost > half || lost == half && (x.rest() || n&1 != 0)
	}
	if up {
		n++
	}
	return n
}

// integral rounds x to an integer; numbers above 2^63 are integers already.
func (x refNumber) integral(mode ptxir.Round) refNumber {
	if x.nan() || x.inf() || x.e >= 0 {
		return x
	}
	return refNumber{m: x.shifted(0, mode), neg: x.neg}
}

// integer rounds x to an integer type of so many bits, and clamps. wideNaN says
// that a NaN gives the lowest number with the top bit alone, else 0.
func (x refNumber) integer(width int, signed bool, mode ptxir.Round, wideNaN bool) uint64 {
	switch {
	case x.nan() && wideNaN:
		return 1 << (width - 1)
	case x.nan():
		return 0
	}
	x = x.integral(mode)
	over := x.inf() || x.m != 0 && x.e+bits.Len64(x.m) > 64
	n := x.m
	if !over && !x.inf() {
		n <<= x.e
	}
	limit := uint64(math.MaxUint64) >> (64 - width)
	if signed {
		limit >>= 1
	}
	switch {
	case x.neg && !signed:
		return 0
	case x.neg:
		limit++
		if over || n > limit {
			n = limit
		}
		return -n & (math.MaxUint64 >> (64 - width))
	case over || n > limit:
		return limit
	}
	return n
}

// roundFlushed is round with .ftz: zero if the number, rounded to as many bits
// as a normal number has, still lies below the normal range. An H200 behaves so.
func (f *refFormat) roundFlushed(x refNumber, mode ptxir.Round) uint64 {
	if x.class <= refRest && x.m != 0 {
		lead := x.e + bits.Len64(x.m) - 1
		if lead < f.least && x.shifted(lead-f.frac, mode)>>(f.frac+1) == 0 || lead < f.least-1 {
			x = refNumber{neg: x.neg}
		}
	}
	return f.round(x, mode)
}

// flushed is an operand as .ftz leaves it: zero of its sign below the normal
// range.
func (f *refFormat) flushed(x refNumber) refNumber {
	if !x.nan() && !x.inf() && (x.m == 0 || x.e+bits.Len64(x.m)-1 < f.least) {
		return refNumber{neg: x.neg}
	}
	return x
}

// isNaN tells a NaN from everything else, bits that the format lacks included.
func (f *refFormat) isNaN(b uint64) bool {
	sign := uint64(1) << (f.width - 1)
	return b&^sign > max(f.top, f.inf) && b&^sign < sign
}

// refFlush flushes the bits of a subnormal f32 to zero of its sign.
func refFlush(b uint64) uint64 {
	if b&0x7f800000 == 0 {
		return b & 0x80000000
	}
	return b
}

// inverse is 1/x for finite x other than 0, to 62 bits or so: enough before
// the rest for every format of up to 53 bits.
func (x refNumber) inverse() refNumber {
	shift := bits.LeadingZeros64(x.m)
	m := x.m << shift
	q, r := bits.Div64(1<<62, 0, m) // 2^126/m, between 2^62 and 2^63
	return refNumber{m: q, e: -126 - (x.e - shift), neg: x.neg, class: leaving(r)}
}

// squareRoot is the square root of a positive x, to 32 bits and a rest.
func (x refNumber) squareRoot() refNumber {
	shift := bits.LeadingZeros64(x.m) &^ 1
	if (x.e-shift)&1 != 0 {
		shift-- // m < 2^62 or so here: what is shifted out is nothing
		if shift < 0 {
			panic("BUG: no room for the square root")
		}
	}
	m := x.m << shift
	r := uint64(math.Sqrt(float64(m))) // off by one at most, which the integers tell
	for r*r > m || r > math.MaxUint32 {
		r--
	}
	for r < math.MaxUint32 && (r+1)*(r+1) <= m {
		r++
	}
	return refNumber{m: r, e: (x.e - shift) / 2, class: leaving(m - r*r)}
}
