// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// FindingKind is what a check has found.
type FindingKind uint8

// The findings.
const (
	FindingRace FindingKind = iota
	FindingUninitialized
	// FindingBarrier is a barrier that only a part of a warp executes.
	FindingBarrier
	// FindingShuffle is a shuffle that reads from a lane that does not take part.
	FindingShuffle
)

// A Finding is a defect of a program that did not stop it.
type Finding struct {
	Kind FindingKind
	// Here is the access that showed it, There the other one of a race.
	Here, There Access
	// Why says what is missing.
	Why string
	// Address and Size are of the bytes in question. In shared memory Address is
	// an offset, as in a thread's local memory.
	Address, Size uint64
	Shared, Local bool
	Nearest       memory.Nearest // global memory
	Within        string         // shared or local memory that nobody wrote: the variable
	Register      string         // that nobody wrote; there is no address then
	Count         int            // how often

	telling int
}

// An Access is one side of a Finding.
type Access struct {
	Kernel        string // empty for copies
	Name          string // Watch.Name
	Block, Thread [3]uint32
	PTXLine       int
	SourceFile    string
	SourceLine    int
	Instruction   string
	Verb          string // reads, writes, updates
}

// at is the place of the access in the code.
func (a *Access) at() string {
	if a.Kernel == "" {
		return ""
	}
	var parts []string
	if a.SourceLine > 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", a.SourceFile, a.SourceLine))
	}
	if a.PTXLine > 0 {
		parts = append(parts, fmt.Sprintf("PTX line %d", a.PTXLine))
	}
	text := strings.Join(parts, ", ")
	if a.Instruction != "" {
		text += ": " + strings.TrimSuffix(a.Instruction, ";")
	}
	return " (" + strings.TrimPrefix(text, ": ") + ")"
}

// who names the thread, and its block unless that was the one named last.
func (a *Access) who(block *[3]uint32) string {
	if a.Kernel == "" {
		return "it"
	}
	text := fmt.Sprintf("thread (%d,%d,%d)", a.Thread[0], a.Thread[1], a.Thread[2])
	if block == nil || *block != a.Block {
		text = fmt.Sprintf("block (%d,%d,%d), %s", a.Block[0], a.Block[1], a.Block[2], text)
	}
	return text
}

func (a *Access) name() string {
	if a.Kernel == "" {
		return a.Name
	}
	return "kernel " + a.Kernel
}

// Error describes the finding in full.
func (f *Finding) Error() string {
	var b strings.Builder
	here, there := &f.Here, &f.There
	switch {
	case f.Kind == FindingBarrier:
		fmt.Fprintf(&b, "barrier without all of a warp in %s", here.name())
	case f.Kind == FindingShuffle:
		fmt.Fprintf(&b, "undefined result of a shuffle in %s", here.name())
	case f.Register != "":
		fmt.Fprintf(&b, "uninitialized register in %s", here.name())
	case f.Kind == FindingUninitialized && f.Shared:
		fmt.Fprintf(&b, "uninitialized read in shared memory of %s", here.name())
	case f.Kind == FindingUninitialized && f.Local:
		fmt.Fprintf(&b, "uninitialized read in local memory of %s", here.name())
	case f.Kind == FindingUninitialized:
		fmt.Fprintf(&b, "uninitialized read in %s", here.name())
	case f.Shared:
		fmt.Fprintf(&b, "race in shared memory of %s", here.name())
	default:
		fmt.Fprintf(&b, "race in global memory in %s", here.name())
	}
	if here.Kernel != "" {
		fmt.Fprintf(&b, ", %s", here.who(nil))
	}
	place := fmt.Sprintf("at %#x", f.Address)
	if f.Shared || f.Local {
		place = fmt.Sprintf("at offset %d", f.Address)
	}
	if f.Kind == FindingBarrier || f.Kind == FindingShuffle {
		fmt.Fprintf(&b, "%s: %s", here.at(), f.Why)
	} else if f.Register != "" {
		fmt.Fprintf(&b, "%s: %s was never written by this thread", here.at(), f.Register)
	} else if f.Kind == FindingUninitialized {
		fmt.Fprintf(&b, "%s: %d bytes %s were never written", here.at(), f.Size, place)
		if f.Shared {
			b.WriteString(" by this block")
		}
		if f.Local {
			b.WriteString(" by this thread")
		}
	} else {
		fmt.Fprintf(&b, "%s: it %s %d bytes %s, and ", here.at(), here.Verb, f.Size, place)
		if there.Name != here.Name {
			fmt.Fprintf(&b, "%s %s them", there.Name, past[there.Verb])
			if there.Kernel != "" {
				fmt.Fprintf(&b, " in %s", there.who(nil))
			}
		} else {
			fmt.Fprintf(&b, "%s %s them", there.who(&here.Block), past[there.Verb])
		}
		fmt.Fprintf(&b, "%s; %s", there.at(), f.Why)
	}
	if f.Nearest.Found {
		fmt.Fprintf(&b, "; %s", f.Nearest)
	}
	if f.Within != "" {
		fmt.Fprintf(&b, "; %s", f.Within)
	}
	if f.Count > 1 {
		fmt.Fprintf(&b, "; %d times", f.Count)
	}
	return b.String()
}

