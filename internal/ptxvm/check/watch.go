// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// Set is a set of checks.
type Set uint8

// The checks. Addresses are checked in every kernel anyway.
const (
	// Races finds accesses of the same bytes that nothing orders, one of
	// which writes.
	Races Set = 1 << iota
	// Uninitialized finds reads of bytes that nobody wrote: of global memory
	// (see Undefine), of shared memory since the block began, and of local memory
	// since its function did, where something depends on what was read.
	Uninitialized
)

// A Watch is for the checks of one piece of work, a launch or a copy (Touch), and
// is used once.
type Watch struct {
	Checks Set
	// Task is the work's own number, which is not 0.
	Task uint32
	// Name names this work in messages about other work: "kernel saxpy, launched
	// at train.py:12".
	Name string
	// Unordered returns the Watch of other work, unless that work happens before
	// this. It is called with locks of the memory held.
	Unordered func(task uint32) *Watch
	// Report receives each finding once, at the end.
	Report func(*Finding)

	memory      *memory.Memory
	code        *Code // nil for copies
	grid, block [3]uint32

	// clock counts barriers, fences and strong accesses of all blocks.
	clock atomic.Uint32
	waits atomic.Int32 // for stores of other blocks

	mu       sync.Mutex
	fenced   map[uint32]uint32       // guarded by mu; by block, the time of its last fence
	others   map[uint32]*Watch       // guarded by mu; what Unordered said
	findings map[findingKey]*Finding // guarded by mu
}

// findingKey: one finding stands for all threads that do the same.
type findingKey struct {
	kind  FindingKind
	site  uint32
	other *Watch
	there uint32 // the other access's site
	// shared tells shared from global memory where an access uses generic
	// addresses.
	shared bool
	place  *lane.Place // of a barrier
	// register and read are for a register that nobody wrote.
	register *unwrittenRegister
	read     *follow
}

// Begin readies the Watch for a launch.
func (v *Watch) Begin(c *Code, m *memory.Memory, grid, block [3]uint32) {
	v.memory, v.code, v.grid, v.block = m, c, grid, block
}

// unordered returns the Watch of other work, unless it happens before v.
func (v *Watch) unordered(task uint32) *Watch {
	v.mu.Lock()
	defer v.mu.Unlock()
	if o, ok := v.others[task]; ok {
		return o
	}
	o := v.Unordered(task)
	if v.others == nil {
		v.others = map[uint32]*Watch{}
	}
	v.others[task] = o
	return o
}

// fence notes that a block has made all it did so far visible to everyone. It
// returns the time.
func (v *Watch) fence(block uint32) uint32 {
	now := v.clock.Add(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fenced == nil {
		v.fenced = map[uint32]uint32{}
	}
	v.fenced[block] = now
	return now
}

func (v *Watch) fencedAfter(block, when uint32) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fenced[block] > when
}

// add keeps a finding, or counts it if the same was found before. Of several it
// keeps the one that tells most, which is a finding between two blocks or warps.
func (v *Watch) add(key findingKey, telling int, make func() *Finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.findings[key]
	if old != nil && telling <= old.telling {
		old.Count++
		return
	}
	f := make()
	f.Count, f.telling = 1, telling
	if old != nil {
		f.Count += old.Count
	}
	if v.findings == nil {
		v.findings = map[findingKey]*Finding{}
	}
	v.findings[key] = f
}

// flush reports what was found.
func (v *Watch) flush() {
	v.mu.Lock()
	var list []*Finding
	for _, f := range v.findings {
		list = append(list, f)
	}
	v.findings = nil
	v.mu.Unlock()
	slices.SortFunc(list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Here.PTXLine, b.Here.PTXLine), cmp.Compare(a.There.PTXLine, b.There.PTXLine), cmp.Compare(a.Kind, b.Kind))
	})
	for _, f := range list {
		v.Report(f)
	}
}
