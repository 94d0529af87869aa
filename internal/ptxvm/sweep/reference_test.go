// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/thin"
)

// bigPrec is enough for every number here to be exact, and for the functions to
// be far more exact than what they are compared with.
const bigPrec = 1200

func (x refNumber) big() *big.Float {
	f := new(big.Float).SetPrec(bigPrec).SetUint64(x.m)
	f.SetMantExp(f, x.e)
	if x.neg {
		f.Neg(f)
	}
	return f
}

// bigRound rounds a number to a format by counting units in its last place with
// math/big's integers, and returns its bits.
func (f *refFormat) bigRound(x *big.Float, mode ptxir.Round) uint64 {
	if x.Sign() == 0 {
		return 0
	}
	unit := max(x.MantExp(nil)-1, f.least) - f.frac
	count := new(big.Float).SetMantExp(new(big.Float).Abs(x), -unit)
	n, _ := count.Int(nil) // cut off
	rest := new(big.Float).SetPrec(x.Prec()).Sub(count, new(big.Float).SetInt(n))
	half := rest.Cmp(big.NewFloat(0.5))
	up := false
	switch mode {
	case ptxir.RoundRN:
		up = half > 0 || half == 0 && n.Bit(0) != 0
	case ptxir.RoundRNA:
		up = half >= 0
	case ptxir.RoundRM:
		up = rest.Sign() != 0 && x.Sign() < 0
	case ptxir.RoundRP:
		up = rest.Sign() != 0 && x.Sign() > 0
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	bits := uint64(unit+f.frac-f.least)<<f.frac + n.Uint64()
	if unit > 2000 || bits > f.top {
		bits = f.overflow(mode, x.Sign() < 0)
	}
	if x.Sign() < 0 {
		bits |= 1 << (f.width - 1)
	}
	return bits
}

// randomNumber favours ends of ranges and half-way cases: few bits, long runs.
func randomNumber(r *rand.Rand, f *refFormat) refNumber {
	b := r.Uint64() >> (64 - f.width)
	switch r.IntN(4) {
	case 0:
		b &^= 1<<r.IntN(f.frac+1) - 1
	case 1:
		b |= 1<<r.IntN(f.frac+1) - 1
	case 2:
		b &= 1<<(f.width-1) | 1<<f.frac - 1 // subnormal
	}
	x := f.number(b)
	if x.nan() || x.inf() {
		return randomNumber(r, f)
	}
	return x
}

var allModes = []ptxir.Round{ptxir.RoundRN, ptxir.RoundRZ, ptxir.RoundRM, ptxir.RoundRP, ptxir.RoundRNA}

// TestReferenceRounds checks the sweeps' integer arithmetic against math/big.
func TestReferenceRounds(t *testing.T) {
	n := 5000 / thin.OneIn
	if testing.Short() {
		n = 500
	}
	r := rand.New(rand.NewPCG(11, 12))
	formats := []*refFormat{refF64, refF32, refTF32, refF16, refBF16, refE4M3, refE5M2}
	for i := range n {
		from, to, mode := formats[i%2], formats[r.IntN(len(formats))], allModes[r.IntN(len(allModes))]
		x := randomNumber(r, from)
		if b := r.Uint32(); number32(b) != refF32.number(uint64(b)) {
			require.Failf(t, "two numbers", "%#x", b)
		}
		if x.m == 0 {
			continue
		}
		if got, want := to.round(x, mode), to.bigRound(x.big(), mode); got != want {
			require.Failf(t, "rounded wrong", "%+v to %+v by %v: %x, want %x", x, to, mode, got, want)
		}
		if whole := x.integral(mode); x.e < 0 && integralBig(x.big(), mode).Cmp(whole.big()) != 0 {
			require.Failf(t, "integral wrong", "%+v by %v: %+v", x, mode, whole)
		}
		inverse := new(big.Float).SetPrec(bigPrec).Quo(big.NewFloat(1), x.big())
		if got, want := refF32.round(x.reciprocal(), mode), refF32.bigRound(inverse, mode); got != want {
			require.Failf(t, "reciprocal wrong", "%+v by %v: %x, want %x", x, mode, got, want)
		}
		if from == refF32 && !x.neg {
			root := new(big.Float).SetPrec(bigPrec).Sqrt(x.big())
			if got, want := refF32.round(x.root(), mode), refF32.bigRound(root, mode); got != want {
				require.Failf(t, "root wrong", "%+v by %v: %x, want %x", x, mode, got, want)
			}
		}
	}
}

// TestReferenceArithmetic does so for the operations with several operands.
func TestReferenceArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	wide := func() *big.Float { return new(big.Float).SetPrec(bigPrec) }
	for range 5000 / thin.OneIn {
		o, mode := refF32.near(r), allModes[r.IntN(4)]
		a, b, c := refF32.number(o[0]), refF32.number(o[1]), refF32.number(o[2])
		if a.class != refExact || b.class != refExact || c.class != refExact || a.m == 0 || b.m == 0 {
			continue
		}
		for op, exact := range map[string]*big.Float{
			"add": wide().Add(a.big(), b.big()), "sub": wide().Sub(a.big(), b.big()), "mul": wide().Mul(a.big(), b.big()),
			"fma": wide().Add(wide().Mul(a.big(), b.big()), c.big()), "div": wide().Quo(a.big(), b.big()),
		} {
			got := refF32.round(arithmetic(op, a, b, c, mode), mode)
			if want := refF32.bigRound(exact, mode); got != want && exact.Sign() != 0 {
				require.Failf(t, "rounded wrong", "%s(%+v, %+v, %+v) by %v: %x, want %x", op, a, b, c, mode, got, want)
			}
		}
	}
}

