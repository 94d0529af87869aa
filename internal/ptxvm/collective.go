// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// sync runs the convergent operation that ends b. It reports whether g goes on;
// otherwise its lanes wait or have been put among the ready groups.
func (w *warp) sync(g *group, b *block) bool {
	in := b.sync
	if in.IR.Op == ptxir.OpBar {
		if w.cta.arrive(w, g, b, in) {
			w.moveTo(g, b.next)
			return true
		}
		return false
	}
	if in.Members == register.None { // mma, ldmatrix: all live lanes of the warp
		return w.collect(g, b, register.Full)
	}
	members := w.U32(in.Members)
	first := bits.TrailingZeros32(g.mask)
	want := members[first]
	for m := g.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if members[l]>>l&1 == 0 {
			w.Fault(&lane.Stop{Kind: fault.Illegal, Lane: l, Detail: "the lane is not in its own member mask"})
		}
		if members[l] != want {
			w.splitCollective(g, b, members)
			return false
		}
	}
	return w.collect(g, b, want)
}

// splitCollective treats the lanes of g as one group for each member mask.
func (w *warp) splitCollective(g *group, b *block, members *[register.Lanes]uint32) {
	for m := g.mask; m != 0; {
		want := members[bits.TrailingZeros32(m)]
		var same uint32
		for n := m; n != 0; n &= n - 1 {
			if l := bits.TrailingZeros32(n) & 31; members[l] == want {
				same |= 1 << l
			}
		}
		m &^= same
		part := *g
		part.mask = same
		w.frames[g.frame].refs++
		if w.collect(&part, b, want) {
			w.push(part)
		}
	}
	w.release(g.frame)
}

// collect runs the operation if all live members are in g or wait already for
// it, else parks g. It reports whether g goes on.
func (w *warp) collect(g *group, b *block, members uint32) bool {
	here := g.mask
	barWarp := b.sync.IR.Op == ptxir.OpBarWarp
	for i := range w.parked {
		if w.joins(&w.parked[i], g, b, members, barWarp) {
			here |= w.parked[i].mask
		}
	}
	if members&w.live&^here != 0 {
		w.parked = append(w.parked, parked{group: *g, at: b, barrier: -1, members: members})
		return false
	}
	if here != g.mask {
		w.joinParked(g, b, members, barWarp)
	}
	if v := w.cta.run.watch; v != nil {
		w.cta.watch.Sync(w.Index, members, w.live)
		w.Frame = g.frame // of a group that has waited, which the checks look up
	}
	if !barWarp {
		b.sync.Fn(&w.Warp, b.sync, g.mask)
	}
	w.moveTo(g, b.next)
	return true
}

// joins reports whether a parked group waits for the same thing as g: the same
// place, or for bar.warp.sync the same members at any place.
func (w *warp) joins(p *parked, g *group, b *block, members uint32, barWarp bool) bool {
	if p.barrier >= 0 || p.members != members {
		return false
	}
	if p.at == b && p.frame == g.frame {
		return true
	}
	return barWarp && p.at.sync.IR.Op == ptxir.OpBarWarp
}

// joinParked takes the groups that waited for g's lanes out of parked: those at
// the same place become part of g, others become ready.
func (w *warp) joinParked(g *group, b *block, members uint32, barWarp bool) {
	kept := w.parked[:0]
	for _, p := range w.parked {
		switch {
		case !w.joins(&p, g, b, members, barWarp):
			kept = append(kept, p)
		case p.at == b && p.frame == g.frame:
			g.mask |= p.mask
			w.frames[g.frame].refs--
		default:
			w.moveTo(&p.group, p.at.next)
			w.push(p.group)
		}
	}
	w.parked = kept
}

// retryCollectives is called when lanes have exited: a collective that waited
// for them may be complete.
func (w *warp) retryCollectives() {
	waiting := w.parked
	w.parked = nil
	for _, p := range waiting {
		if p.barrier >= 0 {
			w.parked = append(w.parked, p)
			continue
		}
		old, frame := w.File, w.Frame
		w.File = w.frameAt(w.frames[p.frame].regs)
		if w.collect(&p.group, p.at, p.members) {
			w.push(p.group)
		}
		w.File, w.Frame = old, frame
	}
}
