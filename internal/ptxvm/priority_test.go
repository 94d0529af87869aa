// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// busyPTX has kernels whose blocks take a while.
const busyPTX = `.version 7.0
.target sm_75
.address_size 64
// Counts its blocks.
.visible .entry low(.param .u64 counter)
{
	.reg .b64 %a;
	.reg .b32 %i;
	.reg .pred %p;
	ld.param.u64 %a, [counter];
	red.global.add.u32 [%a], 1;
	mov.u32 %i, 4000;
Again:
	sub.u32 %i, %i, 1;
	setp.ne.u32 %p, %i, 0;
	@%p bra Again;
	ret;
}
// Notes in each block how many of the other launch there were.
.visible .entry high(.param .u64 counter, .param .u64 notes)
{
	.reg .b64 %a, %b;
	.reg .b32 %i, %v;
	.reg .pred %p;
	ld.param.u64 %a, [counter];
	ld.param.u64 %b, [notes];
	mov.u32 %i, %ctaid.x;
	mad.wide.u32 %b, %i, 4, %b;
	ld.volatile.global.u32 %v, [%a];
	st.global.u32 [%b], %v;
	mov.u32 %i, 4000;
Again:
	sub.u32 %i, %i, 1;
	setp.ne.u32 %p, %i, 0;
	@%p bra Again;
	ret;
}
// Waits until the other launch has begun its last block.
.visible .entry waits(.param .u64 counter, .param .u64 notes)
{
	.reg .b64 %a;
	.reg .b32 %v;
	.reg .pred %p;
	ld.param.u64 %a, [counter];
Again:
	ld.volatile.global.u32 %v, [%a];
	setp.lt.u32 %p, %v, 12;
	@%p bra Again;
	ret;
}
`

// beside runs a kernel of a higher priority at the same time as low, and
// returns what its blocks noted.
func beside(t *testing.T, name string, lowBlocks, blocks uint32) []uint32 {
	t.Helper()
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 1})
	defer d.Close()
	m := vmtest.Load(t, d, "test", busyPTX)
	low, other := vmtest.Kernel(t, m, "low"), vmtest.Kernel(t, m, name)
	counter, notes := vmtest.Zeroed(t, d, 4), vmtest.Zeroed(t, d, int(4*blocks))
	read := func(p uint64, n uint32) []uint32 {
		b := make([]byte, 4*n)
		require.NoError(t, d.Memory().Read(b, p))
		values := make([]uint32, n)
		for i := range values {
			values[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		return values
	}
	launch := func(k *ptxvm.Kernel, blocks uint32, priority int32, params []byte) error {
		return k.Launch(&ptxvm.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params, Priority: priority})
	}
	done := make(chan error, 1)
	go func() { done <- launch(low, lowBlocks, 0, vmtest.Pack(counter)) }()
	for read(counter, 1)[0] == 0 {
		time.Sleep(10 * time.Microsecond)
	}
	require.NoError(t, launch(other, blocks, 1, vmtest.Pack(counter, notes)))
	require.NoError(t, <-done)
	require.Equal(t, lowBlocks, read(counter, 1)[0])
	return read(notes, blocks)
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	notes := beside(t, "high", 2000, 60)
	require.Less(t, notes[59]-notes[0], uint32(15), "blocks that began meanwhile: %v", notes)
}

func TestGivingWayEnds(t *testing.T) {
	beside(t, "waits", 12, 3) // it waits for the last block of the launch that gives way to it
}
