// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// blockWatch is the checks' state of a block that runs.
type blockWatch struct {
	*Watch
	cta    *context
	epoch  uint32 // time of the block's last barrier or fence
	strong uint32 // time of its last strong access
	warps  []meetings
	// comings are those to each barrier of each warp.
	comings []comings
	cells   []cell // of shared memory
	// written are the bytes of shared memory that the block has written.
	written byteSet
	local   *localWatch // nil: local memory is not looked at
	// shadows holds what each access hit last.
	shadows []*shadow
	memory  uint64  // Memory.epoch of shadows
	locked  *shadow // whose mu is held while the lanes of an instruction are looked at
}

// bindWatch readies the context's checks for a launch.
func (c *context) bindWatch(v *Watch) {
	w := c.watch
	if w == nil {
		w = &blockWatch{}
		c.watch = w
	}
	w.Watch, w.cta = v, c
	w.warps = make([]meetings, len(c.warps))
	w.comings = make([]comings, numBarriers*len(c.warps))
	w.shadows = make([]*shadow, len(c.kernel.accesses))
	w.memory = c.epoch
	if words := int(c.sharedBytes+wordBytes-1) / wordBytes; len(w.cells) < words {
		w.cells = make([]cell, words)
	}
	w.written = nil
	if v.Checks&CheckUninitialized != 0 {
		w.written = newByteSet(c.sharedBytes)
	}
	w.bindLocal()
}

// startBlock forgets what belongs to the block before.
func (v *blockWatch) startBlock() {
	v.strong = 0
	v.epoch = v.clock.Add(1)
	clear(v.written)
	clear(v.comings)
	v.local.startBlock()
	if v.memory != v.cta.epoch {
		v.memory = v.cta.epoch
		clear(v.shadows)
	}
}

// barrier orders what the block's threads did before with what they do after.
func (v *blockWatch) barrier() { v.epoch = v.clock.Add(1) }

// runWatched runs an instruction behind its checks.
func runWatched(w *warp, in *inst, m uint32) {
	v := w.cta.watch
	x := &w.cta.kernel.watches[in.site]
	if x.fence {
		v.epoch = v.fence(uint32(w.cta.linear))
	}
	for i := range x.accesses {
		v.check(w, &x.accesses[i], m)
	}
	inner := &in.parts[0]
	inner.fn(w, inner, m)
	if len(x.accesses) > 0 && x.accesses[0].kind.strong() {
		// Only now: what it has seen may have been written while it was on its way.
		v.strong = v.clock.Add(1)
	}
}

// check looks at one access of the lanes of m, which is about to happen. What
// the access itself will fault on is left to it.
func (v *blockWatch) check(w *warp, a *access, m uint32) {
	if a.space == ptxir.SpaceGlobal && !v.looksAtGlobal() {
		return
	}
	defer v.unlock()
	if a.rows > 0 {
		m = ^uint32(0) >> (lanes - a.rows)
	}
	if !v.looksAtGlobal() && v.allWritten(w, a, m) {
		return
	}
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		addr, size := a.address(w, l), a.sizeIn(w, l)
		if size == 0 {
			continue
		}
		now := trace{
			task: v.Task, block: uint32(w.cta.linear), epoch: v.epoch, site: a.site, thread: uint16(w.index*lanes + l),
			syncs: v.warps[w.index].count, kind: a.kind,
		}
		t := touch{w: w, a: a, mask: m, lane: l, addr: addr, size: size, now: now}
		if off, ok := a.sharedOffset(addr); ok {
			v.shared(&t, off)
		} else if a.space == ptxir.SpaceGlobal || addr>>windowShift == globalWindow || addr>>windowShift == 0 {
			v.global(&t)
		}
	}
}

// looksAtGlobal reports whether anything can be found in global memory.
func (v *blockWatch) looksAtGlobal() bool {
	return v.Checks&CheckRaces != 0 || v.Watch.memory.Undefined()
}

// touch is one lane's access.
type touch struct {
	w          *warp
	a          *access
	mask       uint32
	lane       int
	addr, size uint64
	now        trace
}

func (t *touch) reads() bool { return !t.now.kind.writes() || t.a.reads }

func (a *access) address(w *warp, l int) uint64 {
	if a.class == class64 {
		return w.u64(a.reg)[l] + a.imm
	}
	return uint64(w.u32(a.reg)[l] + uint32(a.imm))
}

func (a *access) sizeIn(w *warp, l int) uint64 {
	switch {
	case a.limit == noOperand:
		return a.size
	case !a.limitPred:
		return min(a.size, uint64(w.u32(a.limit)[l]))
	case *w.pred(a.limit)>>l&1 != 0:
		return 0
	}
	return a.size
}

