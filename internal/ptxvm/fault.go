// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"errors"
	"fmt"
	"strings"
)

// Nearest is the allocation or host range closest to an address.
type Nearest struct {
	Found      bool
	Base, Size uint64
	Kind       Kind
	Name       string // module variables
	Freed      bool
	Site       any // where it was allocated, as given to Alloc
	FreeSite   any // where it was freed, as given to Free
	// Offset of the address from Base; negative before it.
	Offset int64
}

// String describes the range and where the address lies.
func (n Nearest) String() string {
	if !n.Found {
		return "no allocation is near"
	}
	var b strings.Builder
	switch end := int64(n.Size); {
	case n.Offset < 0:
		fmt.Fprintf(&b, "%d bytes before ", -n.Offset)
	case n.Offset >= end:
		fmt.Fprintf(&b, "%d bytes past the end of ", n.Offset-end)
	default:
		fmt.Fprintf(&b, "at offset %d of ", n.Offset)
	}
	if n.Freed {
		b.WriteString("freed ")
	}
	fmt.Fprintf(&b, "%s", n.Kind)
	if n.Name != "" {
		fmt.Fprintf(&b, " %s", n.Name)
	}
	fmt.Fprintf(&b, " of %d bytes at %#x", n.Size, n.Base)
	if n.Site != nil {
		fmt.Fprintf(&b, ", allocated at %v", n.Site)
	}
	if n.Freed && n.FreeSite != nil {
		fmt.Fprintf(&b, ", freed at %v", n.FreeSite)
	}
	return b.String()
}

func (n Nearest) suffix() string { return " (" + n.String() + ")" }

// nearest finds the range closest to addr, live or freed.
//
// Preconditions: m.mu must be locked for reading.
func (m *Memory) nearest(addr uint64) Nearest {
	var best Nearest
	var bestGap uint64
	try := func(n Nearest) {
		gap := addr - n.Base
		switch {
		case addr < n.Base:
			gap = n.Base - addr
		case gap < n.Size:
			gap = 0
		default:
			gap -= n.Size - 1
		}
		const far = 1 << 32
		if gap < far && (!best.Found || gap < bestGap) {
			n.Found, n.Offset = true, int64(addr-n.Base)
			best, bestGap = n, gap
		}
	}
	for _, a := range m.allocs {
		try(Nearest{Base: a.base, Size: a.size, Kind: a.kind, Name: a.name, Freed: a.freed, Site: a.site, FreeSite: a.freeSite})
	}
	m.mapped.each(try)
	for _, r := range m.hosts.list {
		try(Nearest{Base: r.base, Size: r.size, Kind: r.kind})
	}
	return best
}

// An AccessError is an access outside every live allocation.
type AccessError struct {
	Address, Size uint64
	Nearest       Nearest
}

// Error describes the access and the closest allocation.
func (e *AccessError) Error() string {
	return fmt.Sprintf("ptxvm: access of %d bytes at %#x is outside every live allocation: %s", e.Size, e.Address, e.Nearest)
}

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
	Nearest     Nearest
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
