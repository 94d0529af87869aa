// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
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

// cudagoGraphEdge adds the edge between two nodes, with the data of that number;
// or removes it, if the number is negative.
//
//export cudagoGraphEdge
func cudagoGraphEdge(id, from, to C.uint64_t, data C.int, st *C.cudago_status) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		start, err := g.member("start", from)
		if err != nil {
			return err
		}
		end, err := g.member("end", to)
		if err != nil {
			return err
		}
		if data < 0 {
			return g.RemoveEdge(start, end)
		}
		return g.AddEdge(start, end, edgeData[data])
	})
}
