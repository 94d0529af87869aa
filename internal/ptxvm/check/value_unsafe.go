// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/matrix"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

const (
	// storing is how long an announced store may take: its thread may have lost
	// the processor.
	storing = 50 * time.Millisecond
	// mostWaits limits how often a launch that is full of races waits.
	mostWaits = 1000
)

// sameValue reports whether two racing stores write the same value, as threads do
// that all set one flag. Then it does not matter which comes last.
func (v *Block) sameValue(t *touch, before *shadow.Trace) bool {
	if t.now.Kind != shadow.WeakWrite || before.Kind != shadow.WeakWrite || t.a.values == nil && t.a.matrices == nil {
		return false
	}
	mine := t.a.stored(t.w, t.lane)
	if before.Site == t.a.site && int(before.Thread)/register.Lanes == t.w.Index {
		// The other lane's store may be part of this very instruction, and not
		// have happened yet.
		if l := int(before.Thread) % register.Lanes; l < t.lane && t.mask>>l&1 != 0 && t.a.address(t.w, l) == t.addr {
			return bytes.Equal(mine, t.a.stored(t.w, l))
		}
	}
	there, ok := v.content(t)
	if !ok || bytes.Equal(mine, there) || before.Block == t.now.Block {
		return ok && bytes.Equal(mine, there)
	}
	// A block of another worker says that it stores before it does.
	for end := time.Now().Add(storing); v.waits.Add(1) <= mostWaits && time.Now().Before(end); {
		time.Sleep(storing / 100)
		if there, _ = v.content(t); bytes.Equal(mine, there) {
			return true
		}
	}
	return false
}

// stored is the value that a lane stores.
func (a *access) stored(w *lane.Warp, l int) []byte {
	out := make([]byte, 0, 16)
	if a.matrices != nil {
		row := matrix.StoredRow(w.File, a.ir, a.matrices[l/8], l%8)
		return row[:]
	}
	for _, x := range a.values {
		out = binary.LittleEndian.AppendUint64(out, w.Raw(x.reg, x.class, l))
		out = out[:len(out)-8+int(x.size)]
	}
	return out
}

// content is the present content of the memory that is accessed.
//
//go:norace
func (v *Block) content(t *touch) ([]byte, bool) {
	s, ok := t.w.GenericSite(t.addr, t.size)
	if t.a.space == ptxir.SpaceShared && t.addr>>memory.WindowShift == 0 {
		s, ok = t.w.SharedSite(0, t.addr), true
	}
	if off := t.addr - s.Base; !ok || off >= s.Span || t.size > s.Span-off {
		return nil, false
	}
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Add(s.Host, t.addr-s.Base)), t.size)), true
}
