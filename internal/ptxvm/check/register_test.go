// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// registerReads are kernels as in localReads that read registers. %t is the
// thread, and %u, %w, %z and %c are written by nobody before the body.
var registerReads = []unwrittenRead{
	{"stored", `
	st.global.u32 [%x], %u;`,
		`^uninitialized register in kernel k, block \(\d,0,0\), thread \(\d+,0,0\) \(PTX line 66: st\.global\.u32 \[%x\], %u\): ` +
			`%u was never written by this thread; 128 times$`},
	{"computed with", `
	mov.u32 %v, %u;
	mad.lo.u32 %v, %v, %t, 3;
	st.global.u32 [%x], %v;`, `\(PTX line 66: mov\.u32 %v, %u\): %u was never written by this thread; 128 times$`},
	{"only computed with", `
	mad.lo.u32 %v, %u, %t, 3;`, ``},
	{"the start of a sum", `
	mov.u32 %w, 0;
loop:
	add.u32 %u, %u, %w;
	add.u32 %w, %w, 1;
	setp.lt.u32 %c, %w, 4;
	@%c bra loop;
	st.global.u32 [%x], %u;`, `PTX line 68: add\.u32 %u, %u, %w\): %u was .*; 128 times$`},
	{"a branch", `
	@%c bra skip;
	st.global.u32 [%x], %t;
skip:`, `PTX line 66: bra skip\): %c was .*; 128 times$`},
	{"a guard", `
	@!%c st.global.u32 [%x], %t;`, `PTX line 66: st.global.u32 \[%x\], %t\): %c was .*; 128 times$`},
	{"an address", `
	shl.b64 %y, %z, 3;
	and.b64 %y, %y, 0;
	add.u64 %y, %y, %x;
	st.global.u32 [%y], %t;`, ``},
	{"an address that it makes", `
	and.b64 %y, %z, 8;
	add.u64 %y, %y, %x;
	st.global.u32 [%y], %t;`, `PTX line 66: and\.b64 %y, %z, 8\): %z was .*; 128 times$`},
	{"written by all but one", `
	@%d mov.u32 %u, 1;
	st.global.u32 [%x], %u;`, `thread \(37,0,0\) \(PTX line 67: .*: %u was .*; 2 times$`},
	{"not wanted of the one", `
	@%d ld.global.u32 %u, [%x];
	add.u32 %u, %u, 1;
	@%d st.global.u32 [%x], %u;`, ``},
	{"not chosen", `
	selp.u32 %v, %t, %u, %d;
	setp.eq.u32 %d, %t, 37;
	@!%d st.global.u32 [%x], %v;`, ``},
	{"chosen", `
	selp.u32 %v, %t, %u, %d;
	st.global.u32 [%x], %v;`, `thread \(37,0,0\) \(PTX line 66: selp.*: %u was .*; 2 times$`},
	{"written on one way only", `
	@!%d bra join;
	mov.u32 %u, %t;
join:
	st.global.u32 [%x], %u;`, `thread \(37,0,0\) \(PTX line 69: .*: %u was .*; 2 times$`},
	{"written on both ways", `
	@%d bra other_way;
	mov.u32 %u, 1;
	bra join;
other_way:
	mov.u32 %u, 2;
join:
	st.global.u32 [%x], %u;`, ``},
	{"of itself, so that it is 0", `
	xor.b32 %u, %u, %u;
	sub.s32 %w, %w, %w;
	add.u32 %u, %u, %w;
	st.global.u32 [%x], %u;`, ``},
	{"a part of a vector", `
	{
	.reg .b64 %even;
	shl.b64 %even, %l, 0;
	st.global.v2.u32 [%a], {%t, %u};
	}`, ``},
	{"a whole vector", `
	st.global.v2.u32 [%a], {%w, %w};`, `: %w was .*; 128 times$`},
	{"a vector's element", `
	{
	.reg .v2 .b32 %both;
	mov.u32 %both.x, 1;
	st.global.u32 [%x], %both.y;
	}`, `: %both\.y was .*; 128 times$`},
	{"one of a range", `
	{
	.reg .b32 %one<1>;
	.reg .b32 %more<7>;
	add.u32 %v, %one0, %more5;
	st.global.u32 [%x], %v;
	}`, `: %one0 was .*; 128 times$`},
	{"half of a wide one", `
	{
	.reg .b128 %q;
	mov.b128 {%y, %z}, %q;
	mov.b64 %y, %x;
	st.global.u64 [%a], %z;
	}`, `: %q was .*; 128 times$`},
	{"carried through local memory", `
	st.local.u32 [%l], %u;
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`, `PTX line 66: st\.local.*: %u was .*; 128 times$`},
	{"handed to a function", `
	st.param.b32 [one], %u;
	call (one), first, (one);
	ld.param.b32 %v, [one];
	st.global.u32 [%x], %v;`, `PTX line 66: st\.param.*: %u was .*; 128 times$`},
	{"added to memory", `
	red.global.add.u32 [%x], %u;`, `PTX line 66: red.*: %u was .*; 128 times$`},
	{"printed", `
	st.local.v2.u32 [array], {%t, %u};
	mov.u64 %y, format;
	cvta.global.u64 %y, %y;
	st.param.b64 [to], %y;
	mov.u64 %y, array;
	cvta.local.u64 %y, %y;
	st.param.b64 [args], %y;
	call (one), vprintf, (to, args);`, `PTX line 66: st\.local.*: %u was .*; 128 times$`},
	{"by a shuffle", `
	shfl.sync.idx.b32 %v, %u, 0, 31, -1;
	st.global.u32 [%x], %v;`, ``},
}

func TestUninitializedRegisters(t *testing.T) { requireReads(t, registerReads) }

// Each activation of a function has registers of its own.
func TestUninitializedRegistersOfFunctions(t *testing.T) {
	const text = `.version 7.8
.target sm_80
.address_size 64
.func (.reg .b32 %r) next (.reg .b32 %x)
{
	.reg .b32 %kept;
	.reg .pred %p;
	setp.eq.u32 %p, %x, 0;
	@%p mov.u32 %kept, 5;
	add.u32 %r, %kept, %x;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %v, %w;
	ld.param.u64 %a, [p];
	call (%v), next, (0);
	st.global.u32 [%a], %v;
	call (%w), next, (1);
	st.global.u32 [%a+4], %w;
	ret;
}
`
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	var found []string
	v := vmtest.Watching(&found)
	v.Checks = check.Uninitialized
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", text), "k")
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{40, 1, 1}, Params: vmtest.Pack(vmtest.Zeroed(t, d, 8)), Watch: v}))
	require.Len(t, found, 1)
	require.Regexp(t, `\(PTX line 10: add\.u32 %r, %kept, %x\): %kept was never written by this thread; 80 times$`, found[0])
}
