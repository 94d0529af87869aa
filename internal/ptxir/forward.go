// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// forward lets instructions read constants and special registers where they
// lie, in place of the registers that they were moved to. Compilers write
// "mov.u32 %r1, %tid.x" and use %r1; such a move is dropped when nothing else
// writes %r1.
func forward(f *Func) {
	fixed := make([]bool, len(f.Regs))
	for _, c := range f.Consts {
		fixed[c.Reg] = true
	}
	for _, s := range f.Specials {
		fixed[s.Reg] = true
	}
	writes := make([]uint8, len(f.Regs))
	eachInstr(f, func(in *Instr) {
		for _, r := range in.Dst {
			if r != NoReg && writes[r] < 2 {
				writes[r]++
			}
		}
	})
	from := make([]Reg, len(f.Regs))
	for r := range from {
		from[r] = Reg(r)
	}
	for i := range f.Blocks {
		b := &f.Blocks[i]
		kept := b.Instrs[:0]
		for k := range b.Instrs {
			in := &b.Instrs[k]
			if in.Op == OpMov && in.Type != B128 && in.Guard == NoReg && fixed[in.Src[0]] && writes[in.Dst[0]] == 1 {
				from[in.Dst[0]] = in.Src[0]
				continue
			}
			kept = append(kept, *in)
		}
		clear(b.Instrs[len(kept):])
		b.Instrs = kept
	}
	eachRead(f, func(r *Reg) { *r = from[*r] })
}

// eachInstr calls visit for all instructions, those in terminators included.
func eachInstr(f *Func, visit func(*Instr)) {
	for i := range f.Blocks {
		b := &f.Blocks[i]
		for k := range b.Instrs {
			visit(&b.Instrs[k])
		}
		if b.Term.Kind == TermSync {
			visit(b.Term.Instr)
		}
	}
}

// eachRead calls visit for each register that is read.
func eachRead(f *Func, visit func(*Reg)) {
	eachInstr(f, func(in *Instr) { readsOf(in, visit) })
	for i := range f.Blocks {
		readsOfTerm(&f.Blocks[i].Term, visit)
	}
}

func readsOf(in *Instr, visit func(*Reg)) {
	for i := range in.Src {
		if in.Src[i] != NoReg {
			visit(&in.Src[i])
		}
	}
	if in.Guard != NoReg {
		visit(&in.Guard)
	}
}

// readsOfTerm visits what a terminator reads but for the operands of TermSync.
func readsOfTerm(t *Term, visit func(*Reg)) {
	switch t.Kind {
	case TermBranch:
		visit(&t.Pred)
	case TermSwitch:
		visit(&t.Index)
	case TermCall:
		if t.Call.Target != NoReg {
			visit(&t.Call.Target)
		}
	}
}
