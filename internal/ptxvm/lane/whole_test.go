// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/thin"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// tornPTX: block 0 writes vectors of equal elements, block 1 reads them and
// counts those that are not equal. N is the number of elements, T their type, R
// the registers' type; LIST and OTHERS are registers.
const tornPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 torn)
{
	.reg .b64 %p, %torn;
	.reg .R %v<4>;
	.reg .b32 %i, %block, %n;
	.reg .pred %q;
	ld.param.u64 %p, [p];
	ld.param.u64 %torn, [torn];
	mov.u32 %block, %ctaid.x;
	mov.u32 %n, 0;
	mov.u32 %i, COUNT;
	setp.ne.u32 %q, %block, 0;
	@%q bra Read;
Write:
	cvt.T.u32 %v0, %i;
	mov.R %v1, %v0;
	mov.R %v2, %v0;
	mov.R %v3, %v0;
	st.relaxed.gpu.global.vN.T [%p], {LIST};
	sub.u32 %i, %i, 1;
	setp.ne.u32 %q, %i, 0;
	@%q bra Write;
	ret;
Read:
	mov.R %v2, 0;
	mov.R %v3, 0;
	ld.relaxed.gpu.global.vN.T {LIST}, [%p];
	setp.ne.T %q, %v0, %v1;
	@%q add.u32 %n, %n, 1;
	MORE
	sub.u32 %i, %i, 1;
	setp.ne.u32 %q, %i, 0;
	@%q bra Read;
	st.global.u32 [%torn], %n;
	ret;
}
`

func TestStrongVectorsAreWhole(t *testing.T) {
	const more = "setp.ne.T %q, %v0, %v2; @%q add.u32 %n, %n, 1; setp.ne.T %q, %v0, %v3; @%q add.u32 %n, %n, 1;"
	for name, shape := range map[string]struct{ n, typ, register, list, more string }{
		"4 bytes":                  {"2", "u16", "b16", "%v0, %v1", ""},
		"8 bytes":                  {"2", "u32", "b32", "%v0, %v1", ""},
		"8 bytes in four":          {"4", "u16", "b16", "%v0, %v1, %v2, %v3", more},
		"16 bytes":                 {"2", "u64", "b64", "%v0, %v1", ""},
		"16 bytes in four":         {"4", "u32", "b32", "%v0, %v1, %v2, %v3", more},
		"wider registers, 8 bytes": {"4", "u16", "b32", "%v0, %v1, %v2, %v3", strings.ReplaceAll(more, "ne.T", "ne.u32")},
	} {
		text := strings.NewReplacer("COUNT", fmt.Sprint(300000/thin.OneIn), "MORE", shape.more, "LIST", shape.list).Replace(tornPTX)
		if shape.register == "b32" && shape.typ == "u16" {
			text = strings.NewReplacer("setp.ne.T", "setp.ne.u32", "cvt.T.u32 %v0, %i", "and.b32 %v0, %i, 65535").Replace(text)
		}
		text = strings.NewReplacer("vN", "v"+shape.n, ".T", "."+shape.typ, ".R", "."+shape.register).Replace(text)
		if shape.typ == "u32" {
			text = strings.ReplaceAll(text, "cvt.u32.u32", "mov.u32")
		}
		d := ptxvm.NewDevice(ptxvm.Config{Workers: 2})
		k := vmtest.Kernel(t, vmtest.Load(t, d, name, text), "k")
		p, err := d.Memory().Alloc(64, name)
		require.NoError(t, err)
		require.NoError(t, d.Memory().Write(p, make([]byte, 64)))
		params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, p), p+32)
		require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params}))
		require.Zero(t, vmtest.Word(t, d, p+32), name)
		require.EqualValues(t, 1, vmtest.Word(t, d, p)&0xFFFF, name) // the last vector
		d.Close()
	}
}
