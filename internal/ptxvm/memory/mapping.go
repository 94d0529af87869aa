// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"slices"
	"sort"

	"github.com/cudago/cudago/internal/memfd"
)

// MappingGranularity is the granularity, in bytes, of the addresses and sizes
// of mapped memory.
const MappingGranularity = 2 << 20

// A Reservation is a range of device addresses of this process at which memory
// of any device can be mapped. Once it is freed, its addresses are given out again
// only to a caller that asks for them: see Behind.
type Reservation struct {
	base, size uint64
	arena      *arena
}

// Reserve reserves size addresses, which start at a multiple of align, a power
// of two, and of MappingGranularity.
func Reserve(size, align uint64) (*Reservation, error) {
	a, err := newArena(size, max(align, MappingGranularity))
	if err != nil {
		return nil, fmt.Errorf("ptxvm: %d bytes of addresses: %w", size, err)
	}
	return a.reserve(a.base, size), nil
}

// Behind reserves the size addresses that follow r. It returns nil if they are not
// free.
func (r *Reservation) Behind(size uint64) *Reservation { return r.arena.reserve(r.base+r.size, size) }

// Base returns the first address.
func (r *Reservation) Base() uint64 { return r.base }

// Size returns how many addresses there are.
func (r *Reservation) Size() uint64 { return r.size }

// Contains reports whether all of [addr, addr+size) is reserved by r.
func (r *Reservation) Contains(addr, size uint64) bool {
	return addr >= r.base && size <= r.size && addr-r.base <= r.size-size
}

// Free ends the reservation. Nothing may be mapped in it, and it may not be
// used again.
func (r *Reservation) Free() { r.arena.free(r) }

// Physical is memory of a device that has no address of its own.
type Physical struct {
	size uint64
	host []byte
	part filePart // of a file, so that it can be mapped a second time
	// theirs says that another process has created it, so that it does not count as
	// used here.
	theirs bool
	uses   int // guarded by Memory.mu; the creator and each mapping
}

// Size returns the size in bytes.
func (p *Physical) Size() uint64 { return p.size }

// Bytes is the content. It must not be used after Release.
func (p *Physical) Bytes() []byte { return p.host }

// Create makes size bytes of physical memory, a multiple of MappingGranularity.
func (m *Memory) Create(size uint64) (*Physical, error) {
	return m.create(size, false, func() (filePart, error) { return m.mapped.own.take(size) })
}

// CreateFile is Create of memory that lies in a file, from an offset on. The file is
// then p's, which closes it.
func (m *Memory) CreateFile(f *os.File, offset int64, size uint64, theirs bool) (*Physical, error) {
	return m.create(size, theirs, func() (filePart, error) { return filePart{file: f, offset: offset}, nil })
}

func (m *Memory) create(size uint64, theirs bool, where func() (filePart, error)) (*Physical, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.room(size, theirs); err != nil {
		return nil, err
	}
	part, err := where()
	if err != nil {
		return nil, notMapped(size, err)
	}
	host, err := memfd.Map(part.file.Fd(), part.offset, size)
	if err != nil {
		part.giveBack(size)
		return nil, notMapped(size, err)
	}
	p := &Physical{size: size, host: host, part: part, theirs: theirs, uses: 1}
	if !theirs {
		m.used += size
	}
	if m.mapped.physical == nil {
		m.mapped.physical = map[*Physical]struct{}{}
	}
	m.mapped.physical[p] = struct{}{}
	return p, nil
}

// Release ends the creator's use of p, once: it is not mapped again. The last
// mapping to end frees the memory.
func (m *Memory) Release(p *Physical) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.closeFile()
	m.drop(p)
}

// closeFile closes a file that p has for itself.
func (p *Physical) closeFile() {
	if p.part.of == nil {
		_ = p.part.file.Close() // twice is fine
	}
}

// drop ends one use of p.
//
// Preconditions: m.mu must be locked.
func (m *Memory) drop(p *Physical) {
	if p.uses--; p.uses > 0 {
		return
	}
	if !p.theirs {
		m.used -= p.size
	}
	delete(m.mapped.physical, p)
	p.end()
}

// end gives the memory back.
func (p *Physical) end() {
	unmapMemory(p.host)
	p.closeFile()
	p.part.giveBack(p.size)
}

// mapping is physical memory at an address. Immutable but for its access.
type mapping struct {
	base, size uint64
	arena      *arena
	physical   *Physical
	site       any
	access     Permission // of all devices, the one that has the memory included
}

