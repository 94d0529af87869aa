// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
)

// quantum is how much a warp may spend on back-edges and calls before other groups
// and warps get a turn. An ordinary back-edge and a call cost 1; one that may be a
// spin loop costs SpinCost, so that waiting is cheap and working loops stay converged.
const (
	quantum = 1 << 16
	// quantumAgain is for a group that has given way before, if others wait: it may
	// be a loop that waits for them without looking like one.
	quantumAgain = 1 << 10
)

// A warp is 32 lanes of a block.
type warp struct {
	lane.Warp
	cta      *cta
	ready    []group // runnable, the next one last
	frames   []frame // frames[0] is the kernel's; free ones have refs == 0, and the last is not free
	free     int     // how many frames are
	at       *block  // block being run, for faults
	executed uint64  // thread-level PTX instructions
	spent    uint64  // back-edges and calls taken in this block
	live     uint32  // lanes that have not exited
	running  group   // the group being run, for faults; mask and frame are current
	parked   []parked
	stack    []uint64 // register memory of all frames
}

// A group is lanes that run together.
type group struct {
	key   int64 // order: deeper calls first, then lower blocks; or deferred
	frame int32
	block int32
	mask  uint32
}

// A frame is one activation of a function, shared by the lanes that entered it
// from the same place.
type frame struct {
	fn     *function
	parent int32 // -1 for the kernel
	ret    int32 // block of the parent's function where it continues
	call   *callSite
	regs   uint32 // byte offset of its registers in warp.stack
	room   uint32 // bytes that it has there, at least the function's
	local  uint32 // byte offset of its variables in a thread's local memory
	refs   int32  // groups in it and frames called from it
	base   int64  // key of its block 0
}

// parked is a group that waits.
type parked struct {
	group
	at      *block // whose terminator is the barrier or the collective
	barrier int    // -1: a warp collective
	members uint32 // of the collective
}

// run runs the warp's groups until none is ready or the warp must give way.
// It reports whether the warp gave way with work left.
func (w *warp) run() (yielded bool) {
	for len(w.ready) > 0 {
		last := len(w.ready) - 1
		g := w.ready[last]
		w.ready = w.ready[:last]
		if g.key == deferred {
			w.moveTo(&g, g.block)
			if last > 0 {
				w.Fuel = min(w.Fuel, quantumAgain)
			}
		}
		w.runGroup(&g)
		if w.Fuel <= 0 {
			w.Fuel = quantum // not before: a loop that waits at a barrier would never use it up
			w.cta.quantumEnded(w)
			return len(w.ready) > 0
		}
	}
	return false
}

// runGroup runs one group until it ends, waits, meets a group that is behind
// it, or has used up the warp's fuel.
func (w *warp) runGroup(g *group) {
	w.setRunning(g)
	f := &w.frames[g.frame]
	w.File = w.frameAt(f.regs)
	blocks := f.fn.blocks
	for {
		b := &blocks[g.block]
		w.at = b
		for i := range b.code {
			in := &b.code[i]
			in.Fn(&w.Warp, in, g.mask)
		}
		w.executed += b.count * uint64(bits.OnesCount32(g.mask))
		next := b.next
		switch b.kind {
		case ptxir.TermJump:
		case ptxir.TermBranch:
			taken := g.mask & (*w.Pred(b.pred) ^ b.invert)
			if taken == 0 {
				next = b.other
			} else if taken != g.mask {
				next = w.diverge(g, b, taken)
			}
		default:
			if !w.terminate(g, b) {
				return
			}
			if w.Fuel <= 0 { // by a call
				w.defer_(*g)
				return
			}
			f = &w.frames[g.frame]
			blocks = f.fn.blocks
			next = g.block
			if b.kind != ptxir.TermSync {
				g.block = -1 // no back-edge: the function changed
			}
		}
		if next <= g.block && w.goesBack(b) {
			w.moveTo(g, next)
			w.defer_(*g)
			return
		}
		g.key, g.block = f.base+int64(next), next
		if n := len(w.ready); n > 0 && w.ready[n-1].key <= g.key {
			w.push(*g)
			return
		}
		w.running.mask = g.mask
	}
}

