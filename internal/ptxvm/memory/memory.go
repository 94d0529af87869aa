// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// Kind says what a range of addresses is.
type Kind uint8

// HostKind is the Kind of a host range.
type HostKind = Kind

// The kinds of ranges.
const (
	DeviceMemory    Kind = iota // Alloc
	ModuleMemory                // a module's .global or .const variable
	HostPinned                  // AddHost: page-locked host memory
	HostRegistered              // AddHost: host memory of the caller's that is page-locked
	HostManaged                 // AddHost: managed memory, one address for both sides
	HostPageable                // AddHost: ordinary host memory lent to kernels
	VirtualMemory               // Map
	ManagedVariable             // a module's variable that the host accesses as well
)

var kindNames = [...]string{"device memory", "module variable", "pinned host memory", "registered host memory", "managed memory", "pageable host memory", "mapped memory", "managed variable"}

// String names the kind for messages.
func (k Kind) String() string { return kindNames[k] }

// ErrOutOfMemory is returned by Alloc when the device is full.
var ErrOutOfMemory = errors.New("ptxvm: out of device memory")

// ErrNotAllocated is returned by Free for an address that is not the start of
// a live allocation.
var ErrNotAllocated = errors.New("ptxvm: not the start of a live allocation")

const (
	// AllocAlign is the alignment of the addresses that Alloc returns, of which
	// textures may be made.
	AllocAlign = 512
	// redzone is the least distance between two allocations, so that running
	// off the end of one never lands in the next.
	redzone = 256
	// quarantine is how many freed allocations are remembered.
	quarantine = 4096
)

// nextAddress is the next unused device address of this process. All devices
// share it, so that an address names one allocation of one device, once.
var nextAddress atomic.Uint64

// reserveAddress returns the start of size fresh device addresses.
func reserveAddress(size, align uint64) uint64 {
	for {
		old := nextAddress.Load()
		start := max(old, globalBase)
		start = (start + align - 1) &^ (align - 1)
		end := start + (size+redzone+AllocAlign-1)&^(AllocAlign-1)
		if nextAddress.CompareAndSwap(old, end) {
			return start
		}
	}
}

// Memory is a device's memory: its allocations, and the host ranges that
// kernels may touch. Its methods are safe for concurrent use.
type Memory struct {
	capacity uint64
	// epoch counts frees and revocations of access: whoever caches a look-up
	// compares it. Peers share it. This field and the two below are immutable once
	// memories are connected.
	epoch   *atomic.Uint64
	ordinal int        // among its peers
	peers   []*Memory  // memories of the other devices
	open    Permission // access of peers to memory without a Permission of its own

	mu       sync.RWMutex
	used     uint64             // guarded by mu
	allocs   []*allocation      // guarded by mu; by address, live and quarantined
	dead     int                // guarded by mu; how many of allocs are freed
	hosts    hostRanges         // guarded by mu
	mapped   mappings           // guarded by mu
	store    backing            // guarded by mu
	holds    map[*hold]struct{} // guarded by mu
	pending  []pendingFree      // guarded by mu; memory to give back when older holds end
	sequence uint64             // guarded by mu; orders holds and frees

	shadows shadow.Table // of the checks
}

// allocation is a live or freed range. Immutable but for the fields named.
type allocation struct {
	base, size uint64
	block      hostBlock
	kind       Kind
	name       string // module variables
	site       any
	access     *Permission // access of peers; nil: as Memory.open
	theirs     bool        // another process's, so not counted as used
	discounted bool        // guarded by Memory.mu; no longer counted as used
	freed      bool        // guarded by Memory.mu
	freeSite   any         // guarded by Memory.mu
}

// A hold keeps freed memory mapped that was live when the hold began.
type hold struct{ since uint64 }

type pendingFree struct {
	at   uint64
	free func()
}

