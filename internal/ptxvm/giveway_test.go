// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
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
