// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// loadParam chooses the load of a kernel parameter at a place known now, which
// is nearly every one: the value is the same for all lanes. It reports false
// for others.
func (s *selection) loadParam() bool {
	c := s.d.Known[s.ir.Src[0]]
	if c == nil || c.Var == nil || c.Var.Space != ptxir.SpaceParam || c.Generic {
		return false
	}
	size := uint64(s.ir.Type.Size())
	offset := uint64(c.Var.Offset) + c.Bits + uint64(s.ir.Imm)
	if offset%size != 0 || offset+size*uint64(len(s.ir.Dst)) > uint64(s.d.ArgBytes) {
		return false
	}
	for i, r := range s.ir.Dst {
		if r == ptxir.NoReg {
			continue
		}
		class := s.class(r)
		if class == register.ClassPred {
			return false
		}
		s.in.Params = append(s.in.Params, Parameter{s.d.Offsets[r], class, offset + uint64(i)*size, s.ir.Type})
	}
	s.in.Fn = loadParams
	return true
}

// Parameter is a register that gets a kernel parameter.
type Parameter struct {
	Reg    uint32
	class  register.Class
	offset uint64
	typ    ptxir.Type
}

func loadParams(w *Warp, in *Inst, m uint32) {
	for i := range in.Params {
		w.LoadParam(&in.Params[i], m)
	}
}

// LoadParam reads a parameter once for all lanes.
func (w *Warp) LoadParam(p *Parameter, m uint32) {
	size := p.typ.Size()
	var v uint64
	for i, b := range w.CTA.Params[p.offset:][:size] {
		v |= uint64(b) << (8 * i)
	}
	if p.typ.Signed() {
		v = uint64(int64(v<<(64-8*size)) >> (64 - 8*size))
	}
	w.Fill(p.Reg, ptxir.Class(p.class-1), v, m)
}