// New returns a memory of that many bytes.
func New(capacity uint64) *Memory {
	m := &Memory{capacity: capacity, epoch: new(atomic.Uint64), holds: map[*hold]struct{}{}}
	m.open.call = "cuCtxEnablePeerAccess"
	return m
}

// Alloc returns the address of size fresh bytes, aligned to 512. Their content
// is undefined. The site is kept and named by errors about the allocation.
func (m *Memory) Alloc(size uint64, site any) (uint64, error) {
	return m.alloc(size, AllocAlign, DeviceMemory, "", site, nil)
}

// AllocShared is Alloc of memory with its own Permission for other devices.
func (m *Memory) AllocShared(size uint64, site any, access *Permission) (uint64, error) {
	return m.alloc(size, AllocAlign, DeviceMemory, "", site, access)
}

// AllocAligned is Alloc of memory that starts at a multiple of align, a power of
// two and at least AllocAlign.
func (m *Memory) AllocAligned(size, align uint64, site any) (uint64, error) {
	return m.alloc(size, align, DeviceMemory, "", site, nil)
}

// AllocVariable is Alloc of a module's variable, which errors name.
func (m *Memory) AllocVariable(size uint64, name string, site any) (uint64, error) {
	return m.alloc(size, AllocAlign, ModuleMemory, name, site, nil)
}

// AllocManagedVariable is AllocVariable of one that the host accesses as well.
func (m *Memory) AllocManagedVariable(size uint64, name string, site any) (uint64, error) {
	return m.alloc(size, AllocAlign, ManagedVariable, name, site, nil)
}

func (m *Memory) alloc(size, align uint64, kind Kind, name string, site any, access *Permission) (uint64, error) {
	if size == 0 {
		return 0, fmt.Errorf("ptxvm: allocation of 0 bytes")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if size > m.capacity || m.used > m.capacity-size {
		return 0, fmt.Errorf("%w: %d bytes requested, %d of %d free", ErrOutOfMemory, size, m.capacity-m.used, m.capacity)
	}
	block, err := m.store.get(size)
	if err != nil {
		return 0, fmt.Errorf("%w: %d bytes: %w", ErrOutOfMemory, size, err)
	}
	base := reserveAddress(size, align)
	m.used += size
	m.allocs = append(m.allocs, &allocation{base: base, size: size, block: block, kind: kind, name: name, site: site, access: access})
	return base, nil
}

// Free ends the allocation that starts at addr. Its record stays for a while,
// so that a use after free is named as one.
func (m *Memory) Free(addr uint64, site any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.at(addr)
	if a == nil || a.base != addr || a.freed {
		return fmt.Errorf("%w: %#x%s", ErrNotAllocated, addr, m.nearest(addr).suffix())
	}
	a.freed, a.freeSite = true, site
	m.discount(a)
	m.epoch.Add(1)
	block := a.block
	m.retire(func() { m.store.put(block) })
	a.block = hostBlock{}
	m.dead++
	if m.dead > quarantine+len(m.allocs)/2 {
		m.forget()
	}
	return nil
}

// Discount stops counting a live allocation, the one that starts at addr, as used:
// it is about to be freed, and its bytes may be promised to another.
func (m *Memory) Discount(addr uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.at(addr); a != nil && a.base == addr && !a.freed {
		m.discount(a)
	}
}

// Preconditions: m.mu must be locked.
func (m *Memory) discount(a *allocation) {
	if !a.theirs && !a.discounted {
		a.discounted = true
		m.used -= a.size
	}
}

// retire gives memory back, or keeps it until the holds that may use it end.
//
// Preconditions: m.mu must be locked, and is when free runs.
func (m *Memory) retire(free func()) {
	if len(m.holds) == 0 {
		free()
		return
	}
	m.sequence++
	m.pending = append(m.pending, pendingFree{m.sequence, free})
}

// forget drops the oldest freed records down to half the quarantine.
//
// Preconditions: m.mu must be locked.
func (m *Memory) forget() {
	drop := m.dead - quarantine/2
	m.allocs = slices.DeleteFunc(m.allocs, func(a *allocation) bool {
		if drop > 0 && a.freed {
			drop--
			m.dead--
			return true
		}
		return false
	})
}

// Hold keeps everything that is mapped now mapped until release is called,
// freed or not. Whoever uses a pointer from Bytes while others may free it
// holds the memory meanwhile.
func (m *Memory) Hold() (release func()) {
	h := m.hold()
	return func() { m.unhold(h) }
}

func (m *Memory) hold() *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sequence++
	h := &hold{since: m.sequence}
	m.holds[h] = struct{}{}
	return h
}

