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

// bar: a is the barrier, b the thread count, c the predicate of bar.red; imm is
// all ones if the predicate is negated.
func (s *selection) bar() error {
	ir, in := s.ir, s.in
	in.Imm = 0
	if in.Mode == ptxir.ModeNone {
		in.Mode = ptxir.ModeSync
	}
	if len(ir.Src) == 0 {
		return fmt.Errorf("a barrier needs its number")
	}
	if err := s.take(&in.A, ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.optional(&in.B, ir.Src, 1, register.Class32); err != nil {
		return err
	}
	if in.Mode < ptxir.ModeRedPopc {
		return nil
	}
	if err := s.want(1, 3); err != nil {
		return err
	}
	if err := s.take(&in.C, ir.Src[2], register.ClassPred); err != nil {
		return err
	}
	class := register.ClassPred
	if in.Mode == ptxir.ModeRedPopc {
		class = register.Class32
	}
	return s.take(&in.D, ir.Dst[0], class)
}

func (s *selection) barWarp() error {
	if err := s.want(0, 1); err != nil {
		return err
	}
	s.in.Fn = nothing
	return s.take(&s.in.Members, s.ir.Src[0], register.Class32)
}

// shfl: a is the value, b the lane operand, c the clamp and segment mask, d the
// result, more[0] the predicate.
func (s *selection) shfl() error {
	ir, in := s.ir, s.in
	if err := s.want(1, 4); err != nil {
		return err
	}
	for i, place := range []*uint32{&in.A, &in.B, &in.C, &in.Members} {
		if err := s.take(place, ir.Src[i], register.Class32); err != nil {
			return err
		}
	}
	in.More = []uint32{register.None}
	if err := s.optional(&in.More[0], ir.Dst, 1, register.ClassPred); err != nil {
		return err
	}
	in.Fn = shfl
	return s.optional(&in.D, ir.Dst, 0, register.Class32)
}

// shfl exchanges values between lanes. A source lane that does not take part gives
// an undefined value (PTX ISA, "shfl.sync"): 0, as on an H200 where that lane has
// exited or waits elsewhere.
func shfl(w *Warp, in *Inst, m uint32) {
	a := *w.U32(in.A)
	var result [register.Lanes]uint32
	valid := exchange(in.Mode, &result, &a, w.U32(in.B), w.U32(in.C), m)
	switch {
	case in.D == register.None:
	case m == register.Full:
		*w.U32(in.D) = result
	default:
		d := w.U32(in.D)
		for n := m; n != 0; n &= n - 1 {
			l := bits.TrailingZeros32(n) & 31
			d[l] = result[l]
		}
	}
	if in.More[0] != register.None {
		p := w.Pred(in.More[0])
		*p = *p&^m | valid&m
	}
}

// ShuffleSources returns the lane whose value each lane would get from a shuffle if
// all took part.
func (w *Warp) ShuffleSources(in *Inst) (from [register.Lanes]uint32) {
	var lanes [register.Lanes]uint32
	for l := range lanes {
		lanes[l] = uint32(l)
	}
	exchange(in.Mode, &from, &lanes, w.U32(in.B), w.U32(in.C), register.Full)
	return from
}

// exchange sets the result of each lane of m to the value of its source lane, if that
// is in m too, and returns the lanes that have one. PTX ISA, "shfl.sync", has this
// pseudo code: bits 0–4 of c clamp the source lane, bits 8–12 cut the warp in segments.
func exchange(mode ptxir.Mode, result, a, b, c *[register.Lanes]uint32, m uint32) (valid uint32) {
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		lane, bval, cval, segment := uint32(l), b[l]&31, c[l]&31, c[l]>>8&31
		limit := lane&segment | cval&^segment
		low := lane & segment
		j, ok := lane, false
		switch mode {
		case ptxir.ModeUp:
			j = lane - bval
			ok = int32(j) >= int32(limit)
		case ptxir.ModeDown:
			j = lane + bval
			ok = j <= limit
		case ptxir.ModeBfly:
			j = lane ^ bval
			ok = j <= limit
		case ptxir.ModeIdx:
			j = low | bval&^segment
			ok = j <= limit
		}
		if !ok {
			j = lane
		} else {
			valid |= 1 << lane
		}
		if m>>(j&31)&1 != 0 {
			result[l] = a[j&31]
		}
	}
	return valid
}

