// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// sampledAccess is that of a texture or a surface. Where it is only the running
// instruction knows.
func sampledAccess(ir *ptxir.Instr) access {
	a := access{space: ptxir.SpaceGlobal, kind: shadow.WeakRead, limit: register.None}
	if ir.Op == ptxir.OpSurfStore {
		a.kind = shadow.WeakWrite
	}
	return a
}

// checkSampled looks at what the lanes are about to access through textures and
// surfaces. All four elements of a filter count.
func (v *Block) checkSampled(w *lane.Warp, a *access, in *lane.Inst, m uint32) {
	if !v.looksAtGlobal() {
		return
	}
	defer v.unlock()
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		see := func(addr, size uint64) {
			v.global(&touch{w: w, a: a, mask: 1 << l, lane: l, addr: addr, size: size, now: v.trace(w, a, l)})
		}
		if in.IR.Op == ptxir.OpTex {
			w.TextureReads(in, l, see)
		} else if addr, size := w.SurfaceAccess(in, l); size > 0 {
			see(addr, size)
		}
	}
}
