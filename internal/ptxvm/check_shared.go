// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
)

// byteSet has a bit for each byte.
type byteSet []uint64

func newByteSet(size uint64) byteSet { return make(byteSet, (size+63)/64) }

// define adds the bytes [off, off+size).
func (s byteSet) define(off, size uint64) {
	for end := off + size; off < end; {
		n := min(end-off, 64-off%64)
		s[off/64] |= bitRange(off%64, n)
		off += n
	}
}

// missing returns how many of the bytes [off, off+size) are not in the set, and
// the first of them.
func (s byteSet) missing(off, size uint64) (n, first uint64) {
	for end := off + size; off < end; {
		some := min(end-off, 64-off%64)
		if gap := bitRange(off%64, some) &^ s[off/64]; gap != 0 {
			if n == 0 {
				first = off&^63 + uint64(bits.TrailingZeros64(gap))
			}
			n += uint64(bits.OnesCount64(gap))
		}
		off += some
	}
	return n, first
}

// sharedOffset returns where in shared memory an address of the access is.
func (a *access) sharedOffset(addr uint64) (off uint64, ok bool) {
	switch addr >> windowShift {
	case 0:
		return addr, a.space == ptxir.SpaceShared
	case sharedWindow:
		return addr - sharedBase, true
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
	if !a.kind.writes() || a.reads {
		if n, _ := v.written.missing(start, end-start); n > 0 {
			return false
		}
	}
	if a.kind.writes() {
		v.written.define(start, end-start)
	}
	return true
}

// remove takes the bytes [off, off+size) out of the set.
func (s byteSet) remove(off, size uint64) {
	for end := off + size; off < end; {
		n := min(end-off, 64-off%64)
		s[off/64] &^= bitRange(off%64, n)
		off += n
	}
}

// copy makes [to, to+size) what [from, from+size) is; the two do not overlap.
func (s byteSet) copy(to, from, size uint64) {
	s.define(to, size)
	if n, _ := s.missing(from, size); n == 0 {
		return
	}
	for i := range size {
		if s[(from+i)/64]>>((from+i)%64)&1 == 0 {
			s.remove(to+i, 1)
		}
	}
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
