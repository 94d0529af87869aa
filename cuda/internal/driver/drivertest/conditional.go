// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var conditionals = map[string]func(*suite){
	"a while node runs its body until a kernel ends it":      conditionalWhile,
	"an if node chooses between two bodies":                  conditionalIf,
	"a switch node runs one body, or none":                   conditionalSwitch,
	"conditional nodes nest":                                 conditionalNested,
	"a condition begins each launch with its default":        conditionalDefault,
	"a condition without default keeps its value":            conditionalKept,
	"conditional parameters are checked":                     conditionalChecked,
	"a condition serves one node, and must serve one":        conditionalUnused,
	"a conditional graph has one executable and no copies":   conditionalAlone,
	"bodies take device work only":                           conditionalContent,
	"nodes of a body can be updated":                         conditionalUpdated,
	"an update may change bodies' parameters, not structure": conditionalMatched,
	"destroying a conditional node destroys its bodies":      conditionalDestroyed,
}

// setters is PTX of kernels that set conditions.
const setters = `.version 6.4
.target sm_75
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

// condition = value
.visible .entry set(.param .u64 condition, .param .u32 value)
{
	.reg .b32 %r;
	.reg .b64 %d;
	ld.param.u64 %d, [condition];
	ld.param.u32 %r, [value];
	{
		.param .b64 a;
		.param .b32 b;
		st.param.b64 [a], %d;
		st.param.b32 [b], %r;
		call.uni cudaGraphSetConditional, (a, b);
	}
	ret;
}

// condition = *p -= 1
.visible .entry count_down(.param .u64 condition, .param .u64 p)
{
	.reg .b32 %r;
	.reg .b64 %d<2>;
	ld.param.u64 %d0, [condition];
	ld.param.u64 %d1, [p];
	ld.global.u32 %r, [%d1];
	sub.u32 %r, %r, 1;
	st.global.u32 [%d1], %r;
	{
		.param .b64 a;
		.param .b32 b;
		st.param.b64 [a], %d0;
		st.param.b32 [b], %r;
		call.uni cudaGraphSetConditional, (a, b);
	}
	ret;
}
`

// conditional is a graph with a conditional node.
type conditional struct {
	*suite
	graph     driver.CUgraph
	condition driver.CUgraphConditionalHandle
	node      driver.CUgraphNode
	bodies    []driver.CUgraph
}

func (s *suite) condition(g driver.CUgraph, first, flags uint32) driver.CUgraphConditionalHandle {
	s.Helper()
	h, r := s.CuGraphConditionalHandleCreate(g, s.ctx, first, flags)
	s.ok(r)
	return h
}

func (s *suite) conditionalParams(h driver.CUgraphConditionalHandle, kind driver.CUgraphConditionalNodeType, size uint32) *driver.CUgraphNodeParams {
	return &driver.CUgraphNodeParams{
		Type:        driver.CU_GRAPH_NODE_TYPE_CONDITIONAL,
		Conditional: driver.CUDA_CONDITIONAL_NODE_PARAMS{Handle: h, Type: kind, Size: size, Ctx: s.ctx},
	}
}

// conditional makes a graph whose only node is conditional. Its condition is
// first at each launch.
func (s *suite) conditional(kind driver.CUgraphConditionalNodeType, size, first uint32) *conditional {
	s.Helper()
	c := &conditional{suite: s, graph: s.graph()}
	c.condition = s.condition(c.graph, first, driver.CU_GRAPH_COND_ASSIGN_DEFAULT)
	var r driver.CUresult
	c.node, c.bodies, r = s.CuGraphAddNode(c.graph, nil, s.conditionalParams(c.condition, kind, size))
	s.ok(r)
	require.Len(s.T, c.bodies, int(size))
	return c
}

// setter loads a kernel that sets conditions.
func (s *suite) setter(name string) driver.CUfunction {
	s.Helper()
	m, log, r := s.CuModuleLoadDataEx([]byte(setters))
	if r != driver.CUDA_SUCCESS {
		s.Fatalf("%s: %s", r, log)
	}
	s.cleanup(func() { s.CuModuleUnload(m) })
	f, r := s.CuModuleGetFunction(m, name)
	s.ok(r)
	return f
}

// run adds a node of one thread.
func (s *suite) run(g driver.CUgraph, deps []driver.CUgraphNode, f driver.CUfunction, args ...any) driver.CUgraphNode {
	s.Helper()
	n, r := s.CuGraphAddKernelNode(g, deps, s.kernelNode(f, args...))
	s.ok(r)
	return n
}

