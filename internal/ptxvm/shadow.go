// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"sync"
	"sync/atomic"
)

const (
	wordBytes = 4 // what a cell stands for
	pageBytes = 4096
	pageWords = pageBytes / wordBytes

	// mostPages caps the pages whose words have cells of their own, at about
	// half a gigabyte of cells. Beyond it, races on further pages go unseen.
	mostPages = 8192
)

// traceKind says how memory was accessed. Strong accesses are atomic, volatile
// or ordered ones: two of them never race.
type traceKind uint8

const (
	weakRead traceKind = iota
	weakWrite
	strongRead
	strongWrite
)

func (k traceKind) writes() bool { return k == weakWrite || k == strongWrite }
func (k traceKind) strong() bool { return k >= strongRead }

// trace is who accessed a word. The zero trace is nobody.
type trace struct {
	task   uint32 // the launch or copy
	block  uint32 // number in its grid
	epoch  uint32 // time of the block's last barrier or fence
	site   uint32 // which access of the kernel
	syncs  uint32 // how often lanes of the thread's warp had met
	thread uint16 // number in its block
	bytes  uint8  // which bytes of the word
	kind   traceKind
}

// cell is what is remembered of a word: the last write, and two reads since, by
// different warps where possible. A write that is ordered after what is there
// replaces it, so a race can go unseen, but what is reported is one.
type cell struct{ write, read, read2 trace }

// shadow is what the checks know of one range of memory.
type shadow struct {
	base, size uint64
	table      *shadowTable

	mu    sync.Mutex
	pages []*shadowPage // guarded by mu, with all below it; nil: nothing is known
	// undefined says that bytes which are not marked as written have undefined
	// content.
	undefined bool
}

type shadowPage struct {
	// whole is for accesses of the whole page, until one of less.
	whole   cell
	cells   *[pageWords]cell
	written [pageBytes / 64]uint64 // a bit for each byte
}

// shadowTable holds the shadows of a memory by the base of their range.
type shadowTable struct {
	fine      atomic.Int32 // pages with cells
	undefined atomic.Int32 // shadows that are undefined in part

	mu sync.RWMutex       // before shadow.mu
	m  map[uint64]*shadow // guarded by mu
}

// get returns the shadow of a range, made new if there is none or if another
// range has taken its place.
func (t *shadowTable) get(base, size uint64) *shadow {
	t.mu.RLock()
	s := t.m[base]
	t.mu.RUnlock()
	if s != nil && s.size == size {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.m[base]; s != nil {
		if s.size == size {
			return s
		}
		t.drop(s)
	}
	s = &shadow{base: base, size: size, table: t, pages: make([]*shadowPage, (size+pageBytes-1)/pageBytes)}
	if t.m == nil {
		t.m = map[uint64]*shadow{}
	}
	t.m[base] = s
	return s
}

// drop forgets a shadow.
//
// Preconditions: t.mu must be locked.
func (t *shadowTable) drop(s *shadow) {
	delete(t.m, s.base)
	if s.undefined {
		t.undefined.Add(-1)
	}
}

// page returns a page of the shadow.
//
// Preconditions: s.mu must be locked.
func (s *shadow) page(i uint64) *shadowPage {
	if s.pages[i] == nil {
		s.pages[i] = &shadowPage{}
	}
	return s.pages[i]
}

// cell returns the cell of a word, or nil if there are too many.
//
// Preconditions: s.mu must be locked.
func (s *shadow) cell(word uint64) *cell {
	p := s.page(word / pageWords)
	if p.cells == nil {
		if s.table.fine.Add(1) > mostPages {
			s.table.fine.Add(-1)
			return nil
		}
		p.cells = &[pageWords]cell{}
		for i := range p.cells {
			p.cells[i] = p.whole
		}
		p.whole = cell{}
	}
	return &p.cells[word%pageWords]
}

// forgetTraces forgets who accessed what, and keeps what was written.
func (t *shadowTable) forgetTraces() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.m {
		s.mu.Lock()
		for _, p := range s.pages {
			if p != nil {
				p.whole, p.cells = cell{}, nil
			}
		}
		s.mu.Unlock()
	}
	t.fine.Store(0)
}

// define marks the bytes [off, off+size) as written.
//
// Preconditions: s.mu must be locked.
func (s *shadow) define(off, size uint64) {
	if !s.undefined {
		return
	}
	for end := off + size; off < end; {
		w := &s.page(off / pageBytes).written[off%pageBytes/64]
		n := min(end-off, 64-off%64)
		*w |= bitRange(off%64, n)
		off += n
	}
}

// undefinedAt returns how many of the bytes [off, off+size) nobody wrote, and
// the first of them.
//
// Preconditions: s.mu must be locked.
func (s *shadow) undefinedAt(off, size uint64) (n, first uint64) {
	if !s.undefined {
		return 0, 0
	}
	for end := off + size; off < end; off++ {
		p := s.pages[off/pageBytes]
		if p == nil || p.written[off%pageBytes/64]>>(off%64)&1 == 0 {
			if n == 0 {
				first = off
			}
			n++
		}
	}
	return n, first
}

// bitRange is n ones from bit i on.
func bitRange(i, n uint64) uint64 { return ^uint64(0) >> (64 - n) << i }
