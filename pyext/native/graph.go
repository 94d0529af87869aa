// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include <stdlib.h>
#include "graph.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

// pyGraph is a graph that a Python Graph stands for.
type pyGraph struct {
	*graph.Graph
	holder holder

	id    uint64        // immutable; the upper half of its nodes' numbers
	nodes []*graph.Node // guarded by the GIL; in order of creation

	// root is the graph that a body of a conditional node is in; it knows its
	// bodies and conditions. Nil for other graphs.
	root       *pyGraph                // immutable
	bodies     map[*graph.Graph]uint64 // guarded by the GIL; by their handles
	conditions []*graph.Condition      // guarded by the GIL
}

// outermost is the graph that g is in, or g.
func (g *pyGraph) outermost() *pyGraph {
	if g.root != nil {
		return g.root
	}
	return g
}

var graphs = newTable[*pyGraph]("graph")

func newPyGraph() *pyGraph { return &pyGraph{id: lastID.Add(1)} }

// adopt numbers the nodes of a graph that was not built through add.
func (g *pyGraph) adopt(of *graph.Graph) {
	g.Graph = of
	g.nodes = of.Nodes()
}

// number is what Python calls the i-th node. Another graph's nodes have others.
func (g *pyGraph) number(i int) uint64 { return g.id<<32 | uint64(i) }

// find returns the nodes with the given numbers.
func (g *pyGraph) find(numbers *C.uint64_t, n C.int) ([]*graph.Node, error) {
	list := make([]*graph.Node, int(n))
	for i, number := range unsafe.Slice(numbers, int(n)) {
		index := uint64(uint32(number))
		if uint64(number)>>32 != g.id || index >= uint64(len(g.nodes)) {
			return nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "dependency", Text: "is a node of another graph"}
		}
		list[i] = g.nodes[index]
	}
	return list, nil
}

//export cudagoGraphNew
func cudagoGraphNew(ordinal C.int32_t, held **C.cudago_held, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := contextOf(ordinal)
		if err != nil {
			return err
		}
		g := newPyGraph()
		if g.Graph, err = graph.New(c, graph.Options{OnBundles: g.holder.tell, Reaper: reaper}); err != nil {
			return err
		}
		*held = g.holder.open()
		id = C.uint64_t(graphs.put(g))
		return nil
	})
	return id
}

// add adds a node with what C hands in, which is taken over in any case.
func add(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, list []graph.Operand,
	st *C.cudago_status, make func(*pyGraph, graph.NodeOptions) (*graph.Node, error)) (node C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.get(uint64(id))
		var nodes []*graph.Node
		if err == nil {
			nodes, err = g.find(deps, n)
		}
		if err != nil {
			releaseOperands(list)
			return err
		}
		added, err := make(g, graph.NodeOptions{Name: C.GoStringN(name, nameLen), Deps: nodes, Operands: list})
		g.outermost().holder.apply()
		if err != nil {
			return err
		}
		g.nodes = append(g.nodes, added)
		node = C.uint64_t(g.number(len(g.nodes) - 1))
		return nil
	})
	return node
}

//export cudagoGraphMemcpy
func cudagoGraphMemcpy(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, dst, src C.uint64_t,
	dstHost, srcHost C.int32_t, size C.uint64_t, refs *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	p := cuda.MemcpyParams{Dst: uint64(dst), Src: uint64(src), DstHost: dstHost != 0, SrcHost: srcHost != 0, Size: uint64(size)}
	return add(id, deps, n, name, nameLen, operands(refs, 2), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.Memcpy(p, o)
	})
}

//export cudagoGraphMemset
func cudagoGraphMemset(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, dst C.uint64_t,
	value, width C.uint32_t, count C.uint64_t, ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	p := cuda.MemsetParams{Dst: uint64(dst), Value: uint32(value), ElementSize: uint32(width), Count: uint64(count)}
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.Memset(p, o)
	})
}

func kernelParams(kernel C.uint64_t, grid, block *C.uint32_t, shared C.uint32_t, params *unsafe.Pointer) (cuda.KernelNodeParams, error) {
	k, err := kernels.get(uint64(kernel))
	c := cuda.LaunchConfig{SharedMemory: uint32(shared)}
	c.Grid, c.Block = *(*[3]uint32)(unsafe.Pointer(grid)), *(*[3]uint32)(unsafe.Pointer(block))
	return cuda.KernelNodeParams{Kernel: k, Config: c, Params: unsafe.Pointer(params)}, err
}

//export cudagoGraphKernel
func cudagoGraphKernel(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, kernel C.uint64_t,
	grid, block *C.uint32_t, shared C.uint32_t, params *unsafe.Pointer, refs *C.cudago_ref, nrefs C.int, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(refs, nrefs), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		p, err := kernelParams(kernel, grid, block, shared, params)
		if err != nil {
			releaseOperands(o.Operands)
			return nil, err
		}
		return g.Kernel(p, o)
	})
}

//export cudagoGraphHost
func cudagoGraphHost(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, fn, data C.uintptr_t,
	ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	p := cuda.HostParams{Fn: uintptr(fn), UserData: uintptr(data)}
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.Host(p, o)
	})
}

//export cudagoGraphEmpty
func cudagoGraphEmpty(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.Empty(o)
	})
}

//export cudagoGraphChild
func cudagoGraphChild(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, child C.uint64_t, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		c, err := graphs.get(uint64(child))
		if err != nil {
			return nil, err
		}
		return g.Child(c.Graph, o)
	})
}

//export cudagoGraphClone
func cudagoGraphClone(id C.uint64_t, held **C.cudago_held, st *C.cudago_status) (clone C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.get(uint64(id))
		if err != nil {
			return err
		}
		c := newPyGraph()
		of, err := g.Clone(graph.Options{OnBundles: c.holder.tell, Reaper: reaper})
		if err != nil {
			return err
		}
		c.adopt(of)
		*held = c.holder.open()
		clone = C.uint64_t(graphs.put(c))
		return nil
	})
	return clone
}

//export cudagoGraphClose
func cudagoGraphClose(id C.uint64_t) {
	g, ok := graphs.take(uint64(id))
	if !ok || g.root != nil { // a body goes with its graph
		return
	}
	for _, body := range g.bodies {
		graphs.take(body)
	}
	if err := contained(g.Close); err != nil {
		reportAside(err)
	}
	g.holder.end()
}

// cudagoCloseGraphs closes what Python left open at exit: executables, then
// graphs. It runs with the GIL; launches in flight are the reaper's.
//
//export cudagoCloseGraphs
func cudagoCloseGraphs() {
	for _, id := range execs.ids() {
		cudagoExecClose(C.uint64_t(id))
	}
	for _, id := range graphs.ids() {
		cudagoGraphClose(C.uint64_t(id))
	}
}
