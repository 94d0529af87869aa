// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// doublePrec holds every sum and product of f64 exactly, and quotients and roots
// to far more bits than could look like a half-way case.
const doublePrec = 6400

func (x refNumber) bigDouble() *big.Float {
	f := new(big.Float).SetPrec(doublePrec).SetUint64(x.m)
	f.SetMantExp(f, x.e)
	if x.neg {
		f.Neg(f)
	}
	return f
}

// double is an operation of f64 by math/big. Zeros and what is not finite
// behave as in the other formats.
func double(op string, o operands, mode ptxir.Round) uint64 {
	a, b, c := refF64.number(o[0]), refF64.number(o[1]), refF64.number(o[2])
	switch {
	case op == "rcp":
		a, b, op = refF64.number(0x3ff<<52), a, "div"
	case op == "sqrt" && (a.class != refExact || a.m == 0 || a.neg):
		return refF64.round(a.root(), mode)
	}
	special := a.class != refExact || b.class != refExact || op == "fma" && c.class != refExact
	zero := a.m == 0 || b.m == 0
	if op != "sqrt" && (special || zero && (op == "mul" || op == "div" || op == "fma") || zero && a.m == b.m) {
		return refF64.round(arithmetic(op, a, b, c, mode), mode)
	}
	r := new(big.Float).SetPrec(doublePrec)
	switch x, y := a.bigDouble(), b.bigDouble(); op {
	case "add":
		r.Add(x, y)
	case "sub":
		r.Sub(x, y)
	case "mul":
		r.Mul(x, y)
	case "div":
		r.Quo(x, y)
	case "sqrt":
		r.Sqrt(x)
	default:
		r.Add(r.Mul(x, y), c.bigDouble())
	}
	if r.Sign() == 0 {
		return refF64.round(refNumber{neg: mode == ptxir.RoundRM}, mode)
	}
	return refF64.bigRound(r, mode)
}

func TestOperandsF64(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	edges := append(refF64.edges(), 0x3fdfffffffffffff, 0x7fdfffffffffffff)
	list := crossed(edges[:13], operandCount()/4, func() operands { return nearDouble(r) })
	rig := newOperandRig(t, list)
	for _, m := range refModes {
		for op, body := range map[string]string{
			"add": "AL, BL", "sub": "AL, BL", "mul": "AL, BL", "div": "AL, BL", "fma": "AL, BL, CL", "rcp": "AL", "sqrt": "AL",
		} {
			name := mnemonic(op, m.name, "f64")
			want := func(o operands) uint64 { return double(op, o, m.mode) }
			rig.runAll(t, []operation{{
				name: name, body: name + " YL, " + body + ";", wide: true, want: want,
				fits: func(o operands, got uint64) bool { return refF64.isNaN(got) && refF64.isNaN(want(o)) },
			}})
		}
	}
}

// nearDouble are operands whose sums and products are near half-way cases, or
// near each other.
func nearDouble(r *rand.Rand) operands {
	o := refF64.near(r)
	switch r.IntN(3) {
	case 0: // few bits, so that products are exact or half-way
		o[0], o[1] = o[0]&^(1<<26-1), o[1]&^(1<<25-1)
	case 1: // one operand far below the other's last place
		o[1] = o[1]&^(0x7ff<<52) | (o[0]&(0x7ff<<52) - min(o[0]&(0x7ff<<52), 53<<52))
	}
	return o
}

// convertDouble is a conversion from f64.
func convertDouble(name string, to *refFormat, i refInteger, mode ptxir.Round) operation {
	p := operation{name: name, body: name + " Y, AL;"}
	if to == nil {
		p.want = func(o operands) uint64 { return i.extended(refF64.number(o[0]).integer(i.width, i.signed, mode, true)) }
		if i.width == 64 {
			p.wide, p.body = true, name+" YL, AL;"
		}
		return p
	}
	p.want = func(o operands) uint64 { return to.round(refF64.number(o[0]), mode) }
	p.fits = func(o operands, got uint64) bool { return refF64.number(o[0]).nan() && to.isNaN(got) }
	if to.width == 16 {
		p.body = ".reg .b16 h; " + name + " h, AL; cvt.u32.u16 Y, h;"
	}
	return p
}

func TestOperandsFromF64(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	edges := refF64.edges()
	for _, f := range []*refFormat{refF32, refF16, refBF16} { // their edges and what rounds there
		for _, b := range f.edges() {
			if x := f.number(b); x.class == refExact {
				v := refF64.round(x, ptxir.RoundRN)
				edges = append(edges, v, v+1, v-1, v+1<<(51-f.frac), v+1<<(51-f.frac)-1, v-1<<(50-f.frac))
			}
		}
	}
	for k := range uint64(66) { // powers of two, halves beside them
		edges = append(edges, (1023+k)<<52, (1023+k)<<52+1, (1023+k)<<52-1, (1023+k)<<52|1<<63, (1023+k)<<52-1|1<<63, (1023+k)<<52+1<<(52-min(k+1, 52)))
	}
	var list []operands
	for _, e := range edges {
		list = append(list, operands{e})
	}
	for range operandCount() {
		list = append(list, operands{r.Uint64()}, operands{r.Uint64()&^(0x7ff<<52) | (1000+r.Uint64N(90))<<52})
	}
	var ops []operation
	for _, m := range refModes {
		ops = append(ops, convertDouble(mnemonic("cvt", m.name, "f32.f64"), refF32, refInteger{}, m.mode),
			convertDouble(mnemonic("cvt", m.name, "f16.f64"), refF16, refInteger{}, m.mode),
			convertDouble(mnemonic("cvt", m.name, "bf16.f64"), refBF16, refInteger{}, m.mode))
		for _, i := range refIntegers {
			ops = append(ops, convertDouble(mnemonic("cvt", m.integral, i.name, "f64"), nil, i, m.mode))
		}
		ops = append(ops, fromLong(m.name, m.mode)...)
	}
	newOperandRig(t, list).runAll(t, ops)
}

// fromLong are the conversions from 64-bit integers.
func fromLong(round string, mode ptxir.Round) []operation {
	var ops []operation
	for _, i := range refIntegers[6:] {
		for to, f := range map[string]*refFormat{"f64": refF64, "f32": refF32, "f16": refF16, "bf16": refBF16} {
			name := mnemonic("cvt", round, to, i.name)
			p := operation{name: name, body: name + " Y, AL;", want: func(o operands) uint64 { return f.round(i.number(o[0]), mode) }}
			switch f.width {
			case 64:
				p.wide, p.body = true, name+" YL, AL;"
			case 16:
				p.body = ".reg .b16 h; " + name + " h, AL; cvt.u32.u16 Y, h;"
			}
			ops = append(ops, p)
		}
	}
	return ops
}
