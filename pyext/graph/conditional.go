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

//export cudagoGraphCondition
func cudagoGraphCondition(id C.uint64_t, first C.uint32_t, assign C.int, handle *C.uint64_t, st *C.cudago_status) (number C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		c, err := g.Condition(uint32(first), assign != 0)
		if err != nil {
			return err
		}
		root := g.outermost()
		root.conditions = append(root.conditions, c)
		*handle, number = C.uint64_t(c.Handle()), C.uint64_t(root.number(len(root.conditions)-1))
		return nil
	})
	return number
}

//export cudagoGraphConditional
func cudagoGraphConditional(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, condition C.uint64_t,
	kind C.int, bodies C.int64_t, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		root, index := g.outermost(), uint64(uint32(condition))
		if uint64(condition)>>32 != root.id || index >= uint64(len(root.conditions)) {
			return nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "condition", Text: "must be one that this graph has made"}
		}
		return g.Conditional(root.conditions[index], cuda.ConditionalType(kind), int(bodies), o)
	})
}

// cudagoGraphBody returns the handle of a body of a conditional node, or of the
// view of a child graph node's graph, which is the same each time.
//
//export cudagoGraphBody
func cudagoGraphBody(id, node C.uint64_t, index C.int64_t, st *C.cudago_status) (body C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		n, err := nodeOf(id, node)
		if err != nil {
			return err
		}
		list := n.Bodies()
		if child := n.Child(); child != nil {
			list = append(list, child)
		}
		if index < 0 || int(index) >= len(list) {
			return &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "index", Text: "is not that of a body of " + n.String()}
		}
		body = C.uint64_t(g.outermost().body(list[index]))
		return nil
	})
	return body
}

// body returns the handle of a graph inside g.
func (g *pyGraph) body(of *graph.Graph) uint64 {
	if id, ok := g.bodies[of]; ok {
		return id
	}
	b := newPyGraph()
	b.root = g
	b.adopt(of)
	if g.bodies == nil {
		g.bodies = map[*graph.Graph]uint64{}
	}
	g.bodies[of] = graphs.Put(b)
	return g.bodies[of]
}
