// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxvm/fault"
)

func (s *selection) trap() error {
	s.in.Fn = trap
	return nil
}

func trap(w *Warp, in *Inst, m uint32) {
	w.Fault(&Stop{Kind: fault.Trap, In: in, Lane: bits.TrailingZeros32(m)})
}

// nanosleep takes no time, but uses up fuel: a group that sleeps has nothing to do,
// so it soon gives way.
func (s *selection) nanosleep() error {
	s.in.Fn = func(w *Warp, _ *Inst, _ uint32) { w.Fuel -= SpinCost }
	return nil
}

func (s *selection) nothing() error {
	s.in.Fn = nothing
	return nil
}

func nothing(*Warp, *Inst, uint32) {}

// SpinCost is the fuel that a back-edge costs if its loop may be a spin loop.
const SpinCost = 1 << 10
