// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// Kind is what went wrong in a kernel.
type Kind uint8

// The faults. The driver maps them to result codes.
const (
	IllegalAddress Kind = iota // outside a live allocation, or freed
	Misaligned                 // address not a multiple of the access size
	Illegal                    // an instruction with operands it forbids
	Trap                       // trap, brkpt
	Assert                     // __assertfail
	Deadlock                   // every thread of a block waits
	Stack                      // local memory exhausted by calls
	Budget                     // Config.StepBudget used up
	Canceled                   // Launch.Cancel
	Internal                   // a bug in the simulator
)

var faultNames = [...]string{
	"illegal address", "misaligned address", "illegal instruction", "trap", "device-side assertion",
	"deadlock", "stack overflow", "step budget exhausted", "canceled", "internal error",
}

// String names the fault.
func (k Kind) String() string { return faultNames[k] }

// A Fault is an error that stopped a kernel. One lane is named; others may have
// failed at the same instruction.
type Fault struct {
	Kind        Kind
	Kernel      string
	Block       [3]uint32
	Thread      [3]uint32
	PTXLine     int
	SourceFile  string
	SourceLine  int // 0: the PTX has no line information
	Instruction string
	Address     uint64
	Size        uint64
	Nearest     memory.Nearest
	Detail      string // what else is known: the assertion, the lanes that wait
}

// Error says what happened, where, and to which address.
func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in kernel %s, block (%d,%d,%d), thread (%d,%d,%d)", f.Kind, f.Kernel,
		f.Block[0], f.Block[1], f.Block[2], f.Thread[0], f.Thread[1], f.Thread[2])
	if f.SourceLine > 0 {
		fmt.Fprintf(&b, ", %s:%d", f.SourceFile, f.SourceLine)
	}
	if f.PTXLine > 0 {
		fmt.Fprintf(&b, ", PTX line %d", f.PTXLine)
	}
	if f.Instruction != "" {
		fmt.Fprintf(&b, ": %s", f.Instruction)
	}
	if f.Kind == IllegalAddress || f.Kind == Misaligned {
		fmt.Fprintf(&b, ": %d bytes at %#x", f.Size, f.Address)
		if f.Nearest.Found {
			fmt.Fprintf(&b, ", %s", f.Nearest)
		}
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	}
	return b.String()
}