func (m *Memory) unhold(h *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holds, h)
	if len(m.pending) == 0 {
		return
	}
	oldest := ^uint64(0)
	for o := range m.holds {
		oldest = min(oldest, o.since)
	}
	m.pending = slices.DeleteFunc(m.pending, func(p pendingFree) bool {
		if p.at < oldest {
			p.free()
			return true
		}
		return false
	})
}

// at returns the allocation, live or freed, that contains addr.
//
// Preconditions: m.mu must be locked for reading.
func (m *Memory) at(addr uint64) *allocation {
	i := sort.Search(len(m.allocs), func(i int) bool { return m.allocs[i].base > addr }) - 1
	if i < 0 || addr-m.allocs[i].base >= m.allocs[i].size {
		return nil
	}
	return m.allocs[i]
}

// Epoch changes when something that was found before may be gone, because it was
// freed or access to it was revoked. Whoever keeps a result of Reach compares
// the epochs.
func (m *Memory) Epoch() uint64 { return m.epoch.Load() }

// Info returns the free and the total bytes of the device.
func (m *Memory) Info() (free, total uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.capacity - m.used, m.capacity
}

// Range returns the live allocation, mapped range or host range that contains addr.
func (m *Memory) Range(addr uint64) (base, size uint64, kind Kind, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a := m.at(addr); a != nil && !a.freed {
		return a.base, a.size, a.kind, true
	}
	if base, size, _, mapped := m.mapped.run(addr, nil); mapped {
		return base, size, VirtualMemory, true
	}
	if r, found := m.hosts.find(addr, 1); found {
		return r.base, r.size, r.kind, true
	}
	return 0, 0, 0, false
}

// AddHost lets kernels touch the host range; its device address is its host
// address. Ranges may overlap and are counted: each AddHost needs one
// RemoveHost.
func (m *Memory) AddHost(host uintptr, size uint64, kind HostKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hosts.add(uint64(host), size, kind, false)
}

// AddReadOnly is AddHost for memory that kernels must not write: see
// [Memory.ReadOnly].
func (m *Memory) AddReadOnly(host uintptr, size uint64, kind HostKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hosts.add(uint64(host), size, kind, true)
}

// RemoveHost undoes one AddHost of the same range.
func (m *Memory) RemoveHost(host uintptr, size uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hosts.remove(uint64(host), size, false) {
		m.epoch.Add(1)
	}
}

// RemoveReadOnly undoes one AddReadOnly.
func (m *Memory) RemoveReadOnly(host uintptr, size uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hosts.remove(uint64(host), size, true) {
		m.epoch.Add(1)
	}
}

// ReadOnly reports whether [addr, addr+size) is host memory that kernels may
// read and not write.
func (m *Memory) ReadOnly(addr, size uint64) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.at(addr) != nil || m.mapped.at(addr) != nil {
		return false
	}
	r, found := m.hosts.find(addr, size)
	return found && r.readOnly
}

// Close unmaps everything. Nobody may use the memory any more.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pending {
		p.free()
	}
	m.mapped.close()
	m.allocs, m.pending, m.hosts, m.dead, m.used = nil, nil, hostRanges{}, 0, 0
	m.epoch.Add(1)
	m.store.close()
}
