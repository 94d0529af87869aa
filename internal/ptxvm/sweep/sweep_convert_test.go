// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// convert is the reference of every conversion between floats: flush, saturate,
// round, and clamp what is negative or too large. PTX ISA, "Data Movement and
// Conversion Instructions: cvt".
func (f *refFormat) convert(x refNumber, flags refFlags, mode ptxir.Round) uint64 {
	if flags.sat {
		x = x.saturated()
	}
	b := f.round(x, mode)
	sign := uint64(1) << (f.width - 1)
	if flags.satfinite && !x.nan() && b&^sign > f.top {
		b = b&sign | f.top
	}
	if flags.relu && !x.nan() && b&sign != 0 {
		b = 0
	}
	return b
}

// refFlags are modifiers, looked up once for all inputs.
type refFlags struct{ ftz, sat, satfinite, relu bool }

func flagsOf(names []string) refFlags {
	return refFlags{has(names, "ftz"), has(names, "sat"), has(names, "satfinite"), has(names, "relu")}
}

// operand32 is an f32 operand, flushed if the flags say so.
func operand32(x uint32, flags refFlags) refNumber {
	if flags.ftz {
		return refF32.flushed(number32(x))
	}
	return number32(x)
}

// betweenFloats32 are the conversions from f32 to f32 and f64.
func betweenFloats32() []sweep {
	var list []sweep
	for _, flags := range flagSets("ftz", "sat") {
		list = append(list, wideSweep(flags), sameSweep(flags, "", nil))
		for _, m := range refModes {
			list = append(list, sameSweep(flags, m.integral, func(x refNumber) refNumber { return x.integral(m.mode) }))
		}
	}
	return list
}

func sameSweep(names []string, round string, integral func(x refNumber) refNumber) sweep {
	name, flags := mnemonic("cvt", round, strings.Join(names, "."), "f32.f32"), flagsOf(names)
	return refF32.anyNaN(sweep{name: name, body: name + " Y, X;", want: func(x uint32) uint64 {
		n := operand32(x, flags)
		if integral != nil {
			n = integral(n)
		}
		return refF32.convert(n, flags, ptxir.RoundRN)
	}})
}

func wideSweep(names []string) sweep {
	name, flags := mnemonic("cvt", strings.Join(names, "."), "f64.f32"), flagsOf(names)
	return refF64.anyNaN(sweep{name: name, body: name + " YL, X;", wide: true, want: func(x uint32) uint64 {
		return refF64.convert(operand32(x, flags), flags, ptxir.RoundRN)
	}})
}

// narrow is a conversion of one f32 to a smaller format. On the way to f16 .ftz
// does nothing, as on an H200.
func narrow(to string, f *refFormat, round string, mode ptxir.Round, names []string) sweep {
	name, flags := mnemonic("cvt", round, strings.Join(names, "."), to, "f32"), flagsOf(names)
	s := sweep{name: name, body: fmt.Sprintf(".reg .b16 h; %s h, X; cvt.u32.u16 Y, h;", name)}
	shift := 0
	if to == "tf32" {
		s.body, shift = name+" Y, X;", 13
	}
	s.want = func(x uint32) uint64 { return f.convert(number32(x), flags, mode) << shift }
	return s
}

// narrowSweeps are the conversions from one f32 to f16, bf16 and tf32.
func narrowSweeps() []sweep {
	var list []sweep
	for _, m := range refModes {
		for _, flags := range flagSets("ftz", "sat") {
			list = append(list, narrow("f16", refF16, m.name, m.mode, flags))
		}
		list = append(list, narrow("bf16", refBF16, m.name, m.mode, nil))
	}
	for _, m := range refModes[:2] { // rn and rz
		for _, flags := range flagSets("satfinite", "relu") {
			if flags != nil {
				list = append(list, narrow("f16", refF16, m.name, m.mode, flags), narrow("bf16", refBF16, m.name, m.mode, flags))
			}
			list = append(list, narrow("tf32", refTF32, m.name, m.mode, flags))
		}
	}
	for _, flags := range flagSets("satfinite") {
		list = append(list, refF32.anyNaN(narrow("tf32", refTF32, "rna", ptxir.RoundRNA, flags)))
	}
	return list
}

// pairSweeps are the conversions of two f32 to a pair: the input is the low one,
// and the high one is the input with its halves exchanged, so that over all
// inputs both see everything.
func pairSweeps() []sweep {
	var list []sweep
	for _, p := range []struct {
		to  string
		f   *refFormat
		fp8 bool
	}{{"f16x2", refF16, false}, {"bf16x2", refBF16, false}, {"e4m3x2", refE4M3, true}, {"e5m2x2", refE5M2, true}} {
		for _, m := range refModes[:2] {
			for _, flags := range flagSets("satfinite", "relu") {
				if p.fp8 && (m.name != "rn" || !has(flags, "satfinite")) {
					continue // .rn and .satfinite are mandatory there
				}
				list = append(list, pairSweep(p.to, p.f, p.fp8, m.name, m.mode, flags))
			}
		}
	}
	return list
}

func pairSweep(to string, f *refFormat, fp8 bool, round string, mode ptxir.Round, names []string) sweep {
	name, flags := mnemonic("cvt", round, strings.Join(names, "."), to, "f32"), flagsOf(names)
	convert := name + " Y, h, X;"
	if fp8 {
		convert = ".reg .b16 p; " + name + " p, h, X; cvt.u32.u16 Y, p;"
	}
	return sweep{
		name: name,
		body: ".reg .b32 h; prmt.b32 h, X, X, 0x1032; " + convert,
		want: func(x uint32) uint64 {
			low := f.convert(number32(x), flags, mode)
			high := f.convert(number32(x>>16|x<<16), flags, mode)
			return high<<f.width | low
		},
	}
}

func TestSweepBetweenFloats(t *testing.T) { sweepAll(t, inputs32(), betweenFloats32()) }

func TestSweepToSmall(t *testing.T) { sweepAll(t, inputs32(), narrowSweeps()) }

func TestSweepToPairs(t *testing.T) { sweepAll(t, inputs32(), pairSweeps()) }
