// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/matrix"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// numBarriers is how many barriers a block has. PTX ISA, "bar, barrier".
const numBarriers = 16

// barrier is one of a block's barriers. All fields are zero when nobody waits.
type barrier struct {
	arrived  uint32 // threads
	expected uint32 // 0: all threads that have not exited
	used     bool
	// What bar.red gathers.
	count uint32
	and   bool
	or    bool
}

// A context is a worker's state: one block, its warps and its memories. It is
// bound to a launch and runs one block after the other. One goroutine uses it
// at a time.
type context struct {
	kernel *Kernel
	run    *execution
	block  [3]uint32
	linear uint64 // number of the block in its grid

	warps       []warp
	shared      []byte
	sharedBytes uint64
	local       []byte
	localStride uint64 // bytes of local memory a thread
	params      []byte
	sites       []site
	epoch       uint64

	live     uint32 // threads that have not exited
	barriers [numBarriers]barrier
	operands *matrix.Operands
	watch    *blockWatch // used if run.watch is set
}

// runBlock runs the warps until all have exited, or gives way. It reports
// whether the block is finished.
func (c *context) runBlock(mayYield bool) (finished bool) {
	for {
		progress, yielded := false, false
		for i := range c.warps {
			w := &c.warps[i]
			if len(w.ready) == 0 {
				continue
			}
			progress = true
			yielded = w.run() || yielded
		}
		if c.live == 0 {
			return true
		}
		if !progress {
			c.deadlock()
		}
		if yielded && mayYield {
			return false
		}
	}
}

// breathe is called when a warp has used up its quantum.
func (c *context) breathe(w *warp) {
	c.run.check(w)
	runtime.Gosched()
}

// exited is called when lanes of w have ended: they may have been the last that
// a barrier or a collective was waiting for.
func (c *context) exited(w *warp, n int) {
	c.live -= uint32(n)
	if len(w.parked) > 0 && w.live != 0 {
		w.retryCollectives()
	}
	for id := range c.barriers {
		if b := &c.barriers[id]; b.used && b.expected == 0 && b.arrived >= c.live {
			c.releaseBarrier(id)
		}
	}
}

// arrive counts a group at a barrier. It reports whether the barrier is
// complete; then everyone who waited there has been released.
func (c *context) arrive(w *warp, g *group, at *block, in *inst) bool {
	id, expected := w.barrierOperands(g, in)
	b := &c.barriers[id]
	if !b.used {
		*b = barrier{used: true, expected: expected, and: true}
	}
	if b.expected != expected {
		w.fault(&laneFault{kind: FaultIllegal, lane: bits.TrailingZeros32(g.mask), detail: fmt.Sprintf(
			"barrier %d: %d threads expected here, %d by those who wait already", id, expected, b.expected)})
	}
	b.arrived += uint32(bits.OnesCount32(g.mask))
	if c.run.watch != nil {
		c.watch.comes(w, g, at, id)
	}
	if in.mode >= ptxir.ModeRedPopc {
		p := *w.Pred(in.c) ^ uint32(in.imm)
		b.count += uint32(bits.OnesCount32(p & g.mask))
		b.and = b.and && p&g.mask == g.mask
		b.or = b.or || p&g.mask != 0
	}
	target := b.expected
	if target == 0 {
		target = c.live
	}
	if b.arrived < target {
		if in.mode != ptxir.ModeArrive {
			w.parked = append(w.parked, parked{group: *g, at: at, barrier: id})
		}
		return in.mode == ptxir.ModeArrive
	}
	if in.mode != ptxir.ModeArrive {
		w.storeReduction(in, b, g.mask)
	}
	c.releaseBarrier(id)
	return true
}

// barrierOperands returns the barrier's number and how many threads it is for.
func (w *warp) barrierOperands(g *group, in *inst) (id int, expected uint32) {
	l := bits.TrailingZeros32(g.mask)
	n := w.U32(in.a)[l]
	if n >= numBarriers {
		w.fault(&laneFault{kind: FaultIllegal, lane: l, detail: fmt.Sprintf("barrier %d: there are %d", n, numBarriers)})
	}
	if in.b != register.None {
		expected = w.U32(in.b)[l]
	}
	for m := g.mask; m != 0; m &= m - 1 {
		if o := bits.TrailingZeros32(m) & 31; w.U32(in.a)[o] != n {
			w.fault(&laneFault{kind: FaultIllegal, lane: o, detail: "lanes of one warp name different barriers"})
		}
	}
	return int(n), expected
}

// storeReduction writes bar.red's result for the lanes of mask.
func (w *warp) storeReduction(in *inst, b *barrier, mask uint32) {
	switch in.mode {
	case ptxir.ModeRedPopc:
		d := w.U32(in.d)
		for m := mask; m != 0; m &= m - 1 {
			d[bits.TrailingZeros32(m)&31] = b.count
		}
	case ptxir.ModeRedAnd:
		w.SetPred(in.d, b.and, mask)
	case ptxir.ModeRedOr:
		w.SetPred(in.d, b.or, mask)
	}
}

// releaseBarrier lets everyone who waits at a barrier go on.
func (c *context) releaseBarrier(id int) {
	b := c.barriers[id]
	c.barriers[id] = barrier{}
	if c.run.watch != nil {
		c.watch.barrier()
		c.watch.complete(id)
	}
	for i := range c.warps {
		w := &c.warps[i]
		kept := w.parked[:0]
		for _, p := range w.parked {
			if p.barrier != id {
				kept = append(kept, p)
				continue
			}
			if in := p.at.sync; in.mode >= ptxir.ModeRedPopc {
				old := w.File
				w.File = w.frameAt(w.frames[p.frame].regs)
				w.storeReduction(in, &b, p.mask)
				w.File = old
			}
			w.moveTo(&p.group, p.at.next)
			w.push(p.group)
		}
		w.parked = kept
	}
}

// deadlock reports that every thread that is left waits.
func (c *context) deadlock() {
	for i := range c.warps {
		w := &c.warps[i]
		if len(w.parked) == 0 {
			continue
		}
		p := &w.parked[0]
		w.at, w.running = p.at, p.group
		w.fault(&laneFault{kind: FaultDeadlock, lane: bits.TrailingZeros32(p.mask), detail: c.waiting()})
	}
	panic("BUG: live threads, none ready, none parked")
}
