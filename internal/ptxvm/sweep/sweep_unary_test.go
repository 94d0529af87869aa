// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// refModes are the rounding modifiers by name.
var refModes = []struct {
	name, integral string
	mode           ptxir.Round
}{
	{"rn", "rni", ptxir.RoundRN}, {"rz", "rzi", ptxir.RoundRZ}, {"rm", "rmi", ptxir.RoundRM}, {"rp", "rpi", ptxir.RoundRP},
}

// flags spells out every combination of modifiers: each is a list of those that
// a name has, in order.
func flagSets(flags ...string) [][]string {
	sets := [][]string{nil}
	for _, f := range flags {
		for _, s := range sets {
			sets = append(sets, append(append([]string(nil), s...), f))
		}
	}
	return sets
}

func has(flags []string, flag string) bool {
	for _, f := range flags {
		if f == flag {
			return true
		}
	}
	return false
}

// mnemonic joins the parts of a name that are there.
func mnemonic(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ".")
}

// unary32 is a sweep of op.f32 from f32, whose flags may be .ftz.
func unary32(op string, flags []string, mode ptxir.Round, ref func(x refNumber) refNumber) sweep {
	name := mnemonic(op, strings.Join(flags, "."), "f32")
	ftz := has(flags, "ftz")
	return sweep{
		name: name,
		body: name + " Y, X;",
		want: func(x uint32) uint64 {
			if ftz {
				return refF32.roundFlushed(ref(refF32.flushed(number32(x))), mode)
			}
			return refF32.round(ref(number32(x)), mode)
		},
	}
}

// anyNaN accepts every NaN of the result's format where the sweep wants one: PTX
// leaves open which.
func (f *refFormat) anyNaN(s sweep) sweep {
	want := s.want
	s.fits = func(x uint32, got uint64) bool {
		w := want(x)
		return got == w || f.isNaN(w) && f.isNaN(got)
	}
	return s
}

// unarySweeps are the exact operations on one f32. PTX ISA, "Floating Point
// Instructions": abs, neg, rcp, sqrt, testp.
func unarySweeps() []sweep {
	var list []sweep
	for _, flags := range flagSets("ftz") {
		list = append(list,
			refF32.anyNaN(unary32("abs", flags, ptxir.RoundRN, func(x refNumber) refNumber { x.neg = false; return x })),
			refF32.anyNaN(unary32("neg", flags, ptxir.RoundRN, func(x refNumber) refNumber { x.neg = !x.neg; return x })))
		for _, m := range refModes {
			list = append(list,
				unary32("sqrt."+m.name, flags, m.mode, refNumber.root),
				unary32("rcp."+m.name, flags, m.mode, refNumber.reciprocal))
		}
	}
	for name, holds := range map[string]func(x refNumber) bool{
		"finite":     func(x refNumber) bool { return !x.inf() && !x.nan() },
		"infinite":   func(x refNumber) bool { return x.inf() },
		"number":     func(x refNumber) bool { return !x.nan() },
		"notanumber": func(x refNumber) bool { return x.nan() },
		"normal":     func(x refNumber) bool { return !x.inf() && !x.nan() && (x.m>>23 != 0 || x.m == 0) }, // zeros count,
		"subnormal":  func(x refNumber) bool { return !x.inf() && !x.nan() && x.m != 0 && x.m>>23 == 0 },
	} {
		list = append(list, sweep{
			name: "testp." + name + ".f32",
			body: ".reg .pred p; testp." + name + ".f32 p, X; selp.b32 Y, 1, 0, p;",
			want: func(x uint32) uint64 {
				if holds(number32(x)) {
					return 1
				}
				return 0
			},
		})
	}
	return list
}

// root is the square root.
func (x refNumber) root() refNumber {
	switch {
	case x.nan() || x.m == 0 && !x.inf() || x.inf() && !x.neg:
		return x
	case x.neg:
		return refNumber{class: refNaN}
	}
	return x.squareRoot()
}

// reciprocal is one over x.
func (x refNumber) reciprocal() refNumber {
	switch {
	case x.nan():
		return x
	case x.inf():
		return refNumber{neg: x.neg}
	case x.m == 0:
		return refNumber{neg: x.neg, class: refInf}
	}
	return x.inverse()
}

func TestSweepUnary(t *testing.T) { sweepAll(t, inputs32(), unarySweeps()) }

