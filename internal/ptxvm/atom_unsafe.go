// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

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
		part := inst{d: register.None, a: register.None, b: register.None, c: register.None, members: register.None, guard: register.None, ir: ir}
		if err := s.atomElement(&part, i, n); err != nil {
			return err
		}
		s.in.parts = append(s.in.parts, part)
	}
	s.in.b = uint32(n * ir.Type.Size())
	s.in.fn = transferVector
	if s.class(ir.Src[0]) == register.Class32 {
		s.in.fn = transferVector32
	}
	return s.take(&s.in.a, ir.Src[0], s.class(ir.Src[0]))
}

// atomElement sets up the update of element i of n.
func (s *selection) atomElement(in *inst, i, n int) error {
	ir := s.ir
	addr, class := s.class(ir.Src[0]), register.ClassOf(ir.Type.Class())
	in.mode = ptxir.Mode(addr)
	in.imm = uint64(ir.Imm) + uint64(i*ir.Type.Size())
	if err := s.take(&in.a, ir.Src[0], addr); err != nil {
		return err
	}
	if err := s.take(&in.b, ir.Src[1+i], class); err != nil {
		return err
	}
	if ir.Atom == ptxir.AtomCas {
		if err := s.take(&in.c, ir.Src[1+n+i], class); err != nil {
			return err
		}
	}
	if len(ir.Dst) > 0 && ir.Dst[i] != ptxir.NoReg {
		if err := s.take(&in.d, ir.Dst[i], class); err != nil {
			return err
		}
	}
	in.site = s.d.newSite()
	return atomFunction(ir, in)
}

func atomFunction(ir *ptxir.Instr, in *inst) error {
	shared := ir.Space == ptxir.SpaceShared
	switch ir.Type.Size() {
	case 8:
		in.combine64 = numeric.Atomic64(ir)
		in.fn = atom64
		if in.combine64 == nil {
			return errNoExecutor
		}
	case 4:
		in.combine32 = numeric.Atomic32(ir)
		in.fn = atom32
		switch {
		case in.combine32 == nil:
			return errNoExecutor
		case shared:
			in.fn = atomShared32
		case ir.Atom == ptxir.AtomAdd && !ir.Type.Float():
			in.fn = atomAdd32
		}
	case 2:
		in.combine32 = numeric.Atomic16(ir)
		in.fn = atom16
		if in.combine32 == nil {
			return errNoExecutor
		}
	default:
		return errNoExecutor
	}
	return nil
}

// atomAddress is a lane's address.
func (w *warp) atomAddress(in *inst, l int) uint64 {
	if register.Class(in.mode) == register.Class64 {
		return w.U64(in.a)[l] + in.imm
	}
	return uint64(w.U32(in.a)[l] + uint32(in.imm))
}

//go:norace
func atomAdd32(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.U32(in.b)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		v := b[l]
		old := atomic.AddUint32(p, v) - v
		if in.d != register.None {
			w.U32(in.d)[l] = old
		}
	}
}

//go:norace
func atomShared32(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.U32(in.b)
	c := b
	if in.c != register.None {
		c = w.U32(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		old := *p
		*p = in.combine32(old, b[l], c[l])
		if in.d != register.None {
			w.U32(in.d)[l] = old
		}
	}
}

//go:norace
func atom32(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.U32(in.b)
	c := b
	if in.c != register.None {
		c = w.U32(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		old := atomic.LoadUint32(p)
		for !atomic.CompareAndSwapUint32(p, old, in.combine32(old, b[l], c[l])) {
			old = atomic.LoadUint32(p)
		}
		if in.d != register.None {
			w.U32(in.d)[l] = old
		}
	}
}

//go:norace
func atom64(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.U64(in.b)
	c := b
	if in.c != register.None {
		c = w.U64(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint64)(w.pointer(in, s, w.atomAddress(in, l), l, 8))
		old := atomic.LoadUint64(p)
		for !atomic.CompareAndSwapUint64(p, old, in.combine64(old, b[l], c[l])) {
			old = atomic.LoadUint64(p)
		}
		if in.d != register.None {
			w.U64(in.d)[l] = old
		}
	}
}

// atom16 swaps the aligned 32-bit word around the 16 bits: hosts have no
// smaller atomics. Allocations are whole words, so the other half is ours; host
// ranges are whole words in every page.
//
//go:norace
func atom16(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.U32(in.b)
	c := b
	if in.c != register.None {
		c = w.U32(in.c)
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
		if in.d != register.None {
			w.U32(in.d)[l] = old
		}
	}
}
