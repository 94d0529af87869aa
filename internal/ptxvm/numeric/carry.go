// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// CarryStep computes one lane in 64 bits and returns the carry or borrow out of
// the given width.
func CarryStep(ir *ptxir.Instr, a, b, c, carry uint64, wide bool) (r, out uint64) {
	switch ir.Op {
	case ptxir.OpMadCC, ptxir.OpMadC:
		p := a * b
		if ir.Mode == ptxir.ModeHi {
			p = mulHi(ir.Type, a, b)
		}
		a, b = p, c
	case ptxir.OpSubCC, ptxir.OpSubC:
		r, out = bits.Sub64(a, b, carry)
		if !wide {
			r, out = uint64(uint32(r)), r>>32&1
		}
		return r, out
	}
	if wide {
		return bits.Add64(a, b, carry)
	}
	sum := uint64(uint32(a)) + uint64(uint32(b)) + carry
	return uint64(uint32(sum)), sum >> 32
}

func mulHi(t ptxir.Type, a, b uint64) uint64 {
	switch t {
	case ptxir.S64:
		return uint64(MulHiS64(int64(a), int64(b)))
	case ptxir.S32:
		return uint64(uint32(MulHiS32(int32(a), int32(b))))
	case ptxir.U32, ptxir.B32:
		return uint64(MulHiU32(uint32(a), uint32(b)))
	}
	return MulHiU64(a, b)
}