func (v *blockWatch) shared(t *touch, off uint64) {
	if off >= v.cta.sharedBytes || t.size > v.cta.sharedBytes-off {
		return
	}
	if v.written != nil {
		if t.reads() {
			if n, first := v.written.missing(off, t.size); n > 0 {
				v.uninitialized(t, first, n, true)
			}
		}
		v.written.define(off, t.size) // once is enough
	}
	if v.Checks&CheckRaces == 0 || t.a.quiet {
		return
	}
	for end := off + t.size; off < end; {
		n := min(end-off, wordBytes-off%wordBytes)
		t.now.bytes = byte(1<<n-1) << (off % wordBytes)
		v.visit(t, &v.cells[off/wordBytes], true, off)
		off += n
	}
}

func (v *blockWatch) global(t *touch) {
	if !v.looksAtGlobal() {
		return
	}
	s := v.shadows[t.a.site]
	if s == nil || t.addr-s.base >= s.size {
		if s = v.cta.kernel.module.device.memory.shadowAt(t.addr); s == nil {
			return
		}
		v.shadows[t.a.site] = s
	}
	off := t.addr - s.base
	if t.size > s.size-off {
		return
	}
	v.lock(s)
	if v.Checks&CheckUninitialized != 0 && t.reads() {
		if n, first := s.undefinedAt(off, t.size); n > 0 {
			s.define(off, t.size) // once is enough
			v.uninitialized(t, s.base+first, n, false)
		}
	}
	if t.now.kind.writes() {
		s.define(off, t.size)
	}
	if v.Checks&CheckRaces == 0 {
		return
	}
	for end := off + t.size; off < end; {
		n := min(end-off, wordBytes-off%wordBytes)
		t.now.bytes = byte(1<<n-1) << (off % wordBytes)
		if c := s.cell(off / wordBytes); c != nil {
			v.visit(t, c, false, s.base+off)
		}
		off += n
	}
}

// lock locks a shadow until another one is locked, or the instruction is done.
func (v *blockWatch) lock(s *shadow) {
	if v.locked == s {
		return
	}
	v.unlock()
	s.mu.Lock()
	v.locked = s
}

func (v *blockWatch) unlock() {
	if v.locked != nil {
		v.locked.mu.Unlock()
		v.locked = nil
	}
}

// visit compares an access with what is remembered of a word, and remembers it.
func (v *blockWatch) visit(t *touch, c *cell, shared bool, place uint64) {
	now := &t.now
	if v.conflict(t, &c.write, shared) {
		v.race(t, c.write, shared, place)
	}
	if !now.kind.writes() {
		v.noteRead(c, now)
		return
	}
	for _, r := range []*trace{&c.read, &c.read2} {
		if v.conflict(t, r, shared) {
			v.race(t, *r, shared, place)
			break
		}
	}
	*c = cell{write: *now}
}

// noteRead remembers two readers, of different warps if there are.
func (v *blockWatch) noteRead(c *cell, now *trace) {
	switch {
	case v.stale(&c.read, now):
		c.read = *now
	case v.stale(&c.read2, now), c.read.sameWarp(&c.read2) && !c.read.sameWarp(now):
		c.read2 = *now
	}
}

func (r *trace) sameBlock(o *trace) bool { return r.task == o.task && r.block == o.block }

func (r *trace) sameWarp(o *trace) bool { return r.sameBlock(o) && r.thread/lanes == o.thread/lanes }

// stale reports whether nothing that comes after now can race with r unless it
// races with now too.
func (v *blockWatch) stale(r, now *trace) bool {
	switch {
	case r.task == 0:
		return true
	case r.task != now.task:
		return v.unordered(r.task) == nil
	case r.block != now.block:
		return false
	}
	return r.thread == now.thread || r.epoch != now.epoch || r.sameWarp(now) && v.metSince(r, now)
}

// conflict reports whether an earlier access and this one race.
func (v *blockWatch) conflict(t *touch, before *trace, shared bool) bool {
	now := &t.now
	switch {
	case before.task == 0 || before.bytes&now.bytes == 0:
		return false
	case !before.kind.writes() && !now.kind.writes(), before.kind.strong() && now.kind.strong():
		return false
	case before.task != now.task:
		return !shared && v.unordered(before.task) != nil
	}
	// A program that looks at a counter before it updates the counter loses
	// nothing but a little time if it sees an old value; shared memory is where
	// a missing barrier makes a result of it.
	if !shared && (before.kind == strongWrite && now.kind == weakRead || before.kind == weakRead && now.kind == strongWrite) {
		return false
	}
	if before.block != now.block {
		return !shared && !(v.fencedAfter(before.block, before.epoch) && v.strong > before.epoch) && !v.sameValue(t, before)
	}
	if before.thread == now.thread || before.epoch != now.epoch {
		return false
	}
	if before.sameWarp(now) && v.metSince(before, now) {
		return false
	}
	return !v.sameValue(t, before)
}
