// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import "github.com/cudago/cudago/internal/ptxvm/shadow"

// Freed describes the freed allocation, or the unmapped memory, that contained
// addr, if there is one and it is remembered.
func (m *Memory) Freed(addr uint64) (Nearest, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	a := m.at(addr)
	if a == nil {
		return m.mapped.unmapped(addr)
	}
	if !a.freed {
		return Nearest{}, false
	}
	return Nearest{
		Found: true, Base: a.base, Size: a.size, Kind: a.kind, Name: a.name, Freed: true, Site: a.site, FreeSite: a.freeSite,
		Offset: int64(addr - a.base),
	}, true
}

// Undefine says that the content of a live allocation is undefined, because it is
// new. From now on the checks note which of its bytes are written.
func (m *Memory) Undefine(base uint64) {
	if b, size, _, ok := m.Range(base); ok && b == base {
		m.shadows.Undefine(base, size)
	}
}

// Define says that somebody outside has written [addr, addr+size), or may have.
func (m *Memory) Define(addr, size uint64) {
	if !m.Undefined() {
		return
	}
	at := m.holder(addr)
	base, whole, _, ok := at.Range(addr)
	if !ok {
		return
	}
	s := at.shadows.Get(base, whole)
	s.Lock()
	defer s.Unlock()
	s.Define(addr-base, min(size, whole-(addr-base)))
}

// A Run is a row of bytes.
type Run = shadow.Run

// UndefinedParts returns which bytes of [addr, addr+size) nobody wrote. They must be
// of one range; otherwise nothing is known.
func (m *Memory) UndefinedParts(addr, size uint64) []Run {
	if !m.Undefined() {
		return nil
	}
	s := m.ShadowAt(addr)
	if s == nil || size > s.Size-(addr-s.Base) {
		return nil
	}
	s.Lock()
	defer s.Unlock()
	return s.Unwritten(addr-s.Base, size)
}

// UndefineParts says that bytes behind addr have undefined content again.
func (m *Memory) UndefineParts(addr uint64, parts []Run) {
	if len(parts) == 0 {
		return
	}
	s := m.ShadowAt(addr)
	if s == nil {
		return
	}
	s.Lock()
	defer s.Unlock()
	for _, p := range parts {
		if off := addr - s.Base + p.Off; off < s.Size {
			s.Undefine(off, min(p.Size, s.Size-off))
		}
	}
}

// Undefined reports whether there is memory with undefined content that is
// watched, of this device or of a peer.
func (m *Memory) Undefined() bool {
	if m.shadows.AnyUndefined() {
		return true
	}
	for _, p := range m.peers {
		if p.shadows.AnyUndefined() {
			return true
		}
	}
	return false
}

// DefineAll says that anything may have been written anywhere, also in the memory
// of peers.
func (m *Memory) DefineAll() {
	m.shadows.DefineAll()
	for _, p := range m.peers {
		p.shadows.DefineAll()
	}
}

// Forget drops what the checks know of the range that starts at base.
func (m *Memory) Forget(base uint64) { m.shadows.Forget(base) }

// ForgetTraces says that all work up to a number happens before all other work.
func (m *Memory) ForgetTraces(last uint32) { m.shadows.ForgetTraces(last) }

// ShadowAt returns the shadow of the range that contains addr. Pageable memory that
// is only lent has none: its owner may write to it at any time.
func (m *Memory) ShadowAt(addr uint64) *shadow.Range {
	at := m.holder(addr)
	base, size, kind, ok := at.Range(addr)
	if !ok || kind == HostPageable {
		return nil
	}
	return at.shadows.Get(base, size)
}
