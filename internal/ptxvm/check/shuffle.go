// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// What a shuffle reads from a lane that is not in its mask, or has exited, is
// undefined (PTX ISA, "shfl.sync"). That alone is no defect: half of a tree of
// shuffles computes sums that nobody wants, and reads beyond the lanes that take
// part. So the value is followed until something depends on it.

// shuffledRegisters are the results of a function's shuffles.
func shuffledRegisters(f *ptxir.Func) (list []ptxir.Reg) {
	for i := range f.Blocks {
		if in := f.Blocks[i].Term.Instr; in != nil && in.Op == ptxir.OpShfl && in.Dst[0] != ptxir.NoReg {
			list = append(list, in.Dst[0])
		}
	}
	return list
}

// runShuffled runs a shuffle behind its check.
func runShuffled(w *lane.Warp, in *lane.Inst, m uint32) {
	inner := &in.Parts[0]
	if v := w.CTA.Checks.(*Block); v.local != nil {
		x := &v.code.follows[in.Site]
		if f := &v.local.frames[w.Index][w.Frame]; x.dst[0] >= 0 {
			f.shuffle(w, x, inner, m)
		}
	}
	inner.Fn(w, inner, m)
}

// shuffle notes in which lanes of m, which are those that take part, the result is
// undefined: because its source lane does not, or because that lane's value is the
// result of such a shuffle. Whatever else was never written counts as written then, as
// with every operation of a warp.
func (f *followedFrame) shuffle(w *lane.Warp, x *follow, in *lane.Inst, m uint32) {
	var unset uint32
	var origins [register.Lanes]origin
	sources := w.ShuffleSources(in)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		from := sources[l]
		switch {
		case m>>from&1 == 0:
			origins[l] = origin{shuffle: x, lane: uint8(l), from: uint8(from), members: w.U32(in.Members)[l]}
		case f.lanesOf(x, 0, 1<<from) == 0:
			continue
		default:
			if origins[l] = f.originOf(x, x.src[0], int(from)); origins[l].shuffle == nil {
				continue
			}
		}
		unset |= 1 << l
	}
	number := x.dst[0]
	for n := unset; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		f.origin(number)[l] = origins[l]
	}
	f.unset[number] = f.unset[number]&^m | unset
}

// undefinedShuffle reports that something depends on what a shuffle read from a lane
// that did not take part.
func (v *Block) undefinedShuffle(w *lane.Warp, o origin) {
	at := &o.shuffle.Place
	v.add(findingKey{kind: FindingShuffle, place: at}, 0, func() *Finding {
		why := "which has exited"
		switch n := v.Watch.block; {
		case o.members>>o.from&1 == 0:
			why = fmt.Sprintf("which is not in the mask %#x", o.members)
		case uint32(w.Index*register.Lanes)+uint32(o.from) >= n[0]*n[1]*n[2]:
			why = "which the block does not have"
		}
		return &Finding{
			Kind: FindingShuffle, Here: v.at(w.Index, int(o.lane), at), Why: fmt.Sprintf("it reads lane %d, %s", o.from, why),
		}
	})
}
