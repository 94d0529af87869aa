// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// cloneGraph copies a graph with its children. Nodes share their work, which
// is immutable: setting parameters replaces it.
//
// Preconditions: d.graphMu must be locked.
func (d *simulator) cloneGraph(g *graph, parent *node) *graph {
	c := d.newGraph()
	c.parent, c.original = parent, g
	copies := make(map[*node]*node, len(g.nodes))
	for _, n := range g.nodes {
		m := d.addNode(c, &node{kind: n.kind, work: n.work, original: n, name: n.name}, nil)
		if n.child != nil {
			m.child = d.cloneGraph(n.child, m)
		}
		copies[n] = m
	}
	// Edges in the order in which they were made, on both sides: updates match
	// nodes by it.
	for _, n := range g.nodes {
		for _, b := range n.before {
			copies[n].before = append(copies[n].before, copies[b])
		}
		copies[n].data = slices.Clone(n.data)
		for _, a := range n.after {
			copies[n].after = append(copies[n].after, copies[a])
		}
	}
	return c
}

// holdsMemory reports whether a graph or a child allocates or frees.
func (g *graph) holdsMemory() bool {
	if g.hasMemory {
		return true
	}
	for _, n := range g.nodes {
		if n.child != nil && n.child.holdsMemory() {
			return true
		}
	}
	return false
}

// CuGraphClone refuses graphs that allocate or free or have conditional nodes,
// as CUDA does.
func (d *simulator) CuGraphClone(h driver.CUgraph) (driver.CUgraph, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if g.holdsMemory() || g.isConditional() || g.isBody() {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return d.cloneGraph(g, nil).handle, r
}

func (d *simulator) CuGraphNodeFindInClone(original driver.CUgraphNode, clone driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(clone)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	n, r := d.node(original)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	for _, m := range g.nodes {
		if m.original == n {
			return m.handle, r
		}
	}
	return 0, driver.CUDA_ERROR_INVALID_VALUE
}

// CuGraphAddChildGraphNode embeds a clone of child.
func (d *simulator) CuGraphAddChildGraphNode(h driver.CUgraph, deps []driver.CUgraphNode, child driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c, r := d.graph(child)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if c.holdsMemory() || c.isConditional() || c.isBody() {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	g, before, r := d.target(h, deps)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	// The clone comes first: a graph may embed a copy of itself as it is now.
	n := &node{kind: driver.CU_GRAPH_NODE_TYPE_GRAPH}
	n.child = d.cloneGraph(c, n)
	return d.addNode(g, n, before).handle, r
}

func (d *simulator) CuGraphChildGraphNodeGetGraph(h driver.CUgraphNode) (driver.CUgraph, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, r := d.node(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if n.child == nil {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return n.child.handle, r
}
