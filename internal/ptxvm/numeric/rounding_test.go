// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/thin"
)

var modes = map[ptxir.Round]big.RoundingMode{
	ptxir.RoundRN: big.ToNearestEven, ptxir.RoundRZ: big.ToZero, ptxir.RoundRM: big.ToNegativeInf, ptxir.RoundRP: big.ToPositiveInf,
}

// exactRound32 rounds a finite number that is exact, or off by less than 2^-4000
// of itself and marked by acc, to f32: the reference, by another way than the
// code under test takes.
func exactRound32(x *big.Float, mode big.RoundingMode) float32 {
	if x.Sign() == 0 {
		return 0
	}
	prec := 24
	if e := x.MantExp(nil); e < -125 { // x = 0.m * 2^e: subnormal below 2^-126
		prec = 24 - (-125 - e)
	}
	if prec < 1 { // half of the smallest subnormal, or less
		least := new(big.Float).SetMantExp(big.NewFloat(1), -149)
		up := mode == big.ToPositiveInf && x.Sign() > 0 || mode == big.ToNegativeInf && x.Sign() < 0
		half := new(big.Float).SetMantExp(big.NewFloat(1), -150)
		if mode == big.ToNearestEven && new(big.Float).Abs(x).Cmp(half) > 0 {
			up = true
		}
		r := float32(0)
		if up {
			r, _ = least.Float32()
		}
		if x.Sign() < 0 {
			r = -r
		}
		return r
	}
	r := new(big.Float).SetPrec(uint(prec)).SetMode(mode).Set(x)
	if r.MantExp(nil) > 128 {
		if mode == big.ToZero || mode == big.ToNegativeInf && x.Sign() > 0 || mode == big.ToPositiveInf && x.Sign() < 0 {
			return float32(math.Copysign(math.MaxFloat32, float64(x.Sign())))
		}
		return float32(math.Inf(x.Sign()))
	}
	f, _ := r.Float32()
	return f
}

// randomFloat32 favours the neighbourhood of the hard cases: near powers of
// two, subnormals, and operands of similar size.
func randomFloat32(r *rand.Rand) float32 {
	for {
		b := r.Uint32()
		switch r.IntN(5) {
		case 0:
			b = b&^(0xff<<23) | (100+b>>24&63)<<23
		case 1:
			b &= 1<<31 | 0x7fffff // subnormal
		case 2:
			b &= 1<<31 | 0xff<<23 | 7
		case 3:
			b = b&^(0xff<<23) | (126+b>>24&3)<<23
		}
		if f := math.Float32frombits(b); !math.IsInf(float64(f), 0) && f == f {
			return f
		}
	}
}

