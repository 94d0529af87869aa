// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// Block is the checks' state of a block that runs.
type Block struct {
	*Watch
	cta    *lane.CTA
	epoch  uint32 // time of the block's last barrier or fence
	strong uint32 // time of its last strong access
	warps  []syncs
	// arrivals are by barrier, then by warp.
	arrivals []arrivals
	cells    []shadow.Cell // of shared memory
	// written are the bytes of shared memory that the block has written.
	written shadow.ByteSet
	local   *localWatch // nil: local memory is not looked at
	// shadows holds what each access hit last.
	shadows []*shadow.Range
	epochOf uint64        // Memory.Epoch of shadows
	locked  *shadow.Range // whose mu is held while lanes of an instruction are checked that access it
}

// Bind readies the checks of a block with that many warps for a launch. It returns
// v, or the Block to use instead.
func (v *Block) Bind(c *lane.CTA, watch *Watch, entry *Function, warps int) *Block {
	if v == nil {
		v = &Block{}
	}
	c.Checks = v
	v.Watch, v.cta = watch, c
	v.warps = make([]syncs, warps)
	v.arrivals = make([]arrivals, lane.Barriers*warps)
	v.shadows = make([]*shadow.Range, len(v.code.accesses))
	if words := int(c.SharedBytes+shadow.WordBytes-1) / shadow.WordBytes; len(v.cells) < words {
		v.cells = make([]shadow.Cell, words)
	}
	v.written = nil
	if v.Checks&Uninitialized != 0 {
		v.written = shadow.NewByteSet(c.SharedBytes)
	}
	v.bindLocal(entry)
	return v
}

// Start forgets what belongs to the previous block. If the memory's epoch has
// changed, it also forgets where things were.
func (v *Block) Start(epoch uint64) {
	v.strong = 0
	v.epoch = v.clock.Add(1)
	clear(v.written)
	clear(v.arrivals)
	v.local.startBlock()
	if v.epochOf != epoch {
		v.epochOf = epoch
		clear(v.shadows)
	}
}

// Barrier orders what the block's threads did before with what they do after.
func (v *Block) Barrier() { v.epoch = v.clock.Add(1) }

// runWatched runs an instruction behind its checks.
func runWatched(w *lane.Warp, in *lane.Inst, m uint32) {
	v := w.CTA.Checks.(*Block)
	x := &v.code.watches[in.Site]
	if x.fence {
		v.epoch = v.fence(uint32(w.CTA.Linear))
	}
	inner := &in.Parts[0]
	switch {
	case x.bulk:
		v.checkBulk(w, x, inner, m)
	case x.sampled:
		v.checkSampled(w, &x.accesses[0], inner, m)
	default:
		for i := range x.accesses {
			v.check(w, &x.accesses[i], m)
		}
	}
	inner.Fn(w, inner, m)
	if len(x.accesses) > 0 && x.accesses[0].kind.Strong() {
		// Only now: what it has read may have been written in the meantime.
		v.strong = v.clock.Add(1)
	}
}

// check looks at one access of the lanes of m, before it happens. It ignores what
// will make the access itself fault.
func (v *Block) check(w *lane.Warp, a *access, m uint32) {
	if a.space == ptxir.SpaceGlobal && !v.looksAtGlobal() {
		return
	}
	defer v.unlock()
	if a.rows > 0 {
		m = ^uint32(0) >> (register.Lanes - a.rows)
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
		t := touch{w: w, a: a, mask: m, lane: l, addr: addr, size: size, now: v.trace(w, a, l)}
		if off, ok := a.sharedOffset(addr); ok {
			v.shared(&t, off)
		} else if a.space == ptxir.SpaceGlobal || addr>>memory.WindowShift == memory.GlobalWindow || addr>>memory.WindowShift == 0 {
			v.global(&t)
		}
	}
}

// trace describes a lane's access that happens now.
func (v *Block) trace(w *lane.Warp, a *access, l int) shadow.Trace {
	return shadow.Trace{
		Task: v.Task, Block: uint32(w.CTA.Linear), Epoch: v.epoch, Site: a.site, Thread: uint16(w.Index*register.Lanes + l),
		Syncs: v.warps[w.Index].count, Kind: a.kind,
	}
}

// looksAtGlobal reports whether anything can be found in global memory.
func (v *Block) looksAtGlobal() bool {
	return v.Checks&Races != 0 || v.memory.Undefined()
}

// touch is one lane's access.
type touch struct {
	w          *lane.Warp
	a          *access
	mask       uint32
	lane       int
	addr, size uint64
	now        shadow.Trace
}

func (t *touch) reads() bool { return !t.now.Kind.Writes() || t.a.reads }

func (a *access) address(w *lane.Warp, l int) uint64 {
	if a.class == register.Class64 {
		return w.U64(a.reg)[l] + a.imm
	}
	return uint64(w.U32(a.reg)[l] + uint32(a.imm))
}

func (a *access) sizeIn(w *lane.Warp, l int) uint64 {
	switch {
	case a.limit == register.None:
		return a.size
	case !a.limitPred:
		return min(a.size, uint64(w.U32(a.limit)[l]))
	case *w.Pred(a.limit)>>l&1 != 0:
		return 0
	}
	return a.size
}