// integralBig rounds to an integer with math/big.
func integralBig(x *big.Float, mode ptxir.Round) *big.Float {
	whole := &refFormat{width: 64, frac: 62, least: 62, top: math.MaxInt64}
	bits := whole.bigRound(x, mode)
	f := new(big.Float).SetUint64(bits &^ (1 << 63))
	if bits>>63 != 0 {
		f.Neg(f)
	}
	return f
}

// TestReferenceFunctions checks the references of the approximations against
// their power series in math/big.
func TestReferenceFunctions(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 300 / thin.OneIn {
		x := float64(float32((r.Float64()*2 - 1) * 100 * math.Pi))
		requireNear(t, "sin", x, refSin(x), bigSeries(x, 1, -1), 0x1p-45)
		requireNear(t, "cos", x, refCos(x), bigSeries(x, 0, -1), 0x1p-45)
		x = float64(float32((r.Float64()*2 - 1) * math.Exp2(float64(r.IntN(11)-5))))
		requireNear(t, "exp2", x, math.Exp2(x)/bigExp(x*math.Ln2), 1, 0x1p-40)
		requireNear(t, "tanh", x, refTanh(x)*bigSeries(x, 0, 1)/bigSeries(x, 1, 1), 1, 0x1p-40)
		x = math.Abs(float64(math.Float32frombits(r.Uint32() & 0x7f7fffff)))
		requireNear(t, "sqrt", x, refSqrt(x)*refSqrt(x)/x, 1, 0x1p-29)
		requireNear(t, "log2", x, bigExp((refLog2(x)-math.Round(refLog2(x)))*math.Ln2), math.Ldexp(x, -int(math.Round(refLog2(x)))), 0x1p-40)
	}
}

func requireNear(t *testing.T, name string, x, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		require.Failf(t, "reference wrong", "%s(%v): %v, want %v", name, x, got, want)
	}
}

// bigSeries sums x^k/k! for k = first, first+2 …, with alternating signs if
// sign is -1; for every k if first is all.
func bigSeries(x float64, first int, sign float64) float64 {
	sum, term := new(big.Float).SetPrec(bigPrec), new(big.Float).SetPrec(bigPrec).SetInt64(1)
	bx := new(big.Float).SetPrec(bigPrec).SetFloat64(x)
	step := new(big.Float).SetPrec(bigPrec).SetFloat64(sign)
	factor := new(big.Float).SetPrec(bigPrec).SetInt64(1)
	for k := range 1200 {
		if k > 0 {
			term.Mul(term, bx)
			term.Quo(term, new(big.Float).SetInt64(int64(k)))
		}
		if first == all || k%2 == first {
			sum.Add(sum, new(big.Float).Mul(term, factor))
			factor.Mul(factor, step)
		}
		if term.Sign() == 0 || term.MantExp(nil) < -200 && float64(k) > math.Abs(x) {
			break
		}
	}
	v, _ := sum.Float64()
	return v
}

// bigExp is the exponential.
func bigExp(x float64) float64 { return bigSeries(x, all, 1) }

const all = -1