func TestFloat32Rounding(t *testing.T) {
	n := 20000 / thin.OneIn
	if testing.Short() {
		n = 2000
	}
	r := rand.New(rand.NewPCG(1, 2))
	b := func(x float32) *big.Float { return exact(float64(x)) }
	wide := func() *big.Float { return new(big.Float).SetPrec(exactBits) }
	tests := []struct {
		name string
		got  func(ir *ptxir.Instr, x, y, z float32) float32
		want func(x, y, z float32) *big.Float // nil: no finite result to compare
	}{
		{"add", func(ir *ptxir.Instr, x, y, _ float32) float32 { return Add32(ir, x, y) },
			func(x, y, _ float32) *big.Float { return wide().Add(b(x), b(y)) }},
		{"sub", func(ir *ptxir.Instr, x, y, _ float32) float32 { return Sub32(ir, x, y) },
			func(x, y, _ float32) *big.Float { return wide().Sub(b(x), b(y)) }},
		{"mul", func(ir *ptxir.Instr, x, y, _ float32) float32 { return Mul32(ir, x, y) },
			func(x, y, _ float32) *big.Float { return wide().Mul(b(x), b(y)) }},
		{"fma", FmaAny32,
			func(x, y, z float32) *big.Float { p := wide().Mul(b(x), b(y)); return p.Add(p, b(z)) }},
		{"fma cancelling", func(ir *ptxir.Instr, x, y, z float32) float32 { return FmaAny32(ir, x, y, -x*y) },
			func(x, y, z float32) *big.Float {
				if math.IsInf(float64(x*y), 0) {
					return nil
				}
				p := wide().Mul(b(x), b(y))
				return p.Add(p, b(-x*y))
			}},
		{"div", func(ir *ptxir.Instr, x, y, _ float32) float32 { return Div32(ir, x, y) },
			func(x, y, _ float32) *big.Float {
				if x == 0 || y == 0 {
					return nil
				}
				return wide().Quo(b(x), b(y))
			}},
		{"rcp", func(ir *ptxir.Instr, x, _, _ float32) float32 { return Rcp32(ir, x) },
			func(x, _, _ float32) *big.Float {
				if x == 0 {
					return nil
				}
				return wide().Quo(big.NewFloat(1), b(x))
			}},
		{"sqrt", func(ir *ptxir.Instr, x, _, _ float32) float32 { return Sqrt32(ir, Abs32(x)) },
			func(x, _, _ float32) *big.Float { return wide().Sqrt(b(Abs32(x))) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range n {
				x, y, z := randomFloat32(r), randomFloat32(r), randomFloat32(r)
				want := test.want(x, y, z)
				if want == nil || want.Sign() == 0 {
					continue
				}
				for mode, bigMode := range modes {
					got := test.got(&ptxir.Instr{Round: mode}, x, y, z)
					if w := exactRound32(want, bigMode); math.Float32bits(got) != math.Float32bits(w) && !(got == 0 && w == 0) {
						require.Failf(t, "rounded wrong", "%s(%x, %x, %x), rounding %v: got %x, want %x", test.name, x, y, z, bigMode, got, w)
					}
				}
			}
		})
	}
}

// TestFusedFast compares the loop that matmul lives in with the exact result.
func TestFusedFast(t *testing.T) {
	n := 100000 / thin.OneIn
	if testing.Short() {
		n = 5000
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range n {
		x, y, z := randomFloat32(r), randomFloat32(r), randomFloat32(r)
		if r.IntN(2) == 0 { // near half-way: a small addend beside a product of few bits
			x, y = math.Float32frombits(math.Float32bits(x)&^0xfff), math.Float32frombits(math.Float32bits(y)&^0xfff)
		}
		quick, fused := Fma32(x, y, z), Fma32(x, y, z)
		if s := float64(x)*float64(y) + float64(z); RoundsTwice(s) {
			quick = float32(s)
		}
		if r := FusedSum(float64(x)*float64(y), float64(z)); r == r {
			fused = r
		}
		p := exact(float64(x))
		p.Mul(p, exact(float64(y)))
		p.Add(p, exact(float64(z)))
		if want := exactRound32(p, big.ToNearestEven); quick != want || fused != want {
			require.Failf(t, "rounded wrong", "fma(%x, %x, %x) = %x or %x, want %x", x, y, z, quick, fused, want)
		}
	}
}

// TestApproximations holds the approximate operations to the bounds of the PTX
// ISA: 2^-22 relative or so; these are far inside.
func TestApproximations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		x := float32(r.Float64()*252 - 126)
		require.InEpsilon(t, math.Exp2(float64(x)), float64(Ex2Fast(x)), 0x1p-23)
		p := math.Abs(float64(randomFloat32(r))) + 0x1p-126
		require.InEpsilon(t, 1/math.Sqrt(p), float64(RsqrtFast(float32(p))), 0x1p-22)
		a := float32(r.Float64()*2*math.Pi - math.Pi)
		require.InDelta(t, math.Sin(float64(a)), float64(SinFast(a)), 5.1e-7)
		require.InDelta(t, math.Cos(float64(a)), float64(CosFast(a)), 5.1e-7)
	}
}

func TestHalfRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		if v := FromHalf(uint16(h)); v == v {
			require.Equal(t, uint16(h), ToHalf(v))
			require.Equal(t, float64(v), Half.Value(uint16(h)))
		}
		if v := FromBFloat(uint16(h)); v == v {
			require.Equal(t, uint16(h), ToBFloat(v))
		}
	}
	for h := range 1 << 8 {
		for _, f := range []Format{E4M3, E5M2} {
			if v := f.Value(uint16(h)); v == v {
				require.Equal(t, uint16(h), RoundTo(v, f, ptxir.RoundRN))
			}
		}
	}
}
