// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// localHead opens a kernel as checkHead does, behind functions, and with %l as
// the address of a local array: of element t&15.
const localHead = `.version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[6] = {37, 100, 32, 37, 100, 0};
.func (.param .b32 r) first (.param .b32 x)
{
	.local .align 8 .b8 mine[16];
	.reg .b32 %v;
	ld.param.u32 %v, [x];
	st.local.u32 [mine+4], %v;
	ld.local.u32 %v, [mine+4];
	st.param.b32 [r], %v;
	ret;
}
.func (.param .b32 r) second (.param .b32 x)
{
	.local .align 8 .b8 mine[16];
	.reg .b32 %v;
	ld.local.u32 %v, [mine+4];
	st.param.b32 [r], %v;
	ret;
}
.func (.param .align 8 .b8 r[16]) pair (.param .align 8 .b8 x[16])
{
	.reg .b64 %v, %w;
	ld.param.u64 %v, [x];
	ld.param.u64 %w, [x+8];
	st.param.b64 [r], %v;
	st.param.b64 [r+8], %w;
	ret;
}
.func fill (.param .b64 x)
{
	.reg .b64 %v;
	ld.param.u64 %v, [x];
	st.u32 [%v], 7;
	ret;
}
.visible .entry k(.param .u64 p, .param .u64 o)
{
	.local .align 16 .b8 gap[16];
	.local .align 16 .b8 array[64];
	.local .align 16 .b8 other[64];
	.param .align 8 .b8 two[16];
	.param .align 8 .b8 back[16];
	.param .b32 one;
	.param .b64 to, args;
	.shared .b32 s;
	.reg .b64 %a, %x, %y, %z, %l, %g;
	.reg .b32 %t, %p, %v, %w, %u;
	.reg .b16 %h;
	.reg .pred %c, %d;
	ld.param.u64 %a, [p];
	mov.u32 %t, %tid.x;
	shl.b32 %p, %t, 2;
	cvt.u64.u32 %x, %p;
	add.u64 %x, %x, %a;
	and.b32 %p, %p, 60;
	cvt.u64.u32 %l, %p;
	mov.u64 %y, array;
	add.u64 %l, %l, %y;
	cvta.local.u64 %g, %l;
	setp.ne.u32 %d, %t, 37;
`

// unwrittenRead is the body of a kernel of 2 blocks of 64 threads, and the
// reports that its reads cause.
type unwrittenRead struct {
	name, body string
	want       string // a regular expression; empty: nothing
}

