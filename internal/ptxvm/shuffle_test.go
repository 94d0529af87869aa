// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// orderPTX: block b of tickets draws a ticket, o[b] = (*p)++; block b of
// look_back waits for the block before it.
const orderPTX = `.version 7.8
.target sm_75
.address_size 64
.visible .entry tickets(.param .u64 p, .param .u64 o)
{
	.reg .b64 %a, %o, %q;
	.reg .b32 %v, %b;
	ld.param.u64 %a, [p];
	ld.param.u64 %o, [o];
	mov.u32 %b, %ctaid.x;
	mul.wide.u32 %q, %b, 4;
	add.u64 %o, %o, %q;
	atom.global.add.u32 %v, [%a], 1;
	st.global.u32 [%o], %v;
	ret;
}
.visible .entry look_back(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %v, %b;
	.reg .pred %c;
	ld.param.u64 %a, [p];
	mov.u32 %b, %ctaid.x;
again:
	ld.volatile.global.u32 %v, [%a];
	setp.ne.u32 %c, %v, %b;
	@%c bra again;
	add.u32 %v, %v, 1;
	st.volatile.global.u32 [%a], %v;
	ret;
}
`

func TestShuffledBlocks(t *testing.T) {
	const blocks = 100
	order := func(seed uint64) []uint32 {
		d := ptxvm.NewDevice(ptxvm.Config{Workers: 1})
		defer d.Close()
		p, o := vmtest.Zeroed(t, d, 4), vmtest.Zeroed(t, d, 4*blocks)
		k := vmtest.Kernel(t, vmtest.Load(t, d, "order", orderPTX), "tickets")
		require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: vmtest.Pack(p, o), Seed: seed}))
		raw := make([]byte, 4*blocks)
		require.NoError(t, d.Memory().Read(raw, o))
		out := make([]uint32, blocks)
		for i := range out {
			out[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
		return out
	}
	ascending := order(0)
	require.True(t, slices.IsSorted(ascending))
	require.False(t, slices.IsSorted(order(1)))
	require.ElementsMatch(t, ascending, order(1))
	again := order(1)
	require.Equal(t, again, order(1))
	require.NotEqual(t, again, order(2))
}

func TestShuffledBlocksMayWaitForEachOther(t *testing.T) {
	for _, workers := range []int{1, 3} {
		d := ptxvm.NewDevice(ptxvm.Config{Workers: workers})
		defer d.Close()
		p := vmtest.Zeroed(t, d, 4)
		k := vmtest.Kernel(t, vmtest.Load(t, d, "order", orderPTX), "look_back")
		require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{50, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: vmtest.Pack(p), Seed: 5}))
		require.Equal(t, uint32(50), vmtest.Word(t, d, p))
	}
}
