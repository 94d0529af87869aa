// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"errors"
	"fmt"
	"strings"
)

// UnsupportedError is valid PTX that the simulated device does not run. The
// kernels that contain or call it cannot be launched; others can.
type UnsupportedError struct {
	Module string
	// Kernel is the kernel that is unusable, Function the function that holds
	// the instruction; they differ when the kernel calls it.
	Kernel, Function string
	Line             int
	SourceFile       string // what .loc says; empty without line information
	SourceLine       int
	Instruction      string
	Reason           string
	// Section is the title of the part of the PTX ISA document.
	Section string
	Hint    string
}

// Error says all of it in one line.
func (e *UnsupportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ptx: %s, line %d: ", e.Module, e.Line)
	if e.Instruction != "" {
		fmt.Fprintf(&b, "%q ", e.Instruction)
	}
	b.WriteString("cannot run on the simulated device: " + e.Reason)
	if e.Section != "" {
		fmt.Fprintf(&b, " (PTX ISA, %q)", e.Section)
	}
	if e.Kernel != "" {
		fmt.Fprintf(&b, "; kernel %s", e.Kernel)
		if e.Function != "" && e.Function != e.Kernel {
			fmt.Fprintf(&b, ", in function %s", e.Function)
		}
	}
	if e.SourceFile != "" {
		fmt.Fprintf(&b, ", from %s:%d", e.SourceFile, e.SourceLine)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unsupported returns why kernels of the module cannot run, one error for each
// such kernel, in order of appearance.
func (m *Module) Unsupported() []*UnsupportedError {
	var list []*UnsupportedError
	for _, k := range m.Kernels {
		if e, ok := errors.AsType[*UnsupportedError](k.Err); ok {
			list = append(list, e)
		}
	}
	return list
}

// markUnsupported carries the errors of functions to those that call them.
func (l *loader) markUnsupported() {
	callers := map[*function][]*symbol{}
	var work []*symbol
	for _, s := range l.bodies {
		for _, callee := range s.fn.calls {
			callers[callee.fn] = append(callers[callee.fn], s)
		}
		if s.fn.out.Err != nil {
			work = append(work, s)
		}
	}
	for len(work) > 0 {
		s := work[0]
		work = work[1:]
		for _, caller := range callers[s.fn] {
			if caller.fn.out.Err == nil {
				caller.fn.out.Err = s.fn.out.Err
				work = append(work, caller)
			}
		}
	}
	for _, s := range l.bodies {
		// The error of a shared function is named for each kernel apart.
		if e, ok := errors.AsType[*UnsupportedError](s.fn.out.Err); ok && s.kern != nil {
			mine := *e
			mine.Kernel = s.name
			s.fn.out.Err = &mine
		}
	}
}
