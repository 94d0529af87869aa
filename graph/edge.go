// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/ordered"
)

// edges are those to one node, in the order in which they were made.
type edges struct {
	deps []*Node
	data []cuda.EdgeData // nil if all wait for completion
}

// edges returns those to n. Later changes do not affect them.
//
// Preconditions: the lock of n's graph is held.
func (n *Node) edges() edges {
	e := edges{deps: n.deps.All()}
	if len(n.early) > 0 {
		e.data = make([]cuda.EdgeData, len(e.deps))
		for i, d := range e.deps {
			e.data[i] = n.early[d]
		}
	}
	return e
}

// dataAt returns the data of the i-th edge.
func (e edges) dataAt(i int) cuda.EdgeData { return dataAt(e.data, i) }

// dataAt returns the data of the i-th of a node's edges, all of which wait for
// completion if data is nil.
func dataAt(data []cuda.EdgeData, i int) cuda.EdgeData {
	if data == nil {
		return cuda.EdgeData{}
	}
	return data[i]
}

func (e edges) equal(other edges) bool {
	if !slices.Equal(e.deps, other.deps) {
		return false
	}
	for i := range e.deps {
		if e.dataAt(i) != other.dataAt(i) {
			return false
		}
	}
	return true
}

// addDep adds a dependency.
//
// Preconditions: the lock of n's graph is held, as for those below.
func (n *Node) addDep(d *Node, data cuda.EdgeData) {
	n.deps.Add(d)
	if data == (cuda.EdgeData{}) {
		return
	}
	if n.early == nil {
		n.early = make(map[*Node]cuda.EdgeData)
	}
	n.early[d] = data
}

// dropDep removes a dependency.
func (n *Node) dropDep(d *Node) {
	n.deps.Remove(d)
	delete(n.early, d)
}

// setEdges gives n other data and another order of its dependencies.
func (n *Node) setEdges(e edges) {
	n.deps, n.early = ordered.Set[*Node]{}, nil
	for i, d := range e.deps {
		n.addDep(d, e.dataAt(i))
	}
}

// copyEdges gives the copy of a node the edges that its original has, and links it.
func (n *Node) copyEdges(of edges, copies map[*Node]*Node) {
	for i, d := range of.deps {
		n.addDep(copies[d], of.dataAt(i))
	}
	n.link()
}

// mayHave returns why the edge between two nodes cannot have the data, or nil.
//
// Errors: an [*cuda.ArgumentError] unless both are kernels; an [*cuda.Error] if
// the device has no programmatic launches, and the edge needs them.
func mayHave(data cuda.EdgeData, from, to *Node) error {
	if data == (cuda.EdgeData{}) {
		return nil
	}
	if data != cuda.Programmatic && data != cuda.LaunchOrder && data != cuda.LaunchCompletion {
		return badValue("edge", "must be programmatic, in launch order or of a launch's completion, got %v", data)
	}
	for _, n := range []*Node{from, to} {
		if n.kind != cuda.KernelNode {
			return badValue("edge", "must be between two kernels to be programmatic, and %v is none", n)
		}
	}
	if data == cuda.LaunchCompletion {
		return nil
	}
	return from.g.h.ctx.Device().CheckProgrammatic("cuGraphAddDependencies")
}

// earlyData returns the data of the edges to a new kernel node that may start
// early: it need not wait for the completion of kernels. It returns nil if none
// is. deps are those of the nodes, each once, where it comes first.
//
// Preconditions: g.h.mu is held.
func earlyData(nodes []*Node, deps []cuda.NodeHandle) (data []cuda.EdgeData) {
	at := 0
	for _, n := range nodes {
		if at == len(deps) || deps[at] != n.handle {
			continue // again
		}
		if n.kind == cuda.KernelNode {
			if data == nil {
				data = make([]cuda.EdgeData, len(deps))
			}
			data[at] = cuda.Programmatic
		}
		at++
	}
	return data
}

// inMadeOrder returns the dependencies of a new node in the order in which the
// driver got them, which updates of executables go by: see split.
func inMadeOrder(deps []*Node, data []cuda.EdgeData) edges {
	if data == nil {
		return edges{deps: deps}
	}
	made, of := make([]*Node, 0, len(deps)), make([]cuda.EdgeData, 0, len(deps))
	for _, early := range []bool{false, true} {
		for i, d := range deps {
			if (data[i] != cuda.EdgeData{}) == early {
				made, of = append(made, d), append(of, data[i])
			}
		}
	}
	return edges{made, of}
}

// split divides dependencies by whether their edges have data, of which there is
// only one: those that have go to the driver after the others.
func split(deps []cuda.NodeHandle, data []cuda.EdgeData) (whole, early []cuda.NodeHandle) {
	for i, d := range deps {
		if dataAt(data, i) == (cuda.EdgeData{}) {
			whole = append(whole, d)
		} else {
			early = append(early, d)
		}
	}
	return whole, early
}