// increment adds a node that adds 1 to the number at p.
func (s *suite) increment(g driver.CUgraph, p driver.CUdeviceptr) driver.CUgraphNode {
	s.Helper()
	return s.run(g, nil, s.kernel("step"), p, uint32(1), uint32(1))
}

// set changes the number at p.
func (s *suite) set(p driver.CUdeviceptr, value uint32) {
	s.Helper()
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, value, 1, st))
	s.ok(s.CuStreamSynchronize(st))
}

func conditionalWhile(s *suite) {
	left, turns := s.word(5), s.word(0)
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_WHILE, 1, 1)
	n := s.increment(c.bodies[0], turns)
	s.run(c.bodies[0], []driver.CUgraphNode{n}, s.setter("count_down"), driver.CUdeviceptr(c.condition), left)
	kind, r := s.CuGraphNodeGetType(c.node)
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_NODE_TYPE_CONDITIONAL, kind)
	all, r := s.CuGraphGetNodes(c.graph)
	s.ok(r)
	require.Len(s.T, all, 1)
	x, st := s.instantiate(c.graph), s.stream()
	s.launchAndWait(x, st)
	s.same(5, turns)
	s.set(left, 3)
	s.launchAndWait(x, st)
	s.same(8, turns)
}

func conditionalIf(s *suite) {
	yes, no := s.word(0), s.word(0)
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 2, 0)
	s.increment(c.bodies[0], yes)
	s.increment(c.bodies[1], no)
	set := s.setter("set")
	choose := s.run(c.graph, nil, set, driver.CUdeviceptr(c.condition), uint32(7))
	s.ok(s.CuGraphAddDependencies(c.graph, []driver.CUgraphNode{choose}, []driver.CUgraphNode{c.node}, plain))
	x, st := s.instantiate(c.graph), s.stream()
	s.launchAndWait(x, st)
	s.ok(s.CuGraphExecKernelNodeSetParams(x, choose, s.kernelNode(set, driver.CUdeviceptr(c.condition), uint32(0))))
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	s.same(1, yes)
	s.same(2, no)
}

func conditionalSwitch(s *suite) {
	counts := []driver.CUdeviceptr{s.word(0), s.word(0), s.word(0)}
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_SWITCH, 3, 9)
	for i, p := range counts {
		s.increment(c.bodies[i], p)
	}
	set := s.setter("set")
	choose := s.run(c.graph, nil, set, driver.CUdeviceptr(c.condition), uint32(2))
	s.ok(s.CuGraphAddDependencies(c.graph, []driver.CUgraphNode{choose}, []driver.CUgraphNode{c.node}, plain))
	x, st := s.instantiate(c.graph), s.stream()
	for _, value := range []uint32{2, 0, 3, 1 << 31, 2} { // two of them choose nothing
		s.ok(s.CuGraphExecKernelNodeSetParams(x, choose, s.kernelNode(set, driver.CUdeviceptr(c.condition), value)))
		s.launchAndWait(x, st)
	}
	s.same(1, counts[0])
	s.same(0, counts[1])
	s.same(2, counts[2])
}

// conditionalNested runs an inner loop in each turn of an outer one, and after
// both a node of the graph itself.
func conditionalNested(s *suite) {
	outer, inner, sum, after := s.word(3), s.word(0), s.word(0), s.word(0)
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_WHILE, 1, 1)
	body, down := c.bodies[0], s.setter("count_down")
	condition := s.condition(c.graph, 1, driver.CU_GRAPH_COND_ASSIGN_DEFAULT)
	// The default is given once a launch, so each turn sets the inner condition.
	again := s.run(body, nil, s.kernel("step"), inner, uint32(0), uint32(4))
	set := s.run(body, []driver.CUgraphNode{again}, s.setter("set"), driver.CUdeviceptr(condition), uint32(1))
	loop, bodies, r := s.CuGraphAddNode(body, []driver.CUgraphNode{set}, s.conditionalParams(condition, driver.CU_GRAPH_COND_TYPE_WHILE, 1))
	s.ok(r)
	n := s.increment(bodies[0], sum)
	s.run(bodies[0], []driver.CUgraphNode{n}, down, driver.CUdeviceptr(condition), inner)
	s.run(body, []driver.CUgraphNode{loop}, down, driver.CUdeviceptr(c.condition), outer)
	s.run(c.graph, []driver.CUgraphNode{c.node}, s.kernel("step"), after, uint32(1), uint32(1))
	s.launchAndWait(s.instantiate(c.graph), s.stream())
	s.same(12, sum)
	s.same(1, after)
}

