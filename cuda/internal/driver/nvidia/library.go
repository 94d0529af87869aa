// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

/*
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"os"
	"strings"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/dl"
	"github.com/cudago/cudago/cuda/internal/driver"
)

// LibraryVariable names the environment variable that overrides the libraries
// that Open tries.
const LibraryVariable = "CUDAGO_LIBCUDA"

// defaultLibraries are tried in this order. The last is where WSL 2 keeps the
// driver of the Windows host, outside the loader's path on some distributions.
var defaultLibraries = []string{
	"libcuda.so.1",
	"libcuda.so",
	"/usr/lib/wsl/lib/libcuda.so.1",
}

// Attempt is one library that could not be opened.
type Attempt struct {
	Name string
	Why  string // the loader's text
}

// NotFoundError says that no CUDA driver library could be opened.
type NotFoundError struct {
	Tried []Attempt
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("no CUDA driver library could be opened; tried")
	for _, a := range e.Tried {
		b.WriteString("\n  " + a.Name + ": " + a.Why)
	}
	return b.String()
}

// library is an open libcuda.
type library struct {
	dl.Library
	name string
}

// candidates are the libraries to try. A choice that the user made is not
// widened: what was asked for is opened, or the error says why not.
func candidates(o Options) []string {
	if len(o.Libraries) > 0 {
		return o.Libraries
	}
	if name := os.Getenv(LibraryVariable); name != "" {
		return []string{name}
	}
	return defaultLibraries
}

func openLibrary(names []string) (library, error) {
	var tried []Attempt
	for _, name := range names {
		l, why := dl.Open(name)
		if l.IsOpen() {
			return library{l, name}, nil
		}
		tried = append(tried, Attempt{name, why})
	}
	return library{}, &NotFoundError{tried}
}

// symbol returns the address of an exported symbol, or zero.
func (l library) symbol(name string) C.uintptr_t { return C.uintptr_t(l.Symbol(name)) }

// procAddress asks cuGetProcAddress_v2, whose address is get, for a call as it
// was in the given CUDA version.
func procAddress(get C.uintptr_t, name string, version int) (C.uintptr_t, driver.CUresult) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var found C.uintptr_t
	r := C.cudago_get_proc_address(get, cname, C.int(version), &found)
	return found, driver.CUresult(r)
}
