// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// The 16-bit formats f16 (1+5+10 bits) and bf16 (1+8+7 bits). Sums and products
// are computed in f64, rounded to odd where inexact, and rounded once to the
// format. PTX ISA, "Half Precision Floating Point Instructions".

// fromHalf is the value of an f16.
func fromHalf(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch {
	case exp == 31 && frac != 0:
		return nan32
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000)
	case exp == 0:
		v := float32(frac) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// fromBfloat is the value of a bf16.
func fromBfloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// toHalf and toBfloat round to nearest even.
func toHalf(x float32) uint16   { return roundSmall(float64(x), half, ptxir.RoundRN) }
func toBfloat(x float32) uint16 { return roundSmall(float64(x), bfloat, ptxir.RoundRN) }

// smallFormat describes a floating-point format of at most 16 bits.
type smallFormat struct {
	fraction int // bits
	least    int // exponent of the smallest normal number
	largest  float64
	infinity uint16 // the NaN for e4m3, which has no infinity
	nan      uint16
	bits     int
}

var (
	half   = smallFormat{fraction: 10, least: -14, largest: 65504, infinity: 0x7c00, nan: 0x7fff, bits: 16}
	bfloat = smallFormat{fraction: 7, least: -126, largest: 0x1.fep127, infinity: 0x7f80, nan: 0x7fff, bits: 16}
	e4m3   = smallFormat{fraction: 3, least: -6, largest: 448, infinity: 0x7f, nan: 0x7f, bits: 8}
	e5m2   = smallFormat{fraction: 2, least: -14, largest: 57344, infinity: 0x7c, nan: 0x7f, bits: 8}
)

// value is what the bits of a number mean.
func (f smallFormat) value(h uint16) float64 {
	sign := 1.0
	if h>>(f.bits-1) != 0 {
		sign = -1
	}
	h &= 1<<(f.bits-1) - 1
	if h >= f.infinity {
		if h == f.infinity && f.infinity != f.nan {
			return math.Inf(int(sign))
		}
		return math.NaN()
	}
	exp, frac := int(h>>f.fraction), float64(h&(1<<f.fraction-1))
	if exp == 0 {
		return sign * math.Ldexp(frac, f.least-f.fraction)
	}
	return sign * math.Ldexp(frac+math.Ldexp(1, f.fraction), exp-1+f.least-f.fraction)
}

// roundSmall rounds a value that is exact, or rounded to odd, to a format.
func roundSmall(x float64, f smallFormat, mode ptxir.Round) uint16 {
	if x != x {
		return f.nan
	}
	var sign uint16
	if math.Signbit(x) {
		sign, x = 1<<(f.bits-1), -x
	}
	if math.IsInf(x, 0) {
		return sign | f.infinity
	}
	if x == 0 {
		return sign
	}
	exp := max(int(math.Float64bits(x)>>52)-1023, f.least)
	unit := math.Float64frombits(uint64(exp-f.fraction+1023) << 52)
	n := x / unit // exact: a power of two
	var r float64
	switch {
	case mode == ptxir.RoundRZ, mode == ptxir.RoundRM && sign == 0, mode == ptxir.RoundRP && sign != 0:
		r = math.Floor(n)
	case mode == ptxir.RoundRM, mode == ptxir.RoundRP:
		r = math.Ceil(n)
	case mode == ptxir.RoundRNA:
		r = math.Floor(n + 0.5)
	default:
		r = math.RoundToEven(n)
	}
	v := r * unit
	if v > f.largest {
		if mode == ptxir.RoundRZ || mode == ptxir.RoundRM && sign == 0 || mode == ptxir.RoundRP && sign != 0 {
			return sign | f.infinity - 1
		}
		return sign | f.infinity
	}
	// r counts units; the hidden bit carries into the exponent field by itself.
	biased := uint16(exp-f.least) << f.fraction
	return sign | biased + uint16(r)
}

// halfOp is an operation on the values of two or three 16-bit numbers.
type halfOp func(ir *ptxir.Instr, a, b, c float64) float64

func opAdd(_ *ptxir.Instr, a, b, _ float64) float64 { return sumToOdd(a, b) }
func opSub(_ *ptxir.Instr, a, b, _ float64) float64 { return sumToOdd(a, -b) }
func opMul(_ *ptxir.Instr, a, b, _ float64) float64 { return float64(a * b) }
func opFma(_ *ptxir.Instr, a, b, c float64) float64 { return sumToOdd(float64(a*b), c) }
func opEx2(_ *ptxir.Instr, a, _, _ float64) float64 { return exp2(a) }
func opTanh(_ *ptxir.Instr, a, _, _ float64) float64 {
	return math.Tanh(a)
}

func opMin(ir *ptxir.Instr, a, b, _ float64) float64 { return extremeHalf(ir, a, b, min64) }
func opMax(ir *ptxir.Instr, a, b, _ float64) float64 { return extremeHalf(ir, a, b, max64) }

func extremeHalf(ir *ptxir.Instr, a, b float64, pick func(a, b float64) float64) float64 {
	if ir.Mod&ptxir.ModNaN != 0 && (a != a || b != b) {
		return math.NaN()
	}
	if ir.Mod&ptxir.ModXorSignAbs != 0 {
		r := pick(math.Abs(a), math.Abs(b))
		if math.Signbit(a) != math.Signbit(b) {
			r = math.Copysign(r, -1)
		}
		return r
	}
	return pick(a, b)
}

// halfLane applies an operation to f16 numbers.
func halfLane(ir *ptxir.Instr, op halfOp, a, b, c uint16) uint16 {
	if outOfBounds(ir, a, b) {
		return 0
	}
	r := op(ir, float64(inHalf(ir, a)), float64(inHalf(ir, b)), float64(inHalf(ir, c)))
	if ir.Mod&ptxir.ModFtz != 0 {
		r = flushed(r, normalsHalf, ir.Round)
	}
	return outHalf(ir, roundSmall(r, half, ir.Round))
}

// outOfBounds is the question of fma.oob: is a factor the NaN that tensor copies
// fill in beyond a tensor's bounds? PTX does not say which bits that is, or
// whether the addend counts; an H200 takes 0x7ff7 of either sign in both
// formats, and does not ask about the addend.
func outOfBounds(ir *ptxir.Instr, a, b uint16) bool {
	const mark = 0x7ff7
	return ir.Mod&ptxir.ModOOB != 0 && (a&0x7fff == mark || b&0x7fff == mark)
}

// ftzHalf flushes a subnormal f16 to zero of its sign; ftzHalves does so with
// two of them.
func ftzHalf(h uint16) uint16 {
	if h&0x7c00 == 0 {
		return h & (1 << 15)
	}
	return h
}

func ftzHalves(h uint32) uint32 {
	return uint32(ftzHalf(uint16(h))) | uint32(ftzHalf(uint16(h>>16)))<<16
}

// inHalf is the value of an operand. A NaN keeps its sign, which .xorsign reads.
func inHalf(ir *ptxir.Instr, h uint16) float32 {
	if ir.Mod&ptxir.ModFtz != 0 {
		h = ftzHalf(h)
	}
	v := fromHalf(h)
	if v != v && h>>15 != 0 {
		return -v
	}
	return v
}

func outHalf(ir *ptxir.Instr, h uint16) uint16 {
	if ir.Mod&ptxir.ModSat != 0 {
		switch v := fromHalf(h); {
		case v >= 1:
			h = 0x3c00
		case v > 0:
		default:
			h = 0
		}
	}
	if ir.Mod&ptxir.ModRelu != 0 && h>>15 != 0 && fromHalf(h) == fromHalf(h) {
		h = 0
	}
	return h
}

// bfloatLane applies an operation to bf16 numbers.
func bfloatLane(ir *ptxir.Instr, op halfOp, a, b, c uint16) uint16 {
	if outOfBounds(ir, a, b) {
		return 0
	}
	r := op(ir, float64(fromBfloat(a)), float64(fromBfloat(b)), float64(fromBfloat(c)))
	if ir.Mod&ptxir.ModFtz != 0 {
		r = flushed(r, normalsBF16, ir.Round)
	}
	h := roundSmall(r, bfloat, ir.Round)
	if ir.Mod&ptxir.ModRelu != 0 && h>>15 != 0 && r == r {
		h = 0
	}
	return h
}

func halfPair(ir *ptxir.Instr, op halfOp, a, b, c uint32) uint32 {
	return uint32(halfLane(ir, op, uint16(a), uint16(b), uint16(c))) |
		uint32(halfLane(ir, op, uint16(a>>16), uint16(b>>16), uint16(c>>16)))<<16
}

func bfloatPair(ir *ptxir.Instr, op halfOp, a, b, c uint32) uint32 {
	return uint32(bfloatLane(ir, op, uint16(a), uint16(b), uint16(c))) |
		uint32(bfloatLane(ir, op, uint16(a>>16), uint16(b>>16), uint16(c>>16)))<<16
}

// comparePacked chooses setp and set of f16x2 and bf16x2: two comparisons, the
// low halves' result in the first predicate, the high halves' in the second.
func (s *selection) comparePacked(typ ptxir.Type) error {
	ir, in := s.ir, s.in
	if len(ir.Src) < 2 || len(ir.Dst) == 0 {
		return fmt.Errorf("%d operands, want 2", len(ir.Src))
	}
	if err := s.take(&in.a, ir.Src[0], class32); err != nil {
		return err
	}
	if err := s.take(&in.b, ir.Src[1], class32); err != nil {
		return err
	}
	if ir.Bool != ptxir.BoolNone {
		if len(ir.Src) != 3 {
			return fmt.Errorf("%d operands, want 3", len(ir.Src))
		}
		if err := s.take(&in.c, ir.Src[2], classPred); err != nil {
			return err
		}
	}
	in.imm = uint64(typ)
	in.fn = comparePackedLanes
	if ir.Op == ptxir.OpSet {
		return s.take(&in.d, ir.Dst[0], class32)
	}
	return s.comparePredicates()
}

func comparePackedLanes(w *warp, in *inst, m uint32) {
	load := fromHalf
	if ptxir.Type(in.imm) == ptxir.BF16x2 {
		load = fromBfloat
	} else if in.ir.Mod&ptxir.ModFtz != 0 {
		load = func(h uint16) float32 { return inHalf(in.ir, h) }
	}
	a, b := w.u32(in.a), w.u32(in.b)
	var lo, hi uint32
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		if compareFloats(in.ir.Cmp, load(uint16(a[l])), load(uint16(b[l]))) {
			lo |= 1 << l
		}
		if compareFloats(in.ir.Cmp, load(uint16(a[l]>>16)), load(uint16(b[l]>>16))) {
			hi |= 1 << l
		}
	}
	if in.c != noOperand {
		q := *w.pred(in.c)
		lo, hi = combine(in.ir.Bool, lo, q), combine(in.ir.Bool, hi, q)
	}
	if in.ir.Op == ptxir.OpSet {
		w.setPacked(in, lo, hi, m)
		return
	}
	if in.d != noOperand {
		p := w.pred(in.d)
		*p = *p&^m | lo&m
	}
	if in.more != nil {
		p := w.pred(in.more[0])
		*p = *p&^m | hi&m
	}
}

