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
	changes := map[int32]work{}
	if m := x.match(x.shape, g, changes); m != nil {
		info.Result = m.result
		if m.node != nil {
			info.ErrorNode = m.node.handle
		}
		if m.original != nil {
			info.ErrorFromNode = m.original.handle
		}
		return info, driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
	}
	p := x.writable()
	for at, w := range changes {
		p.nodes[at].work = w
	}
	x.holdConditions(p)
	old := x.objects
	x.objects = g.allObjects().retain()
	old.release() // launches under way hold their own
	info.Result = driver.CU_GRAPH_EXEC_UPDATE_SUCCESS
	return info, r
}

// match compares a graph with a shape and collects the new work.
//
// Preconditions: x.mu and simulator.graphMu must be locked.
func (x *graphExec) match(s *shape, g *graph, changes map[int32]work) *mismatch {
	changed := driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
	if len(g.nodes) != len(s.nodes) {
		return &mismatch{result: changed}
	}
	var sinks []*node
	for _, n := range g.nodes {
		if len(n.after) == 0 {
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
		if m := x.matchNode(sn, p.n, changes); m != nil {
			return m
		}
		for i, b := range p.n.before {
			todo = append(todo, pair{sn.before[i], b})
		}
	}
	if len(partner) != len(s.nodes) { // the rest is in a cycle
		return &mismatch{result: changed}
	}
	return nil
}

func (x *graphExec) matchNode(sn *shapeNode, n *node, changes map[int32]work) *mismatch {
	switch {
	case n.kind != sn.kind:
		return &mismatch{driver.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, n, sn.source}
	case !slices.Equal(n.data, sn.data):
		return &mismatch{driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n, sn.source}
	case n.child != nil:
		if m := x.match(sn.child, n.child, changes); m != nil {
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
			if m := x.match(sn.bodies[i], b, changes); m != nil {
				if m.node == nil {
					m.node, m.original = n, sn.source
				}
				return m
			}
		}
		changes[sn.at] = n.work
		return nil
	}
	old := x.plan.nodes[sn.at].work
	if old == n.work {
		return nil
	}
	if !compatible(old, n.work) {
		return &mismatch{whyNot(old, n.work), n, sn.source}
	}
	changes[sn.at] = n.work
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
