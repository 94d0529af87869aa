// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"syscall"
	"unsafe"

	"github.com/cudago/cudago/internal/memfd"
)

// arena is a stretch of device addresses with host addresses behind it, one for
// one, so that memory mapped side by side lies side by side for the host too.
// Half of it is room for reservations that want to follow the first.
type arena struct {
	base uint64 // device address
	mem  []byte // host addresses, of which only the mapped ones can be touched

	mu   sync.Mutex
	next uint64 // guarded by mu; the first device address that nobody reserved
	refs int    // guarded by mu; reservations, and mappings that the host still sees
	// shown is guarded by mu: what the host sees in each granule.
	shown map[uint64]*mapping
}

func newArena(size, align uint64) (*arena, error) {
	// Addresses are never used again, and so neither are those that are skipped.
	if size > 1<<46 || align > 1<<46 {
		return nil, syscall.ENOMEM
	}
	total := 2 * size
	mem, err := syscall.Mmap(-1, 0, int(total), syscall.PROT_NONE, addressesOnly)
	if err != nil {
		return nil, err
	}
	base := reserveAddress(total, align)
	return &arena{base: base, mem: mem, next: base, shown: map[uint64]*mapping{}}, nil
}

// reserve reserves size addresses from addr on, or returns nil.
func (a *arena) reserve(addr, size uint64) *Reservation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr != a.next || size > a.base+uint64(len(a.mem))-addr {
		return nil
	}
	a.next += size
	a.refs++
	return &Reservation{base: addr, size: size, arena: a}
}

// free ends a reservation. Addresses behind the first reservation can be reserved
// again.
func (a *arena) free(r *Reservation) {
	a.mu.Lock()
	if r.base+r.size == a.next && r.base != a.base {
		a.next = r.base
	}
	a.mu.Unlock()
	a.unref()
}

func (a *arena) host(addr uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(a.mem)), addr-a.base)
}

// show makes a mapping visible to the host, in place of an older one that kernels
// may still be using.
func (a *arena) show(m *mapping) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	part := m.physical.part
	if err := memfd.MapAt(a.host(m.base), part.file.Fd(), part.offset, m.size); err != nil {
		return err
	}
	for at := m.base; at < m.end(); at += MappingGranularity {
		a.shown[at] = m
	}
	a.refs++
	return nil
}

// hide makes a mapping invisible to the host, except where a newer one has taken
// its place.
func (a *arena) hide(m *mapping) {
	a.mu.Lock()
	for at := m.base; at < m.end(); {
		from := at
		for at < m.end() && a.shown[at] == m {
			delete(a.shown, at)
			at += MappingGranularity
		}
		if at == from {
			at += MappingGranularity
			continue
		}
		// If that fails, for want of kernel memory, the pages stay until the
		// arena is freed.
		_, _, _ = syscall.Syscall6(syscall.SYS_MMAP, uintptr(a.host(from)), uintptr(at-from), syscall.PROT_NONE,
			addressesOnly|syscall.MAP_FIXED, ^uintptr(0), 0)
	}
	a.mu.Unlock()
	a.unref()
}

func (a *arena) unref() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refs--; a.refs == 0 {
		unmapMemory(a.mem)
		a.mem = nil
	}
}

// addressesOnly are the flags of addresses without memory.
const addressesOnly = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE

// resolve is Memory.resolve for mapped memory.
func (v *mappings) resolve(addr, size uint64, who *Memory) (Span, bool) {
	base, n, a, ok := v.run(addr, who)
	if !ok || size > n-(addr-base) {
		return Span{}, false
	}
	return Span{base, n, a.host(base)}, true
}
