// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// Answers to what Python asks about graphs and executables: tables of numbers
// and names. Their columns are listed at the methods in ask.c.

// An answer is an Answer about graphs.
type answer struct{ border.Answer }

func (a *answer) give(to *C.cudago_answer) { a.Give(unsafe.Pointer(to)) }

// ask answers a question about a graph.
func ask(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status, tell func(*pyGraph, *answer) error) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		var a answer
		if err := tell(g, &a); err != nil {
			return err
		}
		a.give(to)
		return nil
	})
}

func (g *pyGraph) tellNode(a *answer, n *graph.Node) {
	a.Row([]uint64{g.number(n.Index()), uint64(n.BodyCount())}, n.Name(), n.Kind().String())
}

//export cudagoGraphNodes
func cudagoGraphNodes(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		for _, n := range g.nodes {
			if n != nil {
				g.tellNode(a, n)
			}
		}
		return nil
	})
}

//export cudagoGraphNode
func cudagoGraphNode(id, node C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		list, err := g.find(&node, 1)
		if err == nil {
			g.tellNode(a, list[0])
		}
		return err
	})
}

//export cudagoGraphCheck
func cudagoGraphCheck(id, node C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		_, err := nodeOf(id, node)
		return err
	})
}

//export cudagoGraphCount
func cudagoGraphCount(id C.uint64_t, st *C.cudago_status) (n C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err == nil {
			n = C.uint64_t(len(g.nodes) - g.gone)
		}
		return err
	})
	return n
}

//export cudagoGraphHasMemory
func cudagoGraphHasMemory(id C.uint64_t, st *C.cudago_status) (has C.int) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err == nil {
			has = border.Bool[C.int](g.HasMemory())
		}
		return err
	})
	return has
}

// cudagoGraphFind answers with no row if no node has the name.
//
//export cudagoGraphFind
func cudagoGraphFind(id C.uint64_t, name *C.char, nameLen C.int, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		if n := g.Node(C.GoStringN(name, nameLen)); n != nil {
			g.tellNode(a, n)
		}
		return nil
	})
}

//export cudagoGraphEdges
func cudagoGraphEdges(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		for _, e := range g.Edges() {
			a.Row([]uint64{g.number(e.From.Index()), g.number(e.To.Index())})
		}
		return nil
	})
}

// cudagoGraphEdgeData answers with the edges that do not wait for the completion
// of a node, and with what they wait for.
//
//export cudagoGraphEdgeData
func cudagoGraphEdgeData(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		for _, e := range g.Edges() {
			if e.Data != (cuda.EdgeData{}) {
				a.Row([]uint64{g.number(e.From.Index()), g.number(e.To.Index())}, e.Data.String())
			}
		}
		return nil
	})
}

// cudagoGraphNext answers with the nodes that a node waits for, or with the
// nodes that wait for it.
//
//export cudagoGraphNext
func cudagoGraphNext(id, node C.uint64_t, dependents C.int, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		list, err := g.find(&node, 1)
		if err != nil {
			return err
		}
		next := list[0].Dependencies
		if dependents != 0 {
			next = list[0].Dependents
		}
		for _, n := range next() {
			a.Row([]uint64{g.number(n.Index())})
		}
		return nil
	})
}

// cudagoGraphHasEdge reports whether a node waits for another.
//
//export cudagoGraphHasEdge
func cudagoGraphHasEdge(id, from, to C.uint64_t, st *C.cudago_status) (has C.int) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		e, err := g.edge(from, to)
		if err == nil {
			has = border.Bool[C.int](e.To.WaitsFor(e.From))
		}
		return err
	})
	return has
}

// cudagoGraphRetained answers with the addresses of objects, which are valid as
// long as the caller keeps the GIL. It is about one node, or about all if node
// is 0.
//
//export cudagoGraphRetained
func cudagoGraphRetained(id, node C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		if node == 0 {
			a.retained(g.Retained())
			return nil
		}
		list, err := g.find(&node, 1)
		if err == nil {
			a.retained(list[0].Retained())
		}
		return err
	})
}

// cudagoGraphParams answers with the numbers among a node's parameters, as
// params lists them, and with what the node retains, as in
// cudagoGraphRetained. There are no numbers where the parameters are unknown.
//
//export cudagoGraphParams
func cudagoGraphParams(id, node C.uint64_t, to, held *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		list, err := g.find(&node, 1)
		if err == nil {
			n := list[0]
			a.params(n.Kind(), n.Params(), len(n.Bodies()))
			giveRetained(held, n.Retained(), n.Name())
		}
		return err
	})
}