func conditionalDefault(s *suite) {
	ran := s.word(0)
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1)
	s.increment(c.bodies[0], ran)
	s.run(c.graph, []driver.CUgraphNode{c.node}, s.setter("set"), driver.CUdeviceptr(c.condition), uint32(0)) // for this launch only
	x, st := s.instantiate(c.graph), s.stream()
	for range 3 {
		s.launchAndWait(x, st)
	}
	s.same(3, ran)
}

func conditionalKept(s *suite) {
	ran, g := s.word(0), s.graph()
	condition := s.condition(g, 1, 0) // without the flag, the default does not count
	n, bodies, r := s.CuGraphAddNode(g, nil, s.conditionalParams(condition, driver.CU_GRAPH_COND_TYPE_IF, 1))
	s.ok(r)
	s.increment(bodies[0], ran)
	s.run(g, []driver.CUgraphNode{n}, s.setter("set"), driver.CUdeviceptr(condition), uint32(1))
	x, st := s.instantiate(g), s.stream()
	for range 3 {
		s.launchAndWait(x, st)
	}
	s.same(2, ran)
}

func conditionalChecked(s *suite) {
	g := s.graph()
	_, r := s.CuGraphConditionalHandleCreate(g, s.ctx, 0, 2)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuGraphConditionalHandleCreate(g, 0, 0, 0)
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, r)
	h := s.condition(g, 0, driver.CU_GRAPH_COND_ASSIGN_DEFAULT)
	for _, wrong := range []struct {
		kind driver.CUgraphConditionalNodeType
		size uint32
	}{
		{driver.CU_GRAPH_COND_TYPE_IF, 0}, {driver.CU_GRAPH_COND_TYPE_IF, 3}, {driver.CU_GRAPH_COND_TYPE_WHILE, 2},
		{driver.CU_GRAPH_COND_TYPE_SWITCH, 0}, {7, 1},
	} {
		_, _, r := s.CuGraphAddNode(g, nil, s.conditionalParams(h, wrong.kind, wrong.size))
		s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	}
	nowhere := s.conditionalParams(h, driver.CU_GRAPH_COND_TYPE_IF, 1)
	nowhere.Conditional.Ctx = 0
	_, _, r = s.CuGraphAddNode(g, nil, nowhere)
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, r)
	_, _, r = s.CuGraphAddNode(g, nil, s.conditionalParams(0, driver.CU_GRAPH_COND_TYPE_IF, 1))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, _, r = s.CuGraphAddNode(s.graph(), nil, s.conditionalParams(h, driver.CU_GRAPH_COND_TYPE_IF, 1))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r) // a condition of another graph
}

func conditionalUnused(s *suite) {
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 0)
	_, _, r := s.CuGraphAddNode(c.graph, nil, s.conditionalParams(c.condition, driver.CU_GRAPH_COND_TYPE_IF, 1))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.condition(c.graph, 0, 0)
	s.notInstantiated(c.graph, driver.CUDA_ERROR_INVALID_VALUE, driver.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED)
}

// notInstantiated requires a code, a result and, if there is one, the node that
// is to blame.
func (s *suite) notInstantiated(g driver.CUgraph, want driver.CUresult, why driver.CUgraphInstantiateResult) driver.CUgraphNode {
	s.Helper()
	var p driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	_, r := s.CuGraphInstantiateWithParams(g, &p)
	s.code(want, r)
	require.Equal(s.T, why, p.Result_out)
	return p.HErrNode_out
}

func conditionalAlone(s *suite) {
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_WHILE, 1, 0)
	s.increment(c.bodies[0], s.word(0))
	for _, g := range []driver.CUgraph{c.graph, c.bodies[0]} {
		_, r := s.CuGraphClone(g)
		s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
		_, r = s.CuGraphAddChildGraphNode(s.graph(), nil, g)
		s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphDestroy(c.bodies[0]))
	s.notInstantiated(c.bodies[0], driver.CUDA_ERROR_NOT_SUPPORTED, driver.CUDA_GRAPH_INSTANTIATE_ERROR)
	var p driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	x, r := s.CuGraphInstantiateWithParams(c.graph, &p)
	s.ok(r)
	s.notInstantiated(c.graph, driver.CUDA_ERROR_NOT_SUPPORTED, driver.CUDA_GRAPH_INSTANTIATE_ERROR)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphNodeSetEnabled(x, c.node, false))
	s.ok(s.CuGraphExecDestroy(x))
	s.instantiate(c.graph)
}