// localReads read local memory.
var localReads = []unwrittenRead{
	{"nobody wrote", `
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`,
		`^uninitialized read in local memory of kernel k, block \(\d,0,0\), thread \(\d+,0,0\) \(PTX line 66: ld\.local\.u32 %v, \[%l\]\): ` +
			`4 bytes at offset \d+ were never written by this thread; at offset \d+ of local variable array of 64 bytes; 128 times$`},
	{"written", `
	st.local.u32 [%l], %t;
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`, ``},
	{"one thread did not", `
	@%d st.local.u32 [%l], %t;
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`,
		`thread \(37,0,0\) .*: 4 bytes at offset 36 were never written by this thread; at offset 20 of local variable array of 64 bytes; 2 times$`},
	{"only loaded", `
	ld.local.u32 %v, [%l];`, ``},
	{"loaded and not chosen", `
	setp.eq.u32 %c, %t, 99;
	ld.local.u32 %v, [%l];
	add.u32 %v, %v, 3;
	selp.u32 %v, %v, %t, %c;
	st.global.u32 [%x], %v;`, ``},
	{"chosen", `
	ld.local.u32 %v, [%l];
	add.u32 %v, %v, 3;
	selp.u32 %v, %t, %v, %d;
	st.global.u32 [%x], %v;`, `thread \(37,0,0\) .*; 2 times$`},
	{"compared for nothing", `
	setp.eq.u32 %d, %t, 99;
	ld.local.u32 %v, [%l];
	setp.gt.u32 %c, %v, 3;
	and.pred %c, %c, %d;
	setp.gt.and.u32 %d, %v, 3, %d;
	@%c st.global.u32 [%x], %t;
	@%d st.global.u32 [%x], %t;`, ``},
	{"guard", `
	ld.local.u32 %v, [%l];
	setp.gt.u32 %c, %v, 3;
	@%c st.global.u32 [%x], %t;`, `; 128 times$`},
	{"branch", `
	ld.local.u32 %v, [%l];
	setp.gt.u32 %c, %v, 3;
	@%c bra end;
	st.global.u32 [%x], %t;
	end:`, `; 128 times$`},
	{"jump table", `
	ld.local.u32 %v, [%l];
	and.b32 %v, %v, 1;
	ts: .branchtargets one1, two2;
	brx.idx %v, ts;
	one1:
	st.global.u32 [%x], %t;
	two2:`, `; 128 times$`},
	{"address", `
	ld.local.u32 %v, [%l];
	and.b32 %v, %v, 60;
	cvt.u64.u32 %z, %v;
	add.u64 %z, %z, %a;
	ld.global.u32 %v, [%z];`, `; 128 times$`},
	{"shared memory", `
	ld.local.u32 %v, [%l];
	st.shared.u32 [s], %v;
	mov.u32 %w, s;
	cvt.u64.u32 %y, %w;
	cvta.shared.u64 %y, %y;
	st.u32 [%y], %v;`, ``},
	{"shared memory counted up", `
	st.shared.u32 [s], 0;
	bar.sync 0;
	ld.local.u32 %v, [%l];
	red.shared.add.u32 [s], %v;`, `; 128 times$`},
	{"atomic", `
	ld.local.u32 %v, [%l];
	red.global.add.u32 [%a], %v;`, `; 128 times$`},
	{"copied, and then overwritten", `
	ld.local.v4.u32 {%v, %w, %u, %p}, [array];
	st.local.v4.u32 [other], {%v, %w, %u, %p};
	st.local.u32 [other+4], 3;
	ld.local.u32 %v, [other+4];
	st.global.u32 [%x], %v;`, ``},
	{"copied", `
	ld.local.v2.u64 {%y, %z}, [array];
	st.local.v2.u64 [other], {%y, %z};
	ld.local.u64 %z, [other+8];
	st.global.u64 [%a], %z;`, `PTX line 66: ld\.local\.v2.*8 bytes at offset 24 .*; at offset 8 of local variable array of 64 bytes`},
	{"half of a word", `
	st.local.u16 [%l+2], %t;
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`, ``},
	{"padding", `
	st.local.u64 [array], %a;
	st.local.u32 [array+8], %t;
	ld.local.u32 %v, [array+8];
	ld.local.u32 %w, [array+12];
	st.global.u32 [%a+8], %v;
	st.global.u32 [%a+12], %w;`, ``},
	{"a structure of which nobody wrote a part", `
	st.local.u64 [array], %a;
	st.local.u64 [array+8], %a;
	ld.local.u64 %y, [array+8];
	ld.local.u64 %z, [array+16];
	st.global.u64 [%a+8], %y;
	st.global.u64 [%a+16], %z;`, `PTX line 69: .* at offset 16 of local`},
	{"bit fields", `
	ld.local.u32 %v, [array];
	and.b32 %v, %v, -16;
	or.b32 %v, %v, 5;
	st.local.u32 [array], %v;
	ld.local.u32 %v, [array];
	and.b32 %w, %v, -496;
	st.local.u32 [array], %w;
	ld.local.u32 %v, [array];
	bfe.u32 %v, %v, 4, 5;
	st.global.u32 [%x], %v;
	ld.local.u32 %v, [other];
	and.b32 %v, %v, -16;
	st.local.u32 [other], %v;
	ld.local.u32 %v, [other];
	and.b32 %v, %v, 15;
	st.global.u32 [%x], %v;`, ``},
	{"masked", `
	ld.local.u32 %v, [%l];
	and.b32 %v, %v, 15;
	st.global.u32 [%x], %v;`, `; 128 times$`},
	{"summed up", `
	mov.u32 %w, 0;
	mov.u32 %u, 0;
	next:
	ld.local.u32 %v, [array+8];
	add.u32 %w, %w, %v;
	add.u32 %u, %u, 1;
	setp.lt.u32 %c, %u, 5;
	@%c bra next;
	st.global.u32 [%x], %w;`, `; at offset 8 of local variable array of 64 bytes; 128 times$`},
	{"a register set anew", `
	ld.local.u32 %v, [%l];
	mov.u32 %v, 3;
	st.global.u32 [%x], %v;`, ``},
	{"generic addresses", `
	ld.u32 %v, [%g];
	st.u32 [%x], %v;`, `ld\.u32 %v, \[%g\]\): 4 bytes at offset \d+ were never written by this thread; at offset \d+ of local variable array`},
	{"generic store", `
	st.u32 [%g], %t;
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`, ``},
	{"wide and narrow", `
	st.local.u64 [array], %a;
	ld.local.u8 %h, [array+5];
	ld.local.v2.u16 {%h, _}, [array+4];
	ld.local.v2.u32 {_, %v}, [array];
	st.global.u32 [%x], %v;`, ``},
	{"128 bits", `
	.reg .b128 %q;
	mov.b128 %q, {%a, %a};
	st.local.b128 [array], %q;
	ld.local.b128 %q, [array];
	mov.b128 {%y, %z}, %q;
	st.global.u64 [%a], %z;`, ``},
	{"128 bits that nobody wrote", `
	.reg .b128 %q;
	ld.local.b128 %q, [array];
	mov.b128 {%y, %z}, %q;
	st.global.u64 [%a], %z;`, `8 bytes at offset 24 were never written`},
	{"the block before", `
	ld.local.u32 %v, [array];
	st.local.u32 [array], %t;
	setp.eq.u32 %c, %v, 1;
	@%c st.global.u32 [%x], %t;`, `; 128 times$`},
	{"call", `
	st.param.b32 [one], %t;
	call (one), first, (one);
	ld.param.b32 %v, [one];
	st.global.u32 [%x], %v;`, ``},
	{"what another function left", `
	st.param.b32 [one], %t;
	call (one), first, (one);
	call (one), second, (one);
	ld.param.b32 %v, [one];
	st.global.u32 [%x], %v;`, `PTX line 20: ld\.local\.u32 .*; at offset 4 of local variable mine of 16 bytes; 128 times$`},
	{"half of a parameter", `
	st.param.b64 [two], %a;
	call (back), pair, (two);
	ld.param.b64 %y, [back];
	ld.param.b64 %z, [back+8];
	st.global.u64 [%a], %y;`, ``},
	{"the other half", `
	st.param.b64 [two], %a;
	call (back), pair, (two);
	ld.param.b64 %y, [back];
	ld.param.b64 %z, [back+8];
	st.global.u64 [%a], %z;`, `PTX line 28: ld\.param\.u64 %w, \[x\+8\].*; at offset 8 of local variable x of 16 bytes`},
	{"a function that writes", `
	st.param.b64 [to], %g;
	call fill, (to);
	ld.local.u32 %v, [%l];
	st.global.u32 [%x], %v;`, ``},
	{"printf", `
	st.local.v2.u32 [array], {%t, %t};
	mov.u64 %y, format;
	cvta.global.u64 %y, %y;
	st.param.b64 [to], %y;
	mov.u64 %y, array;
	cvta.local.u64 %y, %y;
	st.param.b64 [args], %y;
	call (one), vprintf, (to, args);
	ld.param.b32 %v, [one];
	st.global.u32 [%x], %v;`, ``},
	{"printf of what nobody wrote", `
	ld.local.u32 %v, [other];
	st.local.v2.u32 [array], {%t, %v};
	mov.u64 %y, format;
	cvta.global.u64 %y, %y;
	st.param.b64 [to], %y;
	mov.u64 %y, array;
	cvta.local.u64 %y, %y;
	st.param.b64 [args], %y;
	call (one), vprintf, (to, args);`, `PTX line 66: ld\.local\.u32 .*; at offset 0 of local variable other of 64 bytes; 128 times$`},
	{"printf without one argument", `
	st.local.u32 [array], %t;
	mov.u64 %y, format;
	cvta.global.u64 %y, %y;
	st.param.b64 [to], %y;
	mov.u64 %y, array;
	cvta.local.u64 %y, %y;
	st.param.b64 [args], %y;
	call (one), vprintf, (to, args);`, `PTX line 73: call .*vprintf.*: 4 bytes at offset 20 were .*; at offset 4 of local variable array of 64 bytes; 128 times$`},
}