// mappings are those of one Memory. Guarded by its mu.
type mappings struct {
	list     []*mapping // by address
	physical map[*Physical]struct{}
	own      physicalFile // has what Create makes
	gone     []Nearest    // the latest that were unmapped, for messages
}

// goneMappings is how many unmapped ranges are remembered.
const goneMappings = 64

// Map maps all of p at addr, where nothing may be mapped yet. Kernels and Bytes
// reach it after SetAccess. The site is kept and named by errors.
func (m *Memory) Map(r *Reservation, addr uint64, p *Physical, site any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &mapping{base: addr, size: p.size, arena: r.arena, physical: p, site: site}
	v.access.call = "cuMemSetAccess"
	if err := r.arena.show(v); err != nil {
		return fmt.Errorf("%w: %d bytes at %#x: %w", ErrOutOfMemory, p.size, addr, err)
	}
	p.uses++
	i := m.mapped.index(addr)
	m.mapped.list = slices.Insert(m.mapped.list, i, v)
	m.mapped.gone = slices.DeleteFunc(m.mapped.gone, func(n Nearest) bool { return n.Base < addr+p.size && addr < n.Base+n.Size })
	return nil
}

// Unmap ends the mapping that starts at addr. The site is named by errors about
// a later use.
func (m *Memory) Unmap(addr uint64, site any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.mapped.index(addr) - 1
	v := m.mapped.list[i]
	m.mapped.list = slices.Delete(m.mapped.list, i, i+1)
	m.epoch.Add(1)
	m.mapped.gone = append(m.mapped.gone, Nearest{
		Base: v.base, Size: v.size, Kind: VirtualMemory, Freed: true, Site: v.site, FreeSite: site,
	})
	if n := len(m.mapped.gone); n > goneMappings {
		m.mapped.gone = slices.Delete(m.mapped.gone, 0, n-goneMappings)
	}
	m.retire(func() { v.arena.hide(v) })
	m.drop(v.physical)
}

// SetAccess allows or forbids the device whose memory is who, which may be m,
// to access the mappings that start inside [addr, addr+size).
func (m *Memory) SetAccess(addr, size uint64, who *Memory, accessible bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.mapped.list {
		if v.base-addr < size {
			v.access.Allow(who, accessible)
		}
	}
}

// index is where the first mapping after addr starts.
func (v *mappings) index(addr uint64) int {
	return sort.Search(len(v.list), func(i int) bool { return v.list[i].base > addr })
}

// at returns the mapping that contains addr, or nil.
func (v *mappings) at(addr uint64) *mapping {
	i := v.index(addr) - 1
	if i < 0 || addr-v.list[i].base >= v.list[i].size {
		return nil
	}
	return v.list[i]
}

// reachable reports whether who may access the mapping; if who is nil, whether
// anybody may.
func (v *mapping) reachable(who *Memory) bool {
	if who == nil {
		return v.access.some()
	}
	return v.access.Allows(who)
}

// run returns the longest range around addr that is mapped without a gap and
// that who may access.
func (v *mappings) run(addr uint64, who *Memory) (base, size uint64, a *arena, ok bool) {
	m := v.at(addr)
	if m == nil || !m.reachable(who) {
		return 0, 0, nil, false
	}
	i := v.index(addr) - 1
	first, last := i, i
	for first > 0 && v.list[first-1].reachable(who) && v.list[first-1].end() == v.list[first].base {
		first--
	}
	for last+1 < len(v.list) && v.list[last+1].reachable(who) && v.list[last].end() == v.list[last+1].base {
		last++
	}
	base = v.list[first].base
	return base, v.list[last].end() - base, m.arena, true
}

// unmapped describes what was mapped at addr until lately.
func (v *mappings) unmapped(addr uint64) (Nearest, bool) {
	for _, n := range v.gone {
		if addr-n.Base < n.Size {
			n.Found, n.Offset = true, int64(addr-n.Base)
			return n, true
		}
	}
	return Nearest{}, false
}

func (v *mapping) end() uint64 { return v.base + v.size }

// each describes all mappings, and those that were unmapped lately.
func (v *mappings) each(yield func(Nearest)) {
	for _, m := range v.list {
		n := Nearest{Base: m.base, Size: m.size, Kind: VirtualMemory, Site: m.site}
		if !m.access.some() {
			n.Name = "without access"
		}
		yield(n)
	}
	for _, n := range v.gone {
		yield(n)
	}
}

// close unmaps everything.
func (v *mappings) close() {
	for _, m := range v.list {
		m.arena.hide(m)
	}
	for p := range v.physical {
		p.end()
	}
	*v = mappings{}
}