// cudagoExecParams is cudagoGraphParams for an executable.
//
//export cudagoExecParams
func cudagoExecParams(id, node C.uint64_t, to, held *C.cudago_answer, st *C.cudago_status) {
	guard(st, func() error {
		_, n, err := execNode(id, node)
		if err != nil {
			return err
		}
		var a answer
		a.params(n.Kind(), n.Params(), len(n.Source().Bodies()))
		a.give(to)
		giveRetained(held, n.Retained(), n.Name())
		return nil
	})
}

// cudagoRecord returns the record of a kernel node of a graph or an executable,
// valid as long as the caller keeps the GIL; 0 if there is none.
//
//export cudagoRecord
func cudagoRecord(id, node C.uint64_t, st *C.cudago_status) (record C.uintptr_t) {
	guard(st, func() error {
		n, _, err := updatableNode(id, node)
		if err != nil {
			return err
		}
		if ref, ok := n.Object(roles[C.ROLE_KERNEL]).(*pyRef); ok {
			record = C.uintptr_t(ref.object)
		}
		return nil
	})
	return record
}

// giveRetained gives what a node retains itself, without the graphs inside it.
func giveRetained(to *C.cudago_answer, list []graph.Retained, name string) {
	var a answer
	a.retained(slices.DeleteFunc(list, func(r graph.Retained) bool { return r.Node != name }))
	a.give(to)
}

// params adds one row of the numbers among parameters, or none if they are
// unknown.
func (a *answer) params(kind cuda.NodeType, params any, bodies int) {
	switch p := params.(type) {
	case cuda.KernelNodeParams, cuda.HostParams:
		a.Row([]uint64{0}, kind.String())
	case cuda.MemcpyParams:
		b := p.Box // its rows are 0 where the copy is in one piece
		a.Row([]uint64{p.Size, b.Rows, b.Slices, b.Dst.Row, b.Dst.Rows, b.Src.Row, b.Src.Rows}, kind.String())
	case cuda.MemsetParams:
		a.Row([]uint64{uint64(p.Value), uint64(p.ElementSize), p.Count}, kind.String())
	case cuda.MemOpParams:
		a.Row([]uint64{p.Value, uint64(p.Width), uint64(border.Bool[int32](p.IsWait)), uint64(p.Condition)}, kind.String())
	case cuda.SemaphoreParams:
		a.Row([]uint64{p.Value, uint64(border.Bool[int32](p.Semaphore.IsTimeline()))}, kind.String())
	case graph.AllocParams:
		a.Row([]uint64{p.Ptr, p.Size, uint64(p.Ordinal), uint64(p.Peers)}, kind.String())
	case graph.FreeParams:
		a.Row([]uint64{p.Ptr}, kind.String())
	case graph.ConditionalParams:
		first, assign := p.Condition.Default()
		numbers := []uint64{uint64(bodies), uint64(p.Condition.Handle())}
		if assign {
			numbers = append(numbers, uint64(first))
		}
		a.Row(numbers, kind.String(), p.Type.String())
	default:
		if kind == cuda.EventRecordNode || kind == cuda.EventWaitNode || kind == cuda.ChildGraphNode {
			a.Row([]uint64{0}, kind.String())
		}
	}
}

func (a *answer) retained(list []graph.Retained) {
	for _, r := range list {
		if ref, ok := r.Object.(*pyRef); ok { // else it is not a Python object
			a.Row([]uint64{uint64(ref.object), r.NBytes}, r.Node, r.Operand, r.Reason)
		}
	}
}

//export cudagoGraphDOT
func cudagoGraphDOT(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	ask(id, to, st, func(g *pyGraph, a *answer) error {
		a.Row(nil, g.DOT(siteText))
		return nil
	})
}

// A numbered node of an executable has the number of the graph's node that it
// was made from.
type numbered struct {
	number uint64
	*graph.ExecNode
}

