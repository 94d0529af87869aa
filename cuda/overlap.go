// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "fmt"

// apart fails for a copy whose ranges overlap, since the driver copies bytes in any
// order: what it reads may have been written already. The same range on both sides
// is no harm.
func apart(dst, src, size uint64) error {
	if dst == src || dst >= src+size || src >= dst+size {
		return nil
	}
	return errOverlap(dst, src, size, "")
}

func errOverlap(dst, src, size uint64, rows string) error {
	return &ArgumentError{Kind: WrongValue, Text: fmt.Sprintf("dst (%d bytes%s at %#x) and src (at %#x) overlap: a copy moves its bytes in any order, so copy "+
		"by way of other memory", size, rows, dst, src)}
}

// apart is [apart] for all rows. Where these have another distance on each side, or
// there are slices of them, what is between is not known to be apart.
func (p *MemcpyParams) apart() error {
	if p.HasArray() || p.Dst == p.Src {
		return nil
	}
	if p.Box.IsRow() {
		return apart(p.Dst, p.Src, p.Size)
	}
	pitch, rows := p.Box.Dst.Row, p.Box.Rows
	if p.Box.Slices > 1 || p.Box.Src.Row != pitch {
		return nil
	}
	// The first row of the side behind begins in a row of the other, or in the gap
	// after it, and ends there or in the next.
	width, low, high := p.Size/rows, min(p.Dst, p.Src), max(p.Dst, p.Src)
	row, at := (high-low)/pitch, (high-low)%pitch
	if at < width && row < rows || at+width > pitch && row+1 < rows {
		return errOverlap(p.Dst, p.Src, p.Size, fmt.Sprintf(" in %d rows", rows))
	}
	return nil
}
