// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// busyPTX counts its blocks, each of which takes a while.
const busyPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry busy(.param .u64 counter)
{
	.reg .b64 %a;
	.reg .b32 %i;
	.reg .pred %p;
	ld.param.u64 %a, [counter];
	red.global.add.u32 [%a], 1;
	mov.u32 %i, 2000;
Again:
	sub.u32 %i, %i, 1;
	setp.ne.u32 %p, %i, 0;
	@%p bra Again;
	ret;
}
// Waits until another launch has begun its last block.
.visible .entry waits(.param .u64 counter, .param .u32 target)
{
	.reg .b64 %a;
	.reg .b32 %v, %t;
	.reg .pred %p;
	ld.param.u64 %a, [counter];
	ld.param.u32 %t, [target];
Again:
	ld.volatile.global.u32 %v, [%a];
	setp.lt.u32 %p, %v, %t;
	@%p bra Again;
	ret;
}
`

// beside starts a launch of a low priority, runs a kernel of a higher one, and
// returns how many blocks of the first were begun by the end of the second.
func beside(t *testing.T, blocks uint32, kernelName string) uint32 {
	t.Helper()
	d := NewDevice(Config{Workers: 1})
	defer d.Close()
	m := loadText(t, d, "test", busyPTX)
	low, high := zeroed(t, d, 4), zeroed(t, d, 4)
	count := func(p uint64) uint32 {
		b := make([]byte, 4)
		require.NoError(t, d.Memory().Read(b, p))
		return binary.LittleEndian.Uint32(b)
	}
	launch := func(k *Kernel, priority int32, params []byte) error {
		return k.Launch(&Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: params, Priority: priority})
	}
	done := make(chan error, 1)
	busy := kernel(t, m, "busy")
	go func() { done <- launch(busy, 0, pack(low)) }()
	for count(low) == 0 {
		time.Sleep(10 * time.Microsecond)
	}
	params := pack(high)
	if kernelName == "waits" {
		params = pack(low, 32*blocks)
	}
	require.NoError(t, launch(kernel(t, m, kernelName), 1, params))
	n := count(low) / 32
	require.NoError(t, <-done)
	require.Equal(t, 32*blocks, count(low))
	return n
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	require.Less(t, beside(t, 60, "busy"), uint32(30))
}

func TestGivingWayEnds(t *testing.T) {
	require.Equal(t, uint32(4), beside(t, 4, "waits"), "the first launch goes on, since the second makes no progress")
}
