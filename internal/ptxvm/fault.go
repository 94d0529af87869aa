// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// FaultKind is what went wrong in a kernel.
type FaultKind uint8

// The faults. The driver maps them to result codes.
const (
	FaultIllegalAddress FaultKind = iota // outside a live allocation, or freed
	FaultMisaligned                      // address not a multiple of the access size
	FaultIllegal                         // an instruction with operands it forbids
	FaultTrap                            // trap, brkpt
	FaultAssert                          // __assertfail
	FaultDeadlock                        // every thread of a block waits
	FaultStack                           // local memory exhausted by calls
	FaultBudget                          // Config.StepBudget used up
	FaultCanceled                        // Launch.Cancel
	FaultInternal                        // a bug in the simulator
)

var faultNames = [...]string{
	"illegal address", "misaligned address", "illegal instruction", "trap", "device-side assertion",
	"deadlock", "stack overflow", "step budget exhausted", "canceled", "internal error",
}

// String names the fault.
func (k FaultKind) String() string { return faultNames[k] }

// A Fault is an error that stopped a kernel. One lane is named; others may have
// failed at the same instruction.
type Fault struct {
	Kind        FaultKind
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
	if f.Kind == FaultIllegalAddress || f.Kind == FaultMisaligned {
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

// ErrNotFound is returned for a name that a module does not have.
var ErrNotFound = errors.New("ptxvm: not found")
