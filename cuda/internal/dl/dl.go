// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package dl opens shared libraries at run time: NVIDIA's, which cudago is not
// linked to, so that it can be imported where there are none.
package dl

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/cudago/cudago/internal/pathname"
)

// A Library is an open shared library. It is never closed: libcuda starts
// threads that run its code, and other libraries in the process share it.
type Library struct {
	handle unsafe.Pointer
}

// Open opens the library called name, by the loader's search if that has no
// slash. If it cannot, why is the loader's text, and not empty.
func Open(name string) (l Library, why string) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var text [1024]C.char
	l.handle = C.cudago_dl_open(cname, &text[0], C.int(len(text)))
	if l.handle == nil {
		why = C.GoString(&text[0])
	}
	return l, why
}

// IsOpen reports whether Open could open it.
func (l Library) IsOpen() bool { return l.handle != nil }

// Symbol returns the address of an exported symbol, or zero.
func (l Library) Symbol(name string) uintptr {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	return uintptr(C.cudago_dl_symbol(l.handle, cname))
}

// Symbols returns the addresses of exported symbols, or which one is missing.
func (l Library) Symbols(names []string) (at []uintptr, why string) {
	for _, name := range names {
		a := l.Symbol(name)
		if a == 0 {
			return nil, "lacks " + name
		}
		at = append(at, a)
	}
	return at, ""
}

// FileOf returns the file that an address was loaded from; empty if the loader
// does not know.
func FileOf(address uintptr) string {
	file := C.cudago_dl_file(C.uintptr_t(address))
	if file == nil {
		return ""
	}
	return pathname.Absolute(C.GoString(file))
}

// Describe tells files apart by name, size and time, a line for each that there
// is: reading libraries of 100 MB to tell one build from another would take longer
// than what they are opened for.
func Describe(files ...string) string {
	var b strings.Builder
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintf(&b, "\n%s %d %d", file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
