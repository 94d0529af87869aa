// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/register"
)

// TestMmaSparse keeps half of A and says in metadata where it stood.
func TestMmaSparse(t *testing.T) {
	tests := []struct {
		mmaShape
		selectors int
	}{
		{mmaShape{"m16n8k16", "f32.f16.f16.f32", ""}, 4},
		{mmaShape{"m16n8k32", "f16.f16.f16.f16", ""}, 2},
		{mmaShape{"m16n8k16", "f32.bf16.bf16.f32", ""}, 4},
		{mmaShape{"m16n8k32", "f32.bf16.bf16.f32", ""}, 2},
		{mmaShape{"m16n8k8", "f32.tf32.tf32.f32", ""}, 4},
		{mmaShape{"m16n8k16", "f32.tf32.tf32.f32", ""}, 2},
		{mmaShape{"m16n8k64", "f32.e4m3.e5m2.f32", ""}, 1},
		{mmaShape{"m16n8k64", "f16.e5m2.e4m3.f16", ""}, 1},
		{mmaShape{"m16n8k32", "s32.s8.u8.s32", ".satfinite"}, 2},
		{mmaShape{"m16n8k64", "s32.u8.s8.s32", ""}, 1},
		{mmaShape{"m16n8k64", "s32.s4.u4.s32", ""}, 2},
		{mmaShape{"m16n8k128", "s32.u4.s4.s32", ".satfinite"}, 1},
	}
	for i, tt := range tests {
		for selector := range tt.selectors {
			t.Run(fmt.Sprint(tt.shape, ".", tt.types, "/", selector), func(t *testing.T) {
				x := newMmaCase(t, tt.mmaShape, rand.New(rand.NewPCG(uint64(i), 2)))
				x.name, x.lastOperand = [...]string{"mma.sp.sync.aligned", "mma.sp::ordered_metadata.sync.aligned"}[i%2], fmt.Sprint(selector)
				kept := x.prune(rand.New(rand.NewPCG(uint64(i), 3)), selector)
				want := sums(x.product(x.a), x.td)
				require.Equal(t, want, x.run(t, "row.col", tiles(words(kept, x.ta)), tiles(words(x.b, x.tb)), sums(x.c, x.tc), len(want)))
			})
		}
	}
}

// prune sets half of A to zero, and returns the other half. It fills in the
// metadata, in lanes that do not count any.
func (x *mmaCase) prune(r *rand.Rand, selector int) (kept [][]int) {
	piece, group := 1, 4 // elements kept or dropped together; of how many pieces two stay
	switch x.ta.Bits() {
	case 32:
		group = 2 // one stays
	case 4:
		piece = 2
	}
	bits := make([]string, x.m) // of each row, the first bit last
	for i, row := range x.a {
		var list []int
		for k := 0; k < x.k; k += group * piece {
			first := r.IntN(group - 1)
			second := first + 1 + r.IntN(group-1-first)
			stays := []int{first, second}
			numbers := fmt.Sprintf("%02b%02b", second, first)
			if group == 2 {
				stays = []int{r.IntN(2)}
				numbers = [...]string{"0100", "1110"}[stays[0]]
			}
			bits[i] = numbers + bits[i]
			for j := range group * piece {
				if n := j / piece; n == stays[0] || n == stays[len(stays)-1] {
					list = append(list, row[k+j])
				} else {
					row[k+j] = 0
				}
			}
		}
		kept = append(kept, list)
	}
	for range register.Lanes {
		x.tail = append(x.tail, r.Uint32())
	}
	for g := range 8 {
		x.metadata(x.tail[4*g:][:4], bits[g], bits[g+8], selector)
	}
	return kept
}

// metadata deals the bits of two rows to four lanes.
func (x *mmaCase) metadata(to []uint32, upper, lower string, selector int) {
	take := func(s *string, n int) (v uint32) {
		_, _ = fmt.Sscanf((*s)[len(*s)-n:], "%b", &v)
		*s = (*s)[:len(*s)-n]
		return v
	}
	if x.ta.Bits() >= 16 {
		for l := selector * len(upper) / 16; upper != ""; l++ {
			to[l] = take(&upper, 16) | take(&lower, 16)<<16
		}
		return
	}
	for l := 2 * selector; upper != ""; l += 2 {
		to[l], to[l+1] = take(&upper, 32), take(&lower, 32)
	}
}
