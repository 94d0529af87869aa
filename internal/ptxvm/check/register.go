// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
)

// unwrittenRegister is a register of a function that a thread may read before it
// has written it.
type unwrittenRegister struct {
	reg    ptxir.Reg
	number int32 // among the followed registers
}

// unwrittenRegisters finds the registers of a function that are live at its
// beginning: some path through the code reads them first. Lowering writes its own
// registers before it reads them, so only those that the PTX names count.
func unwrittenRegisters(f *ptxir.Func) (list []ptxir.Reg) {
	live := make([]regSet, len(f.Blocks))
	for i := range live {
		live[i] = make(regSet, (len(f.Regs)+63)/64)
	}
	now := make(regSet, (len(f.Regs)+63)/64)
	for changed := true; changed; {
		changed = false
		for i := len(f.Blocks) - 1; i >= 0; i-- {
			clear(now)
			b := &f.Blocks[i]
			for _, t := range b.Term.Targets {
				now.addAll(live[t])
			}
			now.throughBlock(b)
			if !slices.Equal(now, live[i]) {
				copy(live[i], now)
				changed = true
			}
		}
	}
	for r, name := range f.Names {
		if name != "" && len(live) > 0 && live[0].has(ptxir.Reg(r)) {
			list = append(list, ptxir.Reg(r))
		}
	}
	return list
}

// regSet is a set of a function's registers.
type regSet []uint64

func (s regSet) has(r ptxir.Reg) bool { return s[r/64]>>(r%64)&1 != 0 }

func (s regSet) addAll(t regSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s regSet) add(r ptxir.Reg) {
	if r != ptxir.NoReg {
		s[r/64] |= 1 << (r % 64)
	}
}

// throughBlock computes the registers that are live at the beginning of a block
// from those that are live at its end.
func (s regSet) throughBlock(b *ptxir.Block) {
	switch b.Term.Kind {
	case ptxir.TermBranch:
		s.add(b.Term.Pred)
	case ptxir.TermSwitch:
		s.add(b.Term.Index)
	case ptxir.TermCall:
		s.add(b.Term.Call.Target)
	case ptxir.TermSync:
		s.through(b.Term.Instr)
	}
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		s.through(&b.Instrs[i])
	}
}

func (s regSet) through(in *ptxir.Instr) {
	if in.Guard == ptxir.NoReg {
		for _, r := range destinations(in) {
			if r != ptxir.NoReg {
				s[r/64] &^= 1 << (r % 64)
			}
		}
	}
	s.add(in.Guard)
	if in.Op != ptxir.OpNop && in.Op != ptxir.OpPrefetch {
		for _, r := range sources(in) {
			s.add(r)
		}
	}
}

// unwrittenBy returns the register with that number, if a thread may read it before
// it has written it.
func (fn *Function) unwrittenBy(number int32) *unwrittenRegister {
	for i := range fn.unwritten {
		if fn.unwritten[i].number == number {
			return &fn.unwritten[i]
		}
	}
	panic("BUG: a register is unset that comes from nowhere")
}

// enter says that lanes have entered the function, and written no register.
func (f *followedFrame) enter(mask uint32) {
	for i := range f.fn.unwritten {
		n := f.fn.unwritten[i].number
		f.unset[n] |= mask
		if list := f.origins[n]; list != nil {
			for l := range list {
				if mask>>l&1 != 0 {
					list[l] = origin{}
				}
			}
		}
	}
}

// unwritten reports that a lane depends on a register that it has not written.
func (v *Block) unwritten(w *lane.Warp, l int, o origin) {
	read := o.read
	v.add(findingKey{kind: FindingUninitialized, read: read, register: o.register}, 0, func() *Finding {
		return &Finding{
			Kind: FindingUninitialized, Here: v.at(w.Index, l, &read.Place), Register: o.fn.IR.Names[o.register.reg],
		}
	})
}
