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

// cvt chooses a generated conversion where there is one, else the general one.
// PTX ISA, "cvt".
func (s *selection) cvt() error {
	ir := s.ir
	if len(ir.Dst) != 1 || len(ir.Src) == 0 {
		return fmt.Errorf("cvt needs one destination")
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
		s.in.Fn = e.fn
		return s.operands(e)
	}
	if !numeric.NumberOf[key.typ].Convertible() || !numeric.NumberOf[key.from].Convertible() {
		return errNoExecutor
	}
	if err := s.take(&s.in.D, ir.Dst[0], key.dst); err != nil {
		return err
	}
	if err := s.take(&s.in.A, ir.Src[0], key.src); err != nil {
		return err
	}
	s.in.B = uint32(key.dst)<<8 | uint32(key.src) // operand classes, for load and store
	s.in.Fn = cvtGeneral
	return nil
}

// extensionKey turns a conversion between integers without saturation into the
// extension of low bits that it amounts to.
func extensionKey(k opKey) (opKey, bool) {
	to, from := numeric.NumberOf[k.typ], numeric.NumberOf[k.from]
	if !to.Convertible() || !from.Convertible() || !to.Integer() || !from.Integer() || k.mod&ptxir.ModSat != 0 {
		return k, false
	}
	ext := opKey{op: ptxir.OpCvt, typ: k.from, dst: k.dst, src: k.src}
	register := 2 << (k.dst - register.Class16)
	switch {
	case to.Size <= from.Size:
		ext.typ = k.typ
	case from.Signed() && !to.Signed() && to.Size < register:
		return k, false // the sign stops at the type, zeros follow
	}
	if ext.typ == ptxir.S64 {
		ext.typ = ptxir.U64
	}
	return ext, true
}

// cvtGeneral converts lane by lane whatever the types. An integer travels in 64
// bits, a float in f64, which holds every source exactly.
func cvtGeneral(w *Warp, in *Inst, m uint32) {
	ir := in.IR
	to, from := numeric.NumberOf[ir.Type], numeric.NumberOf[ir.From]
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		raw := w.Raw(in.A, register.Class(in.B&255), l)
		out := numeric.Convert(ir, to, from, raw)
		w.SetRaw(in.D, register.Class(in.B>>8), l, out)
	}
}
