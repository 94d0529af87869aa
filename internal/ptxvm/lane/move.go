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

// mov chooses a copy by the registers' class; types do not matter.
func (s *selection) mov() error {
	if len(s.ir.Dst) != 1 || len(s.ir.Src) != 1 {
		return fmt.Errorf("mov needs one destination and one source")
	}
	if s.ir.Type == ptxir.B128 {
		return s.move128(s.ir.Dst, s.ir.Src)
	}
	class := s.class(s.ir.Dst[0])
	if err := s.take(&s.in.D, s.ir.Dst[0], class); err != nil {
		return err
	}
	if err := s.take(&s.in.A, s.ir.Src[0], class); err != nil {
		return err
	}
	s.in.Fn = [...]Func{register.ClassPred: movPred, register.Class16: mov32, register.Class32: mov32, register.Class64: mov64}[class]
	return nil
}

func movPred(w *Warp, in *Inst, m uint32) {
	d := w.Pred(in.D)
	*d = *d&^m | *w.Pred(in.A)&m
}

func mov32(w *Warp, in *Inst, m uint32) {
	d, a := w.U32(in.D), w.U32(in.A)
	if m == register.Full {
		*d = *a
		return
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l]
	}
}

func mov64(w *Warp, in *Inst, m uint32) {
	d, a := w.U64(in.D), w.U64(in.A)
	if m == register.Full {
		*d = *a
		return
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l]
	}
}

// elements resolves the small registers of a pack or unpack, low first.
func (s *selection) elements(regs []ptxir.Reg) error {
	for _, r := range regs {
		o := register.None
		if r != ptxir.NoReg {
			o = s.d.Offsets[r]
		}
		s.in.More = append(s.in.More, o)
	}
	return nil
}

func (s *selection) pack() error {
	if len(s.ir.Dst) != 1 {
		return fmt.Errorf("mov to %d registers from %d", len(s.ir.Dst), len(s.ir.Src))
	}
	if s.ir.Type == ptxir.B128 {
		return s.move128(s.ir.Dst, s.ir.Src)
	}
	wide := s.class(s.ir.Dst[0])
	if err := s.take(&s.in.D, s.ir.Dst[0], wide); err != nil {
		return err
	}
	s.in.Fn = map[elementShape]Func{
		{register.Class32, register.Class16, 2}: pack32, {register.Class64, register.Class32, 2}: pack64, {register.Class64, register.Class16, 4}: pack64x4,
		{register.Class16, register.Class16, 2}: pack16, {register.Class32, register.Class16, 4}: pack32x4,
	}[elementShape{wide, s.class(s.ir.Src[0]), len(s.ir.Src)}]
	if s.in.Fn == nil {
		return errNoExecutor
	}
	return s.elements(s.ir.Src)
}

func (s *selection) unpack() error {
	if len(s.ir.Src) != 1 {
		return fmt.Errorf("mov to %d registers from %d", len(s.ir.Dst), len(s.ir.Src))
	}
	if s.ir.Type == ptxir.B128 {
		return s.move128(s.ir.Dst, s.ir.Src)
	}
	wide := s.class(s.ir.Src[0])
	if err := s.take(&s.in.A, s.ir.Src[0], wide); err != nil {
		return err
	}
	n := len(s.ir.Dst)
	for i, r := range s.ir.Dst { // a register that is unpacked into itself
		if r == s.ir.Src[0] && i != n-1 {
			return errNoExecutor
		}
	}
	switch {
	case wide == register.Class64 && n == 2:
		s.in.Imm = 32
	case wide == register.Class64 && n == 4, wide == register.Class32 && n == 2:
		s.in.Imm = 16
	case wide == register.Class32 && n == 4, wide == register.Class16 && n == 2:
		s.in.Imm = 8
	default:
		return errNoExecutor
	}
	s.in.Fn = unpack32
	if wide == register.Class64 {
		s.in.Fn = unpack64
	}
	return s.elements(s.ir.Dst)
}

// move128 chooses the moves of .b128 registers, which are two registers each, low
// half first: d and c are the halves of the destination, a and b of the source.
// NoReg stands for a half that is not needed.
func (s *selection) move128(dst, src []ptxir.Reg) error {
	halves := func(regs []ptxir.Reg) []ptxir.Reg {
		if len(regs) == 1 {
			return []ptxir.Reg{regs[0], regs[0] + 1}
		}
		return regs
	}
	regs := append(halves(dst), halves(src)...)
	places := []*uint32{&s.in.D, &s.in.C, &s.in.A, &s.in.B}
	if len(regs) != len(places) {
		return errNoExecutor
	}
	for i, r := range regs {
		if r == ptxir.NoReg && i < 2 {
			continue
		}
		if err := s.take(places[i], r, register.Class64); err != nil {
			return err
		}
	}
	s.in.Fn = move128
	return nil
}

func move128(w *Warp, in *Inst, m uint32) {
	lo, hi := *w.U64(in.A), *w.U64(in.B) // copies: a half of d may be a source
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if in.D != register.None {
			w.U64(in.D)[l] = lo[l]
		}
		if in.C != register.None {
			w.U64(in.C)[l] = hi[l]
		}
	}
}

type elementShape struct {
	wide, element register.Class
	n             int
}

func pack16(w *Warp, in *Inst, m uint32) {
	d, a, b := w.U32(in.D), w.U32(in.More[0]), w.U32(in.More[1])
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l]&0xff | b[l]&0xff<<8
	}
}

func pack32x4(w *Warp, in *Inst, m uint32) {
	d := w.U32(in.D)
	a, b, c, e := w.U32(in.More[0]), w.U32(in.More[1]), w.U32(in.More[2]), w.U32(in.More[3])
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l]&0xff | b[l]&0xff<<8 | c[l]&0xff<<16 | e[l]<<24
	}
}

