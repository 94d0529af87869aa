// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/matrix"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
)

// Func runs one instruction for the lanes of mask, which is never 0.
type Func func(w *Warp, in *Inst, mask uint32)

// Inst is a decoded instruction. Operands are byte offsets into the frame; see
// package register.
type Inst struct {
	Fn         Func
	D, A, B, C uint32
	Imm        uint64
	More       []uint32    // operands beyond d, a, b and c: vector elements, second destinations
	Params     []Parameter // loads of kernel parameters
	Parts      []Inst      // vector accesses: one for each element
	Site       uint32      // number of the memory instruction
	Members    uint32      // collectives: the member mask operand
	Mode       ptxir.Mode
	Guard      uint32 // guarded: the predicate, its inversion, and what to run
	Invert     uint32
	Guarded    Func
	combine32  numeric.Combine32 // atomics
	combine64  numeric.Combine64
	product    *matrix.Product // mma
	IR         *ptxir.Instr
}

// Text is an instruction as the PTX has it, or at least its operation.
func Text(ir *ptxir.Instr) string {
	if ir.Text != "" {
		return ir.Text
	}
	return ir.Op.String() + "." + ir.Type.String()
}

// runGuarded runs a guarded instruction for the lanes whose predicate allows it.
func runGuarded(w *Warp, in *Inst, mask uint32) {
	if mask &= *w.Pred(in.Guard) ^ in.Invert; mask != 0 {
		in.Guarded(w, in, mask)
	}
}

// Place is where in the code something is.
type Place struct {
	Pos  ptxir.Pos
	Text string
}
