// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// bulkAccesses are those of a bulk copy: of shared memory, then of global memory.
// Where they are only the running instruction knows.
func bulkAccesses(ir *ptxir.Instr) []access {
	shared := access{space: ptxir.SpaceShared, kind: shadow.WeakRead, limit: register.None}
	global := access{space: ptxir.SpaceGlobal, kind: shadow.WeakRead, limit: register.None}
	if ir.Op == ptxir.OpBulkLoad || ir.Op == ptxir.OpTensorLoad {
		shared.kind = shadow.WeakWrite
	} else {
		global.kind = shadow.WeakWrite
	}
	return []access{shared, global}
}

// checkBulk looks at the pieces of bulk copies, before they are moved: as if the
// thread that starts a copy did it at once.
func (v *Block) checkBulk(w *lane.Warp, x *watched, in *lane.Inst, m uint32) {
	defer v.unlock()
	shared, global := &x.accesses[0], &x.accesses[1]
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		b := w.BulkOf(in, l)
		b.Pieces(func(p descriptor.Piece) {
			if b.Loads || !p.Beyond {
				v.shared(&touch{w: w, a: shared, mask: 1 << l, lane: l, addr: p.Shared, size: p.Bytes, now: v.trace(w, shared, l)}, p.Shared)
			}
			if !p.Beyond {
				v.global(&touch{w: w, a: global, mask: 1 << l, lane: l, addr: p.Global, size: p.Bytes, now: v.trace(w, global, l)})
			}
		})
	}
}