func pack32(w *Warp, in *Inst, m uint32) {
	d, a, b := w.U32(in.D), w.U32(in.More[0]), w.U32(in.More[1])
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l]&0xffff | b[l]<<16
	}
}

func pack64(w *Warp, in *Inst, m uint32) {
	d, a, b := w.U64(in.D), w.U32(in.More[0]), w.U32(in.More[1])
	if m == register.Full {
		for l := range d {
			d[l] = uint64(a[l]) | uint64(b[l])<<32
		}
		return
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = uint64(a[l]) | uint64(b[l])<<32
	}
}

func pack64x4(w *Warp, in *Inst, m uint32) {
	d := w.U64(in.D)
	a, b, c, e := w.U32(in.More[0]), w.U32(in.More[1]), w.U32(in.More[2]), w.U32(in.More[3])
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = uint64(a[l]&0xffff) | uint64(b[l]&0xffff)<<16 | uint64(c[l]&0xffff)<<32 | uint64(e[l]&0xffff)<<48
	}
}

func unpack32(w *Warp, in *Inst, m uint32) {
	a := w.U32(in.A)
	mask := uint32(1)<<in.Imm - 1
	for i, o := range in.More {
		if o == register.None {
			continue
		}
		d, shift := w.U32(o), uint64(i)*in.Imm
		for n := m; n != 0; n &= n - 1 {
			l := bits.TrailingZeros32(n) & 31
			d[l] = a[l] >> shift & mask
		}
	}
}

func unpack64(w *Warp, in *Inst, m uint32) {
	a := w.U64(in.A)
	mask := uint64(1)<<in.Imm - 1
	for i, o := range in.More {
		if o == register.None {
			continue
		}
		d, shift := w.U32(o), uint64(i)*in.Imm
		for n := m; n != 0; n &= n - 1 {
			l := bits.TrailingZeros32(n) & 31
			d[l] = uint32(a[l] >> shift & mask)
		}
	}
}

// logic chooses and, or, xor and not of predicates here, of bits from the table.
func (s *selection) logic() error {
	if s.ir.Type != ptxir.Pred {
		return s.simple(s.key())
	}
	fn := map[ptxir.Op]Func{ptxir.OpAnd: andPred, ptxir.OpOr: orPred, ptxir.OpXor: xorPred, ptxir.OpNot: notPred}[s.ir.Op]
	e := &entry{fn: fn, dst: register.ClassPred, src: []register.Class{register.ClassPred, register.ClassPred}}
	if s.ir.Op == ptxir.OpNot {
		e.src = e.src[:1]
	}
	s.in.Fn = fn
	return s.operands(e)
}

func andPred(w *Warp, in *Inst, m uint32) {
	d := w.Pred(in.D)
	*d = *d&^m | *w.Pred(in.A)&*w.Pred(in.B)&m
}

func orPred(w *Warp, in *Inst, m uint32) {
	d := w.Pred(in.D)
	*d = *d&^m | (*w.Pred(in.A)|*w.Pred(in.B))&m
}

func xorPred(w *Warp, in *Inst, m uint32) {
	d := w.Pred(in.D)
	*d = *d&^m | (*w.Pred(in.A)^*w.Pred(in.B))&m
}

func notPred(w *Warp, in *Inst, m uint32) {
	d := w.Pred(in.D)
	*d = *d&^m | ^*w.Pred(in.A)&m
}

// selp of predicates is not PTX, but lowering may make it; others are ordinary.
func (s *selection) selp() error {
	if s.ir.Type != ptxir.Pred {
		return s.simple(s.key())
	}
	s.in.Fn = selpPred
	return s.operands(&entry{dst: register.ClassPred, src: []register.Class{register.ClassPred, register.ClassPred, register.ClassPred}})
}

func selpPred(w *Warp, in *Inst, m uint32) {
	d, c := w.Pred(in.D), *w.Pred(in.C)
	*d = *d&^m | (*w.Pred(in.A)&c|*w.Pred(in.B)&^c)&m
}

// lop3 with a boolean operation has a predicate as second destination:
// p = (d != 0) op q.
func (s *selection) lop3() error {
	if s.ir.Bool == ptxir.BoolNone {
		return s.simple(s.key())
	}
	if len(s.ir.Dst) != 2 || len(s.ir.Src) != 4 {
		return fmt.Errorf("lop3 with a predicate needs 2 destinations and 4 operands")
	}
	in := s.in
	in.More = []uint32{register.None}
	if s.ir.Dst[0] != ptxir.NoReg {
		if err := s.take(&in.D, s.ir.Dst[0], register.Class32); err != nil {
			return err
		}
	}
	places := []*uint32{&in.More[0], &in.A, &in.B, &in.C, &in.Members}
	classes := []register.Class{register.ClassPred, register.Class32, register.Class32, register.Class32, register.ClassPred}
	for i, r := range append([]ptxir.Reg{s.ir.Dst[1]}, s.ir.Src...) {
		if err := s.take(places[i], r, classes[i]); err != nil {
			return err
		}
	}
	in.Fn = lop3Pred
	return nil
}

func lop3Pred(w *Warp, in *Inst, m uint32) {
	a, b, c := w.U32(in.A), w.U32(in.B), w.U32(in.C)
	var nonzero uint32
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		v := numeric.Lop3(a[l], b[l], c[l], uint32(in.Imm))
		if v != 0 {
			nonzero |= 1 << l
		}
		if in.D != register.None {
			w.U32(in.D)[l] = v
		}
	}
	p := w.Pred(in.More[0])
	*p = *p&^m | numeric.Logic(in.IR.Bool, nonzero, *w.Pred(in.Members))&m
}