// shared looks at an access of shared memory at that offset in its window. What is
// reserved there is left alone: it is all zeros at first, and those who use it order
// their accesses by other means than the program.
func (v *Block) shared(t *touch, off uint64) {
	off -= v.cta.SharedStart
	if off >= v.cta.SharedBytes || t.size > v.cta.SharedBytes-off {
		return
	}
	if v.written != nil {
		if t.reads() {
			if n, first := v.written.Missing(off, t.size); n > 0 {
				v.uninitialized(t, first, n, true)
			}
		}
		v.written.Define(off, t.size) // once is enough
	}
	if v.Checks&Races == 0 || t.a.quiet {
		return
	}
	for end := off + t.size; off < end; {
		n := min(end-off, shadow.WordBytes-off%shadow.WordBytes)
		t.now.Bytes = byte(1<<n-1) << (off % shadow.WordBytes)
		v.visit(t, &v.cells[off/shadow.WordBytes], true, off)
		off += n
	}
}

func (v *Block) global(t *touch) {
	if !v.looksAtGlobal() {
		return
	}
	s := v.shadows[t.a.site]
	if s == nil || t.addr-s.Base >= s.Size {
		v.unlock() // the table of shadows is locked before any of them
		if s = v.cta.Memory.ShadowAt(t.addr); s == nil {
			return
		}
		v.shadows[t.a.site] = s
	}
	off := t.addr - s.Base
	if t.size > s.Size-off {
		return
	}
	v.lock(s)
	if v.Checks&Uninitialized != 0 && t.reads() {
		if n, first := s.UndefinedAt(off, t.size); n > 0 {
			s.Define(off, t.size) // once is enough
			v.uninitialized(t, s.Base+first, n, false)
		}
	}
	if t.now.Kind.Writes() {
		s.Define(off, t.size)
	}
	if v.Checks&Races == 0 {
		return
	}
	for end := off + t.size; off < end; {
		n := min(end-off, shadow.WordBytes-off%shadow.WordBytes)
		t.now.Bytes = byte(1<<n-1) << (off % shadow.WordBytes)
		if c := s.Cell(off / shadow.WordBytes); c != nil {
			v.visit(t, c, false, s.Base+off)
		}
		off += n
	}
}

// lock locks a shadow until another one is locked, or the instruction is done.
func (v *Block) lock(s *shadow.Range) {
	if v.locked == s {
		return
	}
	v.unlock()
	s.Lock()
	v.locked = s
}

func (v *Block) unlock() {
	if v.locked != nil {
		v.locked.Unlock()
		v.locked = nil
	}
}

// visit compares an access with what is known of a word, and notes the access.
func (v *Block) visit(t *touch, c *shadow.Cell, shared bool, place uint64) {
	now := &t.now
	if v.conflict(t, &c.Write, shared) {
		v.race(t, c.Write, shared, place)
	}
	if !now.Kind.Writes() {
		v.noteRead(c, now)
		return
	}
	for _, r := range []*shadow.Trace{&c.Read, &c.Read2} {
		if v.conflict(t, r, shared) {
			v.race(t, *r, shared, place)
			break
		}
	}
	*c = shadow.Cell{Write: *now}
}

// noteRead remembers two readers, of different warps if possible.
func (v *Block) noteRead(c *shadow.Cell, now *shadow.Trace) {
	switch {
	case v.stale(&c.Read, now):
		c.Read = *now
	case v.stale(&c.Read2, now), sameWarp(&c.Read, &c.Read2) && !sameWarp(&c.Read, now):
		c.Read2 = *now
	}
}

func sameBlock(r, o *shadow.Trace) bool { return r.Task == o.Task && r.Block == o.Block }

func sameWarp(r, o *shadow.Trace) bool {
	return sameBlock(r, o) && r.Thread/register.Lanes == o.Thread/register.Lanes
}

// stale reports whether r can be forgotten: every later access that races with r
// also races with now.
func (v *Block) stale(r, now *shadow.Trace) bool {
	switch {
	case r.Task == 0:
		return true
	case r.Task != now.Task:
		return v.unordered(r.Task) == nil
	case r.Block != now.Block:
		return false
	}
	return r.Thread == now.Thread || r.Epoch != now.Epoch || sameWarp(r, now) && v.syncedSince(r, now)
}

// conflict reports whether an earlier access and this one race.
func (v *Block) conflict(t *touch, before *shadow.Trace, shared bool) bool {
	now := &t.now
	switch {
	case before.Task == 0 || before.Bytes&now.Bytes == 0:
		return false
	case !before.Kind.Writes() && !now.Kind.Writes(), before.Kind.Strong() && now.Kind.Strong():
		return false
	case before.Task != now.Task:
		return !shared && v.unordered(before.Task) != nil
	}
	// A program that reads a counter before it updates the counter loses only a
	// little time if it sees an old value. In shared memory, though, a missing
	// barrier makes the old value part of a result.
	if !shared && (before.Kind == shadow.StrongWrite && now.Kind == shadow.WeakRead || before.Kind == shadow.WeakRead && now.Kind == shadow.StrongWrite) {
		return false
	}
	if before.Block != now.Block {
		return !shared && !(v.fencedAfter(before.Block, before.Epoch) && v.strong > before.Epoch) && !v.sameValue(t, before)
	}
	if before.Thread == now.Thread || before.Epoch != now.Epoch {
		return false
	}
	if sameWarp(before, now) && v.syncedSince(before, now) {
		return false
	}
	return !v.sameValue(t, before)
}
