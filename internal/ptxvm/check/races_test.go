// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// checkHead opens a kernel whose %a is a parameter, the address of a buffer,
// %t the thread, %b the block, %p 4*thread and %q that as 64 bits.
const checkHead = `.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 o)
{
	.reg .b64 %a, %q, %x, %y, %o;
	.reg .b32 %t, %b, %p, %v, %w, %s;
	.reg .pred %c;
	.shared .align 8 .b8 m[1024];
	ld.param.u64 %a, [p];
	ld.param.u64 %o, [o];
	mov.u32 %t, %tid.x;
	mov.u32 %b, %ctaid.x;
	shl.b32 %p, %t, 2;
	cvt.u64.u32 %q, %p;
	mov.u32 %s, m;
	add.u32 %s, %s, %p;
	add.u64 %x, %a, %q;
`

// majors are compute capabilities that place a block's shared memory differently.
var majors = []int{7, 9}

// checked runs a kernel body under checks, on a device whose compute capability has
// that major number, and returns what was found.
func checked(t *testing.T, major int, checks check.Set, body string, grid, block uint32) []string {
	t.Helper()
	d := ptxvm.NewDevice(ptxvm.Config{CCMajor: major})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", checkHead+body+"\n\tret;\n}\n"), "k")
	p := vmtest.Zeroed(t, d, 4096)
	o := vmtest.Zeroed(t, d, 4096)
	var found []string
	v := vmtest.Watching(&found)
	v.Checks = checks
	err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{block, 1, 1}, DynamicShared: 256, Params: vmtest.Pack(p, o), Watch: v})
	require.NoError(t, err)
	return found
}

