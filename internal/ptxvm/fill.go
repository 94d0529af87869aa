// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// fill sets the constants and special registers of a frame for some lanes.
func (fn *function) fill(w *warp, f *frame, m uint32) {
	for i := range fn.consts {
		c := &fn.consts[i]
		v := c.bits
		if c.local {
			v += uint64(f.local)
		}
		w.Fill(c.reg, c.class, v, m)
	}
	fn.fillSpecials(w, m, false)
	fn.fillSpecials(w, m, true)
}

// fillSpecials sets the special registers that depend on the block, or those
// that do not.
func (fn *function) fillSpecials(w *warp, m uint32, perBlock bool) {
	for _, s := range fn.specials {
		if s.perBlock != perBlock {
			continue
		}
		class := fn.ir.Regs[s.index]
		if perBlock { // the same for all lanes
			w.Fill(s.reg, class, s.fn(&w.Warp, 0), m)
			continue
		}
		for n := m; n != 0; n &= n - 1 {
			l := bits.TrailingZeros32(n) & 31
			v := s.fn(&w.Warp, l)
			if class == ptxir.ClassPred {
				w.SetPred(s.reg, v != 0, 1<<l)
				continue
			}
			w.SetRaw(s.reg, register.ClassOf(class), l, v)
		}
	}
}
