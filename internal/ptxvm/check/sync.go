// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// syncs is what the lanes of a warp know of each other. A sync is a
// __syncwarp, a shuffle, a vote and the like, of any lanes. Each gets the next
// number.
type syncs struct {
	count uint32
	// all is the last sync of all lanes.
	all uint32
	// known[j][i] is the last sync of lane i that lane j knows of, directly or
	// through others. A number below all stands for all.
	known [register.Lanes][register.Lanes]uint32
}

// sync notes that lanes synchronized, out of those that are live.
func (x *syncs) sync(members, live uint32) {
	x.count++
	if members &= live; members == live {
		x.all = x.count
		return
	}
	var heard [register.Lanes]uint32
	for m := members; m != 0; m &= m - 1 {
		for i, n := range x.known[bits.TrailingZeros32(m)&31] {
			heard[i] = max(heard[i], n)
		}
	}
	for i := range heard {
		if members>>i&1 != 0 {
			heard[i] = x.count
		}
	}
	for m := members; m != 0; m &= m - 1 {
		x.known[bits.TrailingZeros32(m)&31] = heard
	}
}

// syncedSince reports whether the lanes of two accesses of one warp have
// synchronized between the two, directly or through other lanes.
func (v *Block) syncedSince(before, now *shadow.Trace) bool {
	x := &v.warps[now.Thread/register.Lanes]
	return max(x.all, x.known[now.Thread%register.Lanes][before.Thread%register.Lanes]) > before.Syncs
}

// Sync notes that lanes of a warp synchronized, out of those that are live.
func (v *Block) Sync(warp int, members, live uint32) { v.warps[warp].sync(members, live) }
