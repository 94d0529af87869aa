// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
)

// counterPTX adds 1 to *p in every thread.
const counterPTX = `
.version 7.8
.target sm_75
.address_size 64
.visible .entry count(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r;
	ld.param.u64 %a, [p];
	atom.global.add.u32 %r, [%a], 1;
	ret;
}
.visible .entry endless(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r;
	.reg .pred %q;
	ld.param.u64 %a, [p];
again:
	ld.volatile.global.u32 %r, [%a];
	setp.ne.u32 %q, %r, 77;
	@%q bra again;
	ret;
}
.visible .entry grid_barrier(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r, %n, %t, %one;
	.reg .pred %q, %first;
	ld.param.u64 %a, [p];
	mov.u32 %n, %nctaid.x;
	mov.u32 %t, %tid.x;
	setp.eq.u32 %first, %t, 0;
	@!%first bra wait;
	atom.global.add.u32 %r, [%a], 1;
again:
	ld.volatile.global.u32 %r, [%a];
	setp.lt.u32 %q, %r, %n;
	@%q bra again;
wait:
	bar.sync 0;
	atom.global.add.u32 %r, [%a+4], 1;
	ret;
}
`

// Counter loads counterPTX, and allocates 64 bytes of zeros.
func Counter(t testing.TB, d *ptxvm.Device) (m *ptxvm.Module, addr uint64) {
	m = Load(t, d, "counter", counterPTX)
	addr, err := d.Memory().Alloc(64, "counter")
	require.NoError(t, err)
	require.NoError(t, d.Memory().Write(addr, make([]byte, 64)))
	return m, addr
}
