// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// indirectText has a kernel that leaves addresses of functions in memory, as
// objects with virtual functions do, and one that calls what it finds there.
// The last function cannot run here, and the one before has other parameters.
const indirectText = `.version 7.8
.target sm_80
.address_size 64
.func (.param .b32 r) twice (.param .b32 x)
{
	.reg .b32 %v;
	ld.param.b32 %v, [x];
	add.u32 %v, %v, %v;
	st.param.b32 [r], %v;
	ret;
}
.func (.param .b32 r) next (.param .b32 x)
{
	.reg .b32 %v;
	ld.param.b32 %v, [x];
	add.u32 %v, %v, 1;
	st.param.b32 [r], %v;
	ret;
}
.func wide (.param .b64 x)
{
	ret;
}
.func (.param .b32 r) newer (.param .b32 x)
{
	.reg .f32 %f<4>;
	.reg .b64 %d;
	tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d, {%f0, %f1}];
	ret;
}
.global .align 8 .u64 table[4] = {twice, next, wide, newer};
.visible .entry leave(.param .u64 p)
{
	.reg .b64 %p, %t, %a;
	.reg .b32 %i;
	ld.param.u64 %p, [p];
	mov.u32 %i, %tid.x;
	mul.wide.u32 %a, %i, 8;
	mov.u64 %t, table;
	add.u64 %t, %t, %a;
	add.u64 %p, %p, %a;
	ld.global.u64 %a, [%t];
	st.global.u64 [%p], %a;
	ret;
}
.visible .entry use(.param .u64 p, .param .u64 out)
{
	.reg .b64 %p, %o, %a;
	.reg .b32 %i, %v;
	.param .b32 arg, back;
	ld.param.u64 %p, [p];
	ld.param.u64 %o, [out];
	mov.u32 %i, %tid.x;
	mul.wide.u32 %a, %i, 4;
	add.u64 %o, %o, %a;
	and.b32 %i, %i, 1;
	mul.wide.u32 %a, %i, 8;
	add.u64 %p, %p, %a;
	ld.global.u64 %a, [%p];
	mov.u32 %i, %tid.x;
	st.param.b32 [arg], %i;
	proto: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (back), %a, (arg), proto;
	ld.param.b32 %v, [back];
	st.global.u32 [%o], %v;
	ret;
}
`

func TestAddressesOfFunctionsInMemory(t *testing.T) {
	for _, checks := range []check.Set{0, check.Races | check.Uninitialized} {
		d := ptxvm.NewDevice(ptxvm.Config{})
		defer d.Close()
		m := vmtest.Load(t, d, "test", indirectText)
		p, out := vmtest.Zeroed(t, d, 32), vmtest.Zeroed(t, d, 256)
		var found []string
		run := func(name string, threads uint32, params []byte) error {
			v := vmtest.Watching(&found)
			v.Checks = checks
			l := &ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{threads, 1, 1}, Params: params}
			if checks != 0 {
				l.Watch = v
			}
			return vmtest.Kernel(t, m, name).Launch(l)
		}
		require.NoError(t, run("leave", 4, vmtest.Pack(p)))
		require.NoError(t, run("use", 64, vmtest.Pack(p, out)))
		raw := make([]byte, 256)
		require.NoError(t, d.Memory().Read(raw, out))
		for i := range uint32(64) {
			want := 2 * i
			if i&1 != 0 {
				want = i + 1
			}
			require.Equal(t, want, binary.LittleEndian.Uint32(raw[4*i:]), "thread %d", i)
		}
		require.Empty(t, found)
		for _, bad := range []struct {
			at   uint64
			want string
		}{
			{p + 16, `PTX line 63: call \(back\), %a, \(arg\), proto: call of wide, which has other parameters or is not among the targets$`},
			{p + 24, `call of newer: ptx: test, line 28: "tld4\.r\.2d\.v4.*" cannot run on the simulated device: of textures, only reads`},
			{out, `call of 0x200000000, which is no function of its module$`},
		} {
			require.Regexp(t, bad.want, run("use", 1, vmtest.Pack(bad.at, out)))
		}
	}
}
