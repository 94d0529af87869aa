// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// load chooses ld and ldu. One element is a generated function; a vector is one
// inst for each element, behind a check of the whole vector's alignment.
func (s *selection) load() error {
	if len(s.ir.Src) != 1 || len(s.ir.Dst) == 0 {
		return fmt.Errorf("a load needs an address and a destination")
	}
	if s.ir.Space == ptxir.SpaceParam && s.loadParam() {
		return nil
	}
	if s.ir.Type == ptxir.B128 {
		return s.accessWide(s.ir.Dst, loadWide)
	}
	if err := s.access(s.ir.Dst, true); err != nil {
		return err
	}
	s.ordered()
	return nil
}

func (s *selection) store() error {
	if len(s.ir.Src) < 2 {
		return fmt.Errorf("a store needs an address and a value")
	}
	if s.ir.Type == ptxir.B128 {
		return s.accessWide(s.ir.Src[1:], storeWide)
	}
	if err := s.access(s.ir.Src[1:], false); err != nil {
		return err
	}
	s.ordered()
	return nil
}

// access chooses the transfer of each element.
func (s *selection) access(elements []ptxir.Reg, isLoad bool) error {
	if s.isWhole(elements, isLoad) {
		if isLoad {
			return s.whole(elements, loadWhole)
		}
		return s.whole(elements, storeWhole)
	}
	size := s.ir.Type.Size()
	var parts []Inst
	last := -1 // the element whose register is the address goes last
	for i, r := range elements {
		if r == ptxir.NoReg {
			continue
		}
		part := Inst{
			D: register.None, A: register.None, B: register.None, C: register.None, Members: register.None, Guard: register.None,
			IR: s.ir, Mode: s.ir.Mode, Imm: uint64(s.ir.Imm + int64(i*size)), Site: s.d.newSite(),
		}
		if err := s.element(&part, r, isLoad); err != nil {
			return err
		}
		if isLoad && r == s.ir.Src[0] {
			last = len(parts)
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 && len(elements) == 1 {
		*s.in = parts[0]
		return nil
	}
	if last >= 0 {
		parts = append(append(parts[:last:last], parts[last+1:]...), parts[last])
	}
	s.in.Parts = parts
	s.in.A = s.d.Offsets[s.ir.Src[0]]
	s.in.B = uint32(len(elements) * size)
	s.in.Fn = transferVector
	if s.class(s.ir.Src[0]) == register.Class32 {
		s.in.Fn = transferVector32
	}
	return nil
}

// element sets up the transfer of one element.
func (s *selection) element(part *Inst, r ptxir.Reg, isLoad bool) error {
	op, space := ptxir.OpLd, s.ir.Space
	typ := unsignedType(s.ir.Type)
	if !isLoad {
		op = ptxir.OpSt
	}
	switch s.ir.Type {
	case ptxir.F16, ptxir.BF16:
		typ = ptxir.U16
	case ptxir.F32, ptxir.F16x2, ptxir.BF16x2, ptxir.TF32:
		typ = ptxir.U32
	case ptxir.F64, ptxir.F32x2:
		typ = ptxir.U64
	}
	if !isLoad { // a store takes the low bits, whatever the sign
		typ = unsignedType(bitsType(typ))
	}
	switch space {
	case ptxir.SpaceConst: // constants live in ordinary memory
		space = ptxir.SpaceGlobal
	case ptxir.SpaceParam: // indexed parameters: rare, and windowed like shared
		space = ptxir.SpaceShared
	}
	key := opKey{op: op, typ: typ, space: space, dst: s.class(r), src: s.class(s.ir.Src[0])}
	e := executors()[key]
	if e == nil {
		return errNoExecutor
	}
	part.Fn = e.fn
	if err := s.take(&part.A, s.ir.Src[0], key.src); err != nil {
		return err
	}
	place := &part.D
	if !isLoad {
		place = &part.B
	}
	return s.take(place, r, key.dst)
}

// transferVector moves the elements of a vector one after the other.
func transferVector(w *Warp, in *Inst, m uint32) {
	a := w.U64(in.A)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		w.checkVector(in, a[l]+in.Imm, l)
	}
	for i := range in.Parts {
		in.Parts[i].Fn(w, &in.Parts[i], m)
	}
}

func transferVector32(w *Warp, in *Inst, m uint32) {
	a := w.U32(in.A)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		w.checkVector(in, uint64(a[l]+uint32(in.Imm)), l)
	}
	for i := range in.Parts {
		in.Parts[i].Fn(w, &in.Parts[i], m)
	}
}

func (w *Warp) checkVector(in *Inst, addr uint64, l int) {
	if addr&uint64(in.B-1) != 0 {
		w.Fault(&Stop{Kind: fault.Misaligned, In: in, Lane: l, Addr: addr, Size: uint64(in.B)})
	}
}
