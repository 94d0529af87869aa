// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
)

// cloneGraph copies a graph with its children. Nodes share their work, which
// is immutable: setting parameters replaces it.
//
// Preconditions: d.graphMu must be locked.
func (d *simulator) cloneGraph(g *graph, parent *node) *graph {
	c := d.newGraph()
	c.parent = parent
	c.objects = g.objects.retain()
	copies := make(map[*node]*node, g.nodes.Len())
	for _, n := range g.nodes.All() {
		m := d.addNode(c, &node{kind: n.kind, work: n.work, name: n.name}, nil)
		if n.child != nil {
			m.child = d.cloneGraph(n.child, m)
		}
		copies[n] = m
	}
	c.copies = copies
	// Edges in the order in which they were made, on both sides: updates match
	// nodes by it.
	for _, n := range g.nodes.All() {
		for _, b := range n.before.All() {
			copies[n].before.Add(copies[b])
			copies[n].setData(copies[b], n.data[b])
		}
		for _, a := range n.after.All() {
			copies[n].after.Add(copies[a])
		}
	}
	return c
}

// outer returns the graph that g is in, or nil.
func (g *graph) outer() *graph {
	if g.parent == nil {
		return nil
	}
	return g.parent.graph
}

// holdsMemory reports whether a graph or a child allocates or frees.
func (g *graph) holdsMemory() bool {
	if g.hasMemory {
		return true
	}
	for _, n := range g.nodes.All() {
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
	m := g.copies[n]
	if m == nil || d.nodes.get(m.handle) != m { // none, or removed since
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return m.handle, r
}

// CuGraphAddChildGraphNode embeds a clone of child.
func (d *simulator) CuGraphAddChildGraphNode(h driver.CUgraph, deps []driver.CUgraphNode, child driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
	return d.addChild(h, deps, driver.CUDA_CHILD_GRAPH_NODE_PARAMS{Graph: child})
}

// addChild embeds a clone of a graph, or the graph itself. Only the graph itself
// may allocate and free. NVIDIA's driver makes no clone of a graph that another
// node has, other than by CuGraphClone.
func (d *simulator) addChild(h driver.CUgraph, deps []driver.CUgraphNode, p driver.CUDA_CHILD_GRAPH_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c, r := d.graph(p.Graph)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	moved := p.Ownership == driver.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE
	switch {
	case !moved && p.Ownership != driver.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE:
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	case !moved && c.holdsMemory() || c.isConditional() || c.parent != nil:
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	g, before, r := d.target(h, deps)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	n := &node{kind: driver.CU_GRAPH_NODE_TYPE_GRAPH}
	if moved {
		if c.capture != nil || g.root() == c {
			return 0, driver.CUDA_ERROR_INVALID_VALUE
		}
		n.child, c.parent, c.moved = c, n, true
		if c.hasMemory {
			for up := g; up != nil; up = up.outer() {
				up.hasMemory = true
			}
		}
	} else {
		n.child = d.cloneGraph(c, n) // first: a graph may embed a copy of itself as it is now
	}
	return d.addNode(g, n, before).handle, r
}

// CuGraphNodeSetParams embeds a clone of another graph in a child graph node. The
// other kinds have calls of their own.
func (d *simulator) CuGraphNodeSetParams(h driver.CUgraphNode, params *driver.CUgraphNodeParams) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, r := d.node(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if params == nil || params.Type != n.kind {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if n.child == nil {
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	p := params.ChildGraph()
	c, r := d.graph(p.Graph)
	switch {
	case r != driver.CUDA_SUCCESS:
		return r
	case p.Ownership != driver.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE || c.root() == n.graph.root():
		return driver.CUDA_ERROR_INVALID_VALUE
	case c.holdsMemory() || c.isConditional() || c.parent != nil || n.child.holdsMemory():
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	old := n.child
	n.child = d.cloneGraph(c, n)
	d.destroyGraph(old)
	return r
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
