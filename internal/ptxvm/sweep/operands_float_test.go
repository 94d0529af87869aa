// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// times is the product of numbers whose integers have 31 bits at most.
func (x refNumber) times(y refNumber) refNumber {
	neg := x.neg != y.neg
	switch {
	case x.nan() || y.nan() || x.inf() && y.m == 0 && !y.inf() || y.inf() && x.m == 0 && !x.inf():
		return refNumber{class: refNaN}
	case x.inf() || y.inf():
		return refNumber{neg: neg, class: refInf}
	}
	return refNumber{m: x.m * y.m, e: x.e + y.e, neg: neg}
}

// over is the quotient of numbers whose integers have 31 bits at most.
func (x refNumber) over(y refNumber) refNumber {
	neg := x.neg != y.neg
	switch {
	case x.nan() || y.nan() || x.inf() && y.inf() || x.m == 0 && y.m == 0 && !x.inf() && !y.inf():
		return refNumber{class: refNaN}
	case x.inf() || y.m == 0 && !y.inf():
		return refNumber{neg: neg, class: refInf}
	case y.inf() || x.m == 0:
		return refNumber{neg: neg}
	}
	shift := bits.LeadingZeros64(x.m)
	m := x.m << shift
	return refNumber{m: m / y.m, e: x.e - shift - y.e, neg: neg, class: leaving(m % y.m)}
}

// plus is the sum of numbers whose integers have 48 bits at most. An exact zero
// takes its sign from the mode.
func (x refNumber) plus(y refNumber, mode ptxir.Round) refNumber {
	switch {
	case x.nan() || y.nan() || x.inf() && y.inf() && x.neg != y.neg:
		return refNumber{class: refNaN}
	case x.inf():
		return x
	case y.inf():
		return y
	case x.m == 0 && y.m == 0:
		return refNumber{neg: x.neg && y.neg || x.neg != y.neg && mode == ptxir.RoundRM}
	case x.m == 0:
		return y
	case y.m == 0:
		return x
	}
	if x.e+bits.Len64(x.m) < y.e+bits.Len64(y.m) {
		x, y = y, x
	}
	shift := bits.LeadingZeros64(x.m) - 2 // room for a carry
	x.m, x.e = x.m<<shift, x.e-shift
	return x.plusSmaller(y, mode)
}

// plusSmaller adds y, which is not of a higher power of two, to x with 62 bits.
// What is lost of y lies at least 13 bits below what the sum keeps.
func (x refNumber) plusSmaller(y refNumber, mode ptxir.Round) refNumber {
	drop := x.e - y.e
	var lost uint64
	switch {
	case drop <= 0:
		y.m <<= -drop
	case drop < 64:
		y.m, lost = y.m>>drop, y.m&(1<<drop-1)
	default:
		y.m, lost = 0, y.m
	}
	if x.neg == y.neg {
		return refNumber{m: x.m + y.m, e: x.e, neg: x.neg, class: leaving(lost)}
	}
	if lost != 0 {
		y.m++ // less than that: the rest goes the other way
	}
	if x.m == y.m && lost == 0 {
		return refNumber{neg: mode == ptxir.RoundRM}
	}
	if x.m < y.m {
		return refNumber{m: y.m - x.m, e: x.e, neg: y.neg, class: leaving(lost)}
	}
	return refNumber{m: x.m - y.m, e: x.e, neg: x.neg, class: leaving(lost)}
}

// arithmetic is add, sub, mul, fma or div of a format's numbers.
func arithmetic(op string, a, b, c refNumber, mode ptxir.Round) refNumber {
	switch op {
	case "add":
		return a.plus(b, mode)
	case "sub":
		b.neg = !b.neg
		return a.plus(b, mode)
	case "mul":
		return a.times(b)
	case "div":
		return a.over(b)
	}
	return a.times(b).plus(c, mode)
}

// apply computes an operation as its flags say.
func (f *refFormat) apply(op string, o operands, flags refFlags, mode ptxir.Round) uint64 {
	mask := uint64(1)<<f.width - 1
	a, b, c := f.number(o[0]&mask), f.number(o[1]&mask), f.number(o[2]&mask)
	if flags.ftz {
		a, b, c = f.flushed(a), f.flushed(b), f.flushed(c)
	}
	r := arithmetic(op, a, b, c, mode)
	if flags.sat {
		r = r.saturated()
	}
	if flags.ftz {
		return f.roundFlushed(r, mode)
	}
	return f.convert(r, refFlags{relu: flags.relu}, mode)
}

// edges are a format's zeros, ends of ranges, numbers around one, and NaNs.
func (f *refFormat) edges() []uint64 {
	one := uint64(1-f.least) << f.frac
	list := []uint64{0, 1, 1<<f.frac - 1, 1 << f.frac, 1<<f.frac + 1, one - 1, one, one + 1, one + 1<<(f.frac-1), f.top - 1, f.top, f.inf, f.nan}
	for _, v := range list {
		list = append(list, v|1<<(f.width-1))
	}
	return list
}

