// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// sharedOffset returns where in shared memory an address of the access is.
func (a *access) sharedOffset(addr uint64) (off uint64, ok bool) {
	switch addr >> memory.WindowShift {
	case 0:
		return addr, a.space == ptxir.SpaceShared
	case memory.SharedWindow:
		return addr - memory.SharedBase, true
	}
	return 0, false
}

// allWritten is check for when only uninitialized reads of shared memory can be
// found. It takes neighbours together, and reports false if it has found one,
// for which check looks at lane by lane.
func (v *blockWatch) allWritten(w *warp, a *access, m uint32) bool {
	var start, end uint64
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		off, ok := a.sharedOffset(a.address(w, l))
		size := a.sizeIn(w, l)
		switch {
		case !ok || size == 0 || off >= start && off+size <= end:
		case off == end:
			end += size
		default:
			if !v.writtenRange(a, start, end) {
				return false
			}
			start, end = off, off+size
		}
	}
	return v.writtenRange(a, start, end)
}

// writtenRange notes or checks what allWritten has put together. What is out of
// bounds is not its business.
func (v *blockWatch) writtenRange(a *access, start, end uint64) bool {
	if end > v.cta.sharedBytes {
		return false
	}
	if !a.kind.Writes() || a.reads {
		if n, _ := v.written.Missing(start, end-start); n > 0 {
			return false
		}
	}
	if a.kind.Writes() {
		v.written.Define(start, end-start)
	}
	return true
}

// placedVar is a variable's place in shared memory or in a frame, for reports.
type placedVar struct {
	name      string
	off, size uint64
}

// namePlaces notes the shared variables' places. Those of no size are one: the
// dynamic shared memory.
func (d *decoder) namePlaces() {
	for v, off := range d.shared {
		if v.Size > 0 {
			d.kernel.sharedVars = append(d.kernel.sharedVars, placedVar{localName(v), uint64(off), v.Size})
		}
	}
}

// sharedPlace says in which variable an offset in shared memory lies.
func (k *Kernel) sharedPlace(off uint64) string {
	for _, v := range k.sharedVars {
		if off-v.off < v.size {
			return fmt.Sprintf("at offset %d of shared variable %s of %d bytes", off-v.off, v.name, v.size)
		}
	}
	if off >= uint64(k.dynamicOffset) {
		return fmt.Sprintf("at offset %d of dynamic shared memory", off-uint64(k.dynamicOffset))
	}
	return "between two shared variables"
}

// localName is what the source calls a variable of a function: PTX has that at
// the end of a mangled name, "_ZZ…E<length><name>".
func localName(v *ptxir.Var) string {
	if !strings.HasPrefix(v.Name, "_ZZ") {
		return v.Name
	}
	for i := strings.LastIndexByte(v.Name, 'E'); i > 0; i = strings.LastIndexByte(v.Name[:i], 'E') {
		rest := strings.TrimLeft(v.Name[i+1:], "0123456789")
		n, err := strconv.Atoi(strings.TrimSuffix(v.Name[i+1:], rest))
		if err != nil || n == 0 || n > len(rest) {
			continue
		}
		if name, number := rest[:n], rest[n:]; number == "" || number[0] == '_' {
			return name
		}
	}
	return v.Name
}
