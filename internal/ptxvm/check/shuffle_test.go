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

// shuffles are kernels of one block of 48 threads, whose second warp has 16 lanes.
// Each starts with %v as the thread.
var shuffles = []struct {
	name, body string
	want       string // a regular expression; empty: nothing
}{
	{"beyond the mask", `
	setp.ge.u32 %c, %t, 8;
	@%c bra end;
	shfl.sync.down.b32 %w, %v, 16, 31, 0xff;
	st.global.u32 [%x], %w;
end:`, `^undefined result of a shuffle in kernel k, block \(0,0,0\), thread \(0,0,0\) ` +
		`\(PTX line 22: shfl\.sync\.down\.b32 %w, %v, 16, 31, 0xff\): it reads lane 16, which is not in the mask 0xff; 8 times$`},
	{"beyond the mask, while the others wait", `
	setp.ge.u32 %c, %t, 8;
	@%c bra end;
	shfl.sync.bfly.b32 %w, %v, 8, 31, 0xff;
	add.u32 %w, %w, %v;
	st.global.u32 [%x], %w;
end:
	bar.sync 0;`, `thread \(0,0,0\) \(PTX line 22: .*: it reads lane 8, which is not in the mask 0xff; 8 times$`},
	{"to lanes that have another mask", `
	setp.lt.u32 %c, %t, 16;
	selp.u32 %w, 0xffff, 0xffff0000, %c;
	setp.ge.u32 %c, %t, 32;
	@%c bra end;
	shfl.sync.down.b32 %w, %v, 8, 31, %w;
	st.global.u32 [%x], %w;
end:`, `thread \(8,0,0\) .*: it reads lane 16, which is not in the mask 0xffff; 8 times$`},
	{"from a lane that has exited", `
	setp.eq.u32 %c, %t, 5;
	@%c exit;
	shfl.sync.idx.b32 %w, %v, 5, 31, -1;
	setp.ge.u32 %c, %t, 32;
	@%c bra end;
	st.global.u32 [%x], %w;
end:`, `thread \(0,0,0\) .*: it reads lane 5, which has exited; 31 times$`},
	{"from a lane that never was", `
	shfl.sync.down.b32 %w, %v, 8, 31, -1;
	st.global.u32 [%x], %w;`, `thread \(40,0,0\) .*: it reads lane 16, which the block does not have; 8 times$`},
	{"carried by another shuffle", `
	setp.ge.u32 %c, %t, 9;
	@%c bra end;
	shfl.sync.down.b32 %w, %v, 8, 31, 0x1ff;
	add.u32 %v, %v, %w;
	shfl.sync.down.b32 %w, %v, 4, 31, 0x1ff;
	add.u32 %v, %v, %w;
	setp.ne.u32 %c, %t, 0;
	@%c bra end;
	st.global.u32 [%x], %v;
end:`, `thread \(4,0,0\) \(PTX line 22: .*: it reads lane 12, which is not in the mask 0x1ff$`},
	{"that a branch depends on", `
	setp.ge.u32 %c, %t, 8;
	@%c bra end;
	shfl.sync.up.b32 %w, %v, 1, 0, 0xff;
	setp.lt.u32 %c, %t, 1;
	@%c bra end;
	shfl.sync.idx.b32 %w, %v, 0, 31, 0xfe;
	setp.eq.u32 %c, %w, 3;
	@%c bra end;
	mov.u32 %w, 1;
end:`, `thread \(1,0,0\) \(PTX line 25: .*: it reads lane 0, which is not in the mask 0xfe; 7 times$`},
	{"of several, the lane's own", `
	setp.ge.u32 %c, %t, 8;
	@%c bra end;
	mov.u32 %p, 16;
again:
	shfl.sync.down.b32 %w, %v, %p, 31, 0xff;
	add.u32 %v, %w, %v;
	shr.u32 %p, %p, 1;
	setp.ne.u32 %c, %p, 0;
	@%c bra again;
	setp.ne.u32 %c, %t, 0;
	@%c bra end;
	st.global.u32 [%x], %v;
end:`, `thread \(0,0,0\) \(PTX line 24: .*: it reads lane 8, which is not in the mask 0xff$`},
	{"a tree of which only the root counts", `
	setp.ge.u32 %c, %t, 16;
	@%c bra end;
	shfl.sync.down.b32 %w, %v, 8, 31, 0xffff;
	add.u32 %v, %v, %w;
	shfl.sync.down.b32 %w, %v, 4, 31, 0xffff;
	add.u32 %v, %v, %w;
	shfl.sync.down.b32 %w, %v, 2, 31, 0xffff;
	add.u32 %v, %v, %w;
	shfl.sync.down.b32 %w, %v, 1, 31, 0xffff;
	add.u32 %v, %v, %w;
	setp.ne.u32 %c, %t, 0;
	@%c bra end;
	st.global.u32 [%x], %v;
end:`, ``},
	{"beyond the segment, where it is the lane's own", `
	shfl.sync.down.b32 %w, %v, 8, 0x100f, -1;
	st.global.u32 [%x], %w;`, ``},
	{"dropped", `
	shfl.sync.down.b32 %w, %v, 8, 31, -1;
	add.u32 %w, %w, %v;
	setp.lt.u32 %c, %t, 40;
	selp.u32 %v, %w, %v, %c;
	st.global.u32 [%x], %v;`, ``},
}

// waitingShufflePTX: 16 lanes wait in a function for the others to exit from the kernel.
const waitingShufflePTX = `.version 7.8
.target sm_75
.address_size 64
.func (.param .b32 r) down8(.param .b32 x)
{
	.reg .b32 %v, %w;
	ld.param.u32 %v, [x];
	shfl.sync.down.b32 %w, %v, 8, 31, -1;
	add.u32 %w, %w, %v;
	st.param.b32 [r], %w;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %t, %v;
	.reg .pred %c;
	ld.param.u64 %a, [p];
	mov.u32 %t, %tid.x;
	setp.ge.u32 %c, %t, 16;
	@%c bra end;
	{
	.param .b32 one;
	.param .b32 result;
	st.param.b32 [one], %t;
	call (result), down8, (one);
	ld.param.b32 %v, [result];
	}
	mad.wide.u32 %a, %t, 4, %a;
	st.global.u32 [%a], %v;
end:
	ret;
}
`

func TestShuffleThatWaitedInAFunction(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	p := vmtest.Zeroed(t, d, 64)
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", waitingShufflePTX), "k")
	var found []string
	require.NoError(t, k.Launch(&ptxvm.Launch{
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(p), Watch: vmtest.Watching(&found),
	}))
	require.Len(t, found, 1)
	require.Regexp(t, `thread \(8,0,0\) \(PTX line 8: .*: it reads lane 16, which has exited; 8 times$`, found[0])
}

func TestShufflesFromOthers(t *testing.T) {
	for _, tt := range shuffles {
		t.Run(tt.name, func(t *testing.T) {
			body := "mov.u32 %v, %t;" + tt.body
			require.Empty(t, checked(t, 7, check.Races, body, 1, 48))
			found := checked(t, 7, check.Uninitialized, body, 1, 48)
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Regexp(t, tt.want, found[0])
		})
	}
}
