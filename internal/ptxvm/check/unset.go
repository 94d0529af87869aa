// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// runFollowed runs an instruction on followed registers or local memory.
func runFollowed(w *lane.Warp, in *lane.Inst, m uint32) {
	inner := &in.Parts[0]
	if v := w.CTA.Checks.(*Block); v.local != nil {
		x := &v.code.follows[in.Site]
		f := &v.local.frames[w.Index][w.Frame]
		if x.guard >= 0 {
			v.depends(w, f, x, x.guard, m)
		}
		now := m
		if inner.Guarded != nil {
			now &= *w.Pred(inner.Guard) ^ inner.Invert
		}
		if now != 0 {
			v.follow(w, f, x, now)
		}
	}
	inner.Fn(w, inner, m)
}

// runFollowedEnd looks at what the end of a block depends on.
func runFollowedEnd(w *lane.Warp, in *lane.Inst, m uint32) {
	if v := w.CTA.Checks.(*Block); v.local != nil {
		x := &v.code.follows[in.Site]
		v.depends(w, &v.local.frames[w.Index][w.Frame], x, x.src[0], m)
	}
}

// depends reports the lanes of m in which a register is unset. After that the
// register counts as set.
func (v *Block) depends(w *lane.Warp, f *followedFrame, x *follow, number int32, m uint32) {
	for n := m & f.unset[number]; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		v.uninitializedLocal(w, l, f.originOf(x, number, l))
	}
	f.unset[number] &^= m
}

// lanesOf returns the lanes of m in which source i is unset.
func (f *followedFrame) lanesOf(x *follow, i int, m uint32) uint32 {
	if n := x.src[i]; n >= 0 {
		return f.unset[n] & m
	}
	return 0
}

// follow notes what an instruction is about to make of its registers.
func (v *Block) follow(w *lane.Warp, f *followedFrame, x *follow, m uint32) {
	switch x.rule {
	case followLoad:
		v.followLoad(w, f, x, m)
		return
	case followStore:
		v.followStore(w, f, x, m)
		return
	}
	all, some := m, uint32(0)
	for i := range x.src {
		one := f.lanesOf(x, i, m)
		some |= one
		all &= one
	}
	switch {
	case some == 0:
	case x.rule == unsetIfAll:
		some = all
	case x.rule == unsetEach:
		for i, n := range x.dst {
			if n >= 0 {
				f.set(x, x.src[i:i+1], n, m, f.lanesOf(x, i, m))
			}
		}
		return
	case x.rule == setAnyway:
		some = 0
	case x.rule == setAlways:
		for _, n := range x.src {
			if n >= 0 {
				v.depends(w, f, x, n, m)
			}
		}
		some = 0
	case x.rule != unsetIfAny:
		some = f.chosen(w, x, some, m)
	}
	for _, n := range x.dst {
		if n >= 0 {
			f.set(x, x.src, n, m, some)
		}
	}
}

// set makes a destination unset in some lanes of m, with the origin of the first
// source that is unset, and set in the others.
func (f *followedFrame) set(x *follow, from []int32, number int32, m, some uint32) {
	for n := some; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		var o origin
		for _, s := range from {
			if s < 0 || f.unset[s]>>l&1 == 0 {
				continue
			}
			if o = f.originOf(x, s, l); o.shuffle == nil || int(o.lane) == l {
				break // a shuffle of the lane itself tells more than another's
			}
		}
		if o != (origin{}) {
			o.masked = o.masked || x.rule == unsetAnd
			f.origin(number)[l] = o
		}
	}
	f.unset[number] = f.unset[number]&^m | some
}

// originOf is the origin of an unset register's value. For a register that was
// never written it is the first read, which is x.
func (f *followedFrame) originOf(x *follow, number int32, l int) origin {
	if list := f.origins[number]; list != nil && list[l] != (origin{}) {
		return list[l]
	}
	return origin{fn: f.fn, register: f.fn.unwrittenBy(number), read: x}
}

func (f *followedFrame) origin(number int32) *[register.Lanes]origin {
	if f.origins[number] == nil {
		f.origins[number] = &[register.Lanes]origin{}
	}
	return f.origins[number]
}

