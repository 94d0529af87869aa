// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

// Freed describes the freed allocation that contained addr, if there is one and
// it is remembered.
func (m *Memory) Freed(addr uint64) (Nearest, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	a := m.at(addr)
	if a == nil || !a.freed {
		return Nearest{}, false
	}
	return Nearest{
		Found: true, Base: a.base, Size: a.size, Kind: a.kind, Name: a.name, Freed: true, Site: a.site, FreeSite: a.freeSite,
		Offset: int64(addr - a.base),
	}, true
}
