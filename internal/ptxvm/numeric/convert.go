// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// number says how a type's bits are a number.
type number struct {
	Size  int // bytes; 0: not convertible here
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

// NumberOf has the types that can be converted.
var NumberOf = map[ptxir.Type]number{
	ptxir.U8: {1, numUnsigned, 0}, ptxir.U16: {2, numUnsigned, 0}, ptxir.U32: {4, numUnsigned, 0}, ptxir.U64: {8, numUnsigned, 0},
	ptxir.S8: {1, numSigned, 0}, ptxir.S16: {2, numSigned, 0}, ptxir.S32: {4, numSigned, 0}, ptxir.S64: {8, numSigned, 0},
	ptxir.F16: {2, numFloat, 0x1p-14}, ptxir.F32: {4, numFloat, 0x1p-126}, ptxir.F64: {8, numFloat, 0x1p-1022},
	ptxir.B8: {1, numUnsigned, 0}, ptxir.B16: {2, numUnsigned, 0}, ptxir.B32: {4, numUnsigned, 0}, ptxir.B64: {8, numUnsigned, 0},
	ptxir.BF16: {2, numBfloat, 0x1p-126}, ptxir.TF32: {4, numTF32, 0x1p-126},
}

// Convertible reports whether there are conversions from and to the type.
func (n number) Convertible() bool { return n.Size != 0 }

func (n number) Signed() bool { return n.kind == numSigned }

func (n number) Integer() bool { return n.kind == numUnsigned || n.kind == numSigned }

// Convert converts a number whatever the types. An integer travels in 64 bits, a
// float in f64, which holds every source exactly.
func Convert(ir *ptxir.Instr, to, from number, raw uint64) uint64 {
	switch {
	case from.Integer() && to.Integer():
		return extend(to, intToInt(ir, to, from, raw))
	case from.Integer() && to.Size == 8:
		return extend(to, math.Float64bits(intToF64(from, raw, ir.Round)))
	case from.Integer():
		return extend(to, encodeFloat(ir, to, intToOdd(from, raw, to)))
	case to.Integer():
		return extend(to, floatToInt(ir, to, from, decodeFloat(ir, from, raw)))
	default:
		return extend(to, floatToFloat(ir, to, decodeFloat(ir, from, raw)))
	}
}

// extend widens a value of the number's size to 64 bits, by its sign.
func extend(n number, v uint64) uint64 {
	shift := 64 - 8*n.Size
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
	width := 8 * to.Size
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
	if extra := bits.Len64(v) - 53; extra > 0 && to.Size < 8 {
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
// f16 it does nothing: an H200 behaves so too, although the PTX ISA says otherwise.
func decodeFloat(ir *ptxir.Instr, from number, raw uint64) float64 {
	switch {
	case from.kind == numBfloat:
		return float64(FromBFloat(uint16(raw)))
	case from.Size == 2:
		return float64(FromHalf(uint16(raw)))
	case from.Size == 4 && ir.Type == ptxir.F16:
		return float64(math.Float32frombits(uint32(raw)))
	case from.Size == 4:
		return float64(in32(ir, math.Float32frombits(uint32(raw))))
	}
	return math.Float64frombits(raw)
}

// floatToInt rounds and clamps: out of range gives the nearest bound. A NaN is
// 0, or the top bit alone where source or destination has 64 bits.
func floatToInt(ir *ptxir.Instr, to, from number, x float64) uint64 {
	width := 8 * to.Size
	if x != x {
		if to.Size == 8 || from.Size == 8 {
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
func floatToFloat(ir *ptxir.Instr, to number, x float64) uint64 {
	integral := ir.Round >= ptxir.RoundRNI && ir.Round <= ptxir.RoundRPI
	if integral {
		x = roundIntegral(x, ir.Round)
	}
	return encodeFloat(ir, to, x)
}

// encodeFloat rounds a value that is exact or odd to a float's bits, with .sat
// and .relu and .ftz.
func encodeFloat(ir *ptxir.Instr, to number, x float64) uint64 {
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
		return uint64(RoundTo(clamped(ir, x, BFloat.largest), BFloat, mode))
	case to.Size == 2:
		return uint64(RoundTo(clamped(ir, x, Half.largest), Half, mode))
	case to.Size == 4:
		r := in32(ir, round32(x, mode))
		if r != r {
			r = NaN32
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

// Generated loops convert to integers with the functions below. All truncate,
// and clamp what does not fit. What a NaN becomes depends on both types: 0 from
// f32 to 32 bits, and otherwise the top bit alone. PTX ISA, "cvt".

// ToS32 is cvt.rzi.s32.f32.
func ToS32(x float64) int32 {
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

// ToU32 is cvt.rzi.u32.f32.
func ToU32(x float64) uint32 {
	switch {
	case x >= 1<<32:
		return math.MaxUint32
	case x > 0:
		return uint32(int64(x))
	}
	return 0
}

// DoubleToS32 is cvt.rzi.s32.f64, which differs from [ToS32] for NaN alone.
func DoubleToS32(x float64) int32 {
	if x != x {
		return math.MinInt32
	}
	return ToS32(x)
}

// DoubleToU32 is cvt.rzi.u32.f64, which differs from [ToU32] for NaN alone.
func DoubleToU32(x float64) uint32 {
	if x != x {
		return 1 << 31
	}
	return ToU32(x)
}

// ToS64 is cvt.rzi.s64 of f32 and f64, which take NaN to the same number.
func ToS64(x float64) int64 {
	switch {
	case x >= 1<<63:
		return math.MaxInt64
	case x >= -1<<63:
		return int64(x)
	}
	return math.MinInt64 // and NaN
}

// ToU64 is cvt.rzi.u64 of f32 and f64, which take NaN to the same number.
func ToU64(x float64) uint64 {
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
