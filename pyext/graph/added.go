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

// openNodes makes what C needs to add nodes to a new graph.
func (g *pyGraph) openNodes() *C.cudago_nodes {
	g.block = C.cudago_nodes_new()
	if g.block != nil {
		g.block.id, g.block.h = C.uint64_t(g.id), C.uintptr_t(g.Handle())
	}
	return g.block
}

// settleBatch is how many nodes share their memory: it is free once all of them
// are gone.
const settleBatch = 256

// settle enters the nodes that C has added. It needs the GIL.
func (g *pyGraph) settle() {
	s := g.block
	if s == nil || s.n_added == 0 {
		return
	}
	added, uses := unsafe.Slice(s.added, int(s.n_added)), unsafe.Slice(s.uses, int(s.n_uses))
	handles := unsafe.Slice(s.handles, int(s.n))[int(s.n-s.n_added):]
	for len(added) > 0 {
		n := min(len(added), settleBatch)
		g.nodes, uses = g.adoptBatch(added[:n], handles, uses), uses[countUses(added[:n]):]
		added, handles = added[n:], handles[n:]
	}
	C.cudago_nodes_taken(s)
}

func countUses(batch []C.cudago_added) (n int) {
	for i := range batch {
		n += int(batch[i].n_uses)
	}
	return n
}

// adoptBatch enters nodes whose handles and operands come first among those
// given.
func (g *pyGraph) adoptBatch(batch []C.cudago_added, handles []C.uintptr_t, uses []C.cudago_added_use) []*graph.Node {
	count := countUses(batch)
	held, own := make([]graph.Operand, count), make([]pyRef, count)
	list := make([]graph.AddedKernel, len(batch))
	at := 0
	for i := range batch {
		a := &batch[i]
		n := int(a.n_uses)
		for k := at; k < at+n; k++ {
			own[k] = pyRef{object: uintptr(unsafe.Pointer(uses[k].object)), visible: 1} // C shows it to the collector already
			held[k] = graph.Operand{
				Name: roleName(int(uses[k].role)), Object: &own[k], NBytes: sizeOf(&uses[k]), Reason: reasons[C.REASON_KERNEL], Retainer: &own[k],
			}
		}
		// The record among the operands holds the kernel, so it is there. If it
		// were not, its parameters would be unknown.
		params, _ := kernelParams(a.k.id, (*C.cudago_shape)(unsafe.Pointer(&a.config.grid)), nil)
		list[i] = graph.AddedKernel{
			Handle: cuda.NodeHandle(handles[i]), After: int(a.after), Params: params, Operands: held[at : at+n : at+n],
		}
		at += n
	}
	return g.Adopt(g.nodes, list)
}

// sizeOf returns the size of the memory that a node uses; 0 of its record.
func sizeOf(use *C.cudago_added_use) uint64 {
	if use.role == C.ROLE_KERNEL {
		return 0
	}
	return uint64((*C.OperandObject)(unsafe.Pointer(use.object)).nbytes)
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
