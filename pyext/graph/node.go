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
	"github.com/cudago/cudago/pyext/kernel"
)

// add adds a node with the operands that C passes in, which it takes over even
// if it fails.
func add(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, list []graph.Operand,
	st *C.cudago_status, make func(*pyGraph, graph.NodeOptions) (*graph.Node, error)) (node C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		var nodes []*graph.Node
		if err == nil {
			nodes, err = g.find(deps, n)
		}
		if err != nil {
			releaseOperands(list)
			return err
		}
		added, err := make(g, graph.NodeOptions{Name: C.GoStringN(name, nameLen), Deps: nodes, Operands: list, Site: site()})
		g.outermost().holder.apply()
		if err != nil {
			g.noteFailure()
			return err
		}
		g.nodes = append(g.nodes, added)
		g.note(added)
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

//export cudagoGraphBox
func cudagoGraphBox(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, dst, src C.uint64_t,
	dstSide, srcSide C.int32_t, box *C.cudago_box, refs *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	p := kernel.BoxParams(uint64(dst), uint64(src), int32(dstSide), int32(srcSide), unsafe.Pointer(box))
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

//export cudagoGraphMemOp
func cudagoGraphMemOp(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, at C.uint64_t,
	m *C.cudago_memop, ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	p := kernel.MemOpParams(uint64(at), unsafe.Pointer(m))
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		return g.MemOp(p, o)
	})
}

func kernelParams(number C.uint64_t, shape *C.cudago_shape, params *unsafe.Pointer) (cuda.KernelNodeParams, error) {
	k, err := kernel.Kernels.Get(uint64(number))
	c := cuda.LaunchConfig{
		SharedMemory: uint32(shape.shared_memory), Cooperative: shape.cooperative != 0, Programmatic: shape.programmatic != 0,
	}
	for i := range 3 {
		c.Grid[i], c.Block[i], c.Cluster[i] = uint32(shape.grid[i]), uint32(shape.block[i]), uint32(shape.cluster[i])
	}
	if shape.has_priority != 0 {
		priority := int(shape.priority)
		c.Priority = &priority
	}
	return cuda.KernelNodeParams{Kernel: k, Config: c, Params: unsafe.Pointer(params)}, err
}

//export cudagoGraphKernel
func cudagoGraphKernel(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, number C.uint64_t,
	shape *C.cudago_shape, params *unsafe.Pointer, refs *C.cudago_ref, nrefs C.int, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(refs, nrefs), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		p, err := kernelParams(number, shape, params)
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
func cudagoGraphChild(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, child C.uint64_t, move C.int, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		c, err := graphs.Get(uint64(child))
		if err != nil {
			return nil, err
		}
		if move != 0 {
			return g.Move(c.Graph, o)
		}
		return g.Child(c.Graph, o)
	})
}

//export cudagoGraphChildOf
func cudagoGraphChildOf(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, exec, node C.uint64_t, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, nil, st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		_, of, err := execNode(exec, node)
		if err != nil {
			return nil, err
		}
		return g.ChildOf(of, o)
	})
}

//export cudagoGraphEvent
func cudagoGraphEvent(id C.uint64_t, deps *C.uint64_t, n C.int, name *C.char, nameLen C.int, event C.uint64_t, record C.int,
	fromID, fromNode C.uint64_t, ref *C.cudago_ref, st *C.cudago_status) C.uint64_t {
	return add(id, deps, n, name, nameLen, operands(ref, 1), st, func(g *pyGraph, o graph.NodeOptions) (*graph.Node, error) {
		e, err := eventOf(uint64(event), fromID, fromNode)
		if err != nil {
			releaseOperands(o.Operands)
			return nil, err
		}
		o.Again = fromID != 0
		if record != 0 {
			return g.EventRecord(e, o)
		}
		return g.EventWait(e, o)
	})
}

func nodeOf(id, node C.uint64_t) (*graph.Node, error) {
	g, err := graphs.Get(uint64(id))
	if err != nil {
		return nil, err
	}
	list, err := g.find(&node, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}
