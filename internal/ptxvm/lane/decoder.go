// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Decoder finds the Go functions that run a function's instructions, and the places
// of their operands.
type Decoder struct {
	Regs    []ptxir.Class
	Offsets []uint32 // of each register in the frame
	// Known has the function's constants, by register.
	Known    map[ptxir.Reg]*ptxir.Const
	ArgBytes uint32 // of the kernel
	Sites    uint32 // memory instructions so far
}

// Choose finds the executor of an instruction and resolves its operands.
func (d *Decoder) Choose(ir *ptxir.Instr) (Inst, error) {
	in := Inst{D: register.None, A: register.None, B: register.None, C: register.None, Members: register.None, IR: ir, Mode: ir.Mode, Imm: uint64(ir.Imm)}
	sel := &selection{d: d, ir: ir, in: &in}
	if err := sel.choose(); err != nil {
		return Inst{}, fmt.Errorf("PTX line %d: %s: %w", ir.Pos.Line, Text(ir), err)
	}
	return in, nil
}

// Guard restricts an instruction to the lanes of its predicate, if it has one.
func (d *Decoder) Guard(in *Inst) error {
	if in.IR.Guard == ptxir.NoReg {
		return nil
	}
	p, err := d.Operand(in.IR.Guard, ptxir.ClassPred)
	if err != nil {
		return err
	}
	in.Guard, in.Guarded, in.Fn = p, in.Fn, runGuarded
	if in.IR.GuardNot {
		in.Invert = register.Full
	}
	return nil
}

func (d *Decoder) newSite() uint32 {
	d.Sites++
	return d.Sites - 1
}

// Operand returns a register's offset, checked to be of the class. Class16 and
// Class32 share their storage, but not their meaning.
func (d *Decoder) Operand(r ptxir.Reg, class ptxir.Class) (uint32, error) {
	if r == ptxir.NoReg || int(r) >= len(d.Regs) {
		return 0, fmt.Errorf("an operand is missing")
	}
	if got := d.Regs[r]; got != class {
		return 0, fmt.Errorf("an operand is of the wrong size: want %s, got %s", classNames[class], classNames[got])
	}
	return d.Offsets[r], nil
}

var classNames = [...]string{"predicate", "16 bits", "32 bits", "64 bits"}