// numberNodes numbers the nodes of x, which was made from g. It needs the GIL.
func (x *pyExec) numberNodes(g *pyGraph) {
	numbers := g.numbers()
	for _, e := range x.Nodes() {
		x.nodes = append(x.nodes, numbered{numbers[e.Source()], e})
	}
	slices.SortFunc(x.nodes, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	x.byName = make(map[string]int, len(x.nodes))
	for i, n := range x.nodes {
		x.enterName(n.Name(), i)
	}
}

// enterName notes the name of node i. Two nodes can be "a/b", one of them in a
// body of "a".
func (x *pyExec) enterName(name string, i int) {
	first, taken := x.byName[name]
	if !taken {
		x.byName[name] = i
		return
	}
	if x.same == nil {
		x.same = make(map[string][]int)
	}
	if x.same[name] == nil {
		x.same[name] = []int{first}
	}
	x.same[name] = append(x.same[name], i)
}

// numbers returns the numbers of all nodes, including those of bodies.
func (g *pyGraph) numbers() map[*graph.Node]uint64 {
	m := make(map[*graph.Node]uint64, len(g.nodes))
	g.addNumbers(m)
	return m
}

func (g *pyGraph) addNumbers(m map[*graph.Node]uint64) {
	for i, n := range g.nodes {
		if n == nil {
			continue
		}
		m[n] = g.number(i)
		if n.BodyCount() == 0 {
			continue
		}
		for _, of := range n.Bodies() {
			if b, err := graphs.Unsettled(g.outermost().body(of)); err == nil {
				b.addNumbers(m)
			}
		}
	}
}

// node returns the node that has the number of a graph's node, or nil.
func (x *pyExec) node(number uint64) *graph.ExecNode {
	i, ok := slices.BinarySearchFunc(x.nodes, number, func(n numbered, number uint64) int {
		return cmp.Compare(n.number, number)
	})
	if !ok {
		return nil
	}
	return x.nodes[i].ExecNode
}

// askExec answers a question about an executable, of what updates leave as it
// is.
func askExec(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status, tell func(*pyExec, *answer)) {
	guard(st, func() error {
		x, err := execs.Unsettled(uint64(id))
		if err != nil {
			return err
		}
		var a answer
		tell(x, &a)
		a.give(to)
		return nil
	})
}

func (a *answer) execNode(n numbered) { a.Row([]uint64{n.number}, n.Name(), n.Kind().String()) }

//export cudagoExecNodes
func cudagoExecNodes(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	askExec(id, to, st, func(x *pyExec, a *answer) {
		for _, n := range x.nodes {
			a.execNode(n)
		}
	})
}

// cudagoExecEdges answers with pairs of numbers, of which the second waits for
// the first.
//
//export cudagoExecEdges
func cudagoExecEdges(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	askExec(id, to, st, func(x *pyExec, a *answer) {
		x.eachEdge(func(from, to uint64, _ cuda.EdgeData) { a.Row([]uint64{from, to}) })
	})
}

// eachEdge visits the edges between the nodes of x, by their numbers.
func (x *pyExec) eachEdge(visit func(from, to uint64, data cuda.EdgeData)) {
	numbers := make(map[*graph.Node]uint64, len(x.nodes))
	for _, n := range x.nodes {
		numbers[n.Source()] = n.number
	}
	for _, n := range x.nodes {
		for _, e := range n.Edges() {
			visit(numbers[e.From], n.number, e.Data)
		}
	}
}

// cudagoExecEdgeData is cudagoGraphEdgeData for an executable.
//
//export cudagoExecEdgeData
func cudagoExecEdgeData(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	askExec(id, to, st, func(x *pyExec, a *answer) {
		x.eachEdge(func(from, to uint64, data cuda.EdgeData) {
			if data != (cuda.EdgeData{}) {
				a.Row([]uint64{from, to}, data.String())
			}
		})
	})
}

//export cudagoExecCount
func cudagoExecCount(id C.uint64_t, st *C.cudago_status) (n C.uint64_t) {
	guard(st, func() error {
		x, err := execs.Unsettled(uint64(id))
		if err == nil {
			n = C.uint64_t(len(x.nodes))
		}
		return err
	})
	return n
}

// cudagoExecFind answers with all nodes that have a name: several can.
//
//export cudagoExecFind
func cudagoExecFind(id C.uint64_t, name *C.char, nameLen C.int, to *C.cudago_answer, st *C.cudago_status) {
	askExec(id, to, st, func(x *pyExec, a *answer) {
		name := C.GoStringN(name, nameLen)
		if same := x.same[name]; same != nil {
			for _, i := range same {
				a.execNode(x.nodes[i])
			}
		} else if i, ok := x.byName[name]; ok {
			a.execNode(x.nodes[i])
		}
	})
}

// cudagoExecRetained is cudagoGraphRetained for an executable.
//
//export cudagoExecRetained
func cudagoExecRetained(id C.uint64_t, to *C.cudago_answer, st *C.cudago_status) {
	askExec(id, to, st, func(x *pyExec, a *answer) {
		x.settle()
		a.retained(x.Retained())
	})
}

//export cudagoExecIsEnabled
func cudagoExecIsEnabled(id, node C.uint64_t, st *C.cudago_status) (enabled C.int) {
	guard(st, func() error {
		_, n, err := execNode(id, node)
		if err != nil {
			return err
		}
		is, err := n.IsEnabled()
		enabled = border.Bool[C.int](is)
		return err
	})
	return enabled
}
