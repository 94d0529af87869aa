// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// putPTX is void put(unsigned *p, unsigned v) { *p = v; }.
const putPTX = `.version 7.0
.target sm_52
.address_size 64
.visible .entry put(.param .u64 p, .param .u32 v)
{
	.reg .b32 %r1;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [v];
	cvta.to.global.u64 %rd2, %rd1;
	st.global.u32 [%rd2], %r1;
	ret;
}
`

func newKernel(t testing.TB, ctx *cuda.Context) *cuda.Kernel {
	t.Helper()
	code, err := cuda.ObjectCodeFrom(cuda.PTX, []byte(putPTX))
	require.NoError(t, err)
	t.Cleanup(func() { _ = code.Close() })
	k, err := code.Kernel(ctx.Device(), "put")
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// The source of a copy dies with the function that built the graph. Each launch
// must still read it, whatever its memory is reused for: here each release is
// followed by poison in the memory that the pool hands out next.
func TestReplayReadsWhatItWasGiven(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	const size, launches = 256, 1000
	out := buffers(t, ctx, 1, size)[0]
	mr, err := ctx.Device().DefaultMemoryResource()
	require.NoError(t, err)
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i)
	}
	build := func() *Exec {
		src, err := mr.Allocate(size, s)
		require.NoError(t, err)
		require.NoError(t, src.CopyFromHost(want, s))
		require.NoError(t, src.Retain())
		g := newTestGraph(t, ctx, Options{})
		_, err = g.Memcpy(cuda.MemcpyParams{Dst: out.Ptr(), Src: src.Ptr(), Size: size},
			NodeOptions{Name: "copy", Operands: []Operand{{Name: "src", Object: src, NBytes: size, Reason: "memcpy", Retainer: src}}})
		require.NoError(t, err)
		require.NoError(t, src.Close()) // the builder's own reference
		x := instantiate(t, g, ExecOptions{})
		require.NoError(t, g.Close())
		return x
	}
	x := build()
	for i := range launches {
		poison, err := mr.Allocate(size, s)
		require.NoError(t, err)
		require.NoError(t, poison.Fill(0xdd, 1, s))
		require.NoError(t, poison.Close())
		require.NoError(t, x.Launch(s))
		if i%50 == 0 {
			require.NoError(t, s.Synchronize())
			require.Equal(t, want, out.Bytes())
			clear(out.Bytes())
		}
	}
	require.NoError(t, s.Synchronize())
	require.Equal(t, want, out.Bytes())
	before := ctx.Driver().Live()["Allocation"]
	require.NoError(t, x.Close())
	require.True(t, Reaper().Flush(patience))
	require.Equal(t, before-1, ctx.Driver().Live()["Allocation"])
}
