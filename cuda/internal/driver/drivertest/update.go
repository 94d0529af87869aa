// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var updates = map[string]func(*suite){
	"node update changes later launches only":    updateNode,
	"node update of a copy":                      updateMemcpy,
	"node update of a fill":                      updateMemset,
	"graph update refuses other parameters":      updateParameters,
	"node update refuses another kind of memory": updateMemoryKind,
	"node update needs the node":                 updateForeign,
	"graph update changes all parameters":        updateGraph,
	"graph update refuses another structure":     updateTopology,
	"graph update refuses another kind of node":  updateKind,
	"graph update reaches into children":         updateChild,
	"graph update that fails changes nothing":    updateFails,
	"node update of a copy to another size":      updateSize,
	"node update of an event":                    updateEvent,
	"node update of a child graph":               updateChildNode,
	"parameters of a child graph node":           setChildNode,
}

func updateNode(s *suite) {
	p, g, st, step := s.word(1), s.graph(), s.stream(), s.kernel("step")
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(1), uint32(1)))
	s.ok(r)
	x := s.instantiate(g)
	gate := s.hold(st)
	s.ok(s.CuGraphLaunch(x, st))
	s.ok(s.CuGraphExecKernelNodeSetParams(x, n, s.kernelNode(step, p, uint32(10), uint32(0))))
	s.ok(s.CuGraphLaunch(x, st))
	gate.open()
	s.same(20, p)
}

func updateMemcpy(s *suite) {
	a, b, dst, g, st := s.word(1), s.word(2), s.word(0), s.graph(), s.stream()
	n, r := s.CuGraphAddMemcpyNode(g, nil, linear(dst, a, 4), s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	s.same(1, dst)
	s.ok(s.CuGraphExecMemcpyNodeSetParams(x, n, linear(dst, b, 4), s.ctx))
	s.launchAndWait(x, st)
	s.same(2, dst)
	got, r := s.CuGraphMemcpyNodeGetParams(n)
	s.ok(r)
	require.Equal(s.T, uint64(4), got.WidthInBytes)
}

func updateSize(s *suite) {
	src, dst, g, st := s.alloc(8), s.alloc(8), s.graph(), s.stream()
	s.ok(s.CuMemsetD32Async(src, 7, 2, st))
	s.ok(s.CuMemsetD32Async(dst, 0, 2, st))
	n, r := s.CuGraphAddMemcpyNode(g, nil, linear(dst, src, 4), s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	s.same(0, dst+4)
	s.ok(s.CuGraphExecMemcpyNodeSetParams(x, n, linear(dst, src, 8), s.ctx))
	s.launchAndWait(x, st)
	s.same(7, dst+4)
}

func updateEvent(s *suite) {
	a, b, g, st := s.event(driver.CU_EVENT_DISABLE_TIMING), s.event(driver.CU_EVENT_DISABLE_TIMING), s.graph(), s.stream()
	record, r := s.CuGraphAddEventRecordNode(g, nil, a)
	s.ok(r)
	wait, r := s.CuGraphAddEventWaitNode(g, nil, a)
	s.ok(r)
	old := s.instantiate(g)
	s.ok(s.CuGraphExecEventRecordNodeSetEvent(old, record, b))
	s.ok(s.CuGraphExecEventWaitNodeSetEvent(old, wait, b))
	s.ok(s.CuGraphEventRecordNodeSetEvent(record, b))
	s.ok(s.CuGraphEventWaitNodeSetEvent(wait, b))
	for _, x := range []driver.CUgraphExec{old, s.instantiate(g)} {
		gate := s.hold(st)
		s.ok(s.CuGraphLaunch(x, st))
		s.code(driver.CUDA_ERROR_NOT_READY, s.CuEventQuery(b))
		s.ok(s.CuEventQuery(a)) // never recorded
		gate.open()
		s.ok(s.CuEventSynchronize(b))
		s.ok(s.CuStreamSynchronize(st))
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphEventRecordNodeSetEvent(wait, a))
}

// filling makes a graph that fills a word with a number.
func (s *suite) filling(p driver.CUdeviceptr, value uint32) driver.CUgraph {
	s.Helper()
	g := s.graph()
	_, r := s.CuGraphAddMemsetNode(g, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, Value: value, ElementSize: 4, Width: 1, Height: 1}, s.ctx)
	s.ok(r)
	return g
}

func updateChildNode(s *suite) {
	p, g, st := s.word(0), s.graph(), s.stream()
	n, r := s.CuGraphAddChildGraphNode(g, nil, s.filling(p, 3))
	s.ok(r)
	x := s.instantiate(g)
	s.ok(s.CuGraphExecChildGraphNodeSetParams(x, n, s.filling(p, 4)))
	s.launchAndWait(x, st)
	s.same(4, p)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.CuGraphExecChildGraphNodeSetParams(x, n, s.graph()))
	s.launchAndWait(x, st)
	s.same(4, p)
	s.launchAndWait(s.instantiate(g), st)
	s.same(3, p)
}

func setChildNode(s *suite) {
	p, g, st := s.word(0), s.graph(), s.stream()
	n, r := s.CuGraphAddChildGraphNode(g, nil, s.filling(p, 3))
	s.ok(r)
	x := s.instantiate(g)
	set := func(child driver.CUgraph) driver.CUresult {
		return s.CuGraphNodeSetParams(n, driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{Graph: child}))
	}
	s.ok(set(s.filling(p, 4)))
	s.launchAndWait(x, st)
	s.same(3, p)
	s.launchAndWait(s.instantiate(g), st)
	s.same(4, p)
}