var plantedRaces = []struct {
	name, body  string
	grid, block uint32
	want        string // a regular expression; empty: nothing
}{
	{"missing barrier", `
	st.shared.u32 [%s], %t;
	xor.b32 %w, %p, 128;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 64,
		`^race in shared memory of kernel k, block \(0,0,0\), thread \(32,0,0\) \(PTX line 20: st\.shared\.u32 \[%s\], %t\): it writes 4 bytes ` +
			`at offset 128, and thread \(0,0,0\) read them \(PTX line 24: ld\.shared\.u32 %v, \[%s\]\); no barrier lies between them; 64 times$`},
	{"barrier", `
	st.shared.u32 [%s], %t;
	bar.sync 0;
	xor.b32 %w, %p, 128;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 3, 64, ``},
	{"missing barrier before the next round", `
	st.shared.u32 [%s], %t;
	bar.sync 0;
	xor.b32 %w, %p, 128;
	mov.u32 %s, m;
	add.u32 %w, %s, %w;
	add.u32 %s, %s, %p;
	ld.shared.u32 %v, [%w];
	st.shared.u32 [%s], %p;
	st.global.u32 [%x], %v;`, 1, 64, `(writes|reads) 4 bytes at offset \d+, and .* (read|wrote) them .*no barrier lies between`},
	{"atomics without a barrier", `
	mov.u32 %s, m;
	atom.shared.add.u32 %v, [%s], 1;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 64, `it (reads|updates) 4 bytes at offset 0, and .* (updated|read) them .*no barrier lies between`},
	{"atomics alone", `
	mov.u32 %s, m;
	atom.shared.add.u32 %v, [%s], 1;
	bar.sync 0;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 64, ``},
	{"missing syncwarp", `
	st.shared.u32 [%s], %t;
	xor.b32 %w, %p, 4;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 32, `reads 4 bytes .* wrote them .*no __syncwarp lies between them`},
	{"syncwarp", `
	st.shared.u32 [%s], %t;
	bar.warp.sync -1;
	xor.b32 %w, %p, 4;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 32, ``},
	{"missing syncwarp before the next round", `
	st.shared.u32 [%s], %t;
	bar.warp.sync -1;
	xor.b32 %w, %p, 4;
	mov.u32 %v, m;
	add.u32 %w, %v, %w;
	ld.shared.u32 %v, [%w];
	st.shared.u32 [%s], %p;
	st.global.u32 [%x], %v;`, 1, 32,
		`^race in shared memory of kernel k, block \(0,0,0\), thread \(0,0,0\) \(PTX line 26: st.*\): it writes 4 bytes at offset 0, and ` +
			`thread \(1,0,0\) read them \(PTX line 25: ld.*\); no __syncwarp lies between them; 32 times$`},
	{"syncwarp of half a warp", `
	st.shared.u32 [%s], %t;
	setp.lt.u32 %c, %t, 16;
	@%c bar.warp.sync 0xffff;
	@!%c bar.warp.sync 0xffff0000;
	xor.b32 %w, %p, 4;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];`, 1, 32, ``},
	{"halves of a warp that synchronize apart", `
	st.shared.u32 [%s], %t;
	setp.lt.u32 %c, %t, 16;
	@%c bar.warp.sync 0xffff;
	@!%c bar.warp.sync 0xffff0000;
	xor.b32 %w, %p, 64;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];`, 1, 32, `reads 4 bytes .* wrote them .*no __syncwarp lies between them`},
	{"lanes that store to one word", `
	st.shared.u32 [m], %t;`, 1, 32, `^race in shared memory of .* at offset 0, and .* it is undefined which lane's value remains; 31 times$`},
	{"copy of another lane", `
	cp.async.ca.shared.global [%s], [%x], 4;
	cp.async.wait_all;
	xor.b32 %w, %p, 4;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];`, 1, 32, `reads 4 bytes .* wrote them \(PTX line 20: cp\.async.*no __syncwarp lies between them`},
	{"warps that store one matrix", `
	mov.u32 %s, m;
	and.b32 %v, %t, 31;
	and.b32 %w, %t, 7;
	shl.b32 %w, %w, 4;
	add.u32 %s, %s, %w;
	stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%s], {%v, %v};`, 1, 64, ``},
	{"warps that store one matrix of bytes", `
	mov.u32 %s, m;
	and.b32 %v, %t, 31;
	and.b32 %w, %t, 7;
	shl.b32 %w, %w, 4;
	add.u32 %s, %s, %w;
	stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%s], {%v};`, 1, 64, ``},
	{"warps that store different matrices in one place", `
	mov.u32 %s, m;
	shr.u32 %v, %t, 4;
	and.b32 %w, %t, 7;
	shl.b32 %w, %w, 4;
	add.u32 %s, %s, %w;
	stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%v};`, 1, 64, `stmatrix.*writes 4 bytes at offset \d+, and thread .* wrote them .*; no barrier lies between them`},
	{"volatile in a warp", `
	st.volatile.shared.u32 [%s], %t;
	xor.b32 %w, %p, 4;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.volatile.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 32, ``},
	{"one word for all", `
	st.global.u32 [%a], %t;`, 1, 32, `it is undefined which lane's value remains`},
	{"one word for two warps", `
	shr.u32 %v, %t, 5;
	st.global.u32 [%a], %v;`, 1, 33, `no barrier lies between them`},
	{"one flag for all", `
	mov.u32 %v, 1;
	st.global.u32 [%a], %v;`, 4, 64, ``},
	{"bytes of one word", `
	cvt.u64.u32 %q, %t;
	add.u64 %x, %a, %q;
	st.global.u8 [%x], %t;`, 1, 64, ``},
	{"blocks", `
	ld.global.u32 %v, [%x];
	add.u32 %v, %v, 1;
	st.global.u32 [%x], %v;`, 2, 32,
		`^race in global memory in kernel k, block \(\d,0,0\), thread \(\d+,0,0\) \(PTX line 2[02]: .*\): it (reads|writes) 4 bytes at 0x\w+, and ` +
			`block \(\d,0,0\), thread \(\d+,0,0\) (wrote|read) them \(.*\); the blocks of a launch run in any order; at offset \d+ of device memory ` +
			`of 4096 bytes at 0x\w+, allocated at the test`},
	{"blocks apart", `
	shl.b32 %w, %b, 7;
	cvt.u64.u32 %q, %w;
	add.u64 %x, %x, %q;
	ld.global.u32 %v, [%x];
	st.global.u32 [%x], %v;`, 4, 32, ``},
	{"generic shared", `
	cvt.u64.u32 %y, %s;
	cvta.shared.u64 %y, %y;
	st.u32 [%y], %t;
	xor.b32 %w, %p, 128;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`, 1, 64, `writes 4 bytes at offset \d+, and .* read them`},
	{"vectors", `
	shl.b32 %w, %t, 3;
	cvt.u64.u32 %q, %w;
	add.u64 %x, %a, %q;
	st.global.v2.u32 [%x], {%t, %t};
	st.global.u32 [%x+8], %b;`, 1, 33, `writes 4 bytes`},
	{"last block adds up", `
	shl.b32 %w, %b, 7;
	cvt.u64.u32 %q, %w;
	add.u64 %x, %x, %q;
	st.global.u32 [%x], %t;
	membar.gl;
	bar.sync 0;
	setp.ne.u32 %c, %t, 0;
	@%c bra wait;
	atom.global.add.u32 %v, [%o], 1;
	st.shared.u32 [%s], %v;
wait:
	bar.sync 0;
	ld.shared.u32 %v, [m];
	setp.ne.u32 %c, %v, 3;
	@%c bra done;
	ld.global.u32 %w, [%a];
	ld.global.u32 %v, [%a+132];
	add.u32 %v, %v, %w;
	cvt.u64.u32 %q, %p;
	shl.b32 %w, %b, 7;
	cvt.u64.u32 %y, %w;
	add.u64 %y, %y, %q;
	add.u64 %o, %o, %y;
	st.global.u32 [%o+4], %v;
done:`, 4, 32, ``},
	{"asynchronous copy", `
	cp.async.ca.shared.global [%s], [%x], 4;
	xor.b32 %w, %p, 128;
	mov.u32 %s, m;
	add.u32 %s, %s, %w;
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x+512], %v;`, 1, 64, `PTX line 20: cp.async.*writes 4 bytes at offset \d+, and .* read them`},
}

func TestPlantedRaces(t *testing.T) {
	for _, test := range plantedRaces {
		for _, major := range majors {
			t.Run(fmt.Sprintf("%s, %d.0", test.name, major), func(t *testing.T) {
				found := checked(t, major, check.Races, test.body, test.grid, test.block)
				if test.want == "" {
					require.Empty(t, found)
					return
				}
				require.NotEmpty(t, found)
				require.Regexp(t, test.want, strings.Join(found, "\n"))
			})
		}
	}
}

const copyPTX = checkHead + `
	ld.global.u32 %v, [%x];
	add.u64 %o, %o, %q;
	st.global.u32 [%o], %v;
	ret;
}
`

// TestRacesBetweenWork runs kernels and copies that nothing orders.
func TestRacesBetweenWork(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", copyPTX), "k")
	m := d.Memory()
	p, o := vmtest.Zeroed(t, d, 16384), vmtest.Zeroed(t, d, 16384)
	launch := func(v *check.Watch, p, o uint64) {
		require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(p, o), Watch: v}))
	}
	var found []string
	first := vmtest.Watching(&found)
	first.Name = "kernel k, launched first"
	launch(first, p, o)
	require.Empty(t, found)

	launch(vmtest.Watching(&found), o, p)
	require.Empty(t, found, "what is ordered does not race")

	m.ForgetTraces(first.Task)
	launch(first, p, o)
	launch(vmtest.Watching(&found, first), p, o+64)
	require.Len(t, found, 1)
	require.Regexp(t, `^race in global memory in kernel k, block \(0,0,0\), thread \(0,0,0\) \(PTX line 22: .*\): it writes 4 bytes at 0x\w+, `+
		`and kernel k, launched first wrote them in block \(0,0,0\), thread \(16,0,0\) \(PTX line 22: .*\); nothing orders the two: .*; 16 times$`, found[0])

	found = nil
	copying := vmtest.Watching(&found, first)
	copying.Name = "copy of 8192 bytes"
	m.ForgetTraces(first.Task)
	launch(first, p, o)
	copying.Touch(m, o+32, 8192, false)
	copying.Touch(m, p, 8192, true)
	copying.Flush()
	require.Len(t, found, 2)
	require.Regexp(t, `^race in global memory in copy of 8192 bytes: it writes .*, and kernel k, launched first read them in block`, found[0])
	require.Regexp(t, `^race in global memory in copy of 8192 bytes: it reads 4 bytes at .*, and kernel k, launched first wrote them`, found[1])

	found = nil
	after := vmtest.Watching(&found, copying)
	launch(after, o+4096, p+4096+8192)
	require.Empty(t, found, "two reads, and a write next to the copy's")
	launch(vmtest.Watching(&found, copying), p+4096, o+4096)
	require.Len(t, found, 2)
	require.Contains(t, found[0], "it reads 4 bytes at")
	require.Contains(t, found[0], "copy of 8192 bytes wrote them; nothing orders the two")
}
