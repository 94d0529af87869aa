// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
)

// wholeWarpsPTX: of a block that meets at a barrier for 64 threads, the first few exit,
// some of them after a while; the others then write 7.
const wholeWarpsPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 first, .param .u32 slow)
{
	.reg .b64 %p, %o;
	.reg .b32 %t, %i, %n;
	.reg .pred %q;
	ld.param.u64 %p, [out];
	mov.u32 %t, %tid.x;
	ld.param.u32 %n, [slow];
	setp.lt.u32 %q, %t, %n;
	@%q bra Slow;
	ld.param.u32 %n, [first];
	setp.lt.u32 %q, %t, %n;
	@%q exit;
	barrier.sync 1, 64;
	mul.wide.u32 %o, %t, 4;
	add.u64 %p, %p, %o;
	st.u32 [%p], 7;
	ret;
Slow:
	mov.u32 %i, 100000;
Turn:
	sub.u32 %i, %i, 1;
	setp.ne.u32 %q, %i, 0;
	@%q bra Turn;
	ret;
}
`

// Such a number counts warps, also where lanes have exited or never were: an H200
// runs the first four of these to their end.
func TestBarrierForThreadsCountsWholeWarps(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k, err := loadKernel(d, wholeWarpsPTX)
	require.NoError(t, err)
	for _, c := range []struct {
		block, first, slow uint32
		ends               bool
	}{
		{64, 0, 0, true},
		{40, 0, 0, true},
		{64, 13, 0, true},
		{40, 3, 0, true},
		{64, 0, 13, true},
		{64, 20, 7, true},
		{32, 0, 0, false}, // the second warp never comes
	} {
		p, err := d.Memory().Alloc(4*64, "out")
		require.NoError(t, err)
		require.NoError(t, d.Memory().Write(p, make([]byte, 4*64)))
		params := binary.LittleEndian.AppendUint64(nil, p)
		params = binary.LittleEndian.AppendUint32(params, c.first)
		params = binary.LittleEndian.AppendUint32(params, c.slow)
		err = k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{c.block, 1, 1}, Params: params})
		if !c.ends {
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, fault.Deadlock, f.Kind)
			continue
		}
		require.NoError(t, err, "%+v", c)
		out := make([]byte, 4*64)
		require.NoError(t, d.Memory().Read(out, p))
		for i := range c.block {
			want := uint32(7)
			if i < max(c.first, c.slow) {
				want = 0
			}
			require.Equal(t, want, binary.LittleEndian.Uint32(out[4*i:]), "thread %d of %+v", i, c)
		}
	}
}
