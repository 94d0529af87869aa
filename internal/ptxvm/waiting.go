// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
)

// mostWaiting is how many places a report of waiting lanes names.
const mostWaiting = 16

// waiting says which lanes wait where, and for whom, in a block whose remaining
// threads all wait.
func (c *cta) waiting() string {
	var parts []string
	for i := range c.warps {
		w := &c.warps[i]
		for j := range w.parked {
			if len(parts) == mostWaiting {
				return strings.Join(append(parts, "…"), "; ")
			}
			parts = append(parts, c.waitingGroup(w, &w.parked[j]))
		}
	}
	if gone := c.run.threads - c.live; gone > 0 {
		parts = append(parts, fmt.Sprintf("%d threads have exited", gone))
	}
	return strings.Join(parts, "; ")
}

func (c *cta) waitingGroup(w *warp, p *parked) string {
	who := fmt.Sprintf("warp %d lanes %s wait at %s", w.Index, lane.Ranges(p.mask), c.kernel.module.place(p.at.Pos, p.at.Text))
	if p.barrier < 0 {
		return fmt.Sprintf("%s for lanes %s", who, lane.Ranges(p.members&w.live&^p.mask))
	}
	b := &c.barriers[p.barrier]
	target := b.expected
	if target == 0 {
		target = c.live
	}
	return fmt.Sprintf("%s, barrier %d, where %d of %d threads have arrived", who, p.barrier, b.arrived, target)
}

// place names a line of code: "k.cu:4, PTX line 20 (bar.sync 0)".
func (m *Module) place(pos ptxir.Pos, text string) string {
	s := fmt.Sprintf("PTX line %d (%s)", pos.Line, strings.TrimSuffix(text, ";"))
	if pos.SourceLine > 0 && pos.File > 0 && pos.File < len(m.ir.Files) {
		s = fmt.Sprintf("%s:%d, %s", m.ir.Files[pos.File], pos.SourceLine, s)
	}
	return s
}
