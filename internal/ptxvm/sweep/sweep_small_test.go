// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// inputs16 are all 16-bit numbers.
var inputs16 = &inputSet{n: 1 << 16}

// refHalf is a 16-bit format with its name.
type refHalf struct {
	name string
	f    *refFormat
}

var refHalves = []refHalf{{"f16", refF16}, {"bf16", refBF16}}

// flush flushes the bits of a subnormal to zero of its sign.
func (f *refFormat) flush(b uint64) uint64 {
	if sign := uint64(1) << (f.width - 1); b&^sign < 1<<f.frac {
		return b & sign
	}
	return b
}

// from16 wraps an instruction with a b16 operand H and a result R of a kind:
// "h" is 16 bits wide, "r" 32, "l" 64, and the name of a small integer type
// stands for a register of just its size.
func from16(name, kind string, want func(x uint32) uint64) sweep {
	s := sweep{name: name, want: want, body: ".reg .b16 h; cvt.u16.u32 h, X; "}
	switch kind {
	case "h":
		s.body += fmt.Sprintf(".reg .b16 r; %s r, h; cvt.u32.u16 Y, r;", name)
	case "r":
		s.body += name + " Y, h;"
	case "u8", "s8", "u16", "s16":
		s.body += fmt.Sprintf(".reg .b%s r; %s r, h; cvt.%c32.%s Y, r;", kind[1:], name, kind[0], kind)
	default:
		s.wide, s.body = true, s.body+name+" YL, h;"
	}
	return s
}

// signSweeps are abs and neg. PTX ISA, "Half Precision Floating Point
// Instructions".
func (h refHalf) signSweeps() []sweep {
	var list []sweep
	for _, flags := range flagSets("ftz") {
		if flags != nil && h.name == "bf16" {
			continue
		}
		for op, apply := range map[string]func(b uint64) uint64{
			"abs": func(b uint64) uint64 { return b &^ 0x8000 },
			"neg": func(b uint64) uint64 { return b ^ 0x8000 },
		} {
			name := mnemonic(op, strings.Join(flags, "."), h.name)
			list = append(list, h.f.anyNaN(from16(name, "h", func(x uint32) uint64 {
				if flags != nil {
					return apply(h.f.flush(uint64(x)))
				}
				return apply(uint64(x))
			})))
		}
	}
	return list
}

// conversions are those from the format to every type.
func (h refHalf) conversions() []sweep {
	var list []sweep
	number := func(x uint32) refNumber { return h.f.number(uint64(x)) }
	for _, m := range refModes {
		for _, i := range refIntegers {
			kind := map[bool]string{true: "l", false: "r"}[i.width == 64]
			if h.name == "bf16" && i.width < 32 {
				kind = i.name // of bf16, no register may be wider
			}
			list = append(list, from16(mnemonic("cvt", m.integral, i.name, h.name), kind, func(x uint32) uint64 {
				return i.extended(number(x).integer(i.width, i.signed, m.mode, i.width == 64))
			}))
		}
		list = append(list, from16(mnemonic("cvt", m.integral, h.name, h.name), "h", func(x uint32) uint64 {
			return h.f.round(number(x).integral(m.mode), ptxir.RoundRN)
		}))
		for _, other := range refHalves {
			if other.name != h.name {
				list = append(list, from16(mnemonic("cvt", m.name, other.name, h.name), "h", func(x uint32) uint64 {
					return other.f.round(number(x), m.mode)
				}))
			}
		}
	}
	for _, names := range flagSets("ftz", "sat") {
		name, flags := mnemonic("cvt", strings.Join(names, "."), "f32", h.name), flagsOf(names)
		if h.name == "bf16" && flags.sat {
			continue
		}
		list = append(list, refF32.anyNaN(from16(name, "r", func(x uint32) uint64 {
			b := refF32.convert(number(x), flags, ptxir.RoundRN)
			if flags.ftz {
				return refFlush(b)
			}
			return b
		})))
	}
	return append(list, refF64.anyNaN(from16("cvt.f64."+h.name, "l", func(x uint32) uint64 { return refF64.round(number(x), ptxir.RoundRN) })))
}

func TestSweepHalves(t *testing.T) {
	for _, h := range refHalves {
		sweepAll(t, inputs16, append(h.signSweeps(), h.conversions()...))
	}
}

