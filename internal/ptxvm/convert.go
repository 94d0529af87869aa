// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// cvt chooses a generated conversion where there is one, else the general one.
// PTX ISA, "cvt".
func (s *selection) cvt() error {
	ir := s.ir
	if len(ir.Dst) != 1 || len(ir.Src) == 0 {
		return fmt.Errorf("cvt wants one destination")
	}
	if len(ir.Src) == 2 || ir.Type == ptxir.F16x2 || ir.Type == ptxir.BF16x2 || ir.From == ptxir.F16x2 || ir.From == ptxir.BF16x2 {
		return s.cvtPacked()
	}
	key := opKey{
		op: ptxir.OpCvt, typ: unsignedType(ir.Type), from: unsignedType(ir.From), round: ir.Round, mod: ir.Mod,
		dst: s.class(ir.Dst[0]), src: s.class(ir.Src[0]),
	}
	if k, ok := extensionKey(key); ok {
		key = k
	}
	if e := executors()[key]; e != nil {
		s.in.fn = e.fn
		return s.operands(e)
	}
	if numberOf[key.typ].size == 0 || numberOf[key.from].size == 0 {
		return errNoExecutor
	}
	if err := s.take(&s.in.d, ir.Dst[0], key.dst); err != nil {
		return err
	}
	if err := s.take(&s.in.a, ir.Src[0], key.src); err != nil {
		return err
	}
	s.in.b = uint32(key.dst)<<8 | uint32(key.src) // operand classes, for load and store
	s.in.fn = cvtGeneral
	return nil
}

// extensionKey turns a conversion between integers without saturation into the
// extension of low bits that it amounts to.
func extensionKey(k opKey) (opKey, bool) {
	to, from := numberOf[k.typ], numberOf[k.from]
	if to.size == 0 || from.size == 0 || !to.integer() || !from.integer() || k.mod&ptxir.ModSat != 0 {
		return k, false
	}
	ext := opKey{op: ptxir.OpCvt, typ: k.from, dst: k.dst, src: k.src}
	register := 2 << (k.dst - class16)
	switch {
	case to.size <= from.size:
		ext.typ = k.typ
	case from.kind == numSigned && to.kind == numUnsigned && to.size < register:
		return k, false // the sign stops at the type, zeros follow
	}
	if ext.typ == ptxir.S64 {
		ext.typ = ptxir.U64
	}
	return ext, true
}

// number says how a type's bits are a number.
type number struct {
	size  int // bytes; 0: not convertible here
	kind  byte
	least float64 // floats: smallest normal number, for ftz
}

// Kinds of numbers.
const (
	numUnsigned = 'u'
	numSigned   = 's'
	numFloat    = 'f'
	numBfloat   = 'b'
	numTF32     = 't'
)

var numberOf = map[ptxir.Type]number{
	ptxir.U8: {1, numUnsigned, 0}, ptxir.U16: {2, numUnsigned, 0}, ptxir.U32: {4, numUnsigned, 0}, ptxir.U64: {8, numUnsigned, 0},
	ptxir.S8: {1, numSigned, 0}, ptxir.S16: {2, numSigned, 0}, ptxir.S32: {4, numSigned, 0}, ptxir.S64: {8, numSigned, 0},
	ptxir.F16: {2, numFloat, 0x1p-14}, ptxir.F32: {4, numFloat, 0x1p-126}, ptxir.F64: {8, numFloat, 0x1p-1022},
	ptxir.BF16: {2, numBfloat, 0x1p-126}, ptxir.TF32: {4, numTF32, 0x1p-126},
}

func (n number) integer() bool { return n.kind == numUnsigned || n.kind == numSigned }

// cvtGeneral converts lane by lane whatever the types. An integer travels in 64
// bits, a float in f64, which holds every source exactly.
func cvtGeneral(w *warp, in *inst, m uint32) {
	ir := in.ir
	to, from := numberOf[unsignedType(ir.Type)], numberOf[unsignedType(ir.From)]
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		raw := w.raw(in.a, operandClass(in.b&255), l)
		var out uint64
		switch {
		case from.integer() && to.integer():
			out = intToInt(ir, to, from, raw)
		case from.integer() && to.size == 8:
			out = math.Float64bits(intToF64(from, raw, ir.Round))
		case from.integer():
			out = encodeFloat(ir, to, intToOdd(from, raw, to), false)
		case to.integer():
			out = floatToInt(ir, to, from, decodeFloat(ir, from, raw))
		default:
			out = floatToFloat(ir, to, from, decodeFloat(ir, from, raw))
		}
		w.setRaw(in.d, operandClass(in.b>>8), l, extend(to, out))
	}
}