// chosen returns the lanes of some in which the result is unset, for operations in
// which one operand may hide another.
func (f *followedFrame) chosen(w *lane.Warp, x *follow, some, m uint32) uint32 {
	a, b := f.lanesOf(x, 0, m), f.lanesOf(x, 1, m)
	switch x.rule {
	case unsetAsChosen:
		p := *w.Pred(x.from[2])
		return f.lanesOf(x, 2, m) | a&p | b&^p
	case unsetInserted:
		return a & b
	case unsetCompared:
		if len(x.src) < 3 || x.ir.Bool == ptxir.BoolXor {
			return some
		}
		c, q := f.lanesOf(x, 2, m), *w.Pred(x.from[2])
		if x.ir.Bool == ptxir.BoolOr {
			q = ^q
		}
		return (a | b) & (c | q)
	}
	if x.rule == unsetOr {
		return a&b | a&^b&f.zeros(w, x, 1, m) | b&^a&f.zeros(w, x, 0, m)
	}
	return a&b | a&^b&^f.zeros(w, x, 1, m) | b&^a&^f.zeros(w, x, 0, m)
}

// zeros returns the lanes of m in which source i is 0.
func (f *followedFrame) zeros(w *lane.Warp, x *follow, i int, m uint32) (zero uint32) {
	if x.ir.Type == ptxir.Pred {
		return ^*w.Pred(x.from[i])
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		switch {
		case x.ir.Type.Size() == 8:
			if w.U64(x.from[i])[l] == 0 {
				zero |= 1 << l
			}
		case w.U32(x.from[i])[l] == 0:
			zero |= 1 << l
		}
	}
	return zero
}

// followLoad makes those registers unset of which not one byte was written.
func (v *Block) followLoad(w *lane.Warp, f *followedFrame, x *follow, m uint32) {
	if n := x.src[0]; n >= 0 {
		v.depends(w, f, x, n, m)
	}
	for _, n := range x.dst {
		if n >= 0 {
			f.unset[n] &^= m
		}
	}
	each := registerBytes(x.ir.Type)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		off, ok := v.localOffset(&x.a, x.a.address(w, l))
		if !ok {
			continue
		}
		at := v.localBit(w, l, off)
		if n, _ := v.local.written.Missing(at, x.a.size); n < each {
			continue
		}
		for i, n := range x.dst {
			if gap, _ := v.local.written.Missing(at+uint64(i)*each, each); gap == each && n >= 0 {
				f.unset[n] |= 1 << l
				f.origin(n)[l] = v.origin(w, l, x.a.site, uint32(off+uint64(i)*each), uint32(each))
			}
		}
	}
}

// followStore carries what is unset into local memory. What is stored to global
// memory must be set, at least in part. Shared memory takes anything: if the last
// tile of a block is not full, its threads exchange what they have, and drop what
// they do not need.
func (v *Block) followStore(w *lane.Warp, f *followedFrame, x *follow, m uint32) {
	if n := x.src[0]; n >= 0 {
		v.depends(w, f, x, n, m)
	}
	all := m
	for i := range x.src[1:] {
		all &= f.lanesOf(x, i+1, m)
	}
	each := registerBytes(x.ir.Type)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		addr := x.a.address(w, l)
		_, shared := x.a.sharedOffset(addr)
		off, ok := v.localOffset(&x.a, addr)
		if ok {
			v.local.written.Define(v.localBit(w, l, off), x.a.size)
		}
		for i, s := range x.src[1:] {
			if s < 0 || f.unset[s]>>l&1 == 0 {
				continue
			}
			o := f.originOf(x, s, l)
			switch {
			case x.ir.Op == ptxir.OpAtom, !ok && !shared && all>>l&1 != 0 && !(x.piece && o.register == nil && o.shuffle == nil && v.isPadding(w, l, o)):
				v.uninitializedLocal(w, l, o)
			case ok && !o.masked:
				at := v.localBit(w, l, off+uint64(i)*each)
				v.local.written.Remove(at, each)
				o.size = uint32(each)
				v.local.carried[at] = o
			}
		}
	}
	for _, n := range x.dst {
		if n >= 0 {
			f.unset[n] &^= m
		}
	}
}

// isPadding reports whether a piece of a copied structure may be padding between
// its members: some of the 16 bytes around it were written, and no type has a
// greater alignment.
func (v *Block) isPadding(w *lane.Warp, l int, o origin) bool {
	const around = 16
	n, _ := v.local.written.Missing(v.localBit(w, l, uint64(o.off)&^(around-1)), around)
	return n < around
}
