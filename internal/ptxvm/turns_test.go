// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// togetherPTX: in all kernels each block counts itself and waits until all blocks of
// the grid have. order then draws a ticket, o[b] = (*p)++; plain waits in a loop that
// does not look like one; stray stores beyond its memory, in the last block.
const togetherPTX = `.version 7.8
.target sm_75
.address_size 64
.visible .entry order(.param .u64 p, .param .u64 o)
{
	.reg .b64 %p, %o;
	.reg .b32 %v, %b, %n;
	.reg .pred %q;
	ld.param.u64 %p, [p];
	ld.param.u64 %o, [o];
	mov.u32 %b, %ctaid.x;
	mov.u32 %n, %nctaid.x;
	atom.global.add.u32 %v, [%p], 1;
Again:
	ld.volatile.global.u32 %v, [%p];
	setp.lt.u32 %q, %v, %n;
	@%q bra Again;
	atom.global.add.u32 %v, [%p+4], 1;
	mad.wide.u32 %o, %b, 4, %o;
	st.global.u32 [%o], %v;
	ret;
}
.visible .entry plain(.param .u64 p)
{
	.reg .b64 %p;
	.reg .b32 %v, %n;
	.reg .pred %q;
	ld.param.u64 %p, [p];
	mov.u32 %n, %nctaid.x;
	red.global.add.u32 [%p], 1;
Again:
	ld.global.u32 %v, [%p];
	setp.lt.u32 %q, %v, %n;
	@%q bra Again;
	ret;
}
.visible .entry stray(.param .u64 p)
{
	.reg .b64 %p;
	.reg .b32 %v, %n, %b;
	.reg .pred %q;
	ld.param.u64 %p, [p];
	mov.u32 %b, %ctaid.x;
	mov.u32 %n, %nctaid.x;
	sub.u32 %n, %n, 1;
	setp.eq.u32 %q, %b, %n;
	@%q st.global.u32 [%p+8], %b;
Again:
	ld.volatile.global.u32 %v, [%p];
	setp.lt.u32 %q, %v, %n;
	@%q bra Again;
	ret;
}
`

// together runs a kernel of togetherPTX with blocks of one thread, and returns the
// tickets.
func together(t *testing.T, c ptxvm.Config, kernel string, l *ptxvm.Launch) ([]uint32, error) {
	t.Helper()
	d := ptxvm.NewDevice(c)
	defer d.Close()
	blocks := int(l.Grid[0])
	p, o := vmtest.Zeroed(t, d, 8), vmtest.Zeroed(t, d, 4*blocks)
	l.Block, l.Params = [3]uint32{1, 1, 1}, vmtest.Pack(p, o)
	err := vmtest.Kernel(t, vmtest.Load(t, d, "together", togetherPTX), kernel).Launch(l)
	raw := make([]byte, 4*blocks)
	require.NoError(t, d.Memory().Read(raw, o))
	tickets := make([]uint32, blocks)
	for i := range tickets {
		tickets[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return tickets, err
}

// Blocks that wait for each other meet if the device holds all of them: 8
// multiprocessors with 16 blocks each.
func TestBlocksThatWaitForEachOther(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for _, blocks := range []uint32{2, 37, 128} {
			for _, seed := range []uint64{0, 5} {
				t.Run(fmt.Sprintf("%d blocks, %d workers, seed %d", blocks, workers, seed), func(t *testing.T) {
					_, err := together(t, ptxvm.Config{Workers: workers}, "order", &ptxvm.Launch{Grid: [3]uint32{blocks, 1, 1}, Seed: seed})
					require.NoError(t, err)
				})
			}
		}
	}
}

func TestBlocksThatWaitUnderChecks(t *testing.T) {
	var found []string
	_, err := together(t, ptxvm.Config{Workers: 2}, "order", &ptxvm.Launch{Grid: [3]uint32{20, 1, 1}, Watch: vmtest.Watching(&found)})
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestBlocksThatWaitInAnOrdinaryLoop(t *testing.T) {
	_, err := together(t, ptxvm.Config{Workers: 1}, "plain", &ptxvm.Launch{Grid: [3]uint32{2, 1, 1}})
	require.NoError(t, err)
}

// Which block goes first depends on the seed only, however long they wait.
func TestBlocksThatWaitAreReproducible(t *testing.T) {
	order := func(seed uint64) []uint32 {
		tickets, err := together(t, ptxvm.Config{Workers: 1}, "order", &ptxvm.Launch{Grid: [3]uint32{100, 1, 1}, Seed: seed})
		require.NoError(t, err)
		return tickets
	}
	for _, seed := range []uint64{0, 7} {
		first := order(seed)
		require.Equal(t, first, order(seed))
	}
	require.NotEqual(t, order(7), order(8))
}

// More blocks than the device holds never meet, here as on a GPU. The report says so.
func TestMoreBlocksThanAreResident(t *testing.T) {
	for _, tt := range []struct {
		launch ptxvm.Launch
		want   string
	}{
		{ptxvm.Launch{Grid: [3]uint32{8, 1, 1}, Resident: 6}, "; 2 of 8 blocks have not begun: the device holds 6 at once"},
		{ptxvm.Launch{Grid: [3]uint32{17, 1, 1}}, "; 1 of 17 blocks have not begun: the device holds 16 at once"},
		{ptxvm.Launch{Grid: [3]uint32{80, 1, 1}, Seed: 3}, "; 48 of 80 blocks have not begun: the device holds 16 at once"}, // by 32
	} {
		_, err := together(t, ptxvm.Config{Workers: 1, Multiprocessors: 1, StepBudget: 1 << 15}, "order", &tt.launch)
		var f *fault.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, fault.Budget, f.Kind)
		require.ErrorContains(t, err, tt.want)
	}
}

// Canceling ends all blocks that are there.
func TestCancelBlocksThatWait(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 2})
	defer d.Close()
	p := vmtest.Zeroed(t, d, 8)
	k := vmtest.Kernel(t, vmtest.Load(t, d, "together", togetherPTX), "order")
	cancel, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- k.Launch(&ptxvm.Launch{
			Grid: [3]uint32{99, 1, 1}, Block: [3]uint32{1, 1, 1}, Resident: 20, Params: vmtest.Pack(p, p), Cancel: cancel,
		})
	}()
	for begun := uint32(0); begun < 20; {
		time.Sleep(time.Millisecond)
		begun = vmtest.Word(t, d, p)
	}
	close(cancel)
	var f *fault.Fault
	require.ErrorAs(t, <-ended, &f)
	require.Equal(t, fault.Canceled, f.Kind)
}

func TestFaultInABlockThatOthersWaitFor(t *testing.T) {
	_, err := together(t, ptxvm.Config{Workers: 1}, "stray", &ptxvm.Launch{Grid: [3]uint32{6, 1, 1}})
	require.ErrorContains(t, err, "illegal address in kernel stray, block (5,0,0)")
}
