// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

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

// Undefine says that the content of a live allocation is undefined: it is new.
// From here on it is noted what is written there.
func (m *Memory) Undefine(base uint64) {
	b, size, _, ok := m.Range(base)
	if !ok || b != base {
		return
	}
	m.Forget(base)
	s := m.shadows.get(base, size)
	m.shadows.mu.Lock()
	defer m.shadows.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.undefined {
		s.undefined = true
		m.shadows.undefined.Add(1)
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
	s := at.shadows.get(base, whole)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.define(addr-base, min(size, whole-(addr-base)))
}

// Undefined reports whether there is memory with undefined content that is
// watched, of this device or of a peer.
func (m *Memory) Undefined() bool {
	if m.shadows.undefined.Load() > 0 {
		return true
	}
	for _, p := range m.peers {
		if p.shadows.undefined.Load() > 0 {
			return true
		}
	}
	return false
}

// DefineAll says that somebody unknown may have written anywhere, in the memory
// of peers too.
func (m *Memory) DefineAll() {
	m.shadows.defineAll()
	for _, p := range m.peers {
		p.shadows.defineAll()
	}
}

func (t *shadowTable) defineAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.m {
		s.mu.Lock()
		s.undefined = false
		s.mu.Unlock()
	}
	t.undefined.Store(0)
}

// Forget drops what the checks know of the range that starts at base.
func (m *Memory) Forget(base uint64) {
	m.shadows.mu.Lock()
	defer m.shadows.mu.Unlock()
	if s := m.shadows.m[base]; s != nil {
		m.shadows.drop(s)
	}
}

// ForgetTraces says that all work until now happens before all that follows.
func (m *Memory) ForgetTraces() { m.shadows.forgetTraces() }

// shadowAt returns the shadow of the range that contains addr. Memory that is
// only lent has none: its owner writes it as he likes.
func (m *Memory) shadowAt(addr uint64) *shadow {
	at := m.holder(addr)
	base, size, kind, ok := at.Range(addr)
	if !ok || kind == HostPageable {
		return nil
	}
	return at.shadows.get(base, size)
}