func updateMemset(s *suite) {
	p, q, g, st := s.word(0), s.word(0), s.graph(), s.stream()
	fill := func(dst driver.CUdeviceptr, value uint32) *driver.CUDA_MEMSET_NODE_PARAMS {
		return &driver.CUDA_MEMSET_NODE_PARAMS{Dst: dst, Value: value, ElementSize: 4, Width: 1, Height: 1}
	}
	n, r := s.CuGraphAddMemsetNode(g, nil, fill(p, 3), s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	s.ok(s.CuGraphExecMemsetNodeSetParams(x, n, fill(q, 4), s.ctx))
	s.launchAndWait(x, st)
	s.same(0, p)
	s.same(4, q)
	require.NotEqual(s.T, driver.CUDA_SUCCESS,
		s.CuGraphExecMemsetNodeSetParams(x, n, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: q, ElementSize: 4, Height: 1}, s.ctx))
}

func updateParameters(s *suite) {
	host := onHeap([]uint32{7})
	a, dst, device, other := s.word(1), s.word(0), s.graph(), s.graph()
	_, r := s.CuGraphAddMemcpyNode(device, nil, linear(dst, a, 4), s.ctx)
	s.ok(r)
	wrong, r := s.CuGraphAddMemcpyNode(other, nil, fromHost(dst, host, 4), s.ctx)
	s.ok(r)
	info, r := s.CuGraphExecUpdate(s.instantiate(device), other)
	s.code(driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	require.Equal(s.T, driver.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, info.Result)
	require.Equal(s.T, wrong, info.ErrorNode)
}

func updateMemoryKind(s *suite) {
	host := onHeap([]uint32{7})
	a, dst, g := s.word(1), s.word(0), s.graph()
	n, r := s.CuGraphAddMemcpyNode(g, nil, linear(dst, a, 4), s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.CuGraphExecMemcpyNodeSetParams(x, n, fromHost(dst, host, 4), s.ctx))
	s.launchAndWait(x, s.stream())
	s.same(1, dst)
}

func updateForeign(s *suite) {
	p, g, other, step := s.word(1), s.graph(), s.graph(), s.kernel("step")
	_, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(1), uint32(1)))
	s.ok(r)
	foreign, r := s.CuGraphAddKernelNode(other, nil, s.kernelNode(step, p, uint32(1), uint32(1)))
	s.ok(r)
	s.code(driver.CUDA_ERROR_INVALID_VALUE,
		s.CuGraphExecKernelNodeSetParams(s.instantiate(g), foreign, s.kernelNode(step, p, uint32(1), uint32(1))))
}

// chain builds a graph of two dependent kernels and a fill.
func (s *suite) chain(p driver.CUdeviceptr, factor, addend uint32) driver.CUgraph {
	s.Helper()
	g, step := s.graph(), s.kernel("step")
	fill, r := s.CuGraphAddMemsetNode(g, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, Value: 2, ElementSize: 4, Width: 1, Height: 1}, s.ctx)
	s.ok(r)
	a, r := s.CuGraphAddKernelNode(g, []driver.CUgraphNode{fill}, s.kernelNode(step, p, factor, uint32(0)))
	s.ok(r)
	_, r = s.CuGraphAddKernelNode(g, []driver.CUgraphNode{a}, s.kernelNode(step, p, uint32(1), addend))
	s.ok(r)
	return g
}

func updateGraph(s *suite) {
	p, q, st := s.word(0), s.word(0), s.stream()
	x := s.instantiate(s.chain(p, 3, 1))
	s.launchAndWait(x, st)
	s.same(7, p)
	info, r := s.CuGraphExecUpdate(x, s.chain(q, 5, 2))
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_EXEC_UPDATE_SUCCESS, info.Result)
	s.launchAndWait(x, st)
	s.same(12, q)
	s.same(7, p)
}

func updateTopology(s *suite) {
	p := s.word(0)
	x := s.instantiate(s.chain(p, 3, 1))
	longer := s.chain(p, 3, 1)
	s.empty(longer)
	info, r := s.CuGraphExecUpdate(x, longer)
	s.code(driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	require.Equal(s.T, driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, info.Result)
}

func updateKind(s *suite) {
	p, a, b := s.word(0), s.graph(), s.graph()
	_, r := s.CuGraphAddKernelNode(a, nil, s.kernelNode(s.kernel("step"), p, uint32(1), uint32(1)))
	s.ok(r)
	wrong, r := s.CuGraphAddMemsetNode(b, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, ElementSize: 4, Width: 1, Height: 1}, s.ctx)
	s.ok(r)
	info, r := s.CuGraphExecUpdate(s.instantiate(a), b)
	s.code(driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	require.Equal(s.T, driver.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, info.Result)
	require.Equal(s.T, wrong, info.ErrorNode)
}

func updateChild(s *suite) {
	p, st := s.word(0), s.stream()
	parent := func(factor uint32) driver.CUgraph {
		g := s.graph()
		_, r := s.CuGraphAddChildGraphNode(g, nil, s.chain(p, factor, 1))
		s.ok(r)
		return g
	}
	x := s.instantiate(parent(3))
	s.launchAndWait(x, st)
	s.same(7, p)
	_, r := s.CuGraphExecUpdate(x, parent(4))
	s.ok(r)
	s.launchAndWait(x, st)
	s.same(9, p)
}

func updateFails(s *suite) {
	p, st := s.word(0), s.stream()
	x := s.instantiate(s.chain(p, 3, 1))
	bad := s.chain(p, 100, 100)
	s.empty(bad)
	_, r := s.CuGraphExecUpdate(x, bad)
	s.code(driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	s.launchAndWait(x, st)
	s.same(7, p)
}
