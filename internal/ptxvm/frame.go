// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// depthStep is the distance of the keys of two call depths: more than any
// function has blocks, so that deeper frames run first.
const depthStep = 1 << 32

// callSite is a decoded call.
type callSite struct {
	fn       *function // nil: built-in or indirect
	builtin  builtinFn
	target   uint32 // indirect: Class64 operand
	indirect map[uint64]*function
	args     []argument
	rets     []argument
	noReturn bool
}

// argument is a range of local memory that a call copies between frames.
type argument struct {
	caller uint32 // offset in the caller's variables
	size   uint32
}

// doCall enters a function with the lanes of g, or runs a built-in one.
func (w *warp) doCall(g *group, b *block) bool {
	c := b.call
	switch {
	case c.builtin != nil:
		c.builtin(w, b, g.mask)
		if w.cta.run.watch != nil {
			for _, a := range c.rets {
				w.cta.watch.Return(&w.Warp, a.caller, a.size, g.mask)
			}
		}
		if c.noReturn {
			w.exit(g)
			return false
		}
		w.moveTo(g, b.next)
		return true
	case c.fn != nil:
		w.enter(g, b, c.fn)
		return true
	}
	return w.callIndirect(g, b)
}

// callIndirect enters the functions that the lanes' addresses name, one group
// for each.
func (w *warp) callIndirect(g *group, b *block) bool {
	target := w.U64(b.call.target)
	for m := g.mask; m != 0; {
		l := bits.TrailingZeros32(m)
		addr := target[l]
		fn := b.call.indirect[addr]
		if fn == nil {
			w.Fault(&lane.Stop{Kind: fault.Illegal, Lane: l, Detail: w.cta.kernel.module.noCallee(addr)})
		}
		var same uint32
		for n := m; n != 0; n &= n - 1 {
			if o := bits.TrailingZeros32(n) & 31; target[o] == addr {
				same |= 1 << o
			}
		}
		m &^= same
		part := *g
		part.mask = same
		w.frames[g.frame].refs++
		w.enter(&part, b, fn)
		w.push(part)
		w.File = w.frameAt(w.frames[g.frame].regs)
		target = w.U64(b.call.target)
	}
	w.frames[g.frame].refs--
	return false
}

// enter moves the lanes of g into a new activation of fn, or into the one that
// other lanes entered by the same call.
func (w *warp) enter(g *group, b *block, fn *function) {
	caller := g.frame
	i := w.findFrame(caller, b, fn)
	if i < 0 {
		i = w.newFrame(caller, b, fn)
	} else {
		w.frames[caller].refs--
	}
	w.frames[i].refs++
	f := &w.frames[i]
	if w.cta.run.watch != nil {
		w.cta.watch.Enter(&w.Warp, i, check.Activation{Fn: fn.checked, Local: f.local, Parent: caller}, g.mask)
	}
	w.copyArgs(b.call.args, fn.params, w.frames[caller].local, f.local, g.mask, true)
	g.frame = i
	w.moveTo(g, 0)
	w.File = w.frameAt(f.regs)
	fn.fill(w, f, g.mask)
	w.setRunning(g)
	w.spent++
	w.Fuel--
}

func (w *warp) findFrame(caller int32, b *block, fn *function) int32 {
	if w.frames[caller].refs == 1 { // that of the group which calls: deep recursion looks no further
		return -1
	}
	for i := len(w.frames) - 1; i > 0; i-- {
		if f := &w.frames[i]; f.refs > 0 && f.parent == caller && f.call == b.call && f.fn == fn {
			return int32(i)
		}
	}
	return -1
}

// newFrame makes an activation above the caller's. The reference of g to the caller
// becomes the new frame's.
func (w *warp) newFrame(caller int32, b *block, fn *function) int32 {
	p := &w.frames[caller]
	f := frame{
		fn: fn, parent: caller, ret: b.next, call: b.call,
		local: p.local + p.fn.localBytes,
		base:  p.base - depthStep,
	}
	i := w.takeFrame(fn.regBytes)
	f.regs, f.room = w.frames[i].regs, w.frames[i].room
	w.frames[i] = f
	if uint64(f.local)+uint64(fn.localBytes) > w.cta.LocalStride || f.regs > maxStack || f.base < -maxDepth*depthStep {
		w.Fault(&lane.Stop{Kind: fault.Stack, Lane: bits.TrailingZeros32(w.running.mask), Detail: "calls nest too deeply in " + fn.name})
	}
	if need := int(f.regs+f.room) / 8; need > len(w.stack) {
		w.stack = append(w.stack, make([]uint64, need)...)
	}
	return i
}

// takeFrame returns a free frame with room for registers, or a new one behind all
// others. Frames never share rows, not even between lanes: a lane's column lies
// elsewhere in a row of another width.
func (w *warp) takeFrame(room uint32) int32 {
	last := len(w.frames) - 1
	for i := last; i > 0 && w.free > 0; i-- {
		if f := &w.frames[i]; f.refs == 0 && f.room >= room {
			w.free--
			return int32(i)
		}
	}
	w.frames = append(w.frames, frame{regs: w.frames[last].regs + w.frames[last].room, room: room})
	return int32(last + 1)
}

// maxStack bounds the register memory of one warp, for runaway recursion.
const maxStack = 64 << 20

// maxDepth bounds the calls in each other, also of functions without registers and
// variables: a device keeps at least where each one returns to.
const maxDepth = MostLocal / 8

// ret moves the lanes of g back into the caller.
func (w *warp) ret(g *group) {
	f := w.frames[g.frame]
	w.copyArgs(f.call.rets, f.fn.rets, w.frames[f.parent].local, f.local, g.mask, false)
	w.frames[f.parent].refs++
	w.release(g.frame)
	g.frame = f.parent
	w.moveTo(g, f.ret)
	w.File = w.frameAt(w.frames[f.parent].regs)
	w.setRunning(g)
}

// release drops one reference to a frame, and to its callers when it ends.
func (w *warp) release(i int32) {
	for i >= 0 {
		f := &w.frames[i]
		if f.refs--; f.refs > 0 {
			break
		}
		w.free++
		i = f.parent
	}
	for last := len(w.frames) - 1; last > 0 && w.frames[last].refs == 0; last-- {
		w.frames = w.frames[:last]
		w.free--
	}
}

// copyArgs copies arguments from the caller's variables to the callee's
// parameters, or results back.
func (w *warp) copyArgs(args []argument, places []uint32, caller, callee uint32, mask uint32, in bool) {
	for i, a := range args {
		if i >= len(places) {
			return
		}
		for m := mask; m != 0; m &= m - 1 {
			t := uint64(w.Index*register.Lanes+bits.TrailingZeros32(m)) * w.cta.LocalStride
			outer := w.cta.Local[t+uint64(caller+a.caller):][:a.size]
			inner := w.cta.Local[t+uint64(callee+places[i]):][:a.size]
			if in {
				copy(inner, outer)
			} else {
				copy(outer, inner)
			}
			if w.cta.run.watch != nil {
				w.cta.watch.Pass(t+uint64(caller+a.caller), t+uint64(callee+places[i]), uint64(a.size), in)
			}
		}
	}
}

// frameAt returns the register memory at a byte offset of the warp's stack.
func (w *warp) frameAt(o uint32) register.File { return register.At(w.stack, o) }
