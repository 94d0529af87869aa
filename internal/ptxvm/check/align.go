// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// arrivals are the lanes of one warp that have arrived at a barrier.
type arrivals struct {
	mask uint32
	// due are the lanes that have to arrive: those that had not exited when the
	// first arrived, and were not about to.
	due uint32
	at  *lane.Place // where the first arrived
}

// Come notes that lanes have arrived at an aligned barrier. All lanes in due, which
// have not exited and are not about to, must execute the same one. PTX ISA, "bar,
// barrier".
func (v *Block) Come(w *lane.Warp, mask, due uint32, at *lane.Place, id int) {
	if v.Checks&Races == 0 {
		return
	}
	c := &v.arrivals[id*len(v.warps)+w.Index]
	if c.mask == 0 {
		*c = arrivals{due: due, at: at}
	}
	if c.at == at {
		c.mask |= mask
	}
}

// Complete reports the warps of which only a part arrived at a barrier.
func (v *Block) Complete(id int) {
	all := v.arrivals[id*len(v.warps):][:len(v.warps)]
	for i := range all {
		if c := all[i]; c.mask != 0 && c.due&^c.mask != 0 {
			v.parted(i, &c)
		}
		all[i] = arrivals{}
	}
}

func (v *Block) parted(warp int, c *arrivals) {
	key := findingKey{kind: FindingBarrier, place: c.at}
	v.add(key, 0, func() *Finding {
		why := fmt.Sprintf("lanes %s of warp %d reached it, lanes %s did not", lane.Ranges(c.mask), warp, lane.Ranges(c.due&^c.mask))
		return &Finding{Kind: FindingBarrier, Here: v.at(warp, bits.TrailingZeros32(c.mask), c.at), Why: why}
	})
}

// at is a place in the code that a lane has reached.
func (v *Block) at(warp, l int, at *lane.Place) Access {
	here := Access{
		Kernel: v.code.Kernel, Name: v.Name, PTXLine: at.Pos.Line, SourceLine: at.Pos.SourceLine, Instruction: at.Text,
		Block: unravel(uint32(v.cta.Linear), v.grid), Thread: unravel(uint32(warp*register.Lanes+l), v.Watch.block),
	}
	here.SourceFile = v.code.file(at.Pos)
	return here
}
