// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// putParams are the parameters of a node that runs put(p, v). They stay valid
// until the test ends, although the driver copies them.
func putParams(t testing.TB, k *cuda.Kernel, p uint64, v uint32) cuda.KernelNodeParams {
	values := &struct {
		p    uint64
		v    uint32
		list [2]unsafe.Pointer
	}{p: p, v: v}
	var pins runtime.Pinner
	pins.Pin(values)
	t.Cleanup(pins.Unpin)
	values.list = [2]unsafe.Pointer{unsafe.Pointer(&values.p), unsafe.Pointer(&values.v)}
	return cuda.KernelNodeParams{
		Kernel: k, Config: cuda.LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}},
		Params: unsafe.Pointer(&values.list),
	}
}

func TestKernelNodes(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	ops := tokens(5)
	g := newTestGraph(t, ctx, Options{})
	n, err := g.Kernel(putParams(t, k, b[0].Ptr(), 1), NodeOptions{Operands: operands(ops[0])})
	require.NoError(t, err)
	require.Nil(t, n.Params().(cuda.KernelNodeParams).Params) // gone after the call
	require.Equal(t, []string{"kernel_0:kernel", "kernel_0:op0"}, names(g.Retained()))
	require.NoError(t, n.UpdateKernel(putParams(t, k, b[0].Ptr(), 2), operands(ops[1])))
	released(t, ops[0])

	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	run := func(want byte) {
		require.NoError(t, x.Launch(s))
		require.NoError(t, s.Synchronize())
		require.Equal(t, want, b[0].Bytes()[0])
	}
	run(2)
	node := x.Node("kernel_0")
	require.NoError(t, node.UpdateKernel(putParams(t, k, b[0].Ptr(), 3), operands(ops[2])))
	run(3)
	eventuallyReleased(t, ops[1])

	// Who gives an operand of this name has seen to the module himself.
	ops[3].name = "kernel"
	require.NoError(t, node.UpdateKernel(putParams(t, k, b[0].Ptr(), 4), operands(ops[3])))
	require.Equal(t, []string{"kernel_0:kernel"}, names(x.Retained()))
	run(4)

	require.NoError(t, k.Close())
	require.ErrorIs(t, node.UpdateKernel(putParams(t, k, b[0].Ptr(), 5), operands(ops[4])), cuda.ErrClosed)
	released(t, ops[4])
	kept(t, ops[3])
}

// Once the device has failed, nothing runs any more that could use an operand.
func TestFailedDeviceReleasesEverything(t *testing.T) {
	ctx := open(t)
	failing.Store(true) // streams of a failed context cannot be given back
	s := newStream(t, ctx)
	k := newKernel(t, ctx)
	ops := tokens(3)
	g := newTestGraph(t, ctx, Options{})
	gate := newGate(t) // once the first launch has failed, no other is taken
	first, err := g.Host(gate.HostParams, NodeOptions{})
	require.NoError(t, err)
	_, err = g.Kernel(putParams(t, k, 0x10, 1), NodeOptions{Name: "bad", Deps: []*Node{first}, Operands: operands(ops[0])})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	y := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, y.Launch(ctx.WrapStream(s.Handle())))
	gate.open()
	err = s.Synchronize()
	require.ErrorIs(t, err, cuda.ErrorIllegalAddress)
	require.Error(t, x.Node("bad").UpdateKernel(putParams(t, k, 0x10, 1), operands(ops[1])))
	released(t, ops[1])
	_ = x.Close() // the driver may refuse: the context is broken
	_ = y.Close()
	_ = g.Close()
	eventuallyReleased(t, ops[0])
}
