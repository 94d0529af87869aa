// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include "graph.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

//export cudagoGraphEvent
func cudagoGraphEvent(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, event C.uint64_t, record C.int,
	ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		e, err := events.get(uint64(event))
		if err != nil {
			releaseOperands(o.Operands)
			return nil, err
		}
		if record != 0 {
			return g.EventRecord(e, o)
		}
		return g.EventWait(e, o)
	})
}

//export cudagoGraphAlloc
func cudagoGraphAlloc(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, size C.uint64_t, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.Alloc(uint64(size), o)
	})
}

//export cudagoGraphFree
func cudagoGraphFree(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, ptr C.uint64_t,
	ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.Free(uint64(ptr), o)
	})
}

// memories are the holders of graphs' memory, one for each Python allocation.
var memories = newTable[graph.Retainer]("graph memory")

// cudagoGraphMemory describes what an alloc node allocates, and holds it.
//
//export cudagoGraphMemory
func cudagoGraphMemory(id, node C.uint64_t, ptr, size *C.uint64_t, st *C.cudago_status) (memory C.uint64_t) {
	guard(st, func() error {
		n, err := nodeOf(id, node)
		if err != nil {
			return err
		}
		hold, err := n.Memory()
		if err != nil {
			return err
		}
		p := n.Params().(graph.AllocParams)
		*ptr, *size = C.uint64_t(p.Ptr), C.uint64_t(p.Size)
		memory = C.uint64_t(memories.put(hold))
		return nil
	})
	return memory
}

func nodeOf(id, node C.uint64_t) (*graph.Node, error) {
	g, err := graphs.get(uint64(id))
	if err != nil {
		return nil, err
	}
	list, err := g.find(&node, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// cudagoGraphMemoryRelease: destroying the graph that the memory held may wait,
// so it is the reaper's.
//
//export cudagoGraphMemoryRelease
func cudagoGraphMemoryRelease(memory C.uint64_t) {
	if hold, ok := memories.take(uint64(memory)); ok {
		reaper.Add(once(func() error {
			hold.Release()
			return nil
		}))
	}
}

//export cudagoGraphMemoryFree
func cudagoGraphMemoryFree(stream, ptr C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := streams.get(uint64(stream))
		if err != nil {
			return err
		}
		c := s.Context()
		c.Driver().Relaxed(func() { err = c.FreeAsync(uint64(ptr), s) })
		return err
	})
}

//export cudagoGraphCondition
func cudagoGraphCondition(id C.uint64_t, first C.uint32_t, assign C.int, handle *C.uint64_t, st *C.cudago_status) (number C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.get(uint64(id))
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

// cudagoGraphBody returns the handle of a body of a conditional node, the same
// each time.
//
//export cudagoGraphBody
func cudagoGraphBody(id, node C.uint64_t, index C.int64_t, st *C.cudago_status) (body C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.get(uint64(id))
		if err != nil {
			return err
		}
		n, err := nodeOf(id, node)
		if err != nil {
			return err
		}
		list := n.Bodies()
		if index < 0 || int(index) >= len(list) {
			return &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "index", Text: "is not that of a body of " + n.String()}
		}
		body = C.uint64_t(g.outermost().body(list[index]))
		return nil
	})
	return body
}

// body returns the handle of a body in g.
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
	g.bodies[of] = graphs.put(b)
	return g.bodies[of]
}