var past = map[string]string{"reads": "read", "writes": "wrote", "updates": "updated"}

func verb(k shadow.Kind, atomic bool) string {
	switch {
	case !k.Writes():
		return "reads"
	case atomic:
		return "updates"
	}
	return "writes"
}

// access describes an access from the trace that work under v has left.
func (v *Watch) access(t *shadow.Trace) Access {
	a := Access{Name: v.Name, Verb: verb(t.Kind, false)}
	if v.code == nil {
		return a
	}
	x := &v.code.accesses[t.Site]
	pos := x.ir.Pos
	a.Kernel, a.Verb = v.code.Kernel, verb(t.Kind, x.ir.Op == ptxir.OpAtom)
	a.Block, a.Thread = unravel(t.Block, v.grid), unravel(uint32(t.Thread), v.block)
	a.PTXLine, a.SourceLine, a.Instruction = pos.Line, pos.SourceLine, lane.Text(x.ir)
	a.SourceFile = v.code.file(pos)
	return a
}

func unravel(i uint32, dims [3]uint32) [3]uint32 {
	x, y := max(dims[0], 1), max(dims[1], 1)
	return [3]uint32{i % x, i / x % y, i / x / y}
}

// uninitialized reports that an access reads n bytes that nobody wrote. The
// first is at addr, or at that offset in shared memory.
func (v *Block) uninitialized(t *touch, addr, n uint64, shared bool) {
	now := t.now
	v.add(findingKey{kind: FindingUninitialized, site: now.Site, shared: shared}, 0, func() *Finding {
		f := &Finding{Kind: FindingUninitialized, Here: v.access(&now), Address: addr, Size: n, Shared: shared}
		if shared {
			f.Within = v.code.sharedPlace(addr)
		} else {
			f.Nearest = v.nearest(addr)
		}
		return f
	})
}

func (v *Watch) nearest(addr uint64) memory.Nearest {
	return v.memory.Near(addr)
}

// race reports that an access races with one before it.
func (v *Block) race(t *touch, before shadow.Trace, shared bool, place uint64) {
	now := t.now
	v.raceOf(&now, &before, shared, place)
}

func (v *Watch) raceOf(now, before *shadow.Trace, shared bool, place uint64) {
	other := v
	if before.Task != now.Task {
		if other = v.unordered(before.Task); other == nil {
			return // the other work has ended meanwhile, and somebody waited for it
		}
	}
	key := findingKey{kind: FindingRace, site: now.Site, other: other, there: before.Site}
	if other == v && key.site > key.there { // the same race, whichever came first
		key.site, key.there = key.there, key.site
	}
	telling := 1
	if sameWarp(now, before) {
		telling = 0
	}
	v.add(key, telling, func() *Finding {
		f := &Finding{
			Kind: FindingRace, Here: v.access(now), There: other.access(before), Why: why(now, before),
			Address: place, Size: uint64(countBytes(now.Bytes & before.Bytes)), Shared: shared,
		}
		if !shared {
			f.Nearest = v.nearest(place)
		}
		return f
	})
}

func countBytes(mask byte) (n int) {
	for ; mask != 0; mask &= mask - 1 {
		n++
	}
	return n
}

// why says what would order two accesses.
func why(now, before *shadow.Trace) string {
	switch {
	case now.Task != before.Task:
		return "nothing orders the two: they need one stream, an event or an edge between them"
	case now.Block != before.Block:
		return "the blocks of a launch run in any order"
	case !sameWarp(now, before):
		return "no barrier lies between them"
	case now.Site == before.Site && now.Kind == shadow.WeakWrite:
		return "it is undefined which lane's value remains"
	}
	return "no __syncwarp lies between them"
}