// fp8Sweeps cover every pair of 8-bit numbers, and every f16 beside its
// complement.
func fp8Sweeps() []sweep {
	var list []sweep
	for _, p := range []struct {
		name string
		f    *refFormat
	}{{"e4m3x2", refE4M3}, {"e5m2x2", refE5M2}} {
		for _, names := range flagSets("relu") {
			name, flags := mnemonic("cvt.rn", strings.Join(names, "."), "f16x2", p.name), flagsOf(names)
			list = append(list, from16(name, "r", func(x uint32) uint64 {
				low := refF16.convert(p.f.number(uint64(x&255)), flags, ptxir.RoundRN)
				return low | refF16.convert(p.f.number(uint64(x>>8)), flags, ptxir.RoundRN)<<16
			}))
			finite := flags
			finite.satfinite = true
			name = mnemonic("cvt.rn.satfinite", strings.Join(names, "."), p.name, "f16x2")
			list = append(list, sweep{
				name: name,
				body: ".reg .b32 p; .reg .b16 r; mad.lo.u32 p, X, 0xffff0001, 0xffff0000; " + name + " r, p; cvt.u32.u16 Y, r;",
				want: func(x uint32) uint64 {
					low := p.f.convert(refF16.number(uint64(x)), finite, ptxir.RoundRN)
					return low | p.f.convert(refF16.number(uint64(x^0xffff)), finite, ptxir.RoundRN)<<8
				},
			})
		}
	}
	return list
}

func TestSweepFP8(t *testing.T) { sweepAll(t, inputs16, fp8Sweeps()) }

// smallIntegerSweeps are the conversions from integers of 8 and 16 bits, and
// the 16-bit operations with one operand.
func smallIntegerSweeps() []sweep {
	var list []sweep
	for _, i := range refIntegers[:4] {
		number := func(x uint32) refNumber { return i.number(uint64(x)) }
		for _, m := range refModes {
			for _, h := range refHalves {
				s := from16(mnemonic("cvt", m.name, h.name, i.name), "h", func(x uint32) uint64 { return h.f.round(number(x), m.mode) })
				if h.name == "bf16" && i.width == 8 {
					s.body = strings.ReplaceAll(s.body, "16 h; cvt.u16.u32 h", "8 h; cvt.u8.u32 h")
				}
				list = append(list, s)
			}
			list = append(list,
				from16(mnemonic("cvt", m.name, "f32", i.name), "r", func(x uint32) uint64 { return refF32.round(number(x), m.mode) }),
				from16(mnemonic("cvt", m.name, "f64", i.name), "l", func(x uint32) uint64 { return refF64.round(number(x), m.mode) }))
		}
		for _, to := range refIntegers {
			list = append(list, i.toInteger(to, false))
			if to.width <= i.width && to.signed != i.signed || to.width < i.width || i.signed && !to.signed {
				list = append(list, i.toInteger(to, true))
			}
		}
	}
	for name, op := range map[string]func(x uint16) uint16{
		"neg.s16":  func(x uint16) uint16 { return -x },
		"abs.s16":  func(x uint16) uint16 { return uint16(max(int32(int16(x)), -int32(int16(x)))) },
		"not.b16":  func(x uint16) uint16 { return ^x },
		"cnot.b16": func(x uint16) uint16 { return map[bool]uint16{true: 1, false: 0}[x == 0] },
	} {
		list = append(list, from16(name, "h", func(x uint32) uint64 { return uint64(op(uint16(x))) }))
	}
	return list
}

func TestSweepSmallIntegers(t *testing.T) { sweepAll(t, inputs16, smallIntegerSweeps()) }

// toInteger is cvt between integers: the low bits, or clamped.
func (i refInteger) toInteger(to refInteger, sat bool) sweep {
	name := mnemonic("cvt", map[bool]string{true: "sat"}[sat], to.name, i.name)
	want := func(x uint32) uint64 {
		v := int64(uint64(x)<<(64-i.width)) >> (64 - i.width)
		if !i.signed {
			v = int64(uint64(x) << (64 - i.width) >> (64 - i.width))
		}
		if sat {
			return to.extended(refNumber{m: uint64(max(v, -v)), neg: v < 0}.integer(to.width, to.signed, ptxir.RoundRZ, false))
		}
		if to.signed && to.width < 32 {
			return uint64(uint32(v << (64 - to.width) >> (64 - to.width)))
		}
		return uint64(v) << (64 - to.width) >> (64 - to.width)
	}
	if i.width == 32 {
		return sweep{name: name, body: fmt.Sprintf("%s %s, X;", name, to.result()), wide: to.width == 64, want: want}
	}
	return from16(name, map[bool]string{true: "l", false: "r"}[to.width == 64], want)
}
