// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package shadow

import "math/bits"

// ByteSet has a bit for each byte.
type ByteSet []uint64

// NewByteSet returns the empty set, with room for size bytes.
func NewByteSet(size uint64) ByteSet { return make(ByteSet, (size+63)/64) }

// Define adds the bytes [off, off+size).
func (s ByteSet) Define(off, size uint64) {
	for end := off + size; off < end; {
		n := min(end-off, 64-off%64)
		s[off/64] |= bitRange(off%64, n)
		off += n
	}
}

// Missing returns how many of the bytes [off, off+size) are not in the set, and
// the first of them.
func (s ByteSet) Missing(off, size uint64) (n, first uint64) {
	for end := off + size; off < end; {
		some := min(end-off, 64-off%64)
		if gap := bitRange(off%64, some) &^ s[off/64]; gap != 0 {
			if n == 0 {
				first = off&^63 + uint64(bits.TrailingZeros64(gap))
			}
			n += uint64(bits.OnesCount64(gap))
		}
		off += some
	}
	return n, first
}

// Remove takes the bytes [off, off+size) out of the set.
func (s ByteSet) Remove(off, size uint64) {
	for end := off + size; off < end; {
		n := min(end-off, 64-off%64)
		s[off/64] &^= bitRange(off%64, n)
		off += n
	}
}

// Copy makes [to, to+size) what [from, from+size) is; the two do not overlap.
func (s ByteSet) Copy(to, from, size uint64) {
	s.Define(to, size)
	if n, _ := s.Missing(from, size); n == 0 {
		return
	}
	for i := range size {
		if s[(from+i)/64]>>((from+i)%64)&1 == 0 {
			s.Remove(to+i, 1)
		}
	}
}

// bitRange is n ones from bit i on.
func bitRange(i, n uint64) uint64 { return ^uint64(0) >> (64 - n) << i }
