// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// Touch checks an access of [addr, addr+size) by work that is not a kernel, such as
// a copy, and notes it. The range must be live; unknown memory is ignored. Flush
// reports what was found.
func (v *Watch) Touch(m *memory.Memory, addr, size uint64, write bool) {
	v.memory = m
	s := m.ShadowAt(addr)
	if s == nil || size == 0 || size > s.Size-(addr-s.Base) {
		return
	}
	now := shadow.Trace{Task: v.Task, Kind: shadow.WeakRead, Bytes: 1<<shadow.WordBytes - 1}
	if write {
		now.Kind = shadow.WeakWrite
	}
	s.Lock()
	defer s.Unlock()
	off := addr - s.Base
	if v.Checks&Uninitialized != 0 && !write {
		if n, first := s.UndefinedAt(off, size); n > 0 {
			s.Define(off, size)
			v.add(findingKey{kind: FindingUninitialized}, 0, func() *Finding {
				return &Finding{Kind: FindingUninitialized, Here: v.access(&now), Address: s.Base + first, Size: n, Nearest: v.nearest(s.Base + first)}
			})
		}
	}
	if write {
		s.Define(off, size)
	}
	if v.Checks&Races != 0 {
		v.touchWords(s, now, off, off+size)
	}
}

// Flush reports what was found. A launch does so itself.
func (v *Watch) Flush() { v.flush() }

// touchWords visits the words of [off, end), or whole pages at once where the
// shadow does not tell their words apart.
//
// Preconditions: s.mu must be locked.
func (v *Watch) touchWords(s *shadow.Range, now shadow.Trace, off, end uint64) {
	for off < end {
		if off%shadow.PageBytes == 0 && end-off >= shadow.PageBytes && s.WholePage(off/shadow.PageBytes) != nil {
			v.visitRange(s.WholePage(off/shadow.PageBytes), now, s.Base+off)
			off += shadow.PageBytes
			continue
		}
		n := min(end-off, shadow.WordBytes-off%shadow.WordBytes)
		now.Bytes = byte(1<<n-1) << (off % shadow.WordBytes)
		if c := s.Cell(off / shadow.WordBytes); c != nil {
			v.visitRange(c, now, s.Base+off)
		}
		off += n
		now.Bytes = 1<<shadow.WordBytes - 1
	}
}

// visitRange is Block.visit for work that is not a kernel, whose own accesses never
// race with each other.
func (v *Watch) visitRange(c *shadow.Cell, now shadow.Trace, place uint64) {
	races := func(before *shadow.Trace) bool {
		if before.Task == 0 || before.Task == now.Task || before.Bytes&now.Bytes == 0 || !before.Kind.Writes() && !now.Kind.Writes() {
			return false
		}
		if v.unordered(before.Task) == nil {
			return false
		}
		before2 := *before
		v.raceOf(&now, &before2, false, place)
		return true
	}
	races(&c.Write)
	if now.Kind.Writes() {
		if !races(&c.Read) {
			races(&c.Read2)
		}
		*c = shadow.Cell{Write: now}
		return
	}
	for _, r := range []*shadow.Trace{&c.Read, &c.Read2} {
		if r.Task == 0 || r.Task == now.Task || v.unordered(r.Task) == nil {
			*r = now
			return
		}
	}
}
