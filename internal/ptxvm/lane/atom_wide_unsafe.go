// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// wideLocks make accesses of 128 bits atomic, for which Go has no operation: such an
// access holds one of them, chosen by address. They belong to no device, because two
// devices may map the same memory. Weak accesses and narrower atomic operations do
// not take them, so they may see one half exchanged, but each 64-bit word whole.
var wideLocks [64]sync.Mutex

// atomWide chooses atom.exch.b128 and atom.cas.b128: d and b are the halves of
// the result, and more has those of the operands. PTX ISA, "atom".
func (s *selection) atomWide() error {
	ir, in := s.ir, s.in
	in.Mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.A, ir.Src[0], s.class(ir.Src[0])); err != nil {
		return err
	}
	in.More = make([]uint32, len(ir.Src)-1)
	for i := range in.More {
		if err := s.take(&in.More[i], ir.Src[1+i], register.Class64); err != nil {
			return err
		}
	}
	for i, place := range []*uint32{&in.D, &in.B}[:len(ir.Dst)] {
		if ir.Dst[i] != ptxir.NoReg {
			if err := s.take(place, ir.Dst[i], register.Class64); err != nil {
				return err
			}
		}
	}
	in.Site = s.d.newSite()
	in.Fn = atomWide
	return nil
}

//go:norace
func atomWide(w *Warp, in *Inst, m uint32) {
	s := w.site(in.Site)
	operand := func(i, l int) [2]uint64 { return [2]uint64{w.U64(in.More[i])[l], w.U64(in.More[i+1])[l]} }
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*[2]uint64)(w.pointer(in, s, w.atomAddress(in, l), l, 16))
		var old [2]uint64
		if in.IR.Atom == ptxir.AtomCas {
			b := operand(0, l)
			old = exchangeWide(p, &b, operand(2, l))
		} else {
			old = exchangeWide(p, nil, operand(0, l))
		}
		if in.D != register.None {
			w.U64(in.D)[l] = old[0]
			w.U64(in.B)[l] = old[1]
		}
	}
}

// accessWide chooses the loads and stores of 128 bits that are volatile or ordered.
// The lock orders them with each other and with the accesses around them.
func (s *selection) accessWide(halves []ptxir.Reg, fn Func) error {
	ir, in := s.ir, s.in
	if len(halves) != 2 {
		return fmt.Errorf("%d registers for 128 bits", len(halves))
	}
	in.Mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.A, ir.Src[0], s.class(ir.Src[0])); err != nil {
		return err
	}
	in.More = []uint32{register.None, register.None}
	for i, r := range halves {
		if r != ptxir.NoReg {
			if err := s.take(&in.More[i], r, register.Class64); err != nil {
				return err
			}
		}
	}
	in.Site, in.Fn = s.d.newSite(), fn
	return nil
}

//go:norace
func loadWide(w *Warp, in *Inst, m uint32) {
	s := w.site(in.Site)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		v := readWide((*[2]uint64)(w.pointer(in, s, w.atomAddress(in, l), l, 16)))
		for i, o := range in.More {
			if o != register.None {
				w.U64(o)[l] = v[i]
			}
		}
	}
}

//go:norace
func storeWide(w *Warp, in *Inst, m uint32) {
	s := w.site(in.Site)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*[2]uint64)(w.pointer(in, s, w.atomAddress(in, l), l, 16))
		exchangeWide(p, nil, [2]uint64{w.U64(in.More[0])[l], w.U64(in.More[1])[l]})
	}
}

// readWide does not write, since the host's page may be read-only.
//
//go:norace
func readWide(p *[2]uint64) [2]uint64 {
	mu := &wideLocks[wideLock(p)]
	mu.Lock()
	defer mu.Unlock()
	return [2]uint64{atomic.LoadUint64(&p[0]), atomic.LoadUint64(&p[1])}
}

// exchangeWide writes 128 bits if the memory has the expected value, or any if that
// is nil. It returns the old value. The lock is released by defer because the host's
// page may be gone.
//
//go:norace
func exchangeWide(p, expected *[2]uint64, value [2]uint64) [2]uint64 {
	mu := &wideLocks[wideLock(p)]
	mu.Lock()
	defer mu.Unlock()
	old := [2]uint64{atomic.LoadUint64(&p[0]), atomic.LoadUint64(&p[1])}
	if expected == nil || old == *expected {
		atomic.StoreUint64(&p[0], value[0])
		atomic.StoreUint64(&p[1], value[1])
	}
	return old
}

func wideLock(p *[2]uint64) uintptr { return uintptr(unsafe.Pointer(p)) / 16 % uintptr(len(wideLocks)) }
