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

// carry chooses extended-precision arithmetic: add.cc, addc and their kin. The
// carry is a predicate. PTX ISA, "Extended-Precision Integer Arithmetic
// Instructions".
func (s *selection) carry() error {
	ir, in := s.ir, s.in
	wide := ir.Type.Size() == 8
	class := register.Class32
	if wide {
		class = register.Class64
	}
	takesCarry := ir.Op == ptxir.OpAddC || ir.Op == ptxir.OpSubC || ir.Op == ptxir.OpMadC
	n := 2
	if ir.Op == ptxir.OpMadCC || ir.Op == ptxir.OpMadC {
		n = 3
	}
	want := n
	if takesCarry {
		want++
	}
	if len(ir.Src) != want || len(ir.Dst) == 0 {
		return fmt.Errorf("%d operands, want %d", len(ir.Src), want)
	}
	if err := s.take(&in.D, ir.Dst[0], class); err != nil {
		return err
	}
	for i, place := range []*uint32{&in.A, &in.B, &in.C}[:n] {
		if err := s.take(place, ir.Src[i], class); err != nil {
			return err
		}
	}
	in.More = []uint32{register.None, register.None} // carry in, carry out
	if takesCarry {
		if err := s.take(&in.More[0], ir.Src[n], register.ClassPred); err != nil {
			return err
		}
	}
	if len(ir.Dst) > 1 && ir.Dst[1] != ptxir.NoReg {
		if err := s.take(&in.More[1], ir.Dst[1], register.ClassPred); err != nil {
			return err
		}
	}
	in.Fn = carry32
	if wide {
		in.Fn = carry64
	}
	return nil
}

func carry32(w *Warp, in *Inst, m uint32) {
	d, a, b := w.U32(in.D), w.U32(in.A), w.U32(in.B)
	c := b
	if in.C != register.None {
		c = w.U32(in.C)
	}
	carryIn, carryOut := w.carries(in)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		r, out := numeric.CarryStep(in.IR, uint64(a[l]), uint64(b[l]), uint64(c[l]), uint64(carryIn>>l&1), false)
		d[l] = uint32(r)
		carryOut = carryOut&^(1<<l) | uint32(out)<<l
	}
	w.storeCarry(in, carryOut)
}

func carry64(w *Warp, in *Inst, m uint32) {
	d, a, b := w.U64(in.D), w.U64(in.A), w.U64(in.B)
	c := b
	if in.C != register.None {
		c = w.U64(in.C)
	}
	carryIn, carryOut := w.carries(in)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		r, out := numeric.CarryStep(in.IR, a[l], b[l], c[l], uint64(carryIn>>l&1), true)
		d[l] = r
		carryOut = carryOut&^(1<<l) | uint32(out)<<l
	}
	w.storeCarry(in, carryOut)
}

func (w *Warp) carries(in *Inst) (carryIn, carryOut uint32) {
	if in.More[0] != register.None {
		carryIn = *w.Pred(in.More[0])
	}
	if in.More[1] != register.None {
		carryOut = *w.Pred(in.More[1])
	}
	return carryIn, carryOut
}

func (w *Warp) storeCarry(in *Inst, carryOut uint32) {
	if in.More[1] != register.None {
		*w.Pred(in.More[1]) = carryOut
	}
}
