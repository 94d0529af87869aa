// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// countdownPTX subtracts 1 from p[0], and sets the condition to what is left.
const countdownPTX = `.version 6.4
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry countdown(.param .u64 p)
{
	.reg .b32 %r;
	.reg .b64 %d<2>;
	ld.param.u64 %d0, [p];
	ld.global.u64 %d1, [%d0+8];
	ld.global.u32 %r, [%d0];
	sub.u32 %r, %r, 1;
	st.global.u32 [%d0], %r;
	{
		.param .b64 a;
		.param .b32 b;
		st.param.b64 [a], %d1;
		st.param.b32 [b], %r;
		call.uni cudaGraphSetConditional, (a, b);
	}
	ret;
}
`

// loop is a graph with a while node, whose condition is 1 at first.
func (o *one) loop(t *testing.T) (g, body driver.CUgraph, condition driver.CUgraphConditionalHandle) {
	t.Helper()
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	condition, r = o.CuGraphConditionalHandleCreate(g, o.ctx, 1, driver.CU_GRAPH_COND_ASSIGN_DEFAULT)
	ok(t, r)
	n, bodies, r := o.CuGraphAddNode(g, nil, &driver.CUgraphNodeParams{
		Type: driver.CU_GRAPH_NODE_TYPE_CONDITIONAL,
		Conditional: driver.CUDA_CONDITIONAL_NODE_PARAMS{
			Handle: condition, Type: driver.CU_GRAPH_COND_TYPE_WHILE, Size: 1, Ctx: o.ctx,
		},
	})
	ok(t, r)
	driver.CheckerOf(o.API).NameNodes([]driver.CUgraphNode{n}, []string{"loop"})
	return g, bodies[0], condition
}

// counting adds a node that ends the loop after some turns.
func (o *one) counting(t *testing.T, body driver.CUgraph, condition driver.CUgraphConditionalHandle, turns uint32, deps ...driver.CUgraphNode) {
	t.Helper()
	p, r := o.CuMemAlloc(16)
	ok(t, r)
	h := uint64(condition)
	ok(t, o.CuMemsetD32Async(p, turns, 1, o.stream))
	ok(t, o.CuMemsetD32Async(p+8, uint32(h), 1, o.stream))
	ok(t, o.CuMemsetD32Async(p+12, uint32(h>>32), 1, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	params := o.touchParams(o.pointerTo(t, p))
	params.Func = o.load(t, countdownPTX, "countdown")
	_, r = o.CuGraphAddKernelNode(body, deps, params)
	ok(t, r)
}

func TestEndlessLoopUsesUpItsBudget(t *testing.T) {
	for _, empty := range []bool{true, false} {
		o := newOne(t, open(t, "steps=1000"))
		g, body, _ := o.loop(t)
		if !empty {
			o.touching(t, body, o.args)
		}
		ok(t, o.CuGraphLaunch(o.instantiate(t, g), o.stream))
		require.Equal(t, driver.CUDA_ERROR_LAUNCH_TIMEOUT, o.CuStreamSynchronize(o.stream))
		require.Regexp(t, `^step budget exhausted: the body of conditional node "loop" ran 1001 times, and the condition is still 1$`, o.FaultReport(o.ctx))
	}
}

func TestCancelEndsALoop(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, _, _ := o.loop(t)
	ok(t, o.CuGraphLaunch(o.instantiate(t, g), o.stream))
	c := driver.CheckerOf(o.API)
	for o.CuStreamQuery(o.stream) == driver.CUDA_ERROR_NOT_READY {
		c.Cancel() // repeatedly, since the loop may not have begun
	}
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuStreamSynchronize(o.stream))
	require.Regexp(t, `^canceled in the loop of conditional node "loop", after \d+ turns$`, o.FaultReport(o.ctx))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	ok(t, o.CuStreamSynchronize(o.stream))
}

func TestTurnsOfALoopFollowEachOther(t *testing.T) {
	for _, apart := range []bool{false, true} {
		o, c := checking(t, "races")
		g, body, condition := o.loop(t)
		first := o.touching(t, body, o.args)
		var deps []driver.CUgraphNode
		if !apart {
			deps = append(deps, first)
		}
		second := o.touching(t, body, o.args, deps...)
		o.counting(t, body, condition, 3)
		ok(t, o.CuGraphLaunch(o.instantiate(t, g), o.stream))
		c.NameNodes([]driver.CUgraphNode{first, second}, []string{"left", "right"})
		o.finish(t)
		reports := strings.Join(c.TakeReports(), "\n")
		if !apart {
			require.Empty(t, reports)
			require.EqualValues(t, 6, o.read(t, o.memory)[0])
			continue
		}
		require.Contains(t, reports, `node 1 in a body of conditional node "loop": race in global memory in kernel touch`)
	}
}

func TestWorkAfterALoopFollowsIt(t *testing.T) {
	o, c := checking(t, "races")
	g, body, condition := o.loop(t)
	o.touching(t, body, o.args)
	o.counting(t, body, condition, 3)
	nodes, r := o.CuGraphGetNodes(g)
	ok(t, r)
	o.touching(t, g, o.args, nodes[0])
	ok(t, o.CuGraphLaunch(o.instantiate(t, g), o.stream))
	o.finish(t)
	require.Empty(t, c.TakeReports())
	require.EqualValues(t, 4, o.read(t, o.memory)[0])
}

func TestDanglingInABody(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, body, condition := o.loop(t)
	o.counting(t, body, condition, 1)
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	o.touching(t, body, o.pointerTo(t, p))
	x := o.instantiate(t, g)
	ok(t, o.CuMemFree(p))
	o.requireDangling(t, x, `node 1 in a body of conditional node "loop": kernel touch, parameter 0 \(p\)`)
}

func TestConditionOutsideAGraph(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAlloc(16)
	ok(t, r)
	ok(t, o.CuMemsetD8Async(p, 0, 16, o.stream))
	config := o.config
	config.BlockDimX = 1
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, countdownPTX, "countdown"), o.pointerTo(t, p)))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_INSTRUCTION, o.CuStreamSynchronize(o.stream))
	require.Contains(t, o.FaultReport(o.ctx), "cudaGraphSetConditional: 0x0 is not the handle of a condition of a graph")
}

func TestPageableMemoryInABody(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, body, _ := o.loop(t)
	_, r := o.CuGraphAddMemcpyNode(body, nil, &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_HOST, SrcHost: 0x10000, DstMemoryType: driver.CU_MEMORYTYPE_DEVICE, DstDevice: o.memory,
		WidthInBytes: 4, Height: 1, Depth: 1,
	}, o.ctx)
	ok(t, r)
	var p driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	_, r = o.CuGraphInstantiateWithParams(g, &p)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	require.Equal(t, driver.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, p.Result_out)
}

func TestConditionGoesWithItsGraphs(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, body, condition := o.loop(t)
	o.counting(t, body, condition, 2)
	x := o.instantiate(t, g)
	ok(t, o.CuGraphDestroy(g)) // the executable needs the condition
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuGraphExecDestroy(x))
	other, r := o.CuGraphCreate(0)
	ok(t, r)
	_, _, r = o.CuGraphAddNode(other, nil, &driver.CUgraphNodeParams{
		Type: driver.CU_GRAPH_NODE_TYPE_CONDITIONAL, Conditional: driver.CUDA_CONDITIONAL_NODE_PARAMS{Handle: condition, Size: 1, Ctx: o.ctx},
	})
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
}
