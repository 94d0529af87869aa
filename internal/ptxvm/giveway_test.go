// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// deepWaitPTX: all lanes but the first wait, in calls, for a flag that the first
// sets after 10000 turns of a loop.
const deepWaitPTX = `.version 7.0
.target sm_75
.address_size 64
.func (.reg .b32 %v) look(.reg .b64 %p)
{
	ld.volatile.u32 %v, [%p];
	ret;
}
.func wait(.reg .b64 %p)
{
	.reg .b32 %v;
	.reg .pred %q;
Again:
	call (%v), look, (%p);
	setp.eq.u32 %q, %v, 0;
	@%q bra Again;
	ret;
}
.visible .entry k(.param .u64 flag)
{
	.reg .b64 %p;
	.reg .b32 %t, %i;
	.reg .pred %q;
	ld.param.u64 %p, [flag];
	mov.u32 %t, %tid.x;
	setp.eq.u32 %q, %t, 0;
	@%q bra Work;
	call wait, (%p);
	ret;
Work:
	mov.u32 %i, 10000;
Turn:
	sub.u32 %i, %i, 1;
	setp.ne.u32 %q, %i, 0;
	@%q bra Turn;
	st.volatile.u32 [%p], 1;
	ret;
}
`

// The budget would be used up if the waiting lanes ran for their whole quantum
// after each block of the working one.
func TestWaitingInCallsGivesWay(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{StepBudget: 1 << 20})
	defer d.Close()
	k, err := loadKernel(d, deepWaitPTX)
	require.NoError(t, err)
	p, err := d.Memory().Alloc(64, "flag")
	require.NoError(t, err)
	require.NoError(t, d.Memory().Write(p, make([]byte, 64)))
	params := binary.LittleEndian.AppendUint64(nil, p)
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: params}))
}

// meetPTX: each block counts itself, and waits with all its threads until the other has.
const meetPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 count)
{
	.reg .b64 %p;
	.reg .b32 %t, %v;
	.reg .pred %q;
	ld.param.u64 %p, [count];
	mov.u32 %t, %tid.x;
	setp.eq.u32 %q, %t, 0;
	@%q red.global.add.u32 [%p], 1;
Again:
	bar.sync 0;
	ld.volatile.global.u32 %v, [%p];
	setp.ne.u32 %q, %v, 2;
	@%q bra Again;
	ret;
}
`

// One worker runs both blocks in turns, also where a turn has a barrier in it.
func TestWaitingAtBarriersGivesWay(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 1})
	defer d.Close()
	k, err := loadKernel(d, meetPTX)
	require.NoError(t, err)
	params := vmtest.Pack(vmtest.Zeroed(t, d, 4))
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params, Cooperative: true}))
}

// A launch is canceled in a loop that waits at a barrier, and in one of calls.
func TestCancelWithoutTurns(t *testing.T) {
	for _, name := range []string{"endless_barrier", "endless_calls"} {
		t.Run(name, func(t *testing.T) {
			d := ptxvm.NewDevice(ptxvm.Config{})
			defer d.Close()
			k := vmtest.Kernel(t, vmtest.LoadFile(t, d, "testdata/faults/"+name+".ptx"), "test")
			cancel := make(chan struct{})
			time.AfterFunc(10*time.Millisecond, func() { close(cancel) })
			err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: make([]byte, 8), Cancel: cancel})
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, fault.Canceled, f.Kind)
		})
	}
}

// switchWaitPTX: all lanes but the last wait, in a loop that a switch closes, for a flag
// that the last one sets behind it in the code.
const switchWaitPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 flag)
{
	.reg .b64 %p;
	.reg .b32 %t, %v;
	.reg .pred %q;
	ld.param.u64 %p, [flag];
	mov.u32 %t, %tid.x;
	setp.eq.u32 %q, %t, 31;
	@%q bra Work;
Again:
	ld.volatile.u32 %v, [%p];
Targets: .branchtargets Again, Done;
	brx.idx %v, Targets;
Work:
	st.volatile.u32 [%p], 1;
Done:
	ret;
}
`

func TestWaitingInSwitchesGivesWay(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k, err := loadKernel(d, switchWaitPTX)
	require.NoError(t, err)
	params := vmtest.Pack(vmtest.Zeroed(t, d, 4))
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: params}))
}

// pingPongPTX: two lanes wait for each other in turns, each in a function of its own.
const pingPongPTX = `.version 7.0
.target sm_75
.address_size 64
.func even(.reg .b64 %p, .reg .b32 %want)
{
	.reg .b32 %v;
	.reg .pred %q;
Again:
	ld.volatile.u32 %v, [%p];
	setp.ne.u32 %q, %v, %want;
	@%q bra Again;
	ret;
}
.func odd(.reg .b64 %p, .reg .b32 %want)
{
	.reg .b32 %v;
	.reg .pred %q;
Again:
	ld.volatile.u32 %v, [%p];
	setp.ne.u32 %q, %v, %want;
	@%q bra Again;
	ret;
}
.visible .entry k(.param .u64 flags)
{
	.reg .b64 %p, %r;
	.reg .b32 %t, %i;
	.reg .pred %q;
	ld.param.u64 %p, [flags];
	add.u64 %r, %p, 4;
	mov.u32 %t, %tid.x;
	mov.u32 %i, 0;
	setp.eq.u32 %q, %t, 1;
	@%q bra Odd;
Even:
	add.u32 %i, %i, 1;
	st.volatile.u32 [%p], %i;
	call even, (%r, %i);
	setp.lt.u32 %q, %i, 100000;
	@%q bra Even;
	ret;
Odd:
	add.u32 %i, %i, 1;
	call odd, (%p, %i);
	st.volatile.u32 [%r], %i;
	setp.lt.u32 %q, %i, 100000;
	@%q bra Odd;
	ret;
}
`

// A call that begins and ends amid another lane's takes the place of one before it.
func TestCallsThatOverlapTakeNoMoreRoom(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k, err := loadKernel(d, pingPongPTX)
	require.NoError(t, err)
	params := vmtest.Pack(vmtest.Zeroed(t, d, 8))
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{2, 1, 1}, Params: params}))
}
