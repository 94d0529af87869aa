// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var movedGraphs = map[string]func(*suite){
	"graph moved into another belongs to it": graphMoved,
	"graph that allocates can be moved":      graphMovedMemory,
	"graph that cannot be moved stays":       graphNotMoved,
}

// moves reports whether the driver can move graphs: older ones make copies.
func (s *suite) moves() bool {
	v, r := s.CuDriverGetVersion()
	s.ok(r)
	return v >= 12090
}

func (s *suite) move(g driver.CUgraph, deps []driver.CUgraphNode, child driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
	n, bodies, r := s.CuGraphAddNode(g, deps, driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{
		Graph: child, Ownership: driver.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
	}))
	require.Empty(s.T, bodies)
	return n, r
}

// child makes a graph that nobody destroys: it is to be moved.
func (s *suite) child() driver.CUgraph {
	s.Helper()
	g, r := s.CuGraphCreate(0)
	s.ok(r)
	return g
}

func graphMoved(s *suite) {
	if !s.moves() {
		return
	}
	p, child, parent, step := s.word(1), s.child(), s.graph(), s.kernel("step")
	n, r := s.CuGraphAddKernelNode(child, nil, s.kernelNode(step, p, uint32(3), uint32(0)))
	s.ok(r)
	first, r := s.CuGraphAddKernelNode(parent, nil, s.kernelNode(step, p, uint32(1), uint32(4)))
	s.ok(r)
	moved, r := s.move(parent, []driver.CUgraphNode{first}, child)
	s.ok(r)
	kind, r := s.CuGraphNodeGetType(moved)
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_NODE_TYPE_GRAPH, kind)
	inner, r := s.CuGraphChildGraphNodeGetGraph(moved)
	s.ok(r)
	require.Equal(s.T, child, inner)
	s.ok(s.CuGraphKernelNodeSetParams(n, s.kernelNode(step, p, uint32(5), uint32(0)))) // no copy
	s.launchAndWait(s.instantiate(parent), s.stream())
	s.same((1+4)*5, p)
	_, r = s.CuGraphInstantiateWithParams(child, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
	_, r = s.move(s.graph(), nil, child)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func graphMovedMemory(s *suite) {
	if !s.moves() {
		return
	}
	child, parent, out := s.child(), s.graph(), s.word(0)
	p, fill := s.allocating(child, 7)
	moved, r := s.move(parent, nil, child)
	s.ok(r)
	copied, r := s.CuGraphAddMemcpyNode(parent, []driver.CUgraphNode{moved}, linear(out, p+996, 4), s.ctx)
	s.ok(r)
	_, r = s.CuGraphAddMemFreeNode(child, []driver.CUgraphNode{fill}, p)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
	_, r = s.CuGraphAddMemFreeNode(parent, []driver.CUgraphNode{copied}, p)
	s.ok(r)
	x, st := s.instantiate(parent), s.stream()
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	s.same(7, out)
}

func graphNotMoved(s *suite) {
	if !s.moves() {
		return
	}
	child, parent, other := s.graph(), s.graph(), s.graph()
	stranger := s.empty(other)
	s.empty(child)
	_, r := s.move(parent, []driver.CUgraphNode{stranger}, child)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	nodes, r := s.CuGraphGetNodes(parent)
	s.ok(r)
	require.Empty(s.T, nodes)
	s.launchAndWait(s.instantiate(child), s.stream())
	_, r = s.CuGraphAddChildGraphNode(parent, nil, child)
	s.ok(r)
}
