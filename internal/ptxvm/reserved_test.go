// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// reservedPTX: k tells where a block's shared memory is; every block of count adds
// the same to two words of the reserved memory and to one of its own, and the last
// sums are o's. It also reads a word there that nobody has written, and writes one
// that all write. The others write at an address: at and generic do not use what is
// reserved, near does.
const reservedPTX = `.version 8.5
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.visible .entry k(.param .u64 o)
{
	.reg .b64 %o;
	.reg .b32 %r;
	.shared .align 4 .b8 s[12];
	ld.param.u64 %o, [o];
	mov.b32 %r, %reserved_smem_offset_begin;
	st.global.u32 [%o], %r;
	mov.b32 %r, %reserved_smem_offset_end;
	st.global.u32 [%o+4], %r;
	mov.b32 %r, %reserved_smem_offset_cap;
	st.global.u32 [%o+8], %r;
	mov.b32 %r, %reserved_smem_offset_0;
	st.global.u32 [%o+12], %r;
	mov.b32 %r, %reserved_smem_offset_1;
	st.global.u32 [%o+16], %r;
	mov.u32 %r, %total_smem_size;
	st.global.u32 [%o+20], %r;
	mov.u32 %r, %aggr_smem_size;
	st.global.u32 [%o+24], %r;
	mov.u32 %r, %dynamic_smem_size;
	st.global.u32 [%o+28], %r;
	mov.u32 %r, s;
	st.global.u32 [%o+32], %r;
	mov.u32 %r, dyn;
	st.global.u32 [%o+36], %r;
	ret;
}
.visible .entry count(.param .u64 o)
{
	.reg .b64 %o, %g;
	.reg .b32 %r, %v;
	ld.param.u64 %o, [o];
	mov.u32 %r, dyn;
	st.shared.u32 [%r], 7;
	bar.sync 0;
	mov.b32 %r, %reserved_smem_offset_1;
	atom.shared.add.u32 %v, [%r], 1;
	cvt.u64.u32 %g, %r;
	cvta.shared.u64 %g, %g;
	atom.add.u32 %v, [%g+284], 2;
	ld.shared.u32 %v, [%r+8];
	mov.u32 %v, %tid.x;
	st.shared.u32 [%r+16], %v;
	bar.sync 0;
	ld.shared.u32 %v, [%r];
	st.global.u32 [%o], %v;
	ld.volatile.u32 %v, [%g+284];
	st.global.u32 [%o+4], %v;
	ld.shared.u32 %v, [dyn];
	st.global.u32 [%o+8], %v;
	ret;
}
.visible .entry at(.param .u32 a)
{
	.reg .b32 %r;
	ld.param.u32 %r, [a];
	st.shared.u32 [%r], %r;
	ret;
}
.visible .entry generic(.param .u32 a)
{
	.reg .b32 %r;
	.reg .b64 %g;
	ld.param.u32 %r, [a];
	cvt.s64.s32 %g, %r;
	cvta.shared.u64 %g, %g;
	st.u32 [%g], %r;
	ret;
}
.visible .entry near(.param .u32 a)
{
	.reg .b32 %r, %b;
	ld.param.u32 %r, [a];
	mov.b32 %b, %reserved_smem_offset_1;
	add.u32 %r, %r, %b;
	st.shared.u32 [%r], %r;
	ret;
}
`

