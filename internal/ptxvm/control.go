// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// want checks the counts of destinations and sources.
func (s *selection) want(dst, src int) error {
	if len(s.ir.Dst) < dst || len(s.ir.Src) != src {
		return fmt.Errorf("%d destinations and %d operands, want %d and %d", len(s.ir.Dst), len(s.ir.Src), dst, src)
	}
	return nil
}

// optional resolves a register that may be absent.
func (s *selection) optional(place *uint32, regs []ptxir.Reg, i int, class register.Class) error {
	if i >= len(regs) || regs[i] == ptxir.NoReg {
		return nil
	}
	return s.take(place, regs[i], class)
}

// bar: a is the barrier, b the thread count, c the predicate of bar.red; imm is
// all ones if the predicate is negated.
func (s *selection) bar() error {
	ir, in := s.ir, s.in
	in.imm = 0
	if in.mode == ptxir.ModeNone {
		in.mode = ptxir.ModeSync
	}
	if len(ir.Src) == 0 {
		return fmt.Errorf("a barrier wants its number")
	}
	if err := s.take(&in.a, ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.optional(&in.b, ir.Src, 1, register.Class32); err != nil {
		return err
	}
	if in.mode < ptxir.ModeRedPopc {
		return nil
	}
	if err := s.want(1, 3); err != nil {
		return err
	}
	if err := s.take(&in.c, ir.Src[2], register.ClassPred); err != nil {
		return err
	}
	class := register.ClassPred
	if in.mode == ptxir.ModeRedPopc {
		class = register.Class32
	}
	return s.take(&in.d, ir.Dst[0], class)
}

func (s *selection) barWarp() error {
	if err := s.want(0, 1); err != nil {
		return err
	}
	s.in.fn = nothing
	return s.take(&s.in.members, s.ir.Src[0], register.Class32)
}

// shfl: a is the value, b the lane operand, c the clamp and segment mask, d the
// result, more[0] the predicate.
func (s *selection) shfl() error {
	ir, in := s.ir, s.in
	if err := s.want(1, 4); err != nil {
		return err
	}
	for i, place := range []*uint32{&in.a, &in.b, &in.c, &in.members} {
		if err := s.take(place, ir.Src[i], register.Class32); err != nil {
			return err
		}
	}
	in.more = []uint32{register.None}
	if err := s.optional(&in.more[0], ir.Dst, 1, register.ClassPred); err != nil {
		return err
	}
	in.fn = shfl
	return s.optional(&in.d, ir.Dst, 0, register.Class32)
}

// shfl exchanges values between lanes. PTX ISA, "shfl.sync", has this pseudo
// code: bits 0–4 of c clamp the source lane, bits 8–12 cut the warp in segments.
// A source lane that does not take part gives an undefined value there; here
// the lane's own.
func shfl(w *warp, in *inst, m uint32) {
	a := *w.U32(in.a)
	b, c := w.U32(in.b), w.U32(in.c)
	var valid uint32
	result := a
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		lane, bval, cval, segment := uint32(l), b[l]&31, c[l]&31, c[l]>>8&31
		limit := lane&segment | cval&^segment
		low := lane & segment
		j, ok := lane, false
		switch in.mode {
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
	if in.d != register.None {
		d := w.U32(in.d)
		for n := m; n != 0; n &= n - 1 {
			l := bits.TrailingZeros32(n) & 31
			d[l] = result[l]
		}
	}
	if in.more[0] != register.None {
		p := w.Pred(in.more[0])
		*p = *p&^m | valid&m
	}
}

// vote: a is the predicate.
func (s *selection) vote() error {
	if err := s.want(1, 2); err != nil {
		return err
	}
	if err := s.take(&s.in.a, s.ir.Src[0], register.ClassPred); err != nil {
		return err
	}
	if err := s.take(&s.in.members, s.ir.Src[1], register.Class32); err != nil {
		return err
	}
	s.in.fn = vote
	if s.ir.Mode == ptxir.ModeBallot {
		s.in.fn = ballot
		return s.take(&s.in.d, s.ir.Dst[0], register.Class32)
	}
	return s.take(&s.in.d, s.ir.Dst[0], register.ClassPred)
}

func vote(w *warp, in *inst, m uint32) {
	p := *w.Pred(in.a) & m
	var yes bool
	switch in.mode {
	case ptxir.ModeAll:
		yes = p == m
	case ptxir.ModeAny:
		yes = p != 0
	case ptxir.ModeUni:
		yes = p == m || p == 0
	}
	w.SetPred(in.d, yes, m)
}

func ballot(w *warp, in *inst, m uint32) {
	w.Broadcast32(in.d, *w.Pred(in.a)&m, m)
}

// match: a is the value; all: more[0] is the predicate.
func (s *selection) match() error {
	if err := s.want(1, 2); err != nil {
		return err
	}
	class := register.ClassOf(s.ir.Type.Class())
	if err := s.take(&s.in.a, s.ir.Src[0], class); err != nil {
		return err
	}
	if err := s.take(&s.in.members, s.ir.Src[1], register.Class32); err != nil {
		return err
	}
	s.in.more = []uint32{register.None}
	if err := s.optional(&s.in.more[0], s.ir.Dst, 1, register.ClassPred); err != nil {
		return err
	}
	s.in.fn = match
	return s.optional(&s.in.d, s.ir.Dst, 0, register.Class32)
}

func match(w *warp, in *inst, m uint32) {
	class := register.ClassOf(in.ir.Type.Class())
	for rest := m; rest != 0; {
		v := w.Raw(in.a, class, bits.TrailingZeros32(rest))
		var same uint32
		for n := rest; n != 0; n &= n - 1 {
			if l := bits.TrailingZeros32(n) & 31; w.Raw(in.a, class, l) == v {
				same |= 1 << l
			}
		}
		if in.mode == ptxir.ModeAll {
			if same != m {
				same = 0
			}
			if in.d != register.None {
				w.Broadcast32(in.d, same, m)
			}
			if in.more[0] != register.None {
				w.SetPred(in.more[0], same != 0, m)
			}
			return
		}
		// d may be a's register: a's lanes of this value are not read again.
		w.Broadcast32(in.d, same, same)
		rest &^= same
	}
}

func (s *selection) redux() error {
	if err := s.want(1, 2); err != nil {
		return err
	}
	if err := s.take(&s.in.a, s.ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.take(&s.in.members, s.ir.Src[1], register.Class32); err != nil {
		return err
	}
	if s.in.combine32 = numeric.Atomic32(s.ir); s.in.combine32 == nil {
		return errNoExecutor
	}
	s.in.fn = redux
	return s.take(&s.in.d, s.ir.Dst[0], register.Class32)
}

func redux(w *warp, in *inst, m uint32) {
	a := w.U32(in.a)
	r := a[bits.TrailingZeros32(m)]
	if in.ir.Type.Float() {
		r = in.combine32(r, r, 0) // the one form of a NaN
	}
	for n := m & (m - 1); n != 0; n &= n - 1 {
		r = in.combine32(r, a[bits.TrailingZeros32(n)&31], 0)
	}
	w.Broadcast32(in.d, r, m)
}

// elect chooses the lowest lane.
func (s *selection) elect() error {
	if err := s.want(0, 1); err != nil {
		return err
	}
	s.in.more = []uint32{register.None}
	if err := s.take(&s.in.members, s.ir.Src[0], register.Class32); err != nil {
		return err
	}
	if err := s.optional(&s.in.d, s.ir.Dst, 0, register.Class32); err != nil {
		return err
	}
	s.in.fn = elect
	return s.optional(&s.in.more[0], s.ir.Dst, 1, register.ClassPred)
}

func elect(w *warp, in *inst, m uint32) {
	first := bits.TrailingZeros32(m)
	if in.d != register.None {
		w.Broadcast32(in.d, uint32(first), m)
	}
	if in.more[0] != register.None {
		p := w.Pred(in.more[0])
		*p = *p&^m | 1<<first
	}
}

func (s *selection) activemask() error {
	if err := s.want(1, 0); err != nil {
		return err
	}
	s.in.fn = activemask
	return s.take(&s.in.d, s.ir.Dst[0], register.Class32)
}

func activemask(w *warp, in *inst, m uint32) { w.Broadcast32(in.d, m, m) }

func (s *selection) trap() error {
	s.in.fn = trap
	return nil
}

func trap(w *warp, in *inst, m uint32) {
	w.fault(&laneFault{kind: FaultTrap, in: in, lane: bits.TrailingZeros32(m)})
}
