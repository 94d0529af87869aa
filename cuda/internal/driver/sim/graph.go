// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ordered"
)

// graph is an editable graph. All of it is guarded by simulator.graphMu.
type graph struct {
	handle driver.CUgraph
	nodes  ordered.Set[*node] // in order of creation
	parent *node              // the child graph node or conditional node that owns the graph; nil if none does
	// copies are the nodes by those that they were cloned from, for NodeFindInClone:
	// also those that were destroyed since.
	copies map[*node]*node
	moved  bool // into its parent: not a clone

	capture   *capture      // not nil while being captured
	allocs    []*graphAlloc // made by nodes of this graph
	objects   userObjects   // held by this graph, not by an inner one
	hasMemory bool          // has nodes that allocate or free, or was given a graph with such nodes
	execs     int           // executables that were made and not destroyed

	conditions []*condition // made for this graph, not for an inner one
}

// node is a node of a graph. All of it is guarded by simulator.graphMu.
type node struct {
	handle driver.CUgraphNode
	graph  *graph
	kind   driver.CUgraphNodeType
	work   work     // nil for child graphs and empty nodes
	child  *graph   // child graph nodes
	bodies []*graph // conditional nodes
	before ordered.Set[*node]
	data   map[*node]driver.CUgraphEdgeData // of the edges from before that have any
	after  ordered.Set[*node]
	name   string
}

// graph finds a graph.
//
// Preconditions: d.graphMu must be locked, as for all that follow.
func (d *simulator) graph(h driver.CUgraph) (*graph, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if g := d.graphs.get(h); g != nil {
		return g, driver.CUDA_SUCCESS
	}
	return nil, driver.CUDA_ERROR_INVALID_VALUE
}

func (d *simulator) node(h driver.CUgraphNode) (*node, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if n := d.nodes.get(h); n != nil {
		return n, driver.CUDA_SUCCESS
	}
	return nil, driver.CUDA_ERROR_INVALID_VALUE
}

// members finds nodes that must all belong to one graph.
func (d *simulator) members(g *graph, handles []driver.CUgraphNode) ([]*node, driver.CUresult) {
	nodes := make([]*node, len(handles))
	for i, h := range handles {
		n := d.nodes.get(h)
		if n == nil || n.graph != g {
			return nil, driver.CUDA_ERROR_INVALID_VALUE
		}
		nodes[i] = n
	}
	return nodes, driver.CUDA_SUCCESS
}

func (d *simulator) newGraph() *graph {
	g := &graph{}
	g.handle = d.graphs.add(g)
	return g
}

// addNode appends a node that depends on the nodes in before.
func (d *simulator) addNode(g *graph, n *node, before []*node) *node {
	n.graph = g
	n.handle = d.nodes.add(n)
	g.nodes.Add(n)
	for _, b := range before {
		connect(b, n, driver.CUgraphEdgeData{})
	}
	return n
}

func connect(from, to *node, data driver.CUgraphEdgeData) {
	from.after.Add(to)
	to.before.Add(from)
	to.setData(from, data)
}

func disconnect(from, to *node) {
	from.after.Remove(to)
	to.before.Remove(from)
	delete(to.data, from)
}

// setData gives the edge from another node data.
func (n *node) setData(from *node, data driver.CUgraphEdgeData) {
	if data == (driver.CUgraphEdgeData{}) {
		delete(n.data, from)
		return
	}
	if n.data == nil {
		n.data = make(map[*node]driver.CUgraphEdgeData)
	}
	n.data[from] = data
}

// edgeData lists the data of the edges from before; it is nil if none has any.
func (n *node) edgeData() []driver.CUgraphEdgeData {
	if len(n.data) == 0 {
		return nil
	}
	list := make([]driver.CUgraphEdgeData, 0, n.before.Len())
	for _, b := range n.before.All() {
		list = append(list, n.data[b])
	}
	return list
}

// destroyGraph invalidates the handles of a graph, its nodes and its children.
func (d *simulator) destroyGraph(g *graph) {
	d.graphs.remove(g.handle)
	for _, n := range g.nodes.All() {
		d.nodes.remove(n.handle)
		d.destroyInner(n)
	}
	for _, a := range g.allocs {
		a.unref()
	}
	g.objects.release()
	for _, c := range g.conditions {
		c.unref()
	}
}

// destroyInner destroys the graphs that a node owns.
func (d *simulator) destroyInner(n *node) {
	if n.child != nil {
		d.destroyGraph(n.child)
	}
	for _, b := range n.bodies {
		d.destroyGraph(b)
	}
}

func (d *simulator) CuGraphCreate(flags uint32) (driver.CUgraph, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	if flags != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	return d.newGraph().handle, driver.CUDA_SUCCESS
}

