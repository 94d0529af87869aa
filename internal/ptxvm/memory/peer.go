// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"sync/atomic"
)

// Connect makes the memories of several devices peers, before any is used: a
// kernel looks up in the others what its own device does not have. A [Permission]
// says what it may touch there.
func Connect(memories ...*Memory) {
	epoch := memories[0].epoch
	for i, m := range memories {
		m.ordinal, m.epoch = i, epoch
		for _, p := range memories {
			if p != m {
				m.peers = append(m.peers, p)
			}
		}
	}
}

// Permission says which devices, besides its own, may touch memory. The zero
// Permission allows none. Safe for concurrent use.
type Permission struct {
	call string
	mask atomic.Uint32 // a bit for each ordinal
}

// NewPermission returns a permission for no device. The call names, in messages, the
// call that would give access.
func NewPermission(call string) *Permission { return &Permission{call: call} }

// Allow says whether kernels on m's device may touch the memory.
func (a *Permission) Allow(m *Memory, allowed bool) {
	if allowed {
		a.mask.Or(1 << m.ordinal)
		return
	}
	a.mask.And(^uint32(1 << m.ordinal))
	m.epoch.Add(1)
}

// Allows reports what Allow said last.
func (a *Permission) Allows(m *Memory) bool { return a.mask.Load()&(1<<m.ordinal) != 0 }

// some reports whether any device has access.
func (a *Permission) some() bool { return a.mask.Load() != 0 }

// Peers is the permission for what Alloc gives out, and for module variables.
func (m *Memory) Peers() *Permission { return &m.open }

// accessTo returns what other devices may do to an allocation.
func (m *Memory) accessTo(a *allocation) *Permission {
	if a.access != nil {
		return a.access
	}
	return &m.open
}

// Reach finds the range for an access of [addr, addr+size) by a kernel on m's
// device. Peers come second, so that the common case costs one look-up. The
// locks of two memories are never held together.
func (m *Memory) Reach(addr, size uint64) (Span, bool) {
	m.mu.RLock()
	s, ok := m.resolve(addr, size, m)
	m.mu.RUnlock()
	if ok || len(m.peers) == 0 {
		return s, ok
	}
	for _, p := range m.peers {
		if s, ok := p.lend(m, addr, size); ok {
			return s, true
		}
	}
	return Span{}, false
}

// lend is resolve for a kernel on another device.
func (m *Memory) lend(to *Memory, addr, size uint64) (Span, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a := m.at(addr); a != nil {
		if a.freed || size > a.size-(addr-a.base) || !m.accessTo(a).Allows(to) {
			return Span{}, false
		}
		return Span{a.base, a.size, a.block.host}, true
	}
	return m.mapped.resolve(addr, size, to)
}

// holder returns the memory that addr lies in, m's own or a peer's; m if none.
func (m *Memory) holder(addr uint64) *Memory {
	if len(m.peers) == 0 || m.contains(addr) {
		return m
	}
	for _, p := range m.peers {
		if p.contains(addr) {
			return p
		}
	}
	return m
}

// contains reports whether addr is or was m's own.
func (m *Memory) contains(addr uint64) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.at(addr) != nil || m.mapped.at(addr) != nil {
		return true
	}
	if _, gone := m.mapped.unmapped(addr); gone {
		return true
	}
	_, lent := m.hosts.find(addr, 1)
	return lent
}

// Denied says why a kernel on m's device may not touch live memory of a peer. It
// returns the empty string if something else is wrong.
func (m *Memory) Denied(addr uint64) string {
	p := m.holder(addr)
	if p == m {
		return ""
	}
	call := p.deniesTo(m, addr)
	if call == "" {
		return ""
	}
	return fmt.Sprintf("memory of device %d, to which device %d has no access: %s would give it", p.ordinal, m.ordinal, call)
}

// Shut reports whether addr is live memory of a peer that copies on m's device
// cannot reach either. They reach what Alloc gave out, and module variables,
// whatever [Memory.Peers] says.
func (m *Memory) Shut(addr uint64) bool {
	p := m.holder(addr)
	if p == m {
		return false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if a := p.at(addr); a != nil {
		return !a.freed && a.access != nil && !a.access.Allows(m)
	}
	v := p.mapped.at(addr)
	return v != nil && !v.access.Allows(m)
}

// deniesTo returns the call that would give another device access to addr. It
// returns the empty string if nothing is there, or the device has access.
func (m *Memory) deniesTo(to *Memory, addr uint64) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a := m.at(addr); a != nil {
		if access := m.accessTo(a); !a.freed && !access.Allows(to) {
			return access.call
		}
		return ""
	}
	if v := m.mapped.at(addr); v != nil && !v.access.Allows(to) {
		return v.access.call
	}
	return ""
}

// Near describes addr as nearest does, in whichever memory it lies.
func (m *Memory) Near(addr uint64) Nearest {
	p := m.holder(addr)
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.nearest(addr)
}

// Held is what HoldAll holds.
type Held struct {
	own    *hold
	others []*hold
}

// HoldAll is Hold for m and its peers, whose memory a kernel may use too.
func (m *Memory) HoldAll() (h Held) {
	for _, p := range m.peers {
		h.others = append(h.others, p.hold())
	}
	h.own = m.hold()
	return h
}

// ReleaseAll ends what HoldAll began.
func (m *Memory) ReleaseAll(h Held) {
	m.unhold(h.own)
	for i, p := range m.peers {
		p.unhold(h.others[i])
	}
}
