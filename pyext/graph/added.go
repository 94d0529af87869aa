// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"slices"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// A graphTable returns graphs with all their nodes, also those that C has added
// since the last call.
type graphTable struct {
	*border.Table[*pyGraph]
}

// Get needs the GIL.
func (t graphTable) Get(id uint64) (*pyGraph, error) {
	border.NeedsGIL()
	g, err := t.Table.Get(id)
	if err != nil {
		return nil, err
	}
	g.outermost().settle()
	return g, nil
}

// Unsettled returns a graph as it was at the last Get.
func (t graphTable) Unsettled(id uint64) (*pyGraph, error) { return t.Table.Get(id) }

// openBlock lets C add nodes to g, behind those that are in the block. It may be
// nil.
func (g *pyGraph) openBlock(block *C.cudago_nodes) *C.cudago_nodes {
	if block != nil {
		block.id, block.h = C.uint64_t(g.id), C.uintptr_t(g.Handle())
	}
	g.block = block
	return block
}

// settleBatch is how many nodes share their memory: it is free once all of them
// are gone.
const settleBatch = 256

// readAdded returns the nodes that C has added since the last call. visible is how
// many wrappers show what they use to the collector.
func readAdded(s *C.cudago_nodes, visible int) []graph.Added {
	added, uses := unsafe.Slice(s.added, int(s.n_added)), unsafe.Slice(s.uses, int(s.n_uses))
	handles := unsafe.Slice(s.handles, int(s.n))[int(s.n-s.n_added):]
	list := make([]graph.Added, len(added))
	for at := 0; at < len(added); at += settleBatch {
		end := min(at+settleBatch, len(added))
		uses = readBatch(list[at:end], added[at:end], handles[at:end], uses, visible)
	}
	return list
}

// settle enters the nodes that C has added. It needs the GIL.
func (g *pyGraph) settle() {
	s := g.block
	if s == nil || s.n_added == 0 {
		return
	}
	for batch := range slices.Chunk(readAdded(s, 1), settleBatch) {
		g.nodes = g.Adopt(g.nodes, batch)
	}
	C.cudago_nodes_taken(s, g.holder.list)
}

// readBatch reads nodes whose operands come first in uses, and returns the rest
// of those.
func readBatch(list []graph.Added, batch []C.cudago_added, handles []C.uintptr_t, uses []*C.PyObject, visible int) []*C.PyObject {
	count := 0
	for i := range batch {
		count += int(batch[i].n_uses)
	}
	held, own := make([]graph.Operand, count), make([]pyRef, count)
	for i := range held {
		own[i] = pyRef{object: uintptr(unsafe.Pointer(uses[i])), visible: visible}
		held[i] = graph.Operand{Object: &own[i], Retainer: &own[i]}
	}
	for i := range batch {
		n := int(batch[i].n_uses)
		list[i] = graph.Added{Handle: cuda.NodeHandle(handles[i]), After: int(batch[i].after), Operands: held[:n:n], Site: uint32(batch[i].site)}
		switch a := &batch[i]; {
		case a.config == nil:
			describeCopy(&list[i], uses[:n], a.unified != 0)
		case i > 0 && a.config == batch[i-1].config && a.k == batch[i-1].k:
			describeKernel(&list[i], uses[:n], list[i-1].Params)
		default:
			describeKernel(&list[i], uses[:n], paramsOf(a))
		}
		held, uses = held[n:], uses[n:]
	}
	return uses
}

func operandOf(use *C.PyObject) *C.OperandObject { return (*C.OperandObject)(unsafe.Pointer(use)) }

// describeKernel says what a kernel node uses: memory, and last its record.
func describeKernel(n *graph.Added, uses []*C.PyObject, params any) {
	n.Kind, n.Params = cuda.KernelNode, params
	last := len(uses) - 1
	for i, use := range uses[:last] {
		o := &n.Operands[i]
		o.Name, o.NBytes = parameterNames[operandOf(use).index], uint64(operandOf(use).nbytes)
		o.Reason = reasons[C.REASON_KERNEL]
	}
	n.Operands[last].Name, n.Operands[last].Reason = roles[C.ROLE_KERNEL], reasons[C.REASON_KERNEL]
}

// paramsOf returns a kernel node's parameters. The record holds the kernel, so it
// is there. If it were not, they would be unknown.
func paramsOf(a *C.cudago_added) any {
	p, err := kernelParams(a.k.id, (*C.cudago_shape)(unsafe.Pointer(&a.config.grid)), nil)
	if err != nil {
		return nil
	}
	return p
}

// describeCopy says what a copy uses: its source and its destination.
func describeCopy(n *graph.Added, uses []*C.PyObject, unified bool) {
	n.Kind = cuda.MemcpyNode
	for i, use := range uses {
		o := &n.Operands[i]
		o.Name, o.NBytes, o.Reason = roles[int(C.ROLE_SRC)+i], uint64(operandOf(use).nbytes), reasons[C.REASON_MEMCPY]
	}
	src, dst := operandOf(uses[0]), operandOf(uses[1])
	n.Params = cuda.MemcpyParams{
		Dst: uint64(dst.address), Src: uint64(src.address), DstHost: dst.host != 0 && !unified, SrcHost: src.host != 0 && !unified, Size: uint64(dst.nbytes),
	}
}

// dropBlock releases what nodes use that C has added, and that nobody has asked
// for: nothing but the graph, which is closed, has held it.
func (g *pyGraph) dropBlock() {
	s := g.block
	if s == nil {
		return
	}
	border.Drops.Put(unsafe.Slice((*uintptr)(unsafe.Pointer(s.uses)), int(s.n_uses))...)
	C.cudago_nodes_free(s)
	g.block = nil
}

// note tells C of a node that was added here.
func (g *pyGraph) note(n *graph.Node) {
	s := g.block
	if s == nil || s.through_go != 0 {
		return
	}
	if s.n == s.cap && C.cudago_nodes_reserve(s, 0) != 0 {
		s.through_go = 1
		return
	}
	unsafe.Slice(s.handles, int(s.cap))[s.n] = C.uintptr_t(n.Handle())
	s.n++
}

// noteRemoved tells C that a node is gone.
func (g *pyGraph) noteRemoved(index int) {
	if s := g.block; s != nil && index < int(s.n) {
		unsafe.Slice(s.handles, int(s.n))[index] = 0
	}
}

// noteFailure keeps C from adding nodes to a graph that a failed call has
// spoiled.
func (g *pyGraph) noteFailure() {
	if root := g.outermost(); root.block != nil && root.IsSpoiled() {
		root.block.through_go = 1
	}
}

// cudagoGraphSettle is for calls that release the GIL before they come to Go.
//
//export cudagoGraphSettle
func cudagoGraphSettle(id C.uint64_t) {
	err := border.Contained(func() error {
		_, err := graphs.Get(uint64(id))
		return err
	})
	if err != nil {
		border.ReportAside(err)
	}
}
