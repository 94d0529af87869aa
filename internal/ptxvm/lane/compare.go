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

// compare chooses setp and set: a generated comparison, then finishCompare.
// Src is a, b [, c]; in.c is c, in.d the first destination, in.more[0] the second.
func (s *selection) compare() error {
	ir, in := s.ir, s.in
	typ := ir.From
	if ir.Op == ptxir.OpSetp {
		typ = ir.Type
	}
	if typ == ptxir.F16x2 || typ == ptxir.BF16x2 {
		return s.comparePacked(typ)
	}
	e, err := s.comparison(typ)
	if err != nil {
		return err
	}
	in.Fn = e.fn
	want := 2
	if ir.Bool != ptxir.BoolNone {
		want = 3
	}
	if len(ir.Src) != want || len(ir.Dst) == 0 {
		return fmt.Errorf("%d operands, want %d", len(ir.Src), want)
	}
	if err := s.take(&in.A, ir.Src[0], e.src[0]); err != nil {
		return err
	}
	if err := s.take(&in.B, ir.Src[1], e.src[1]); err != nil {
		return err
	}
	if want == 3 {
		if err := s.take(&in.C, ir.Src[2], register.ClassPred); err != nil {
			return err
		}
	}
	if ir.Op == ptxir.OpSet {
		return s.take(&in.D, ir.Dst[0], register.ClassOf(ir.Type.Class()))
	}
	return s.comparePredicates()
}

// comparison returns the table's entry for a comparison of a type.
func (s *selection) comparison(typ ptxir.Type) (*entry, error) {
	cmp := s.ir.Cmp
	key := opKey{op: ptxir.OpSetp, typ: unsignedType(typ), cmp: cmp}
	if typ == ptxir.F32 {
		key.mod = s.ir.Mod & ptxir.ModFtz
	}
	if !typ.Float() {
		switch cmp {
		case ptxir.CmpEq, ptxir.CmpNe:
			key.typ = bitsType(typ)
		case ptxir.CmpLo, ptxir.CmpLs, ptxir.CmpHi, ptxir.CmpHs: // unsigned whatever the type says
			key.typ = unsignedType(bitsType(typ))
			key.cmp = map[ptxir.Cmp]ptxir.Cmp{
				ptxir.CmpLo: ptxir.CmpLt, ptxir.CmpLs: ptxir.CmpLe, ptxir.CmpHi: ptxir.CmpGt, ptxir.CmpHs: ptxir.CmpGe,
			}[cmp]
		}
	}
	if e := executors()[key]; e != nil {
		return e, nil
	}
	return nil, errNoExecutor
}

func (s *selection) comparePredicates() error {
	if s.ir.Dst[0] != ptxir.NoReg {
		if err := s.take(&s.in.D, s.ir.Dst[0], register.ClassPred); err != nil {
			return err
		}
	}
	if len(s.ir.Dst) > 1 && s.ir.Dst[1] != ptxir.NoReg {
		s.in.More = []uint32{0}
		return s.take(&s.in.More[0], s.ir.Dst[1], register.ClassPred)
	}
	return nil
}

// finishCompare takes the lanes for which a comparison holds and does what is
// left of setp and set.
func finishCompare(w *Warp, in *Inst, r, m uint32) {
	if in.C == register.None && in.More == nil && in.IR.Op == ptxir.OpSetp {
		d := w.Pred(in.D)
		*d = *d&^m | r&m
		return
	}
	second := ^r
	if in.C != register.None {
		q := *w.Pred(in.C)
		r, second = numeric.Logic(in.IR.Bool, r, q), numeric.Logic(in.IR.Bool, second, q)
	}
	if in.IR.Op == ptxir.OpSet {
		w.setValue(in, r, m)
		return
	}
	if in.D != register.None {
		d := w.Pred(in.D)
		*d = *d&^m | r&m
	}
	if in.More != nil {
		q := w.Pred(in.More[0])
		*q = *q&^m | second&m
	}
}

// setValue stores set's result: all ones for integers, 1.0 for floats.
func (w *Warp) setValue(in *Inst, r, m uint32) {
	one := map[ptxir.Type]uint32{ptxir.F32: 0x3f800000, ptxir.F16: 0x3c00, ptxir.BF16: 0x3f80}[in.IR.Type]
	if one == 0 {
		one = ^uint32(0)
		if in.IR.Type.Size() == 2 {
			one = 0xffff
		}
	}
	d := w.U32(in.D)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = 0
		if r>>l&1 != 0 {
			d[l] = one
		}
	}
}
