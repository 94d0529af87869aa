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

// comparePacked chooses setp and set of f16x2 and bf16x2: two comparisons, the
// low halves' result in the first predicate, the high halves' in the second.
func (s *selection) comparePacked(typ ptxir.Type) error {
	ir, in := s.ir, s.in
	if len(ir.Src) < 2 || len(ir.Dst) == 0 {
		return fmt.Errorf("%d operands, want 2", len(ir.Src))
	}
	if err := s.take(&in.A, ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.take(&in.B, ir.Src[1], register.Class32); err != nil {
		return err
	}
	if ir.Bool != ptxir.BoolNone {
		if len(ir.Src) != 3 {
			return fmt.Errorf("%d operands, want 3", len(ir.Src))
		}
		if err := s.take(&in.C, ir.Src[2], register.ClassPred); err != nil {
			return err
		}
	}
	in.Imm = uint64(typ)
	in.Fn = comparePackedLanes
	if ir.Op == ptxir.OpSet {
		return s.take(&in.D, ir.Dst[0], register.Class32)
	}
	return s.comparePredicates()
}

func comparePackedLanes(w *Warp, in *Inst, m uint32) {
	load := numeric.FromHalf
	if ptxir.Type(in.Imm) == ptxir.BF16x2 {
		load = numeric.FromBFloat
	} else if in.IR.Mod&ptxir.ModFtz != 0 {
		load = func(h uint16) float32 { return numeric.InHalf(in.IR, h) }
	}
	a, b := w.U32(in.A), w.U32(in.B)
	var lo, hi uint32
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		if numeric.CompareFloats(in.IR.Cmp, load(uint16(a[l])), load(uint16(b[l]))) {
			lo |= 1 << l
		}
		if numeric.CompareFloats(in.IR.Cmp, load(uint16(a[l]>>16)), load(uint16(b[l]>>16))) {
			hi |= 1 << l
		}
	}
	if in.C != register.None {
		q := *w.Pred(in.C)
		lo, hi = numeric.Logic(in.IR.Bool, lo, q), numeric.Logic(in.IR.Bool, hi, q)
	}
	if in.IR.Op == ptxir.OpSet {
		w.setPacked(in, lo, hi, m)
		return
	}
	if in.D != register.None {
		p := w.Pred(in.D)
		*p = *p&^m | lo&m
	}
	if in.More != nil {
		p := w.Pred(in.More[0])
		*p = *p&^m | hi&m
	}
}

func (w *Warp) setPacked(in *Inst, lo, hi, m uint32) {
	one := uint32(0xffff)
	switch in.IR.Type {
	case ptxir.F16x2:
		one = 0x3c00
	case ptxir.BF16x2:
		one = 0x3f80
	}
	d := w.U32(in.D)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = lo>>l&1*one | hi>>l&1*one<<16
	}
}