// refInteger is an integer type.
type refInteger struct {
	name   string
	width  int
	signed bool
}

var refIntegers = []refInteger{
	{"u8", 8, false}, {"s8", 8, true}, {"u16", 16, false}, {"s16", 16, true},
	{"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true},
}

// extended is a value of the type as a register of 32 or 64 bits holds it.
func (i refInteger) extended(v uint64) uint64 {
	if i.signed && i.width < 32 {
		v = uint64(int64(v<<(64-i.width)) >> (64 - i.width))
		v &= 1<<32 - 1
	}
	return v
}

// number is the value of the type's bits.
func (i refInteger) number(v uint64) refNumber {
	v <<= 64 - i.width
	if i.signed && int64(v) < 0 {
		return refNumber{m: uint64(-int64(v)) >> (64 - i.width), neg: true}
	}
	return refNumber{m: v >> (64 - i.width)}
}

// result is Y or YL.
func (i refInteger) result() string {
	if i.width == 64 {
		return "YL"
	}
	return "Y"
}

// toIntegerSweeps convert f32 to integers. .sat says what happens anyway.
func toIntegerSweeps(flags []string) []sweep {
	var list []sweep
	ftz := has(flags, "ftz")
	for _, i := range refIntegers {
		for _, m := range refModes {
			name := mnemonic("cvt", m.integral, strings.Join(flags, "."), i.name, "f32")
			list = append(list, sweep{
				name: name,
				body: fmt.Sprintf("%s %s, X;", name, i.result()),
				wide: i.width == 64,
				want: func(x uint32) uint64 {
					n := number32(x)
					if ftz {
						n = refF32.flushed(n)
					}
					return i.extended(n.integer(i.width, i.signed, m.mode, i.width == 64))
				},
			})
		}
	}
	return list
}

func TestSweepToInteger(t *testing.T) { sweepAll(t, inputs32(), toIntegerSweeps(nil)) }

// TestSweepToIntegerFlags has the same conversions with the modifiers that
// matter to subnormals only, or not at all. It is a separate test because its
// sweeps are three quarters of all.
func TestSweepToIntegerFlags(t *testing.T) {
	for _, flags := range flagSets("ftz", "sat")[1:] {
		t.Run(strings.Join(flags, "."), func(t *testing.T) { sweepAll(t, inputs32(), toIntegerSweeps(flags)) })
	}
}

// fromIntegerSweeps convert 32-bit integers to f32, f64 and the 16-bit formats.
func fromIntegerSweeps() []sweep {
	var list []sweep
	for _, i := range refIntegers[4:6] {
		for _, m := range refModes {
			for _, sat := range []string{"", "sat"} {
				list = append(list, conversionSweep("f32", refF32, m.name, sat, i.name, i.number, m.mode))
			}
			list = append(list,
				conversionSweep("f64", refF64, m.name, "", i.name, i.number, m.mode),
				conversionSweep("f16", refF16, m.name, "", i.name, i.number, m.mode),
				conversionSweep("bf16", refBF16, m.name, "", i.name, i.number, m.mode))
		}
	}
	return list
}

// conversionSweep is cvt to a float, whose only flag may be .sat.
func conversionSweep(to string, f *refFormat, round, sat, from string, number func(uint64) refNumber, mode ptxir.Round) sweep {
	name := mnemonic("cvt", round, sat, to, from)
	s := sweep{name: name, body: name + " Y, X;", want: func(x uint32) uint64 {
		n := number(uint64(x))
		if sat != "" {
			n = n.saturated()
		}
		return f.round(n, mode)
	}}
	switch f.width {
	case 64:
		s.wide, s.body = true, name+" YL, X;"
	case 16:
		s.body = fmt.Sprintf(".reg .b16 h; %s h, X; cvt.u32.u16 Y, h;", name)
	}
	return s
}

// saturated clamps to [0, 1]: NaN and -0 are +0.
func (x refNumber) saturated() refNumber {
	switch {
	case x.nan() || x.neg || x.m == 0 && !x.inf():
		return refNumber{}
	case x.inf() || x.e+bits.Len64(x.m) > 0:
		return refNumber{m: 1}
	}
	return x
}

func TestSweepFromInteger(t *testing.T) { sweepAll(t, inputs32(), fromIntegerSweeps()) }
