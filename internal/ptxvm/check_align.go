// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// comings are the lanes of one warp that have come to a barrier.
type comings struct {
	mask uint32
	// due are the lanes that the barrier must see: those that lived when the
	// first came, but for those that were about to end.
	due uint32
	at  *block // where the first came
}

// comes notes that lanes have come to an aligned barrier. All lanes of a warp
// must then execute the same one. PTX ISA, "bar, barrier".
func (v *blockWatch) comes(w *warp, g *group, at *block, id int) {
	if v.Checks&CheckRaces == 0 || at.sync.ir.Mod&ptxir.ModAligned == 0 {
		return
	}
	c := &v.comings[id*len(v.warps)+w.index]
	if c.mask == 0 {
		*c = comings{due: w.live &^ w.ending(), at: at}
	}
	if c.at == at {
		c.mask |= g.mask
	}
}

// ending are the lanes that have nothing left to do but to end: an early return
// that the compiler has put behind the barrier is no defect.
func (w *warp) ending() uint32 {
	var mask uint32
	for _, g := range w.ready {
		if b := &w.frames[g.frame].fn.blocks[g.block]; b.kind == ptxir.TermExit && len(b.code) == 0 {
			mask |= g.mask
		}
	}
	return mask
}

// complete reports the warps of which only a part came to a barrier.
func (v *blockWatch) complete(id int) {
	all := v.comings[id*len(v.warps):][:len(v.warps)]
	for i := range all {
		if c := all[i]; c.mask != 0 && c.due&^c.mask != 0 {
			v.parted(&v.cta.warps[i], &c)
		}
		all[i] = comings{}
	}
}

func (v *blockWatch) parted(w *warp, c *comings) {
	key := findingKey{kind: FindingBarrier, place: c.at}
	v.add(key, 0, func() *Finding {
		why := fmt.Sprintf("lanes %s of warp %d came to it, lanes %s did not", laneRanges(c.mask), w.index, laneRanges(c.due&^c.mask))
		return &Finding{Kind: FindingBarrier, Here: v.at(w, bits.TrailingZeros32(c.mask), c.at.pos, c.at.text), Why: why}
	})
}

// at is a place in the code that a lane has come to.
func (v *blockWatch) at(w *warp, l int, pos ptxir.Pos, text string) Access {
	here := Access{
		Kernel: v.kernel.ir.Name, Name: v.Name, PTXLine: pos.Line, SourceLine: pos.SourceLine, Instruction: text,
		Block: unravel(uint32(v.cta.linear), v.grid), Thread: unravel(uint32(w.index*register.Lanes+l), v.Watch.block),
	}
	if files := v.kernel.module.ir.Files; pos.File > 0 && pos.File < len(files) {
		here.SourceFile = files[pos.File]
	}
	return here
}
