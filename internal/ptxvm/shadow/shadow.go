// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"sync"
	"sync/atomic"
)

// The sizes of the units that share a cell.
const (
	WordBytes = 4 // what a cell stands for
	PageBytes = 4096
	pageWords = PageBytes / WordBytes

	// mostPages caps the pages whose words have cells of their own, at about
	// half a gigabyte of cells. Beyond it, races on further pages go unseen.
	mostPages = 8192
)

// Kind says how memory was accessed. Atomic, volatile and ordered accesses are
// strong: two of them never race.
type Kind uint8

// The kinds of accesses.
const (
	WeakRead Kind = iota
	WeakWrite
	StrongRead
	StrongWrite
)

// Writes reports whether the access writes.
func (k Kind) Writes() bool { return k == WeakWrite || k == StrongWrite }

// Strong reports whether the access is strong.
func (k Kind) Strong() bool { return k >= StrongRead }

// Trace is who accessed a word. The zero trace is nobody.
type Trace struct {
	Task   uint32 // the launch or copy
	Block  uint32 // number in its grid
	Epoch  uint32 // time of the block's last barrier or fence
	Site   uint32 // which access of the kernel
	Syncs  uint32 // how often lanes of the thread's warp had synchronized
	Thread uint16 // number in its block
	Bytes  uint8  // which bytes of the word
	Kind   Kind
}

// Cell is what is remembered of a word: the last write, and two reads since then,
// by different warps if possible. A write that is ordered after them replaces them.
// So a race can go unseen, but every reported race is one.
type Cell struct{ Write, Read, Read2 Trace }

// Range is what the checks know of one range of memory.
type Range struct {
	Base, Size uint64
	table      *Table

	mu    sync.Mutex
	pages []*page // guarded by mu, with all below it; nil: nothing is known
	// undefined says that bytes which are not marked as written have undefined
	// content.
	undefined bool
	// filled says that the bytes of pages that are nil have been written.
	filled bool
	// gone says that the table has dropped the range; a kernel may still use it.
	gone bool
}

type page struct {
	// whole is the cell of the whole page, until an access covers only a part.
	whole   Cell
	cells   *[pageWords]Cell
	written [PageBytes / 64]uint64 // a bit for each byte
}

// Table holds the shadows of a memory by the base of their range.
type Table struct {
	fine      atomic.Int32 // pages with cells
	undefined atomic.Int32 // shadows that are undefined in part

	mu sync.RWMutex      // before Range.mu
	m  map[uint64]*Range // guarded by mu
}

// Get returns the shadow of a range. It makes a new one if there is none, or if that
// belongs to an earlier range at the same place.
func (t *Table) Get(base, size uint64) *Range {
	t.mu.RLock()
	s := t.m[base]
	t.mu.RUnlock()
	if s != nil && s.Size == size {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.m[base]; s != nil {
		if s.Size == size {
			return s
		}
		t.drop(s)
	}
	s = &Range{Base: base, Size: size, table: t, pages: make([]*page, (size+PageBytes-1)/PageBytes)}
	if t.m == nil {
		t.m = map[uint64]*Range{}
	}
	t.m[base] = s
	return s
}

// drop forgets a shadow, whose cells no longer count.
//
// Preconditions: t.mu must be locked.
func (t *Table) drop(s *Range) {
	delete(t.m, s.Base)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for _, p := range s.pages {
		if p != nil && p.cells != nil {
			t.fine.Add(-1)
		}
	}
	if s.undefined {
		t.undefined.Add(-1)
	}
}

// Forget drops what is known of the range that starts at base.
func (t *Table) Forget(base uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.m[base]; s != nil {
		t.drop(s)
	}
}

// Undefine says that the content of a range is undefined, and forgets what was
// known of it.
func (t *Table) Undefine(base, size uint64) {
	t.Forget(base)
	s := t.Get(base, size)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.undefined {
		s.undefined = true
		t.undefined.Add(1)
	}
}

// AnyUndefined reports whether there is a range with undefined content.
func (t *Table) AnyUndefined() bool { return t.undefined.Load() > 0 }

// DefineAll says that anything may have been written anywhere.
func (t *Table) DefineAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.m {
		s.mu.Lock()
		s.undefined = false
		s.mu.Unlock()
	}
	t.undefined.Store(0)
}

// Lock locks what is known of the range.
func (s *Range) Lock() { s.mu.Lock() }

// Unlock ends Lock.
func (s *Range) Unlock() { s.mu.Unlock() }

// page returns a page of the shadow.
//
// Preconditions: s.mu must be locked.
func (s *Range) page(i uint64) *page {
	if s.pages[i] == nil {
		s.pages[i] = &page{}
		if s.filled {
			s.pages[i].fill()
		}
	}
	return s.pages[i]
}

// WholePage returns the cell of a page, or nil if its words have their own.
//
// Preconditions: s.mu must be locked.
func (s *Range) WholePage(i uint64) *Cell {
	if p := s.page(i); p.cells == nil {
		return &p.whole
	}
	return nil
}

// Cell returns the cell of a word, or nil if there are too many, or the range is
// gone.
//
// Preconditions: s.mu must be locked.
func (s *Range) Cell(word uint64) *Cell {
	p := s.page(word / pageWords)
	if p.cells == nil {
		if s.gone {
			return nil
		}
		if s.table.fine.Add(1) > mostPages {
			s.table.fine.Add(-1)
			return nil
		}
		p.cells = &[pageWords]Cell{}
		for i := range p.cells {
			p.cells[i] = p.whole
		}
		p.whole = Cell{}
	}
	return &p.cells[word%pageWords]
}

// ForgetTraces forgets who accessed what, except for tasks of higher numbers than
// last, and keeps what was written.
func (t *Table) ForgetTraces(last uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var fine int32
	for _, s := range t.m {
		s.mu.Lock()
		for _, p := range s.pages {
			if p != nil && p.forget(last) {
				fine++
			}
		}
		s.mu.Unlock()
	}
	t.fine.Store(fine)
}

// forget is [Table.ForgetTraces] for a page. It reports whether its words still
// have cells.
func (p *page) forget(last uint32) (fine bool) {
	p.whole.forget(last)
	if p.cells == nil {
		return false
	}
	for i := range p.cells {
		p.cells[i].forget(last)
		fine = fine || p.cells[i] != Cell{}
	}
	if !fine {
		p.cells = nil
	}
	return fine
}

func (c *Cell) forget(last uint32) {
	for _, t := range []*Trace{&c.Write, &c.Read, &c.Read2} {
		if t.Task <= last {
			*t = Trace{}
		}
	}
}

// Define marks the bytes [off, off+size) as written.
//
// Preconditions: s.mu must be locked.
func (s *Range) Define(off, size uint64) {
	if !s.undefined {
		return
	}
	for end := off + size; off < end; {
		w := &s.page(off / PageBytes).written[off%PageBytes/64]
		n := min(end-off, 64-off%64)
		*w |= bitRange(off%64, n)
		off += n
	}
}

// UndefinedAt returns how many of the bytes [off, off+size) nobody wrote, and
// the first of them.
//
// Preconditions: s.mu must be locked.
func (s *Range) UndefinedAt(off, size uint64) (n, first uint64) {
	if !s.undefined {
		return 0, 0
	}
	for end := off + size; off < end; off++ {
		if s.writtenAt(off)>>(off%64)&1 == 0 {
			if n == 0 {
				first = off
			}
			n++
		}
	}
	return n, first
}
