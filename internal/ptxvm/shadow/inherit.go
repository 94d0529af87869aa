// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package shadow

// A Run is a row of bytes of a range.
type Run struct{ Off, Size uint64 }

// allWritten is what page.written is when all bytes are.
const allWritten = ^uint64(0)

// Unwritten returns which of the bytes [off, off+size) nobody wrote, in order, by
// their distance from off.
//
// Preconditions: s.mu must be locked.
func (s *Range) Unwritten(off, size uint64) (runs []Run) {
	if !s.undefined {
		return nil
	}
	for at, end := off, off+size; at < end; {
		n := min(end-at, 64-at%64)
		switch w := s.writtenAt(at) >> (at % 64) & bitRange(0, n); w {
		case bitRange(0, n):
		case 0:
			runs = extended(runs, at-off, n)
		default:
			for i := range n {
				if w>>i&1 == 0 {
					runs = extended(runs, at-off+i, 1)
				}
			}
		}
		at += n
	}
	return runs
}

func extended(runs []Run, off, size uint64) []Run {
	if n := len(runs); n > 0 && runs[n-1].Off+runs[n-1].Size == off {
		runs[n-1].Size += size
		return runs
	}
	return append(runs, Run{off, size})
}

// writtenAt returns the bits of the 64 bytes that contain a byte.
//
// Preconditions: s.mu must be locked.
func (s *Range) writtenAt(off uint64) uint64 {
	if p := s.pages[off/PageBytes]; p != nil {
		return p.written[off%PageBytes/64]
	}
	if s.filled {
		return allWritten
	}
	return 0
}

// Undefine says that the bytes [off, off+size) have undefined content again, as
// those that were copied there.
//
// Preconditions: s.mu must be locked.
func (s *Range) Undefine(off, size uint64) {
	if !s.undefined {
		s.undefined, s.filled = true, true
		for _, p := range s.pages {
			if p != nil {
				p.fill()
			}
		}
		if !s.gone {
			s.table.undefined.Add(1)
		}
	}
	for end := off + size; off < end; {
		n := min(end-off, 64-off%64)
		s.page(off / PageBytes).written[off%PageBytes/64] &^= bitRange(off%64, n)
		off += n
	}
}

// fill marks all bytes as written.
func (p *page) fill() {
	for i := range p.written {
		p.written[i] = allWritten
	}
}
