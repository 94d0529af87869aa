// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// localWatch is what the checks know of a block's local memory, and of the
// registers into which it was loaded.
type localWatch struct {
	// written are the bytes that their threads have written, one thread's local
	// memory after the other's.
	written shadow.ByteSet
	// frames are the followed registers, by warp and frame.
	frames [][]followedFrame
	// carried says where an undefined value was loaded that was then stored, by
	// the place of its first byte in written.
	carried map[uint64]origin
	// told are the origins that have been reported.
	told map[toldKey]bool
}

type toldKey struct {
	at       uint64 // in written; of a register, the thread
	fn       *Function
	register *unwrittenRegister
	shuffle  *follow
}

// followedFrame is one activation's followed registers.
type followedFrame struct {
	fn     *Function
	local  uint32 // where its variables begin
	parent int32
	unset  []uint32 // by number: the lanes that hold what nobody wrote
	// origins says where the value was loaded; nil for registers that were never
	// unset.
	origins []*[register.Lanes]origin
}

// origin is the load of something that nobody wrote, the first read of a register
// that nobody wrote, or a shuffle from a lane that did not take part.
type origin struct {
	register *unwrittenRegister
	read     *follow // of the register
	shuffle  *follow // with register nil too: local memory
	// lane is the one that made the shuffle, from the one that it read, and members
	// are those of its mask.
	lane, from uint8
	members    uint32
	site       uint32
	off        uint32 // in the thread's local memory
	size       uint32
	fn         *Function // to whose variables it belongs
	base       uint32    // where they begin
	// masked says that only some bits of the value are left.
	masked bool
}

// bindLocal readies the check of local memory for a launch.
func (v *Block) bindLocal(entry *Function) {
	v.local = nil
	if v.Checks&Uninitialized == 0 || len(v.code.follows) == 0 {
		return
	}
	v.local = &localWatch{
		written: shadow.NewByteSet(v.cta.LocalStride * uint64(len(v.warps)*register.Lanes)), frames: make([][]followedFrame, len(v.warps)),
		carried: map[uint64]origin{}, told: map[toldKey]bool{},
	}
	for i := range v.local.frames {
		v.local.frames[i] = []followedFrame{newFollowedFrame(entry)}
	}
}

func newFollowedFrame(fn *Function) followedFrame {
	return followedFrame{fn: fn, parent: -1, unset: make([]uint32, fn.followed), origins: make([]*[register.Lanes]origin, fn.followed)}
}

// Start forgets what the previous block wrote.
func (v *localWatch) startBlock() {
	if v == nil {
		return
	}
	clear(v.written)
	clear(v.carried)
	clear(v.told)
	for _, frames := range v.frames {
		clear(frames[0].unset)
		frames[0].enter(register.Full)
	}
}

// Activation is one activation of a function: a frame.
type Activation struct {
	Fn     *Function
	Local  uint32 // where its variables begin
	Parent int32  // number of the caller's frame
}

// Enter says that lanes have entered the function of a frame. Its variables are
// undefined: their place may have been another function's before.
func (v *Block) Enter(w *lane.Warp, i int32, f Activation, mask uint32) {
	if v.local == nil {
		return
	}
	all := &v.local.frames[w.Index]
	for int(i) >= len(*all) {
		*all = append(*all, followedFrame{})
	}
	values := &(*all)[i]
	if values.fn != f.Fn {
		*values = newFollowedFrame(f.Fn)
	}
	values.local, values.parent = f.Local, f.Parent
	for n := range values.unset {
		values.unset[n] &^= mask
	}
	values.enter(mask)
	for m := mask; m != 0; m &= m - 1 {
		at, size := v.localBit(w, bits.TrailingZeros32(m), uint64(f.Local)), uint64(f.Fn.LocalBytes)
		v.local.written.Remove(at, size)
		for i := uint64(0); i < size && len(v.local.carried) > 0; i++ {
			delete(v.local.carried, at+i)
		}
	}
}

// Pass says that a call has copied size bytes of a thread's local memory between
// caller and callee. What was undefined still is.
func (v *Block) Pass(outer, inner, size uint64, in bool) {
	if v.local == nil {
		return
	}
	if !in {
		outer, inner = inner, outer
	}
	v.local.written.Copy(inner, outer, size)
	if n, _ := v.local.written.Missing(outer, size); n == 0 {
		return
	}
	for i := range size {
		if o, ok := v.local.carried[outer+i]; ok {
			v.local.carried[inner+i] = o
		} else {
			delete(v.local.carried, inner+i)
		}
	}
}

