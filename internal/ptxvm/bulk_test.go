// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// bulkText moves a tile from the tensor of its parameter to a buffer. What stands
// between the braces differs from test to test.
const bulkText = `.version 8.6
.target sm_90
.address_size 64
.visible .entry test(.param .align 64 .b8 map[128], .param .u64 p_out)
{
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	.reg .pred %p;
	.shared .align 1024 .b8 box[2048];
	.shared .align 8 .b64 bar;
	mov.b64 %rd1, map;
	cvta.param.u64 %rd1, %rd1;
	ld.param.u64 %rd2, [p_out];
	mov.u32 %r1, %tid.x;
	setp.ne.u32 %p, %r1, 0;
	@%p bra WAIT;
	mbarrier.init.shared.b64 [bar], 1;
	LOAD
	mbarrier.arrive.expect_tx.shared.b64 _, [bar], BYTES;
WAIT:
	bar.sync 0;
	AWAIT
	mul.lo.u32 %r2, %r1, 4;
	mov.u32 %r3, box;
	add.u32 %r3, %r3, %r2;
	ld.shared.u32 %r4, [%r3];
	cvt.u64.u32 %rd3, %r2;
	add.u64 %rd2, %rd2, %rd3;
	st.global.u32 [%rd2], %r4;
	ret;
}`

const awaitText = `
LOOP:
	mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
	@!%p bra LOOP;`

const load2D = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [box], [%rd1, {0, 0}], [bar];"

func bulkKernel(load, wait string, bytes uint64) string {
	return strings.NewReplacer("LOAD", load, "AWAIT", wait, "BYTES", fmt.Sprint(bytes)).Replace(bulkText)
}

// bulkMap is of rows × cols words, compact, with a box of the same size.
func bulkMap(address, cols, rows uint64) descriptor.TensorMap {
	return descriptor.TensorMap{
		Address: address, Rank: 2, ElementSize: 4, Size: [5]uint64{cols, rows}, Stride: [5]uint64{4, 4 * cols}, Box: [5]uint64{cols, rows}, Step: [5]uint64{1, 1},
	}
}

type bulkRun struct {
	d       *ptxvm.Device
	in, out uint64
}

func newBulkRun(t *testing.T) *bulkRun {
	r := &bulkRun{d: ptxvm.NewDevice(ptxvm.Config{CCMajor: 9})}
	t.Cleanup(r.d.Close)
	for _, p := range []*uint64{&r.in, &r.out} {
		var err error
		*p, err = r.d.Memory().Alloc(1024, "test")
		require.NoError(t, err)
	}
	data := make([]byte, 1024)
	for i := range 256 {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(i))
	}
	require.NoError(t, r.d.Memory().Write(r.in, data))
	return r
}

func (r *bulkRun) launch(t *testing.T, text string, m descriptor.TensorMap, threads uint32, w *check.Watch) error {
	b := m.Encode()
	k := vmtest.Kernel(t, vmtest.Load(t, r.d, "test", text), "test")
	params := append(append([]byte(nil), b[:]...), vmtest.Pack(r.out)...)
	return k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}, Params: params, Watch: w})
}

func (r *bulkRun) words(t *testing.T, n int) []uint32 {
	raw := make([]byte, 4*n)
	require.NoError(t, r.d.Memory().Read(raw, r.out))
	list := make([]uint32, n)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return list
}

func TestTensorMapAsParameter(t *testing.T) {
	r := newBulkRun(t)
	require.NoError(t, r.launch(t, bulkKernel(load2D, awaitText, 32), bulkMap(r.in, 4, 2), 8, nil))
	require.Equal(t, []uint32{0, 1, 2, 3, 4, 5, 6, 7}, r.words(t, 8))
}