func TestUninitializedLocalMemory(t *testing.T) { requireReads(t, localReads) }

// requireReads runs each body with the check, with all and without it.
func requireReads(t *testing.T, list []unwrittenRead) {
	for name, checks := range map[string]check.Set{"": check.Uninitialized, " with races": check.Uninitialized | check.Races, " not asked for": check.Races} {
		for _, test := range list {
			t.Run(test.name+name, func(t *testing.T) {
				found := uninitializedReads(t, checks, test.body)
				if test.want == "" || checks == check.Races {
					require.Empty(t, found)
					return
				}
				require.Len(t, found, 1)
				require.Regexp(t, test.want, found[0])
			})
		}
	}
}

// uninitializedReads runs a body behind localHead, and returns the reports
// about its reads.
func uninitializedReads(t *testing.T, checks check.Set, body string) (reads []string) {
	t.Helper()
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", localHead+body+"\n\tret;\n}\n"), "k")
	var found []string
	v := vmtest.Watching(&found)
	v.Checks = checks
	p, o := vmtest.Zeroed(t, d, 4096), vmtest.Zeroed(t, d, 4096)
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: vmtest.Pack(p, o), Watch: v}))
	for _, f := range found {
		if strings.HasPrefix(f, "uninit") {
			reads = append(reads, f)
		}
	}
	return reads
}
