// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

//export cudagoGraphRemove
func cudagoGraphRemove(id, node C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		n, err := g.member("node", node)
		if err != nil {
			return err
		}
		err = g.Remove(n)
		g.outermost().holder.apply()
		if err != nil {
			return err
		}
		g.nodes[n.Index()] = nil
		g.noteRemoved(n.Index())
		g.gone++
		g.outermost().forget(n)
		return nil
	})
}

// forget takes the graphs inside a removed node out of the table, so that their
// Python objects are closed.
func (g *pyGraph) forget(n *graph.Node) {
	inner := n.Bodies()
	if child := n.Child(); child != nil {
		inner = append(inner, child)
	}
	for _, of := range inner {
		g.forgetInner(of)
	}
}

// forgetInner is forget for one such graph.
func (g *pyGraph) forgetInner(of *graph.Graph) {
	if id, ok := g.bodies[of]; ok {
		graphs.Take(id)
		delete(g.bodies, of)
	}
	for _, n := range of.Nodes() {
		g.forget(n)
	}
}

// edgeData is what an edge can wait for.
var edgeData = [...]cuda.EdgeData{{}, cuda.Programmatic, cuda.LaunchOrder, cuda.LaunchCompletion}

// cudagoGraphEdge adds the edge between two nodes, with the data of that number.
//
//export cudagoGraphEdge
func cudagoGraphEdge(id, from, to C.uint64_t, data C.int, st *C.cudago_status) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		e, err := g.edge(from, to)
		if err != nil {
			return err
		}
		return g.AddEdge(e.From, e.To, edgeData[data])
	})
}

// cudagoGraphNeighbors adds edges between a node and the first others, and removes
// those between it and the rest; or does neither. backward: the others wait for it.
//
//export cudagoGraphNeighbors
func cudagoGraphNeighbors(id, node C.uint64_t, others *C.uint64_t, added, removed, backward C.int, st *C.cudago_status) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		var edges []graph.Edge
		for _, other := range unsafe.Slice(others, added+removed) {
			from, to := other, node
			if backward != 0 {
				from, to = to, from
			}
			e, err := g.edge(from, to)
			if err != nil {
				return err
			}
			edges = append(edges, e)
		}
		return g.ChangeEdges(edges[:added], edges[added:])
	})
}

func (g *pyGraph) edge(from, to C.uint64_t) (e graph.Edge, err error) {
	if e.From, err = g.member("start", from); err != nil {
		return e, err
	}
	e.To, err = g.member("end", to)
	return e, err
}