// vote: a is the predicate.
func (s *selection) vote() error {
	if err := s.want(1, 2); err != nil {
		return err
	}
	if err := s.take(&s.in.A, s.ir.Src[0], register.ClassPred); err != nil {
		return err
	}
	if err := s.take(&s.in.Members, s.ir.Src[1], register.Class32); err != nil {
		return err
	}
	s.in.Fn = vote
	if s.ir.Mode == ptxir.ModeBallot {
		s.in.Fn = ballot
		return s.take(&s.in.D, s.ir.Dst[0], register.Class32)
	}
	return s.take(&s.in.D, s.ir.Dst[0], register.ClassPred)
}

func vote(w *Warp, in *Inst, m uint32) {
	p := *w.Pred(in.A) & m
	var yes bool
	switch in.Mode {
	case ptxir.ModeAll:
		yes = p == m
	case ptxir.ModeAny:
		yes = p != 0
	case ptxir.ModeUni:
		yes = p == m || p == 0
	}
	w.SetPred(in.D, yes, m)
}

func ballot(w *Warp, in *Inst, m uint32) {
	w.Broadcast32(in.D, *w.Pred(in.A)&m, m)
}

// match: a is the value; all: more[0] is the predicate.
func (s *selection) match() error {
	if err := s.want(1, 2); err != nil {
		return err
	}
	class := register.ClassOf(s.ir.Type.Class())
	if err := s.take(&s.in.A, s.ir.Src[0], class); err != nil {
		return err
	}
	if err := s.take(&s.in.Members, s.ir.Src[1], register.Class32); err != nil {
		return err
	}
	s.in.More = []uint32{register.None}
	if err := s.optional(&s.in.More[0], s.ir.Dst, 1, register.ClassPred); err != nil {
		return err
	}
	s.in.Fn = match
	return s.optional(&s.in.D, s.ir.Dst, 0, register.Class32)
}

func match(w *Warp, in *Inst, m uint32) {
	class := register.ClassOf(in.IR.Type.Class())
	for rest := m; rest != 0; {
		v := w.Raw(in.A, class, bits.TrailingZeros32(rest))
		var same uint32
		for n := rest; n != 0; n &= n - 1 {
			if l := bits.TrailingZeros32(n) & 31; w.Raw(in.A, class, l) == v {
				same |= 1 << l
			}
		}
		if in.Mode == ptxir.ModeAll {
			if same != m {
				same = 0
			}
			if in.D != register.None {
				w.Broadcast32(in.D, same, m)
			}
			if in.More[0] != register.None {
				w.SetPred(in.More[0], same != 0, m)
			}
			return
		}
		// d may be a's register: a's lanes of this value are not read again.
		w.Broadcast32(in.D, same, same)
		rest &^= same
	}
}

func (s *selection) redux() error {
	if err := s.want(1, 2); err != nil {
		return err
	}
	if err := s.take(&s.in.A, s.ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.take(&s.in.Members, s.ir.Src[1], register.Class32); err != nil {
		return err
	}
	if s.in.combine32 = numeric.Atomic32(s.ir); s.in.combine32 == nil {
		return errNoExecutor
	}
	s.in.Fn = redux
	return s.take(&s.in.D, s.ir.Dst[0], register.Class32)
}

func redux(w *Warp, in *Inst, m uint32) {
	a := w.U32(in.A)
	r := a[bits.TrailingZeros32(m)]
	if in.IR.Type.Float() {
		r = in.combine32(r, r, 0) // the one form of a NaN
	}
	for n := m & (m - 1); n != 0; n &= n - 1 {
		r = in.combine32(r, a[bits.TrailingZeros32(n)&31], 0)
	}
	w.Broadcast32(in.D, r, m)
}

// elect chooses the lowest lane.
func (s *selection) elect() error {
	if err := s.want(0, 1); err != nil {
		return err
	}
	s.in.More = []uint32{register.None}
	if err := s.take(&s.in.Members, s.ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.optional(&s.in.D, s.ir.Dst, 0, register.Class32); err != nil {
		return err
	}
	s.in.Fn = elect
	return s.optional(&s.in.More[0], s.ir.Dst, 1, register.ClassPred)
}

func elect(w *Warp, in *Inst, m uint32) {
	first := bits.TrailingZeros32(m)
	if in.D != register.None {
		w.Broadcast32(in.D, uint32(first), m)
	}
	if in.More[0] != register.None {
		p := w.Pred(in.More[0])
		*p = *p&^m | 1<<first
	}
}

func (s *selection) activemask() error {
	if err := s.want(1, 0); err != nil {
		return err
	}
	s.in.Fn = activemask
	return s.take(&s.in.D, s.ir.Dst[0], register.Class32)
}

func activemask(w *Warp, in *Inst, m uint32) { w.Broadcast32(in.D, m, m) }
