// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A printer collects what device code prints until a thread with the GIL writes
// it to sys.stdout.
type printer struct {
	mu   sync.Mutex
	text []byte        // guarded by mu
	any  *atomic.Int32 // is there text? Most waits ask, and go no further
}

var printed = printer{any: (*atomic.Int32)(unsafe.Pointer(C.cudago_printed_address()))}

// Write implements io.Writer. Any goroutine.
func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text, b...)
	p.any.Store(1)
	return len(b), nil
}

// cudagoPrinted returns what was printed since the last call, or nil.
//
//export cudagoPrinted
func cudagoPrinted() *C.char {
	printed.mu.Lock()
	defer printed.mu.Unlock()
	if len(printed.text) == 0 {
		return nil
	}
	printed.any.Store(0)
	s := C.CString(string(printed.text))
	printed.text = printed.text[:0]
	return s
}