func conditionalContent(s *suite) {
	p := s.word(0)
	refused := map[string]func(g driver.CUgraph) (driver.CUgraphNode, driver.CUresult){
		"event record": func(g driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
			return s.CuGraphAddEventRecordNode(g, nil, s.event(0))
		},
		"allocation": func(g driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
			return s.CuGraphAddMemAllocNode(g, nil, graphAllocation(4))
		},
	}
	if s.options.HostFn != 0 {
		refused["host function"] = func(g driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
			return s.CuGraphAddHostNode(g, nil, &driver.CUDA_HOST_NODE_PARAMS{Fn: s.options.HostFn})
		}
	}
	for name, add := range refused {
		c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1)
		_, r := add(c.bodies[0])
		require.Equal(s.T, driver.CUDA_SUCCESS, r, name)
		node := s.notInstantiated(c.graph, driver.CUDA_ERROR_INVALID_VALUE, driver.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED)
		require.NotZero(s.T, node, name)
	}
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1)
	body, inner := c.bodies[0], s.graph()
	_, r := s.CuGraphAddMemsetNode(inner, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, Value: 40, ElementSize: 4, Width: 1, Height: 1}, s.ctx)
	s.ok(r)
	child, r := s.CuGraphAddChildGraphNode(body, nil, inner)
	s.ok(r)
	source := s.word(41)
	copied, r := s.CuGraphAddMemcpyNode(body, []driver.CUgraphNode{child}, linear(p, source, 4), s.ctx)
	s.ok(r)
	empty, r := s.CuGraphAddEmptyNode(body, []driver.CUgraphNode{copied})
	s.ok(r)
	s.run(body, []driver.CUgraphNode{empty}, s.kernel("step"), p, uint32(1), uint32(1))
	s.launchAndWait(s.instantiate(c.graph), s.stream())
	s.same(42, p)
}

func conditionalUpdated(s *suite) {
	old, new := s.word(0), s.word(0)
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1)
	n := s.increment(c.bodies[0], old)
	x, st := s.instantiate(c.graph), s.stream()
	params := s.kernelNode(s.kernel("step"), new, uint32(1), uint32(1))
	s.ok(s.CuGraphExecKernelNodeSetParams(x, n, params))
	s.launchAndWait(x, st)
	s.ok(s.CuGraphKernelNodeSetParams(n, params))
	info, r := s.CuGraphExecUpdate(x, c.graph)
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_EXEC_UPDATE_SUCCESS, info.Result)
	s.launchAndWait(x, st)
	s.same(0, old)
	s.same(2, new)
}

func conditionalMatched(s *suite) {
	ran := s.word(0)
	first, never := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1), s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 0)
	s.increment(first.bodies[0], ran)
	s.increment(never.bodies[0], ran)
	x, st := s.instantiate(first.graph), s.stream()
	_, r := s.CuGraphExecUpdate(x, never.graph) // the default of its condition is another
	s.ok(r)
	s.launchAndWait(x, st)
	s.same(0, ran)
	grown, loop := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1), s.conditional(driver.CU_GRAPH_COND_TYPE_WHILE, 1, 1)
	s.increment(grown.bodies[0], ran)
	s.increment(grown.bodies[0], ran)
	s.increment(loop.bodies[0], ran)
	for _, other := range []*conditional{grown, loop} {
		info, r := s.CuGraphExecUpdate(x, other.graph)
		s.code(driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
		// An H200 (driver 580.159, CUDA 13.0) has given both.
		require.Contains(s.T, []driver.CUgraphExecUpdateResult{
			driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, driver.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
		}, info.Result)
	}
}

func conditionalDestroyed(s *suite) {
	c := s.conditional(driver.CU_GRAPH_COND_TYPE_IF, 1, 1)
	s.increment(c.bodies[0], s.word(0))
	s.ok(s.CuGraphDestroyNode(c.node))
	_, r := s.CuGraphGetNodes(c.bodies[0])
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.notInstantiated(c.graph, driver.CUDA_ERROR_INVALID_VALUE, driver.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED)
}
