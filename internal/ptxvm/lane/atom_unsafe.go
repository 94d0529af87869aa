// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// atom chooses atom and red. PTX ISA, "atom". Shared memory belongs to one
// goroutine and needs no host atomics; all else does, generic included. The
// elements of a vector are updated one by one, as the ISA allows.
func (s *selection) atom() error {
	ir := s.ir
	per := 1 // operands
	if ir.Atom == ptxir.AtomCas {
		per = 2
	}
	n := (len(ir.Src) - 1) / per
	if n == 0 || n*per != len(ir.Src)-1 || len(ir.Dst) != 0 && len(ir.Dst) != n {
		return fmt.Errorf("%d operands and %d results do not go together", len(ir.Src), len(ir.Dst))
	}
	if class := s.class(ir.Src[0]); class != register.Class32 && class != register.Class64 {
		return fmt.Errorf("the address is neither 32 nor 64 bits")
	}
	if ir.Type == ptxir.B128 {
		return s.atomWide()
	}
	if n == 1 {
		return s.atomElement(s.in, 0, n)
	}
	for i := range n {
		part := Inst{D: register.None, A: register.None, B: register.None, C: register.None, Members: register.None, Guard: register.None, IR: ir}
		if err := s.atomElement(&part, i, n); err != nil {
			return err
		}
		s.in.Parts = append(s.in.Parts, part)
	}
	s.in.B = uint32(n * ir.Type.Size())
	s.in.Fn = transferVector
	if s.class(ir.Src[0]) == register.Class32 {
		s.in.Fn = transferVector32
	}
	return s.take(&s.in.A, ir.Src[0], s.class(ir.Src[0]))
}

// atomElement sets up the update of element i of n.
func (s *selection) atomElement(in *Inst, i, n int) error {
	ir := s.ir
	addr, class := s.class(ir.Src[0]), register.ClassOf(ir.Type.Class())
	in.Mode = ptxir.Mode(addr)
	in.Imm = uint64(ir.Imm) + uint64(i*ir.Type.Size())
	if err := s.take(&in.A, ir.Src[0], addr); err != nil {
		return err
	}
	if err := s.take(&in.B, ir.Src[1+i], class); err != nil {
		return err
	}
	if ir.Atom == ptxir.AtomCas {
		if err := s.take(&in.C, ir.Src[1+n+i], class); err != nil {
			return err
		}
	}
	if len(ir.Dst) > 0 && ir.Dst[i] != ptxir.NoReg {
		if err := s.take(&in.D, ir.Dst[i], class); err != nil {
			return err
		}
	}
	in.Site = s.d.newSite()
	return atomFunction(ir, in)
}

func atomFunction(ir *ptxir.Instr, in *Inst) error {
	shared := ir.Space == ptxir.SpaceShared
	switch ir.Type.Size() {
	case 8:
		in.combine64 = numeric.Atomic64(ir)
		in.Fn = atom64
		if in.combine64 == nil {
			return errNoExecutor
		}
	case 4:
		in.combine32 = numeric.Atomic32(ir)
		in.Fn = atom32
		switch {
		case in.combine32 == nil:
			return errNoExecutor
		case shared:
			in.Fn = atomShared32
		case ir.Atom == ptxir.AtomAdd && !ir.Type.Float():
			in.Fn = atomAdd32
		}
	case 2:
		in.combine32 = numeric.Atomic16(ir)
		in.Fn = atom16
		if in.combine32 == nil {
			return errNoExecutor
		}
	default:
		return errNoExecutor
	}
	return nil
}

// atomAddress is a lane's address.
func (w *Warp) atomAddress(in *Inst, l int) uint64 {
	if register.Class(in.Mode) == register.Class64 {
		return w.U64(in.A)[l] + in.Imm
	}
	return uint64(w.U32(in.A)[l] + uint32(in.Imm))
}

//go:norace
func atomAdd32(w *Warp, in *Inst, m uint32) {
	s, b := w.site(in.Site), w.U32(in.B)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		v := b[l]
		old := atomic.AddUint32(p, v) - v
		if in.D != register.None {
			w.U32(in.D)[l] = old
		}
	}
}

//go:norace
func atomShared32(w *Warp, in *Inst, m uint32) {
	s, b := w.site(in.Site), w.U32(in.B)
	c := b
	if in.C != register.None {
		c = w.U32(in.C)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		old := *p
		*p = in.combine32(old, b[l], c[l])
		if in.D != register.None {
			w.U32(in.D)[l] = old
		}
	}
}

//go:norace
func atom32(w *Warp, in *Inst, m uint32) {
	s, b := w.site(in.Site), w.U32(in.B)
	c := b
	if in.C != register.None {
		c = w.U32(in.C)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		old := atomic.LoadUint32(p)
		for !atomic.CompareAndSwapUint32(p, old, in.combine32(old, b[l], c[l])) {
			old = atomic.LoadUint32(p)
		}
		if in.D != register.None {
			w.U32(in.D)[l] = old
		}
	}
}

//go:norace
func atom64(w *Warp, in *Inst, m uint32) {
	s, b := w.site(in.Site), w.U64(in.B)
	c := b
	if in.C != register.None {
		c = w.U64(in.C)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint64)(w.pointer(in, s, w.atomAddress(in, l), l, 8))
		old := atomic.LoadUint64(p)
		for !atomic.CompareAndSwapUint64(p, old, in.combine64(old, b[l], c[l])) {
			old = atomic.LoadUint64(p)
		}
		if in.D != register.None {
			w.U64(in.D)[l] = old
		}
	}
}

// atom16 swaps the aligned 32-bit word around the 16 bits: hosts have no
// smaller atomics. Allocations are whole words, so the other half is ours; host
// ranges are whole words in every page.
//
//go:norace
func atom16(w *Warp, in *Inst, m uint32) {
	s, b := w.site(in.Site), w.U32(in.B)
	c := b
	if in.C != register.None {
		c = w.U32(in.C)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		half := w.pointer(in, s, w.atomAddress(in, l), l, 2)
		shift := uint(uintptr(half)&2) * 8
		p := (*uint32)(unsafe.Add(half, -int(uintptr(half)&2)))
		var old uint32
		for {
			word := atomic.LoadUint32(p)
			old = word >> shift & 0xffff
			next := in.combine32(old, b[l], c[l]) & 0xffff
			if atomic.CompareAndSwapUint32(p, word, word&^(0xffff<<shift)|next<<shift) {
				break
			}
		}
		if in.D != register.None {
			w.U32(in.D)[l] = old
		}
	}
}