// The numbers of 9.0 are an H200's (driver 580).
func TestWhereSharedMemoryIs(t *testing.T) {
	for _, tt := range []struct {
		major   int
		dynamic uint32
		want    [10]uint32 // begin, end, cap, 0, 1, total, aggr, dynamic, &s, &dyn
	}{
		{7, 0, [10]uint32{0, 0, 0, 0, 0, 256, 16, 0, 0, 16}},
		{7, 256, [10]uint32{0, 0, 0, 0, 0, 512, 272, 256, 0, 16}},
		{8, 0, [10]uint32{0, 288, 1024, 0, 0, 128, 1040, 0, 1024, 1040}},
		{9, 256, [10]uint32{0, 288, 1024, 0, 0, 384, 1296, 256, 1024, 1040}},
		{9, 50, [10]uint32{0, 288, 1024, 0, 0, 128, 1090, 50, 1024, 1040}},
	} {
		d := ptxvm.NewDevice(ptxvm.Config{CCMajor: tt.major})
		defer d.Close()
		o := vmtest.Zeroed(t, d, 40)
		k := vmtest.Kernel(t, vmtest.Load(t, d, "reserved", reservedPTX), "k")
		require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, DynamicShared: tt.dynamic, Params: vmtest.Pack(o)}))
		var got [10]uint32
		for i := range got {
			got[i] = vmtest.Word(t, d, o+4*uint64(i))
		}
		require.Equal(t, tt.want, got, "%d.0, %d dynamic bytes", tt.major, tt.dynamic)
	}
}

// What is reserved is zeros at the beginning of every block, is nobody else's, and
// is no concern of the checks.
func TestReservedSharedMemory(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{CCMajor: 8, Workers: 1})
	defer d.Close()
	o := vmtest.Zeroed(t, d, 12)
	k := vmtest.Kernel(t, vmtest.Load(t, d, "reserved", reservedPTX), "count")
	var found []string
	l := ptxvm.Launch{Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{64, 1, 1}, DynamicShared: 4, Params: vmtest.Pack(o)}
	for range 2 {
		require.NoError(t, k.Launch(&l))
		require.Equal(t, []uint32{64, 128, 7}, []uint32{vmtest.Word(t, d, o), vmtest.Word(t, d, o+4), vmtest.Word(t, d, o+8)})
		l.Watch = vmtest.Watching(&found)
		l.Grid = [3]uint32{1, 1, 1} // blocks race for o
	}
	require.Empty(t, found)
}

func TestBoundsOfSharedMemory(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{CCMajor: 9})
	defer d.Close()
	m := vmtest.Load(t, d, "reserved", reservedPTX)
	for _, tt := range []struct {
		kernel string
		addr   int
		want   string // empty: it is in bounds
	}{
		{"at", 1024, ""},
		{"at", 1084, ""},
		{"at", 1088, "4 bytes at 0x440: offset 64 in shared memory, which has 64 bytes"},
		{"at", 1020, "offset -4 in shared memory, which has 64 bytes"},
		{"at", 0, "offset -1024 in shared memory, which has 64 bytes"},
		{"at", -4, "offset -1028 in shared memory, which has 64 bytes"},
		{"generic", 1024, ""},
		{"generic", 1088, "offset 64 in shared memory, which has 64 bytes"},
		{"generic", 1020, "offset -4 in shared memory, which has 64 bytes"},
		{"near", 0, ""},
		{"near", 284, ""},
		{"near", 288, "offset -736 in shared memory, which has 64 bytes"},
		{"near", 1020, "offset -4 in shared memory, which has 64 bytes"},
		{"near", 1024, ""},
	} {
		k := vmtest.Kernel(t, m, tt.kernel)
		err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, DynamicShared: 64, Params: vmtest.Pack(uint32(tt.addr))})
		if tt.want == "" {
			require.NoError(t, err, "%s %d", tt.kernel, tt.addr)
			continue
		}
		var f *fault.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, fault.IllegalAddress, f.Kind)
		require.ErrorContains(t, err, tt.want)
	}
}

// A launch may have as much shared memory as before: what is reserved is not its own.
func TestReservedSharedMemoryIsExtra(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{CCMajor: 8, SharedBytes: 163 << 10})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "reserved", reservedPTX), "at")
	l := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, DynamicShared: 163 << 10, Params: vmtest.Pack(uint32(164<<10 - 4))}
	require.NoError(t, k.Launch(&l))
	l.DynamicShared++
	require.ErrorContains(t, k.Launch(&l), "at most 166912")
	require.Equal(t, 1, k.ResidentBlocks(32, 163<<10))
	require.Equal(t, 2, k.ResidentBlocks(32, 81<<10))
	require.Equal(t, 1, k.ResidentBlocks(32, 81<<10+512), "each block has its own reserved memory")
}