// raw is a lane of a register as 64 bits.
func (w *warp) raw(o uint32, c operandClass, l int) uint64 {
	if c == class64 {
		return w.u64(o)[l]
	}
	return uint64(w.u32(o)[l])
}

func (w *warp) setRaw(o uint32, c operandClass, l int, v uint64) {
	switch c {
	case class64:
		w.u64(o)[l] = v
	case class16:
		w.u32(o)[l] = uint32(uint16(v))
	default:
		w.u32(o)[l] = uint32(v)
	}
}

// extend widens a value of the number's size to 64 bits, by its sign.
func extend(n number, v uint64) uint64 {
	shift := 64 - 8*n.size
	if n.kind == numSigned {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

// intToInt converts between integers; .sat clamps to the destination's range.
func intToInt(ir *ptxir.Instr, to, from number, raw uint64) uint64 {
	v := extend(from, raw)
	if ir.Mod&ptxir.ModSat == 0 {
		return v
	}
	negative := from.kind == numSigned && int64(v) < 0
	width := 8 * to.size
	if to.kind == numUnsigned {
		if negative {
			return 0
		}
		return min(v, math.MaxUint64>>(64-width))
	}
	top := uint64(1)<<(width-1) - 1
	if negative {
		return uint64(max(int64(v), -int64(top)-1))
	}
	return min(v, top)
}

// intToOdd is an integer as f64, rounded to odd if the destination is narrower
// than f64, so that rounding again is right.
func intToOdd(from number, raw uint64, to number) float64 {
	v := extend(from, raw)
	negative := from.kind == numSigned && int64(v) < 0
	if negative {
		v = -v
	}
	if extra := bits.Len64(v) - 53; extra > 0 && to.size < 8 {
		if v&(1<<extra-1) != 0 {
			v = v>>extra<<extra | 1<<extra
		}
	}
	f := float64(v)
	if negative {
		return -f
	}
	return f
}

// intToF64 rounds an integer to f64.
func intToF64(from number, raw uint64, mode ptxir.Round) float64 {
	x := new(big.Float).SetUint64(extend(from, raw))
	if from.kind == numSigned {
		x = new(big.Float).SetInt64(int64(extend(from, raw)))
	}
	return round64(x, mode)
}

// decodeFloat is a float's value; .ftz flushes f32 subnormals, but on the way to
// f16 it does nothing: so an H200, though the PTX ISA says otherwise.
func decodeFloat(ir *ptxir.Instr, from number, raw uint64) float64 {
	switch {
	case from.kind == numBfloat:
		return float64(fromBfloat(uint16(raw)))
	case from.size == 2:
		return float64(fromHalf(uint16(raw)))
	case from.size == 4 && ir.Type == ptxir.F16:
		return float64(math.Float32frombits(uint32(raw)))
	case from.size == 4:
		return float64(in32(ir, math.Float32frombits(uint32(raw))))
	}
	return math.Float64frombits(raw)
}

// floatToInt rounds and clamps: out of range gives the nearest bound. A NaN is
// 0, or the top bit alone where source or destination has 64 bits.
func floatToInt(ir *ptxir.Instr, to, from number, x float64) uint64 {
	width := 8 * to.size
	if x != x {
		if to.size == 8 || from.size == 8 {
			return 1 << (width - 1)
		}
		return 0
	}
	x = roundIntegral(x, ir.Round)
	if to.kind == numUnsigned {
		if x <= 0 {
			return 0
		}
		if x >= math.Ldexp(1, width) {
			return math.MaxUint64 >> (64 - width)
		}
		return uint64(x)
	}
	if x >= math.Ldexp(1, width-1) {
		return math.MaxUint64 >> (65 - width)
	}
	if x < -math.Ldexp(1, width-1) {
		return uint64(1) << (width - 1)
	}
	return uint64(int64(x))
}

// roundIntegral rounds to an integer; a plain rounding modifier counts as the
// integral one.
func roundIntegral(x float64, mode ptxir.Round) float64 {
	switch mode {
	case ptxir.RoundRNI, ptxir.RoundRN, ptxir.RoundNone:
		return math.RoundToEven(x)
	case ptxir.RoundRMI, ptxir.RoundRM:
		return math.Floor(x)
	case ptxir.RoundRPI, ptxir.RoundRP:
		return math.Ceil(x)
	}
	return math.Trunc(x)
}

// floatToFloat rounds to the destination, or to an integral value of it.
func floatToFloat(ir *ptxir.Instr, to, from number, x float64) uint64 {
	integral := ir.Round >= ptxir.RoundRNI && ir.Round <= ptxir.RoundRPI
	if integral {
		x = roundIntegral(x, ir.Round)
	}
	return encodeFloat(ir, to, x, from.size == to.size)
}

// encodeFloat rounds a value that is exact or odd to a float's bits, with .sat
// and .relu and .ftz.
func encodeFloat(ir *ptxir.Instr, to number, x float64, sameSize bool) uint64 {
	if ir.Mod&ptxir.ModSat != 0 {
		x = math.Max(0, math.Min(1, x))
		if x != x || x == 0 {
			x = 0
		}
	}
	mode := ir.Round
	if mode >= ptxir.RoundRNI && mode <= ptxir.RoundRPI {
		mode = ptxir.RoundRN // integral values are exact by now
	}
	switch {
	case to.kind == numTF32:
		return uint64(toTF32(float32(clamped(ir, x, 0x1.ffcp127)), mode))
	case to.kind == numBfloat:
		return uint64(roundSmall(clamped(ir, x, bfloat.largest), bfloat, mode))
	case to.size == 2:
		return uint64(roundSmall(clamped(ir, x, half.largest), half, mode))
	case to.size == 4:
		r := in32(ir, round32(x, mode))
		if r != r {
			r = nan32
		}
		return uint64(math.Float32bits(r))
	}
	return math.Float64bits(x)
}

// clamped applies .relu, which turns -0 as well into +0, and .satfinite.
func clamped(ir *ptxir.Instr, x, largest float64) float64 {
	if x != x {
		return x
	}
	if ir.Mod&ptxir.ModRelu != 0 && math.Signbit(x) {
		return 0
	}
	if ir.Mod&ptxir.ModSatFinite != 0 {
		return min(max(x, -largest), largest)
	}
	return x
}

// toTF32 keeps 10 bits of fraction: rna rounds half away from zero, rn to even,
// rz cuts off. What is not finite is cut off too, but for the one NaN that rn and
// rz return: so does an H200.
func toTF32(x float32, mode ptxir.Round) uint32 {
	b := math.Float32bits(x)
	if x != x && (mode == ptxir.RoundRN || mode == ptxir.RoundRZ) {
		return 0x7fffe000
	}
	if b&0x7f800000 == 0x7f800000 {
		return b &^ 0x1fff
	}
	switch mode {
	case ptxir.RoundRZ:
	case ptxir.RoundRN:
		b += 0xfff + b>>13&1
	default:
		b += 0x1000
	}
	return b &^ 0x1fff
}

// The conversions to integers by truncation, which generated loops use. Those
// to 32 bits take NaN to 0, as it should be for f32; f64 has its own.
func toS32(x float64) int32 {
	switch {
	case x >= 1<<31:
		return math.MaxInt32
	case x > -1<<31-1:
		return int32(x)
	case x != x:
		return 0
	}
	return math.MinInt32
}

func toU32(x float64) uint32 {
	switch {
	case x >= 1<<32:
		return math.MaxUint32
	case x > 0:
		return uint32(int64(x))
	}
	return 0
}

func doubleToS32(x float64) int32 {
	if x != x {
		return math.MinInt32
	}
	return toS32(x)
}

func doubleToU32(x float64) uint32 {
	if x != x {
		return 1 << 31
	}
	return toU32(x)
}

func toS64(x float64) int64 {
	switch {
	case x >= 1<<63:
		return math.MaxInt64
	case x >= -1<<63:
		return int64(x)
	}
	return math.MinInt64 // and NaN
}

func toU64(x float64) uint64 {
	switch {
	case x >= 1<<64:
		return math.MaxUint64
	case x > 0:
		return uint64(x)
	case x != x:
		return 1 << 63
	}
	return 0
}
