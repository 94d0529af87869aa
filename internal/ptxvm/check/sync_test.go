// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// TestSyncsChain: what lane 0 did is ordered before what another lane does if a
// chain of syncs leads there, each later than the one before.
func TestSyncsChain(t *testing.T) {
	tests := []struct {
		name    string
		live    uint32
		members []uint32
		ordered uint32 // the lanes that come after lane 0's access
	}{
		{"nobody synchronized", register.Full, nil, 0},
		{"all", register.Full, []uint32{register.Full}, register.Full},
		{"a pair", register.Full, []uint32{0b11}, 0b11},
		{"a pair without lane 0", register.Full, []uint32{0b110}, 0},
		{"a chain", register.Full, []uint32{0b11, 0b110}, 0b111},
		{"the chain's links in the wrong order", register.Full, []uint32{0b110, 0b11}, 0b11},
		{"a chain that ends with all", register.Full, []uint32{0b11, 0b110, register.Full}, register.Full},
		{"lanes that have exited are not waited for", 0xffff, []uint32{0xffff}, register.Full},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := &Block{warps: make([]syncs, 2)}
			x := &v.warps[1]
			x.sync(register.Full, register.Full)
			x.sync(0b1001, register.Full)
			before := shadow.Trace{Thread: register.Lanes, Syncs: x.count}
			for _, m := range tt.members {
				x.sync(m, tt.live)
			}
			var ordered uint32
			for l := range uint16(register.Lanes) {
				if v.syncedSince(&before, &shadow.Trace{Thread: register.Lanes + l, Syncs: x.count}) {
					ordered |= 1 << l
				}
			}
			require.Equal(t, tt.ordered, ordered)
		})
	}
}