// goesBack counts a back-edge from b. It reports whether the warp's turn is over.
func (w *warp) goesBack(b *block) bool {
	w.spent++
	w.Fuel -= b.cost
	return w.Fuel <= 0
}

// setRunning sets the group that runs.
func (w *warp) setRunning(g *group) {
	w.running, w.Frame = *g, g.frame
}

// diverge splits the group: the lanes in taken go to b.next, the others to b.other.
// The part that is behind goes on as g; diverge returns its block.
func (w *warp) diverge(g *group, b *block, taken uint32) int32 {
	first, second := b.next, b.other
	mask := taken
	if second < first {
		first, second = second, first
		mask = g.mask &^ taken
	}
	rest := *g
	rest.mask = g.mask &^ mask
	g.mask = mask
	w.moveTo(&rest, second)
	w.frames[g.frame].refs++
	w.push(rest)
	return first
}

func (w *warp) moveTo(g *group, block int32) {
	g.block = block
	g.key = w.frames[g.frame].base + int64(block)
}

// push makes a group ready, merged with one at the same place.
func (w *warp) push(g group) {
	i := len(w.ready)
	for i > 0 && w.ready[i-1].key < g.key {
		i--
	}
	for j := i; j > 0 && w.ready[j-1].key == g.key; j-- {
		if o := &w.ready[j-1]; o.frame == g.frame {
			o.mask |= g.mask
			w.frames[g.frame].refs--
			return
		}
	}
	w.ready = slices.Insert(w.ready, i, g)
}

// deferred is the key of groups that have given way. They go on once every other
// group has ended, waits, or has given way too.
const deferred = math.MaxInt64

// defer_ makes a group ready behind all others, wherever it is in the code, so that
// lanes it may be waiting for make progress. With the key of its place, it would be
// back after one block of the others: a loop that waits in a deeper call would then
// run its whole quantum for each block of theirs.
func (w *warp) defer_(g group) {
	for i := range w.ready {
		if o := &w.ready[i]; o.block == g.block && o.frame == g.frame {
			o.mask |= g.mask
			w.frames[g.frame].refs--
			return
		}
	}
	g.key = deferred
	w.ready = slices.Insert(w.ready, 0, g)
}

// terminate runs the end of a block that is not a jump or a branch. It reports
// whether g goes on, at g.block; otherwise g has ended or waits.
func (w *warp) terminate(g *group, b *block) bool {
	switch b.kind {
	case ptxir.TermExit:
		w.exit(g)
		return false
	case ptxir.TermRet:
		if g.frame == 0 {
			w.exit(g)
			return false
		}
		w.ret(g)
		return true
	case ptxir.TermCall:
		return w.doCall(g, b)
	case ptxir.TermSwitch:
		return w.doSwitch(g, b)
	case ptxir.TermSync:
		return w.sync(g, b)
	}
	panic("BUG: terminator")
}

// exit ends the group's lanes.
func (w *warp) exit(g *group) {
	w.live &^= g.mask
	w.release(g.frame)
	w.cta.exited(w, bits.OnesCount32(g.mask))
}

// doSwitch sends each lane to the block that its index selects (brx.idx).
func (w *warp) doSwitch(g *group, b *block) bool {
	index := w.U32(b.pred)
	all := g.mask
	for m := all; m != 0; {
		l := bits.TrailingZeros32(m)
		i := index[l]
		if i >= uint32(len(b.targets)) {
			w.Fault(&lane.Stop{Kind: fault.Illegal, Lane: l, Detail: "branch index out of range"})
		}
		var same uint32
		for n := m; n != 0; n &= n - 1 {
			if o := bits.TrailingZeros32(n) & 31; index[o] == i {
				same |= 1 << o
			}
		}
		m &^= same
		part := *g
		part.mask = same
		w.moveTo(&part, b.targets[i])
		w.frames[g.frame].refs++
		if part.block <= g.block && w.goesBack(b) {
			w.defer_(part)
		} else {
			w.push(part)
		}
	}
	w.frames[g.frame].refs--
	return false
}
