// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// TestBarrierReport names the lanes of a deadlock, and whom they wait for.
func TestBarrierReport(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"two barriers", `
	setp.lt.u32 %c, %t, 40;
	@%c bra here;
	bar.sync 1;
	bra out;
here:
	bar.sync 0;
out:`, `deadlock in kernel k, .*: warp 0 lanes 0-31 wait at PTX line \d+ \(bar\.sync 0\), barrier 0, where 40 of 64 threads have arrived; ` +
			`warp 1 lanes (0-7|8-31) wait at PTX line \d+ \(bar\.sync \d\), barrier \d, where \d+ of 64 threads have arrived; warp 1 lanes`},
		{"too many expected", `
	setp.ge.u32 %c, %t, 60;
	@%c bra out;
	bar.sync 2, 96;
out:`, `warp 0 lanes 0-31 wait at PTX line 22 \(bar\.sync 2, 96\), barrier 2, where 64 of 96 threads have arrived; .*4 threads have exited$`},
		{"a lane that is somewhere else", `
	and.b32 %v, %t, 31;
	setp.eq.u32 %c, %v, 5;
	@%c bra here;
	bar.warp.sync -1;
	bra out;
here:
	bar.sync 0;
out:`, `warp 0 lanes 0-4,6-31 wait at PTX line 23 \(bar\.warp\.sync -1\) for lanes 5; warp 0 lanes 5 wait at PTX line 26 \(bar\.sync 0\), ` +
			`barrier 0, where 2 of 64 threads have arrived`},
		{"a warp that goes past the barrier", `
	setp.ge.u32 %c, %t, 32;
	@%c bra out;
	bar.sync 0, 64;
out:`, `warp 0 lanes 0-31 wait at PTX line 22 \(bar\.sync 0, 64\), barrier 0, where 32 of 64 threads have arrived; 32 threads have exited$`},
		{"a shuffle that a lane does not reach", `
	and.b32 %v, %t, 31;
	setp.eq.u32 %c, %v, 9;
	@%c bra here;
	shfl.sync.bfly.b32 %w, %v, 1, 31, -1;
here:
	bar.sync 0;`, `warp 0 lanes 0-8,10-31 wait at PTX line 23 \(shfl\.sync\..*\) for lanes 9; warp 0 lanes 9 wait at PTX line 25 \(bar\.sync 0\)`},
	}
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			k := vmtest.Kernel(t, vmtest.Load(t, d, "test", checkHead+test.body+"\n\tret;\n}\n"), "k")
			err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: vmtest.Pack(vmtest.Zeroed(t, d, 64), uint64(0))})
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, fault.Deadlock, f.Kind)
			require.Regexp(t, test.want, err.Error())
		})
	}
}
