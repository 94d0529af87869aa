// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// cvtPacked chooses conversions to and from pairs of small floats: two f32 to a
// pair of f16, bf16 or fp8, and a pair of f16 or bf16 to or from one of fp8.
// PTX ISA, "cvt".
func (s *selection) cvtPacked() error {
	ir, in := s.ir, s.in
	to, ok := packedFormats[ir.Type]
	if !ok {
		return errNoExecutor
	}
	class := class32
	if to.bits == 8 {
		class = class16
	}
	switch {
	case len(ir.Src) == 2 && ir.From == ptxir.F32:
		in.fn = cvtPair
		return s.operands(&entry{dst: class, src: []operandClass{class32, class32}})
	case len(ir.Src) == 1 && to.bits == 16 && packedFormats[ir.From].bits == 8:
		in.fn = cvtFromFP8
		return s.operands(&entry{dst: class32, src: []operandClass{class16}})
	case len(ir.Src) == 1 && packedFormats[ir.From].bits == 16 && to.bits == 8:
		in.fn = cvtToFP8
		return s.operands(&entry{dst: class16, src: []operandClass{class32}})
	}
	return errNoExecutor
}

var packedFormats = map[ptxir.Type]smallFormat{
	ptxir.F16x2: half, ptxir.BF16x2: bfloat, ptxir.E4M3x2: e4m3, ptxir.E5M2x2: e5m2,
}

// packSmall rounds one number of a pair, with .relu and .satfinite.
func packSmall(ir *ptxir.Instr, f smallFormat, x float64) uint32 {
	return uint32(roundSmall(clamped(ir, x, f.largest), f, ir.Round))
}

// cvtPair converts two f32 to a pair; the first operand is the high half.
func cvtPair(w *warp, in *inst, m uint32) {
	f := packedFormats[in.ir.Type]
	d, a, b := w.u32(in.d), w.f32(in.a), w.f32(in.b)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = packSmall(in.ir, f, float64(b[l])) | packSmall(in.ir, f, float64(a[l]))<<f.bits
	}
}

func cvtFromFP8(w *warp, in *inst, m uint32) {
	from, to := packedFormats[in.ir.From], packedFormats[in.ir.Type]
	d, a := w.u32(in.d), w.u32(in.a)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		lo, hi := from.value(uint16(a[l]&0xff)), from.value(uint16(a[l]>>8&0xff))
		d[l] = packSmall(in.ir, to, lo) | packSmall(in.ir, to, hi)<<16
	}
}

func cvtToFP8(w *warp, in *inst, m uint32) {
	from, to := packedFormats[in.ir.From], packedFormats[in.ir.Type]
	d, a := w.u32(in.d), w.u32(in.a)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		lo, hi := from.value(uint16(a[l])), from.value(uint16(a[l]>>16))
		d[l] = packSmall(in.ir, to, lo) | packSmall(in.ir, to, hi)<<8
	}
}

// cvtPack chooses cvt.pack: two s32 saturated to a small type, side by side
// below what is left of c. PTX ISA, "cvt.pack".
func (s *selection) cvtPack() error {
	n := len(s.ir.Src)
	if n != 2 && n != 3 {
		return fmt.Errorf("%d operands, want 2 or 3", n)
	}
	s.in.fn = cvtPack
	return s.operands(&entry{dst: class32, src: []operandClass{class32, class32, class32}[:n]})
}

func cvtPack(w *warp, in *inst, m uint32) {
	d, a, b := w.u32(in.d), w.s32(in.a), w.s32(in.b)
	width := in.ir.Type.Bits()
	low, high := int32(0), int32(1)<<width-1
	if in.ir.Type.Signed() {
		low, high = -1<<(width-1), 1<<(width-1)-1
	}
	sat := func(v int32) uint32 { return uint32(min(max(v, low), high)) & (1<<width - 1) }
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		r := sat(a[l])<<width | sat(b[l])
		if in.c != noOperand {
			r |= w.u32(in.c)[l] << (2 * width)
		}
		d[l] = r
	}
}
