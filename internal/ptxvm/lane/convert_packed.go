// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// cvtPacked chooses conversions to and from pairs of small floats: two f32 to a
// pair of f16, bf16 or fp8, and a pair of f16 or bf16 to or from one of fp8.
// PTX ISA, "cvt".
func (s *selection) cvtPacked() error {
	ir, in := s.ir, s.in
	to, ok := numeric.PackedFormats[ir.Type]
	if !ok {
		return errNoExecutor
	}
	class := register.Class32
	if to.Bits == 8 {
		class = register.Class16
	}
	switch {
	case len(ir.Src) == 2 && ir.From == ptxir.F32:
		in.Fn = cvtPair
		return s.operands(&entry{dst: class, src: []register.Class{register.Class32, register.Class32}})
	case len(ir.Src) == 1 && to.Bits == 16 && numeric.PackedFormats[ir.From].Bits == 8:
		in.Fn = cvtFromFP8
		return s.operands(&entry{dst: register.Class32, src: []register.Class{register.Class16}})
	case len(ir.Src) == 1 && numeric.PackedFormats[ir.From].Bits == 16 && to.Bits == 8:
		in.Fn = cvtToFP8
		return s.operands(&entry{dst: register.Class16, src: []register.Class{register.Class32}})
	}
	return errNoExecutor
}

// cvtPair converts two f32 to a pair; the first operand is the high half.
func cvtPair(w *Warp, in *Inst, m uint32) {
	f := numeric.PackedFormats[in.IR.Type]
	d, a, b := w.U32(in.D), w.F32(in.A), w.F32(in.B)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = numeric.Pack(in.IR, f, float64(b[l])) | numeric.Pack(in.IR, f, float64(a[l]))<<f.Bits
	}
}

func cvtFromFP8(w *Warp, in *Inst, m uint32) {
	from, to := numeric.PackedFormats[in.IR.From], numeric.PackedFormats[in.IR.Type]
	d, a := w.U32(in.D), w.U32(in.A)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		lo, hi := from.Value(uint16(a[l]&0xff)), from.Value(uint16(a[l]>>8&0xff))
		d[l] = numeric.Pack(in.IR, to, lo) | numeric.Pack(in.IR, to, hi)<<16
	}
}

func cvtToFP8(w *Warp, in *Inst, m uint32) {
	from, to := numeric.PackedFormats[in.IR.From], numeric.PackedFormats[in.IR.Type]
	d, a := w.U32(in.D), w.U32(in.A)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		lo, hi := from.Value(uint16(a[l])), from.Value(uint16(a[l]>>16))
		d[l] = numeric.Pack(in.IR, to, lo) | numeric.Pack(in.IR, to, hi)<<8
	}
}

// cvtPack chooses cvt.pack: two s32 saturated to a small type, side by side
// below what is left of c. PTX ISA, "cvt.pack".
func (s *selection) cvtPack() error {
	n := len(s.ir.Src)
	if n != 2 && n != 3 {
		return fmt.Errorf("%d operands, want 2 or 3", n)
	}
	s.in.Fn = cvtPack
	return s.operands(&entry{dst: register.Class32, src: []register.Class{register.Class32, register.Class32, register.Class32}[:n]})
}

func cvtPack(w *Warp, in *Inst, m uint32) {
	d, a, b := w.U32(in.D), w.S32(in.A), w.S32(in.B)
	width := in.IR.Type.Bits()
	low, high := int32(0), int32(1)<<width-1
	if in.IR.Type.Signed() {
		low, high = -1<<(width-1), 1<<(width-1)-1
	}
	sat := func(v int32) uint32 { return uint32(min(max(v, low), high)) & (1<<width - 1) }
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		r := sat(a[l])<<width | sat(b[l])
		if in.C != register.None {
			r |= w.U32(in.C)[l] << (2 * width)
		}
		d[l] = r
	}
}
