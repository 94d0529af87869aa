// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package memfault makes the fault of a memory access a panic of the goroutine
// that made it, in a process where others handle such signals too.
//
// Go's runtime does that only where its handler is asked first. What has put a
// handler before it, as Python's faulthandler does if it is enabled after the
// import, takes the fault for the end of the process. So code that touches
// memory which somebody else may have taken away says when it begins, and the
// border to C gives Go's handler the first word until it has ended.
package memfault

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// border are its functions.
type border struct{ begin, end func() }

// known is nil in a program in Go alone, where no other handler is.
var known atomic.Pointer[border]

// SetBorder sets what gives Go's handler the first word, and what takes it back.
// Calls of begin and end come in pairs, from many threads at once.
func SetBorder(begin, end func()) { known.Store(&border{begin, end}) }

// Section is a time in which Go's handler has the first word. Only it can make
// faults panics.
type Section struct{ border *border }

// Begin begins a section.
func Begin() Section {
	s := Section{known.Load()}
	if s.border != nil {
		s.border.begin()
	}
	return s
}

// End ends the section. Its goroutines must be done with the memory.
func (s Section) End() {
	if s.border != nil {
		s.border.end()
	}
}

// Panics makes faults of this goroutine panics until the function that it
// returns is called, in the section.
func (Section) Panics() (restore func()) {
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// Address returns the address of the fault if p is the panic of one.
func Address(p any) (addr uintptr, ok bool) {
	fault, ok := p.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		return 0, false
	}
	return fault.Addr(), true
}

// Text returns where this program's Go code lies: what a handler in C compares
// the place of a fault with.
func Text() (begin, end uintptr) {
	here, _, _, _ := runtime.Caller(0)
	isGo := func(pc uintptr) bool { return runtime.FuncForPC(pc) != nil }
	return edge(here, isGo, false), edge(here, isGo, true)
}

// edge returns the end of the range around here in which isGo holds, or its
// first address.
func edge(here uintptr, isGo func(uintptr) bool, upwards bool) uintptr {
	from := func(distance uintptr) uintptr {
		if upwards {
			return here + distance
		}
		return here - distance
	}
	outside := uintptr(1)
	for isGo(from(outside)) {
		outside *= 2
	}
	inside := outside / 2
	for outside-inside > 1 {
		if middle := inside + (outside-inside)/2; isGo(from(middle)) {
			inside = middle
		} else {
			outside = middle
		}
	}
	if upwards {
		return from(outside)
	}
	return from(inside)
}
