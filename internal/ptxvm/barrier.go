// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

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

// arrive counts a group at a barrier. It reports whether the barrier is
// complete; then everyone who waited there has been released.
func (c *cta) arrive(w *warp, g *group, at *block, in *lane.Inst) bool {
	id, expected := w.barrierOperands(g, in)
	b := &c.barriers[id]
	if !b.used {
		*b = barrier{used: true, expected: expected, and: true}
	}
	if b.expected != expected {
		w.Fault(&lane.Stop{Kind: fault.Illegal, Lane: bits.TrailingZeros32(g.mask), Detail: fmt.Sprintf(
			"barrier %d: %d threads expected here, %d by the threads that already wait", id, expected, b.expected)})
	}
	b.arrived += uint32(bits.OnesCount32(g.mask))
	if expected != 0 {
		b.arrived += w.absent(id, g.mask)
	}
	if c.run.watch != nil && in.IR.Mod&ptxir.ModAligned != 0 {
		c.watch.Come(&w.Warp, g.mask, w.live&^w.ending(), &at.Place, id)
	}
	if in.Mode >= ptxir.ModeRedPopc {
		p := *w.Pred(in.C) ^ uint32(in.Imm)
		b.count += uint32(bits.OnesCount32(p & g.mask))
		b.and = b.and && p&g.mask == g.mask
		b.or = b.or || p&g.mask != 0
	}
	target := b.expected
	if target == 0 {
		target = c.live
	}
	if b.arrived < target {
		if in.Mode != ptxir.ModeArrive {
			w.parked = append(w.parked, parked{group: *g, at: at, barrier: id})
		}
		return in.Mode == ptxir.ModeArrive
	}
	if in.Mode != ptxir.ModeArrive {
		w.storeReduction(in, b, g.mask)
	}
	c.releaseBarrier(id)
	return true
}

// absent returns how many lanes that have exited, or never were, count as arrived at a
// barrier for a number of threads: all of the warp's, once all of its others have come,
// of which mask are about to wait. Such a number counts whole warps (PTX ISA, barrier: it
// waits for the non-exited threads of the warp, and marks the warp's arrival).
func (w *warp) absent(id int, mask uint32) uint32 {
	for i := range w.parked {
		if w.parked[i].barrier == id {
			mask |= w.parked[i].mask
		}
	}
	if mask == 0 || mask != w.live {
		return 0
	}
	return uint32(bits.OnesCount32(^mask))
}

// barrierOperands returns the barrier's number and how many threads it is for.
func (w *warp) barrierOperands(g *group, in *lane.Inst) (id int, expected uint32) {
	l := bits.TrailingZeros32(g.mask)
	n := w.U32(in.A)[l]
	if n >= lane.Barriers {
		w.Fault(&lane.Stop{Kind: fault.Illegal, Lane: l, Detail: fmt.Sprintf("barrier %d does not exist: a block has %d", n, lane.Barriers)})
	}
	if in.B != register.None {
		expected = w.U32(in.B)[l]
	}
	for m := g.mask; m != 0; m &= m - 1 {
		if o := bits.TrailingZeros32(m) & 31; w.U32(in.A)[o] != n {
			w.Fault(&lane.Stop{Kind: fault.Illegal, Lane: o, Detail: "lanes of one warp name different barriers"})
		}
	}
	return int(n), expected
}

// storeReduction writes bar.red's result for the lanes of mask.
func (w *warp) storeReduction(in *lane.Inst, b *barrier, mask uint32) {
	switch in.Mode {
	case ptxir.ModeRedPopc:
		d := w.U32(in.D)
		for m := mask; m != 0; m &= m - 1 {
			d[bits.TrailingZeros32(m)&31] = b.count
		}
	case ptxir.ModeRedAnd:
		w.SetPred(in.D, b.and, mask)
	case ptxir.ModeRedOr:
		w.SetPred(in.D, b.or, mask)
	}
}

// releaseBarrier resumes everyone who waits at a barrier.
func (c *cta) releaseBarrier(id int) {
	b := c.barriers[id]
	c.barriers[id] = barrier{}
	if c.run.watch != nil {
		c.watch.Barrier()
		c.watch.Complete(id)
	}
	for i := range c.warps {
		w := &c.warps[i]
		kept := w.parked[:0]
		for _, p := range w.parked {
			if p.barrier != id {
				kept = append(kept, p)
				continue
			}
			if in := p.at.sync; in.Mode >= ptxir.ModeRedPopc {
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

// ending returns the lanes that are about to exit. A compiler may move an early
// return behind the barrier, which is no defect.
func (w *warp) ending() uint32 {
	var mask uint32
	for _, g := range w.ready {
		if b := &w.frames[g.frame].fn.blocks[g.block]; b.kind == ptxir.TermExit && len(b.code) == 0 {
			mask |= g.mask
		}
	}
	return mask
}
