// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strings"
)

// Nearest is the allocation or host range closest to an address.
type Nearest struct {
	Found      bool
	Base, Size uint64
	Kind       Kind
	Name       string // module variables
	Freed      bool
	ReadOnly   bool
	Site       any // where it was allocated, as given to Alloc
	FreeSite   any // where it was freed, as given to Free
	// Offset of the address from Base; negative before it.
	Offset int64
}

// String describes the range and where the address lies.
func (n Nearest) String() string {
	if !n.Found {
		return "no allocation is near"
	}
	var b strings.Builder
	switch end := int64(n.Size); {
	case n.Offset < 0:
		fmt.Fprintf(&b, "%d bytes before ", -n.Offset)
	case n.Offset >= end:
		fmt.Fprintf(&b, "%d bytes past the end of ", n.Offset-end)
	default:
		fmt.Fprintf(&b, "at offset %d of ", n.Offset)
	}
	if n.Freed {
		b.WriteString("freed ")
	}
	if n.ReadOnly {
		b.WriteString("read-only ")
	}
	fmt.Fprintf(&b, "%s", n.Kind)
	if n.Name != "" {
		fmt.Fprintf(&b, " %s", n.Name)
	}
	fmt.Fprintf(&b, " of %d bytes at %#x", n.Size, n.Base)
	if n.Site != nil {
		fmt.Fprintf(&b, ", allocated at %v", n.Site)
	}
	if n.Freed && n.FreeSite != nil {
		fmt.Fprintf(&b, ", freed at %v", n.FreeSite)
	}
	return b.String()
}

func (n Nearest) suffix() string { return " (" + n.String() + ")" }

// nearest finds the range closest to addr, live or freed.
//
// Preconditions: m.mu must be locked for reading.
func (m *Memory) nearest(addr uint64) Nearest {
	var best Nearest
	var bestGap uint64
	try := func(n Nearest) {
		gap := addr - n.Base
		switch {
		case addr < n.Base:
			gap = n.Base - addr
		case gap < n.Size:
			gap = 0
		default:
			gap -= n.Size - 1
		}
		const far = 1 << 32
		if gap < far && (!best.Found || gap < bestGap) {
			n.Found, n.Offset = true, int64(addr-n.Base)
			best, bestGap = n, gap
		}
	}
	for _, a := range m.allocs {
		try(Nearest{Base: a.base, Size: a.size, Kind: a.kind, Name: a.name, Freed: a.freed, Site: a.site, FreeSite: a.freeSite})
	}
	m.mapped.each(try)
	for _, r := range m.hosts.list {
		try(Nearest{Base: r.base, Size: r.size, Kind: r.kind, ReadOnly: r.readOnly})
	}
	return best
}

// An AccessError is an access outside every live allocation.
type AccessError struct {
	Address, Size uint64
	Nearest       Nearest
}

// Error describes the access and the closest allocation.
func (e *AccessError) Error() string {
	return fmt.Sprintf("ptxvm: access of %d bytes at %#x is outside every live allocation: %s", e.Size, e.Address, e.Nearest)
}