// near are random operands whose sums and products fall near each other and
// near the ends of the range.
func (f *refFormat) near(r *rand.Rand) operands {
	one := func() uint64 {
		b := r.Uint64() >> (64 - f.width)
		switch r.IntN(5) {
		case 0:
			b &^= 1<<r.IntN(f.frac+1) - 1
		case 1:
			b |= 1<<r.IntN(f.frac+1) - 1
		case 2:
			b &= 1<<(f.width-1) | 1<<f.frac - 1
		}
		return b
	}
	a, b, c := one(), one(), one()
	switch r.IntN(3) {
	case 0: // a and b of similar size
		b = b&(1<<f.frac-1) | a&^(1<<f.frac-1) + uint64(r.IntN(3))<<f.frac
	case 1: // c of the size of a·b
		p := f.round(f.number(a).times(f.number(b)), ptxir.RoundRN)
		c = (p ^ 1<<(f.width-1)) + uint64(r.IntN(5)) - 2
	}
	mask := uint64(1)<<f.width - 1
	return operands{a & mask, b & mask, c & mask}
}

// arithmeticOperations are add, sub, mul, fma and div of f32 in every form.
func arithmeticOperations() []operation {
	var list []operation
	for _, op := range []string{"add", "sub", "mul", "fma", "div"} {
		for _, m := range refModes {
			for _, names := range flagSets("ftz", "sat") {
				flags := flagsOf(names)
				if op == "div" && flags.sat {
					continue
				}
				name := mnemonic(op, m.name, strings.Join(names, "."), "f32")
				body := name + " Y, A, B;"
				if op == "fma" {
					body = name + " Y, A, B, C;"
				}
				list = append(list, operation{name: name, body: body, want: func(o operands) uint64 { return refF32.apply(op, o, flags, m.mode) }})
			}
		}
	}
	return list
}

func TestOperandsF32(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	list := crossed(refF32.edges(), operandCount(), func() operands { return refF32.near(r) })
	newOperandRig(t, append(list, nearLeastNormal()...)).runAll(t, arithmeticOperations())
}

// operandCount is how many random operands a test takes.
func operandCount() int {
	switch {
	case *sweepFlag == "full":
		return 200000
	case testing.Short():
		return 1000
	}
	return 5000
}

// nearLeastNormal are f32 whose product is 2^-126 less a little: by how little
// decides whether .ftz flushes it.
func nearLeastNormal() []operands {
	var list []operands
	for i := range uint64(2000) {
		a := 0x3f000001 + i*4001 // a in (0.5, 1)
		x := refF32.number(a)
		y := refF32.round(x.inverse(), ptxir.RoundRZ) - 126<<23 // just below 2^-126/a
		list = append(list, operands{a, y, 0}, operands{a | 1<<31, y, 0}, operands{a, y + 1, 0})
	}
	return list
}

// halfOperations are the arithmetic of the 16-bit formats.
func halfOperations(h refHalf) []operation {
	var list []operation
	for _, op := range []string{"add", "sub", "mul", "fma"} {
		for _, names := range flagSets("ftz", "sat", "relu") {
			flags := flagsOf(names)
			if h.name == "bf16" && (flags.ftz || flags.sat) || flags.relu && (op != "fma" || flags.sat) {
				continue
			}
			form := mnemonic(op, "rn", strings.Join(names, "."), h.name)
			last := ""
			if op == "fma" {
				last = ", C"
			}
			ref := func(o operands) uint64 {
				v := h.f.apply(op, o, flags, ptxir.RoundRN)
				if flags.relu && flags.ftz && v>>15 != 0 && !h.f.isNaN(v) {
					return 0
				}
				return v
			}
			list = append(list,
				operation{name: form, want: func(o operands) uint64 { return ref(low16(o)) },
					body: fmt.Sprintf(".reg .b16 p, q, r; mov.b32 {p, r}, A; mov.b32 {q, r}, B; mov.b32 {r, _}, C; %s p, p, q%s; cvt.u32.u16 Y, p;", form, strings.ToLower(strings.Replace(last, "C", "r", 1)))},
				operation{name: form + "x2", body: form + "x2 Y, A, B" + last + ";", want: func(o operands) uint64 {
					return ref(low16(o)) | ref(operands{o[0] >> 16 & 0xffff, o[1] >> 16 & 0xffff, o[2] >> 16 & 0xffff})<<16
				}})
		}
	}
	return list
}

func low16(o operands) operands { return operands{o[0] & 0xffff, o[1] & 0xffff, o[2] & 0xffff} }

func TestOperandsHalves(t *testing.T) {
	for _, h := range refHalves {
		r := rand.New(rand.NewPCG(23, 24))
		list := crossed(h.f.edges(), operandCount(), func() operands {
			low, high := h.f.near(r), h.f.near(r)
			return operands{low[0] | high[0]<<16, low[1] | high[1]<<16, low[2] | high[2]<<16}
		})
		newOperandRig(t, list).runAll(t, halfOperations(h))
	}
}
