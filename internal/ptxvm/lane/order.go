// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"runtime"

	"github.com/cudago/cudago/internal/ptxir"
)

// fence orders a warp's accesses before it with those after it, as other blocks
// see them. Within the block there is nothing to order: it runs in one
// goroutine.
func (s *selection) fence() error {
	s.in.Fn = fence
	return nil
}

// fence is a read-modify-write of a word of the warp's own, which is a full
// barrier on the hosts that Go runs on.
func fence(w *Warp, _ *Inst, _ uint32) { w.fences.Add(1) }

// weakHost says that the host reorders plain loads and stores, so that
// ld.acquire and st.release need a barrier of their own.
const weakHost = runtime.GOARCH != "amd64"

// ordered puts barriers around an access that has an order, where the host
// needs them.
func (s *selection) ordered() {
	if !weakHost || s.ir.Mod&(ptxir.ModAcquire|ptxir.ModRelease|ptxir.ModVolatile) == 0 {
		return
	}
	plain := *s.in
	s.in.Parts = []Inst{plain}
	s.in.Fn = orderedAccess
}

func orderedAccess(w *Warp, in *Inst, m uint32) {
	fence(w, in, m)
	in.Parts[0].Fn(w, &in.Parts[0], m)
	fence(w, in, m)
}