// CuGraphDestroy does not affect executables. A graph inside another is
// destroyed with its node, one under capture with the capture.
func (d *simulator) CuGraphDestroy(h driver.CUgraph) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if g.parent != nil || g.capture != nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.destroyGraph(g)
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuGraphAddDependencies(h driver.CUgraph, from, to []driver.CUgraphNode, data []driver.CUgraphEdgeData) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	_, sources, targets, r := d.edges(h, from, to, data)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	var made map[[2]*node]bool
	if len(sources) > 1 {
		made = make(map[[2]*node]bool, len(sources))
	}
	for i := range sources {
		// The same edge twice in one call is an error, as in two calls.
		edge := [2]*node{sources[i], targets[i]}
		if sources[i] == targets[i] || made[edge] || targets[i].before.Has(sources[i]) || !mayHave(data[i], sources[i], targets[i]) {
			r = driver.CUDA_ERROR_INVALID_VALUE
		}
		if made != nil {
			made[edge] = true
		}
	}
	if r != driver.CUDA_SUCCESS {
		return r
	}
	for i := range sources {
		connect(sources[i], targets[i], data[i])
	}
	return r
}

// mayHave reports whether an edge between two nodes can have the data: cuda.h,
// CUgraphEdgeData, CUgraphDependencyType and CU_GRAPH_KERNEL_NODE_PORT_*.
func mayHave(data driver.CUgraphEdgeData, from, to *node) bool {
	const kernel = driver.CU_GRAPH_NODE_TYPE_KERNEL
	switch {
	case data == driver.CUgraphEdgeData{}:
		return true
	case data.ToPort != 0 || from.kind != kernel || data.FromPort > driver.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER:
		return false
	case data.Type == driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC:
		return to.kind == kernel && data.FromPort != driver.CU_GRAPH_KERNEL_NODE_PORT_DEFAULT
	}
	return data.Type == driver.CU_GRAPH_DEPENDENCY_TYPE_DEFAULT && data.FromPort != driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
}

func (d *simulator) CuGraphRemoveDependencies(h driver.CUgraph, from, to []driver.CUgraphNode, data []driver.CUgraphEdgeData) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, sources, targets, r := d.edges(h, from, to, data)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if g.hasMemory || g.capture != nil {
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	for i := range sources {
		if !targets[i].before.Has(sources[i]) || targets[i].data[sources[i]] != data[i] {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	for i := range sources {
		disconnect(sources[i], targets[i])
	}
	return r
}

func (d *simulator) edges(h driver.CUgraph, from, to []driver.CUgraphNode, data []driver.CUgraphEdgeData) (g *graph, sources, targets []*node, r driver.CUresult) {
	if g, r = d.graph(h); r != driver.CUDA_SUCCESS {
		return g, nil, nil, r
	}
	if len(from) != len(to) || len(from) != len(data) {
		return g, nil, nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	if sources, r = d.members(g, from); r != driver.CUDA_SUCCESS {
		return g, nil, nil, r
	}
	targets, r = d.members(g, to)
	return g, sources, targets, r
}

func (d *simulator) CuGraphDestroyNode(h driver.CUgraphNode) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, r := d.node(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if n.graph.hasMemory || n.graph.capture != nil {
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	for _, b := range n.before.All() {
		disconnect(b, n)
	}
	for _, a := range n.after.All() {
		disconnect(n, a)
	}
	if !n.graph.nodes.Remove(n) {
		panic("BUG: a node is not in its graph")
	}
	d.nodes.remove(h)
	d.destroyInner(n)
	if w, ok := n.work.(*conditionalWork); ok {
		w.condition.used = false
	}
	return r
}

func (d *simulator) CuGraphGetNodes(h driver.CUgraph) ([]driver.CUgraphNode, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	return handles(g.nodes.All()), r
}

func handles(nodes []*node) []driver.CUgraphNode {
	hs := make([]driver.CUgraphNode, len(nodes))
	for i, n := range nodes {
		hs[i] = n.handle
	}
	return hs
}

func (d *simulator) CuGraphGetEdges(h driver.CUgraph) (from, to []driver.CUgraphNode, data []driver.CUgraphEdgeData, r driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return nil, nil, nil, r
	}
	for _, n := range g.nodes.All() {
		for _, b := range n.before.All() {
			from, to, data = append(from, b.handle), append(to, n.handle), append(data, n.data[b])
		}
	}
	return from, to, data, r
}

func (d *simulator) CuGraphNodeGetType(h driver.CUgraphNode) (driver.CUgraphNodeType, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, r := d.node(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return n.kind, r
}

func (d *simulator) CuGraphNodeGetDependencies(h driver.CUgraphNode) ([]driver.CUgraphNode, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, r := d.node(h)
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	return handles(n.before.All()), r
}
