// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

// Touch checks an access of [addr, addr+size) by work that is no kernel, such
// as a copy, and notes it. The range must be live; what is not known memory is
// left alone. Flush reports what was found.
func (m *Memory) Touch(v *Watch, addr, size uint64, write bool) {
	v.memory = m
	s := m.shadowAt(addr)
	if s == nil || size == 0 || size > s.size-(addr-s.base) {
		return
	}
	now := trace{task: v.Task, kind: weakRead, bytes: 1<<wordBytes - 1}
	if write {
		now.kind = weakWrite
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	off := addr - s.base
	if v.Checks&CheckUninitialized != 0 && !write {
		if n, first := s.undefinedAt(off, size); n > 0 {
			s.define(off, size)
			v.add(findingKey{kind: FindingUninitialized}, 0, func() *Finding {
				return &Finding{Kind: FindingUninitialized, Here: v.access(&now), Address: s.base + first, Size: n, Nearest: v.nearest(s.base + first)}
			})
		}
	}
	if write {
		s.define(off, size)
	}
	if v.Checks&CheckRaces != 0 {
		v.touchWords(s, now, off, off+size)
	}
}

// Flush reports what was found. Launches do it by themselves.
func (v *Watch) Flush() { v.flush() }

// touchWords visits the words of [off, end), whole pages at once where nothing
// finer is known of them.
//
// Preconditions: s.mu must be locked.
func (v *Watch) touchWords(s *shadow, now trace, off, end uint64) {
	for off < end {
		if off%pageBytes == 0 && end-off >= pageBytes && s.page(off/pageBytes).cells == nil {
			v.visitRange(&s.page(off/pageBytes).whole, now, s.base+off)
			off += pageBytes
			continue
		}
		n := min(end-off, wordBytes-off%wordBytes)
		now.bytes = byte(1<<n-1) << (off % wordBytes)
		if c := s.cell(off / wordBytes); c != nil {
			v.visitRange(c, now, s.base+off)
		}
		off += n
		now.bytes = 1<<wordBytes - 1
	}
}

// visitRange is blockWatch.visit for work that is no kernel: of its own accesses
// none race.
func (v *Watch) visitRange(c *cell, now trace, place uint64) {
	races := func(before *trace) bool {
		if before.task == 0 || before.task == now.task || before.bytes&now.bytes == 0 || !before.kind.writes() && !now.kind.writes() {
			return false
		}
		if v.unordered(before.task) == nil {
			return false
		}
		before2 := *before
		v.raceOf(&now, &before2, false, place)
		return true
	}
	races(&c.write)
	if now.kind.writes() {
		if !races(&c.read) {
			races(&c.read2)
		}
		*c = cell{write: now}
		return
	}
	for _, r := range []*trace{&c.read, &c.read2} {
		if r.task == 0 || r.task == now.task || v.unordered(r.task) == nil {
			*r = now
			return
		}
	}
}
