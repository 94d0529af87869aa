// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"math/bits"
	"slices"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Window is the generic address of a space's first byte.
func Window(space ptxir.Space) (uint64, bool) {
	switch space {
	case ptxir.SpaceShared:
		return memory.SharedBase, true
	case ptxir.SpaceLocal:
		return memory.LocalBase, true
	case ptxir.SpaceParam:
		return memory.ParamBase, true
	case ptxir.SpaceGlobal, ptxir.SpaceConst, ptxir.SpaceGeneric:
		return 0, true
	}
	return 0, false
}

// cvta adds or subtracts the window of a space; global addresses are generic
// as they are.
func (s *selection) cvta() error {
	base, ok := Window(s.ir.Space)
	if !ok || s.ir.Type.Size() != 8 {
		return errNoExecutor
	}
	s.in.Imm = base
	if s.ir.Mod&ptxir.ModTo != 0 {
		s.in.Imm = -base
	}
	s.in.Fn = addConstant
	if base == 0 {
		s.in.Fn = mov64
	}
	return s.operands(&entry{dst: register.Class64, src: []register.Class{register.Class64}})
}

func addConstant(w *Warp, in *Inst, m uint32) {
	d, a := w.U64(in.D), w.U64(in.A)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l] + in.Imm
	}
}

// isspacep tells by the window whether a generic address is in a space; const
// and global share one and are told apart by the allocation.
func (s *selection) isspacep() error {
	s.in.Imm = uint64(s.ir.Space)
	s.in.Fn = isspacep
	return s.operands(&entry{dst: register.ClassPred, src: []register.Class{register.Class64}})
}

func isspacep(w *Warp, in *Inst, m uint32) {
	a := w.U64(in.A)
	d := w.Pred(in.D)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		*d &^= 1 << l
		if w.inSpace(ptxir.Space(in.Imm), a[l]) {
			*d |= 1 << l
		}
	}
}

func (w *Warp) inSpace(space ptxir.Space, addr uint64) bool {
	top := addr >> memory.WindowShift
	switch space {
	case ptxir.SpaceShared:
		return top == memory.SharedWindow
	case ptxir.SpaceLocal:
		return top == memory.LocalWindow
	case ptxir.SpaceParam:
		return top == memory.ParamWindow
	}
	if top == memory.SharedWindow || top == memory.LocalWindow || top == memory.ParamWindow {
		return false
	}
	isConst := slices.ContainsFunc(w.CTA.Consts, func(c Extent) bool { return addr-c.Base < c.Size })
	return isConst == (space == ptxir.SpaceConst)
}