func (w *warp) setPacked(in *inst, lo, hi, m uint32) {
	one := uint32(0xffff)
	switch in.ir.Type {
	case ptxir.F16x2:
		one = 0x3c00
	case ptxir.BF16x2:
		one = 0x3f80
	}
	d := w.u32(in.d)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = lo>>l&1*one | hi>>l&1*one<<16
	}
}

// compareFloats is the comparison that an instruction names.
func compareFloats(c ptxir.Cmp, a, b float32) bool {
	unordered := a != a || b != b
	switch c {
	case ptxir.CmpEq:
		return a == b
	case ptxir.CmpNe:
		return lessOrGreater(a, b)
	case ptxir.CmpLt:
		return a < b
	case ptxir.CmpLe:
		return a <= b
	case ptxir.CmpGt:
		return a > b
	case ptxir.CmpGe:
		return a >= b
	case ptxir.CmpEqu:
		return unordered || a == b
	case ptxir.CmpNeu:
		return a != b
	case ptxir.CmpLtu:
		return unordered || a < b
	case ptxir.CmpLeu:
		return unordered || a <= b
	case ptxir.CmpGtu:
		return unordered || a > b
	case ptxir.CmpGeu:
		return unordered || a >= b
	case ptxir.CmpNum:
		return !unordered
	}
	return unordered
}
