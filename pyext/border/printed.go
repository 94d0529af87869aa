// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

import "C"

import "sync"

// A printer collects what device code prints until a thread with the GIL writes
// it to sys.stdout.
type printer struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

var printed printer

// Write implements io.Writer. Any goroutine.
func (p *printer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text, b...)
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
	s := C.CString(string(printed.text))
	printed.text = printed.text[:0]
	return s
}
