// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// To PTX a vector is as many accesses as it has elements, in no order ("Memory
// Consistency Model: Vector Data-types"). A GPU moves an aligned one of up to 16
// bytes at once, though, and programs rest on that: CUB's look-back scan writes
// a flag and its value by st.relaxed.v2. So strong vectors are whole here too.
// Weak ones, for which speed counts, are moved element by element.

// isWhole reports whether a vector is to be moved at once.
func (s *selection) isWhole(elements []ptxir.Reg, isLoad bool) bool {
	const strong = ptxir.ModVolatile | ptxir.ModAcquire | ptxir.ModRelease
	if len(elements) < 2 || s.ir.Mod&strong == 0 || s.ir.Space != ptxir.SpaceGlobal && s.ir.Space != ptxir.SpaceGeneric {
		return false
	}
	for _, r := range elements {
		if r == ptxir.NoReg && !isLoad || r != ptxir.NoReg && s.class(r) == register.ClassPred {
			return false
		}
	}
	switch len(elements) * s.ir.Type.Size() {
	case 4, 8, 16:
		return true
	}
	return false
}

// whole sets up the transfer of a vector at once. in.b is its size in bytes, and
// of its parts d is the register, mode its class and imm the offset in bytes.
func (s *selection) whole(elements []ptxir.Reg, fn Func) error {
	in, size := s.in, s.ir.Type.Size()
	in.Mode = ptxir.Mode(s.class(s.ir.Src[0]))
	if err := s.take(&in.A, s.ir.Src[0], s.class(s.ir.Src[0])); err != nil {
		return err
	}
	for i, r := range elements {
		if r == ptxir.NoReg {
			continue
		}
		part := Inst{IR: s.ir, Mode: ptxir.Mode(s.class(r)), Imm: uint64(i * size)}
		if err := s.take(&part.D, r, s.class(r)); err != nil {
			return err
		}
		in.Parts = append(in.Parts, part)
	}
	in.B, in.Site, in.Fn = uint32(len(elements)*size), s.d.newSite(), fn
	return nil
}

//go:norace
func loadWhole(w *Warp, in *Inst, m uint32) {
	s := w.site(in.Site)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		var v [2]uint64
		switch p := w.pointer(in, s, w.atomAddress(in, l), l, uint64(in.B)); in.B {
		case 4:
			v[0] = uint64(atomic.LoadUint32((*uint32)(p)))
		case 8:
			v[0] = atomic.LoadUint64((*uint64)(p))
		default:
			v = readWide((*[2]uint64)(p))
		}
		for i := range in.Parts {
			e := &in.Parts[i]
			w.Fill(e.D, ptxir.Class(e.Mode-1), extended(in.IR.Type, v[e.Imm/8]>>(8*(e.Imm%8))), 1<<l)
		}
	}
}

//go:norace
func storeWhole(w *Warp, in *Inst, m uint32) {
	s := w.site(in.Site)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		var v [2]uint64
		for i := range in.Parts {
			e := &in.Parts[i]
			v[e.Imm/8] |= w.low(e, l) << (8 * (e.Imm % 8))
		}
		p := w.pointer(in, s, w.atomAddress(in, l), l, uint64(in.B))
		w.storeWhole(p, in.B, v)
	}
}

//go:norace
func (w *Warp) storeWhole(p unsafe.Pointer, size uint32, v [2]uint64) {
	switch size {
	case 4:
		atomic.StoreUint32((*uint32)(p), uint32(v[0]))
	case 8:
		atomic.StoreUint64((*uint64)(p), v[0])
	default:
		exchangeWide((*[2]uint64)(p), nil, v)
	}
}

// extended is an element as its register has it.
func extended(t ptxir.Type, v uint64) uint64 {
	unused := 64 - 8*t.Size()
	if t.Signed() {
		return uint64(int64(v<<unused) >> unused)
	}
	return v << unused >> unused
}

// low is an element of a store.
func (w *Warp) low(part *Inst, l int) uint64 {
	v := uint64(0)
	if register.Class(part.Mode) == register.Class64 {
		v = w.U64(part.D)[l]
	} else {
		v = uint64(w.U32(part.D)[l])
	}
	unused := 64 - 8*part.IR.Type.Size()
	return v << unused >> unused
}
