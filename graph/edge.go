// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/cudago/cudago/cuda"
)

// dataAt returns the data of the i-th of a node's edges, all of which wait for
// completion if data is nil.
func dataAt(data []cuda.EdgeData, i int) cuda.EdgeData {
	if data == nil {
		return cuda.EdgeData{}
	}
	return data[i]
}

// sameData compares the data of equally many edges.
func sameData(a, b []cuda.EdgeData, n int) bool {
	for i := range n {
		if dataAt(a, i) != dataAt(b, i) {
			return false
		}
	}
	return true
}

// addDep adds a dependency. What n had is not changed: others may hold it.
//
// Preconditions: the lock of n's graph is held.
func (n *Node) addDep(d *Node, data cuda.EdgeData) {
	if n.data != nil || data != (cuda.EdgeData{}) {
		all := make([]cuda.EdgeData, len(n.deps)+1)
		copy(all, n.data)
		all[len(n.deps)] = data
		n.data = all
	}
	n.deps = append(slices.Clone(n.deps), d)
}

// dropDep removes a dependency.
//
// Preconditions: the lock of n's graph is held.
func (n *Node) dropDep(d *Node) {
	at := slices.Index(n.deps, d)
	if at < 0 {
		return
	}
	n.deps = slices.Delete(slices.Clone(n.deps), at, at+1)
	if n.data != nil {
		n.data = slices.Delete(slices.Clone(n.data), at, at+1)
	}
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
func inMadeOrder(deps []*Node, data []cuda.EdgeData) ([]*Node, []cuda.EdgeData) {
	if data == nil {
		return deps, nil
	}
	made, of := make([]*Node, 0, len(deps)), make([]cuda.EdgeData, 0, len(deps))
	for _, early := range []bool{false, true} {
		for i, d := range deps {
			if (data[i] != cuda.EdgeData{}) == early {
				made, of = append(made, d), append(of, data[i])
			}
		}
	}
	return made, of
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
