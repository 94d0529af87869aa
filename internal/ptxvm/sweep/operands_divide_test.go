// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math/rand/v2"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// TestOperandsDivideApproximately holds div.approx and div.full to 2 ulp of the
// quotient. PTX ISA, "Floating Point Instructions: div".
func TestOperandsDivideApproximately(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	rig := newOperandRig(t, crossed(refF32.edges(), operandCount(), func() operands { return refF32.near(r) }))
	for _, op := range []string{"approx", "full"} {
		for _, ftz := range []bool{false, true} {
			name := mnemonic("div", op, map[bool]string{true: "ftz"}[ftz], "f32")
			rig.runAll(t, []operation{{name: name, body: name + " Y, A, B;", fits: func(o operands, got uint64) bool {
				return nearQuotient(op, ftz, number32(uint32(o[0])), number32(uint32(o[1])), got)
			}}})
		}
	}
}

func nearQuotient(op string, ftz bool, a, b refNumber, got uint64) bool {
	if ftz {
		a, b = refF32.flushed(a), refF32.flushed(b)
	}
	want := refF32.round(a.over(b), ptxir.RoundRN)
	exp := b.e + 24 // of a normal b: it lies in [2^(exp-1), 2^exp)
	switch {
	case op == "approx" && b.class == refExact && b.m != 0 && (exp > 127 || exp == 127 && b.m > 1<<23):
		// Beyond 2^126 the reciprocal is flushed.
		want = refF32.round(a.times(refNumber{neg: b.neg}), ptxir.RoundRN)
		return got == want
	case op == "approx" && b.class == refExact && b.m != 0 && b.m < 1<<23:
		return true // below 2^-126 PTX promises nothing
	case refF32.isNaN(want) || a.class != refExact || b.class != refExact || a.m == 0 || b.m == 0:
		return got == want
	case ftz && refF32.flush(got) == got && got&0x7fffffff == 0:
		return got == refF32.flush(want) || steps(want, got|0x800000) <= 2
	}
	return got>>32 == 0 && steps(want, got) <= 2
}
