// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var graphs = map[string]func(*suite){
	"graph has nodes and edges":                 graphStructure,
	"graph refuses edges that make no sense":    graphBadEdges,
	"graph edges can be removed":                graphRemoveEdge,
	"graph nodes can be destroyed":              graphDestroyNode,
	"graph clone is independent":                graphClone,
	"graph clone finds its nodes":               graphFindInClone,
	"graph embeds a copy of its child":          graphChild,
	"graph embedded goes with its node":         graphChildHandles,
	"graph flags are refused":                   graphFlags,
	"graph handles do not outlive their graph":  graphStale,
	"graph of another graph's nodes is refused": graphForeign,
}

func (s *suite) empty(g driver.CUgraph, deps ...driver.CUgraphNode) driver.CUgraphNode {
	s.Helper()
	n, r := s.CuGraphAddEmptyNode(g, deps)
	s.ok(r)
	return n
}

func graphStructure(s *suite) {
	g := s.graph()
	a := s.empty(g)
	b, c := s.empty(g, a), s.empty(g, a)
	d := s.empty(g, b)
	s.ok(s.CuGraphAddDependencies(g, []driver.CUgraphNode{c}, []driver.CUgraphNode{d}, plain))
	got, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.ElementsMatch(s.T, []driver.CUgraphNode{a, b, c, d}, got)
	from, to, data, r := s.CuGraphGetEdges(g)
	s.ok(r)
	pairs := make([][2]driver.CUgraphNode, len(from))
	for i := range from {
		pairs[i] = [2]driver.CUgraphNode{from[i], to[i]}
	}
	require.ElementsMatch(s.T, [][2]driver.CUgraphNode{{a, b}, {a, c}, {b, d}, {c, d}}, pairs)
	require.Equal(s.T, make([]driver.CUgraphEdgeData, 4), data)
	deps, r := s.CuGraphNodeGetDependencies(d)
	s.ok(r)
	require.ElementsMatch(s.T, []driver.CUgraphNode{b, c}, deps)
	kind, r := s.CuGraphNodeGetType(a)
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_NODE_TYPE_EMPTY, kind)
}

func graphBadEdges(s *suite) {
	g := s.graph()
	a := s.empty(g)
	b := s.empty(g, a)
	add := func(from, to driver.CUgraphNode) driver.CUresult {
		return s.CuGraphAddDependencies(g, []driver.CUgraphNode{from}, []driver.CUgraphNode{to}, plain)
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, add(a, a))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, add(a, b))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, add(a, 0))
	from, _, _, r := s.CuGraphGetEdges(g)
	s.ok(r)
	require.Len(s.T, from, 1, "a refused call adds nothing")
}

func graphRemoveEdge(s *suite) {
	g := s.graph()
	a := s.empty(g)
	b := s.empty(g, a)
	list := func(n driver.CUgraphNode) []driver.CUgraphNode { return []driver.CUgraphNode{n} }
	s.ok(s.CuGraphRemoveDependencies(g, list(a), list(b), plain))
	deps, r := s.CuGraphNodeGetDependencies(b)
	s.ok(r)
	require.Empty(s.T, deps)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphRemoveDependencies(g, list(a), list(b), plain))
}

func graphDestroyNode(s *suite) {
	g := s.graph()
	a := s.empty(g)
	b := s.empty(g, a)
	c := s.empty(g, b)
	s.ok(s.CuGraphDestroyNode(b))
	left, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.ElementsMatch(s.T, []driver.CUgraphNode{a, c}, left)
	from, _, _, r := s.CuGraphGetEdges(g)
	s.ok(r)
	require.Empty(s.T, from)
}

func graphClone(s *suite) {
	p, g, step := s.word(1), s.graph(), s.kernel("step")
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(2), uint32(0)))
	s.ok(r)
	clone, r := s.CuGraphClone(g)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(clone) })
	s.ok(s.CuGraphKernelNodeSetParams(n, s.kernelNode(step, p, uint32(100), uint32(0))))
	s.launchAndWait(s.instantiate(clone), s.stream())
	s.same(2, p)
}

func graphFindInClone(s *suite) {
	g := s.graph()
	a := s.empty(g)
	b := s.empty(g, a)
	clone, r := s.CuGraphClone(g)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(clone) })
	cb, r := s.CuGraphNodeFindInClone(b, clone)
	s.ok(r)
	ca, r := s.CuGraphNodeFindInClone(a, clone)
	s.ok(r)
	require.NotEqual(s.T, b, cb)
	deps, r := s.CuGraphNodeGetDependencies(cb)
	s.ok(r)
	require.Equal(s.T, []driver.CUgraphNode{ca}, deps)
}

func graphChild(s *suite) {
	p, child, parent, step := s.word(1), s.graph(), s.graph(), s.kernel("step")
	n, r := s.CuGraphAddKernelNode(child, nil, s.kernelNode(step, p, uint32(3), uint32(0)))
	s.ok(r)
	first, r := s.CuGraphAddKernelNode(parent, nil, s.kernelNode(step, p, uint32(1), uint32(4)))
	s.ok(r)
	embedded, r := s.CuGraphAddChildGraphNode(parent, []driver.CUgraphNode{first}, child)
	s.ok(r)
	_, r = s.CuGraphAddKernelNode(parent, []driver.CUgraphNode{embedded}, s.kernelNode(step, p, uint32(1), uint32(7)))
	s.ok(r)
	s.ok(s.CuGraphKernelNodeSetParams(n, s.kernelNode(step, p, uint32(100), uint32(0))))
	s.launchAndWait(s.instantiate(parent), s.stream())
	s.same((1+4)*3+7, p)
}

func graphChildHandles(s *suite) {
	child, parent := s.graph(), s.graph()
	s.empty(child)
	n, r := s.CuGraphAddChildGraphNode(parent, nil, child)
	s.ok(r)
	inner, r := s.CuGraphChildGraphNodeGetGraph(n)
	s.ok(r)
	require.NotEqual(s.T, child, inner)
	nodes, r := s.CuGraphGetNodes(inner)
	s.ok(r)
	require.Len(s.T, nodes, 1)
	s.notEmbedded(inner)
	clone, r := s.CuGraphClone(inner)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(clone) })
	_, r = s.CuGraphAddChildGraphNode(s.graph(), nil, clone)
	s.ok(r)
	s.ok(s.CuGraphDestroyNode(n))
	left, r := s.CuGraphGetNodes(child)
	s.ok(r)
	require.Len(s.T, left, 1)
}

// notEmbedded requires that no node gets a graph that a node has.
func (s *suite) notEmbedded(owned driver.CUgraph) {
	g := s.graph()
	_, r := s.CuGraphAddChildGraphNode(g, nil, owned)
	s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
	if s.moves() {
		_, r = s.move(g, nil, owned)
		s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
	}
	nodes, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Empty(s.T, nodes)
}

func graphFlags(s *suite) {
	_, r := s.CuGraphCreate(1)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func graphStale(s *suite) {
	_, r := s.CuGraphGetNodes(0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuGraphNodeGetType(0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphDestroy(0))
}

func graphForeign(s *suite) {
	g, other := s.graph(), s.graph()
	foreign := s.empty(other)
	_, r := s.CuGraphAddEmptyNode(g, []driver.CUgraphNode{foreign})
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	got, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Empty(s.T, got)
}
