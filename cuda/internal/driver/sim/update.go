// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// mismatch is why a graph cannot update an executable, and at which node.
type mismatch struct {
	result   driver.CUgraphExecUpdateResult
	node     *node // of the new graph
	original *node // of the graph that the executable was made from
}

// update is what a graph, or one inside it, changes in an executable.
type update struct {
	work   map[int32]work
	graphs map[*shape]*graph // what each shape is compared with
}

func newUpdate() *update { return &update{map[int32]work{}, map[*shape]*graph{}} }

// apply makes the changes. The references of the graphs take the place of those
// that the executable has for what they update: CUDA's programming guide, "CUDA User
// Objects". Launches under way hold their own.
//
// Preconditions: x.mu and simulator.graphMu must be locked.
func (x *graphExec) apply(u *update) {
	p := x.writable()
	for at, w := range u.work {
		p.nodes[at].work = w
	}
	x.holdConditions(p)
	var old userObjects
	for s, g := range u.graphs {
		old = append(old, s.objects...)
		s.objects = g.objects.retain()
	}
	x.held = x.shape.allObjects(nil)
	old.release()
}

// CuGraphExecUpdate gives the executable the parameters of a graph of the same
// structure. Nodes are matched by their edges, from the nodes that nothing
// depends on backwards, in the order in which nodes and edges were made. A
// failed update changes nothing.
func (d *simulator) CuGraphExecUpdate(h driver.CUgraphExec, hg driver.CUgraph) (info driver.CUgraphExecUpdateResultInfo, r driver.CUresult) {
	info.Result = driver.CU_GRAPH_EXEC_UPDATE_ERROR
	x, r := d.exec(h)
	if r != driver.CUDA_SUCCESS {
		return info, r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(hg)
	if r != driver.CUDA_SUCCESS {
		return info, r
	}
	if g.capture != nil || g.moved {
		return info, driver.CUDA_ERROR_INVALID_VALUE
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	u := newUpdate()
	if m := x.match(x.shape, g, u); m != nil {
		info.Result = m.result
		if m.node != nil {
			info.ErrorNode = m.node.handle
		}
		if m.original != nil {
			info.ErrorFromNode = m.original.handle
		}
		return info, driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
	}
	x.apply(u)
	info.Result = driver.CU_GRAPH_EXEC_UPDATE_SUCCESS
	return info, r
}

// CuGraphExecChildGraphNodeSetParams is CuGraphExecUpdate for what is inside one
// node.
func (d *simulator) CuGraphExecChildGraphNodeSetParams(h driver.CUgraphExec, hn driver.CUgraphNode, hg driver.CUgraph) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	x, _, r := d.execNode(h, hn)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	n, _ := d.node(hn) // execNode has found it
	g, r := d.graph(hg)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	sn, u := x.shape.find(n), newUpdate()
	if sn == nil || sn.child == nil || g.capture != nil || g.moved || x.match(sn.child, g, u) != nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	x.apply(u)
	return r
}

// find returns the node of the shape, or of one inside, that was made from n, or
// nil.
func (s *shape) find(n *node) *shapeNode {
	for i := range s.nodes {
		sn := &s.nodes[i]
		if sn.source == n {
			return sn
		}
		for _, inner := range append([]*shape{sn.child}, sn.bodies...) {
			if inner == nil {
				continue
			}
			if found := inner.find(n); found != nil {
				return found
			}
		}
	}
	return nil
}

// match compares a graph with a shape and collects what changes.
//
// Preconditions: x.mu and simulator.graphMu must be locked.
func (x *graphExec) match(s *shape, g *graph, u *update) *mismatch {
	changed := driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
	if g.nodes.Len() != len(s.nodes) {
		return &mismatch{result: changed}
	}
	var sinks []*node
	for _, n := range g.nodes.All() {
		if n.after.Len() == 0 {
			sinks = append(sinks, n)
		}
	}
	if len(sinks) != len(s.sinks) {
		return &mismatch{result: changed}
	}
	type pair struct {
		at int32
		n  *node
	}
	var todo []pair
	for i, n := range sinks {
		todo = append(todo, pair{s.sinks[i], n})
	}
	pairs := make([]*node, len(s.nodes))
	partner := make(map[*node]int32, len(s.nodes))
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		sn := &s.nodes[p.at]
		if at, seen := partner[p.n]; seen || pairs[p.at] != nil {
			if !seen || at != p.at {
				return &mismatch{changed, p.n, sn.source}
			}
			continue
		}
		pairs[p.at], partner[p.n] = p.n, p.at
		if m := x.matchNode(sn, p.n, u); m != nil {
			return m
		}
		for i, b := range p.n.before.All() {
			todo = append(todo, pair{sn.before[i], b})
		}
	}
	if len(partner) != len(s.nodes) { // the rest is in a cycle
		return &mismatch{result: changed}
	}
	u.graphs[s] = g
	return nil
}

func (x *graphExec) matchNode(sn *shapeNode, n *node, u *update) *mismatch {
	switch {
	case n.kind != sn.kind:
		return &mismatch{driver.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, n, sn.source}
	case n.before.Len() != len(sn.before) || !slices.Equal(n.edgeData(), sn.data):
		return &mismatch{driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n, sn.source}
	case n.child != nil:
		if m := x.match(sn.child, n.child, u); m != nil {
			if m.node == nil {
				m.node, m.original = n, sn.source
			}
			return m
		}
		return nil
	case n.bodies != nil:
		if !x.sameConditional(sn, n) {
			return &mismatch{driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n, sn.source}
		}
		for i, b := range n.bodies {
			if m := x.match(sn.bodies[i], b, u); m != nil {
				if m.node == nil {
					m.node, m.original = n, sn.source
				}
				return m
			}
		}
		u.work[sn.at] = n.work
		return nil
	}
	old := x.plan.nodes[sn.at].work
	if old == n.work {
		return nil
	}
	if !compatible(old, n.work) {
		return &mismatch{whyNot(old, n.work), n, sn.source}
	}
	u.work[sn.at] = n.work
	return nil
}

// sameConditional reports whether two conditional nodes are of one type and
// have equally many bodies. Their conditions may differ.
func (x *graphExec) sameConditional(sn *shapeNode, n *node) bool {
	old, new := x.plan.nodes[sn.at].work.(*conditionalWork), n.work.(*conditionalWork)
	return old.kind == new.kind && old.bodies == new.bodies
}

// whyNot says why two nodes of one kind are not compatible.
func whyNot(old, new work) driver.CUgraphExecUpdateResult {
	switch new := new.(type) {
	case *kernelWork:
		if new.cooperative != old.(*kernelWork).cooperative {
			return driver.CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED
		}
		return driver.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
	case *allocWork, *graphFreeWork:
		return driver.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
	}
	return driver.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED
}
