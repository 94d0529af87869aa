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
	added, refs := unsafe.Slice(s.added, int(s.n_added)), unsafe.Slice(s.refs, int(s.n_refs))
	for len(added) > 0 {
		batch := added[:min(len(added), settleBatch)]
		g.nodes, refs = g.adoptBatch(batch, refs), refs[countRefs(batch):]
		added = added[len(batch):]
	}
	C.cudago_nodes_taken(s)
}

func countRefs(batch []C.cudago_added) (n int) {
	for i := range batch {
		n += int(batch[i].n_refs)
	}
	return n
}

// adoptBatch enters nodes whose operands come first among refs.
func (g *pyGraph) adoptBatch(batch []C.cudago_added, refs []C.cudago_ref) []*graph.Node {
	held := operands(&refs[0], C.int(countRefs(batch)))
	list := make([]graph.AddedKernel, len(batch))
	for i := range batch {
		a := &batch[i]
		// The record among the operands holds the kernel, so it is there. If it
		// were not, its parameters would be unknown.
		params, _ := kernelParams(a.kernel, &a.shape, nil)
		n := int(a.n_refs)
		list[i] = graph.AddedKernel{Handle: cuda.NodeHandle(a.node), After: int(a.after), Params: params, Operands: held[:n:n]}
		held = held[n:]
		for _, o := range list[i].Operands {
			o.Retainer.(*pyRef).visible = 1 // C shows them to the collector already
		}
	}
	return g.Adopt(g.nodes, list)
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