func TestSwizzledLoad(t *testing.T) {
	r := newBulkRun(t)
	m := bulkMap(r.in, 32, 8)
	m.Swizzle = descriptor.Swizzle128
	require.NoError(t, r.launch(t, bulkKernel(load2D, awaitText, 1024), m, 256, nil))
	for i, got := range r.words(t, 256) {
		row, chunk, word := i/32, i%32/4, i%4
		require.EqualValues(t, 32*row+4*(chunk^row)+word, got)
	}
}

func TestNaNBeyondTheBounds(t *testing.T) {
	r := newBulkRun(t)
	m := bulkMap(r.in, 4, 2)
	m.Size[1], m.NaN = 1, true
	require.NoError(t, r.launch(t, bulkKernel(load2D, awaitText, 32), m, 8, nil))
	require.Equal(t, []uint32{0, 1, 2, 3, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff}, r.words(t, 8))
}

func TestBulkFaults(t *testing.T) {
	r := newBulkRun(t)
	good := bulkMap(r.in, 4, 2)
	big, gone := bulkMap(r.in, 128, 8), bulkMap(16, 4, 2)
	for _, tt := range []struct {
		name, load string
		m          descriptor.TensorMap
		kind       fault.Kind
		words      string
	}{
		{"rank", strings.NewReplacer("2d", "1d", "{0, 0}", "{0}").Replace(load2D), good, fault.Illegal, "the tensor map has 2 dimensions, the instruction 1"},
		{"column", strings.Replace(load2D, "{0, 0}", "{-3, 0}", 1), good, fault.Illegal, "the innermost coordinate -3 is at -12 bytes"},
		{"no map", strings.Replace(load2D, "[%rd1,", "[%rd2,", 1), good, fault.Illegal, "there is no tensor map of this driver"},
		{"map at no place", "mov.u64 %rd1, 64;" + load2D, good, fault.IllegalAddress, "a tensor map was expected there"},
		{"map between", "add.u64 %rd1, %rd1, 16;" + load2D, good, fault.Misaligned, "64 bytes at"},
		{"shared address", strings.Replace(load2D, "[box]", "[box+64]", 1), good, fault.Misaligned, ""},
		{"too large", load2D, big, fault.IllegalAddress, "4096 bytes"},
		{"freed", load2D, gone, fault.IllegalAddress, "16 bytes at 0x10"},
		{"bytes", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box], [%rd2], 20, [bar];", good, fault.Illegal, "20 bytes are not a multiple of 16"},
		{"address", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box], [%rd2+4], 16, [bar];", good, fault.Misaligned, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.launch(t, bulkKernel(tt.load, awaitText, 32), tt.m, 8, nil)
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, tt.kind, f.Kind, "%v", err)
			require.ErrorContains(t, err, tt.words)
		})
	}
}

// findings runs a kernel with both checks.
func (r *bulkRun) findings(t *testing.T, text string, m descriptor.TensorMap, threads uint32) (list []string) {
	w := &check.Watch{
		Checks: check.Races | check.Uninitialized, Task: 1, Name: "test", Unordered: func(uint32) *check.Watch { return nil },
		Report: func(f *check.Finding) { list = append(list, fmt.Sprint(f.Kind, " ", f)) },
	}
	require.NoError(t, r.launch(t, text, m, threads, w))
	return list
}

func TestChecksOfTensorLoads(t *testing.T) {
	r := newBulkRun(t)
	require.Empty(t, r.findings(t, bulkKernel(load2D, awaitText, 32), bulkMap(r.in, 4, 2), 8))
	// A box that is smaller than what is read.
	list := r.findings(t, bulkKernel(load2D, awaitText, 16), bulkMap(r.in, 4, 1), 8)
	require.Len(t, list, 1)
	require.Contains(t, list[0], "ninitialized")
	// Nothing orders the copy with another warp's stores.
	list = r.findings(t, bulkKernel("", "@!%p "+load2D+" @%p st.shared.u32 [box], 7;", 256), bulkMap(r.in, 32, 2), 64)
	require.NotEmpty(t, list)
	require.Contains(t, list[0], "race")
}
