// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include <stdlib.h>
#include "graph.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// pyGraph is the graph behind a Python Graph.
type pyGraph struct {
	*graph.Graph
	holder holder

	id    uint64          // immutable; the upper half of its nodes' numbers
	block *C.cudago_nodes // nil: all nodes are added here; guarded by the GIL
	left  *C.cudago_nodes // immutable but for cudagoCaptureAdopt, which makes it the block; see recorder.Leave
	nodes []*graph.Node   // guarded by the GIL; by index, nil once removed
	gone  int             // guarded by the GIL; how many are nil

	// root is the graph that a body of a conditional node is in, which also
	// keeps the bodies and conditions. Nil for other graphs.
	root       *pyGraph                // immutable
	bodies     map[*graph.Graph]uint64 // guarded by the GIL; the handles of bodies
	conditions []*graph.Condition      // guarded by the GIL
}

// outermost is the graph that g is in, or g.
func (g *pyGraph) outermost() *pyGraph {
	if g.root != nil {
		return g.root
	}
	return g
}

var graphs = graphTable{border.NewTable[*pyGraph]("graph")}

func newPyGraph() *pyGraph { return &pyGraph{id: border.NextID()} }

// adopt numbers the nodes of a graph that was not built through add.
func (g *pyGraph) adopt(of *graph.Graph) {
	g.Graph = of
	g.nodes = of.Nodes()
}

// number is Python's number for the i-th node. No two graphs share numbers.
func (g *pyGraph) number(i int) uint64 { return g.id<<32 | uint64(i) }

// find returns the nodes with the given numbers.
func (g *pyGraph) find(numbers *C.uint64_t, n C.int) ([]*graph.Node, error) {
	list := make([]*graph.Node, int(n))
	for i, number := range unsafe.Slice(numbers, int(n)) {
		var err error
		if list[i], err = g.member("dependency", number); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// member returns the node with a number, which is what the argument is.
func (g *pyGraph) member(arg string, number C.uint64_t) (*graph.Node, error) {
	index := uint64(uint32(number))
	if uint64(number)>>32 != g.id || index >= uint64(len(g.nodes)) {
		return nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: arg, Text: "must be of this graph, and is a node of another graph"}
	}
	if n := g.nodes[index]; n != nil {
		return n, nil
	}
	return nil, &graph.RemovedError{What: "the node"}
}

//export cudagoGraphNew
func cudagoGraphNew(ordinal C.int32_t, held **C.cudago_held, nodes **C.cudago_nodes, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		g := newPyGraph()
		if g.Graph, err = graph.New(c, graph.Options{OnBundle: g.holder.tell, Reaper: border.Reaper}); err != nil {
			return err
		}
		*held, *nodes = g.holder.open(g.EachHeld), g.openBlock(C.cudago_nodes_new())
		id = C.uint64_t(graphs.Put(g))
		return nil
	})
	return id
}

//export cudagoGraphClone
func cudagoGraphClone(id C.uint64_t, held **C.cudago_held, st *C.cudago_status) (clone C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		c := newPyGraph()
		of, err := g.Clone(graph.Options{OnBundle: c.holder.tell, Reaper: border.Reaper})
		if err != nil {
			return err
		}
		c.adopt(of)
		*held = c.holder.open(c.EachHeld)
		clone = C.uint64_t(graphs.Put(c))
		return nil
	})
	return clone
}

//export cudagoGraphClose
func cudagoGraphClose(id C.uint64_t) {
	g, ok := graphs.Take(uint64(id))
	if !ok || g.root != nil { // a body goes with its graph
		return
	}
	for _, body := range g.bodies {
		graphs.Take(body)
	}
	if err := border.Contained(g.Close); err != nil {
		border.ReportAside(err)
	}
	g.holder.end()
	g.dropBlock()
}

// cudagoCloseGraphs closes what Python left open at exit: executables, then
// graphs. It runs with the GIL; launches in flight are left to the reaper.
//
//export cudagoCloseGraphs
func cudagoCloseGraphs() {
	for _, id := range execs.IDs() {
		cudagoExecClose(C.uint64_t(id))
	}
	for _, id := range graphs.IDs() {
		cudagoGraphClose(C.uint64_t(id))
	}
}