// Return says that a built-in function has written a result of size bytes
// among the variables of the running frame.
func (v *Block) Return(w *lane.Warp, at, size, mask uint32) {
	if v.local == nil {
		return
	}
	off := uint64(v.local.frames[w.Index][w.Frame].local + at)
	for m := mask; m != 0; m &= m - 1 {
		v.local.written.Define(v.localBit(w, bits.TrailingZeros32(m), off), uint64(size))
	}
}

// localBit is the place of a byte of a lane's local memory in written.
func (v *Block) localBit(w *lane.Warp, l int, off uint64) uint64 {
	return uint64(w.Index*register.Lanes+l)*v.cta.LocalStride + off
}

// localOffset returns where in local memory an access is. It reports false
// outside of it, where the access itself will fault.
func (v *Block) localOffset(a *access, addr uint64) (off uint64, ok bool) {
	switch {
	case a.space == ptxir.SpaceLocal:
		off = addr
	case addr>>memory.WindowShift == memory.LocalWindow:
		off = addr - memory.LocalBase
	default:
		return 0, false
	}
	return off, off < v.cta.LocalStride && a.size <= v.cta.LocalStride-off
}

// origin is what a lane's load of size undefined bytes says of them.
func (v *Block) origin(w *lane.Warp, l int, site, off, size uint32) origin {
	if o, ok := v.local.carried[v.localBit(w, l, uint64(off))]; ok && o.size == size {
		return o
	}
	o := origin{site: site, off: off, size: size}
	frames := v.local.frames[w.Index]
	for i := w.Frame; i >= 0; i = frames[i].parent {
		if f := &frames[i]; off-f.local < f.fn.LocalBytes {
			o.fn, o.base = f.fn, f.local
		}
	}
	return o
}

// uninitializedLocal reports that a lane depends on something that nobody wrote.
func (v *Block) uninitializedLocal(w *lane.Warp, l int, o origin) {
	key := toldKey{v.localBit(w, l, uint64(o.off)), o.fn, o.register, o.shuffle}
	if o.register != nil || o.shuffle != nil {
		key.at = uint64(w.Index*register.Lanes + l)
	}
	if v.local.told[key] {
		return
	}
	v.local.told[key] = true
	switch {
	case o.register != nil:
		v.unwritten(w, l, o)
		return
	case o.shuffle != nil:
		v.undefinedShuffle(w, o)
		return
	}
	v.add(findingKey{kind: FindingUninitialized, site: o.site}, 0, func() *Finding {
		here := v.access(&shadow.Trace{Block: uint32(w.CTA.Linear), Site: o.site, Thread: uint16(w.Index*register.Lanes + l)})
		return &Finding{
			Kind: FindingUninitialized, Here: here, Address: uint64(o.off), Size: uint64(o.size), Local: true,
			Within: o.localPlace(),
		}
	})
}

// Print looks at an argument of printf, which lies in local memory. A compiler that
// knows the value to be undefined leaves out the store.
func (v *Block) Print(w *lane.Warp, l int, at *lane.Place, addr, size uint64) {
	if v.local == nil || addr>>memory.WindowShift != memory.LocalWindow {
		return
	}
	off := addr - memory.LocalBase
	bit := v.localBit(w, l, off)
	if n, _ := v.local.written.Missing(bit, size); n < size {
		return
	}
	if o, ok := v.local.carried[bit]; ok {
		v.uninitializedLocal(w, l, o)
		return
	}
	v.add(findingKey{kind: FindingUninitialized, place: at}, 0, func() *Finding {
		o := v.origin(w, l, 0, uint32(off), uint32(size))
		return &Finding{
			Kind: FindingUninitialized, Here: v.at(w.Index, l, at), Address: off, Size: size, Local: true,
			Within: o.localPlace(),
		}
	})
}

// localPlace says in which variable of a function an origin lies.
func (o *origin) localPlace() string {
	if o.fn == nil {
		return ""
	}
	for _, x := range o.fn.locals {
		if at := uint64(o.off-o.base) - x.off; at < x.size {
			return fmt.Sprintf("at offset %d of local variable %s of %d bytes", at, x.name, x.size)
		}
	}
	return ""
}
