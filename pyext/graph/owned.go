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
	"slices"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// An execTable returns executables that know all updates, also those that C has
// made since the last call.
type execTable struct {
	*border.Table[*pyExec]
}

// Get needs the GIL.
func (t execTable) Get(id uint64) (*pyExec, error) {
	border.NeedsGIL()
	x, err := t.Table.Get(id)
	if err != nil {
		return nil, err
	}
	x.settle()
	return x, nil
}

// Unsettled returns an executable as it was at the last Get.
func (t execTable) Unsettled(id uint64) (*pyExec, error) { return t.Table.Get(id) }

// cudagoExecOwn leaves a node of an executable to C, if C can update it.
//
//export cudagoExecOwn
func cudagoExecOwn(id, number C.uint64_t, w *C.cudago_owned) (owned C.int) {
	err := border.Contained(func() error {
		x, err := execs.Unsettled(uint64(id))
		if err != nil {
			return err
		}
		n := x.node(uint64(number))
		if n == nil {
			return nil // the update itself says so
		}
		lent, err := n.Lend(func(params any, list []graph.Operand) bool { return x.describe(w, params, list) })
		x.holder.apply()
		if lent {
			w.node, w.def = number, C.uintptr_t(n.Source().Handle())
			owned = 1
		}
		return err
	})
	if err != nil {
		return 0 // likewise
	}
	return owned
}

// describe tells C what a node does and holds, with holds of C's own. It
// reports false if C could not update such a node.
func (x *pyExec) describe(w *C.cudago_owned, params any, list []graph.Operand) bool {
	refs := make([]C.cudago_ref, len(list))
	for i, o := range list {
		ref, ok := o.Retainer.(*pyRef)
		if !ok || o.Memory != nil {
			return false
		}
		refs[i] = C.cudago_ref{
			object: C.uintptr_t(ref.object), nbytes: C.uint64_t(o.NBytes),
			role: C.int32_t(roleOf(o.Name)), reason: C.int32_t(slices.Index(reasons[:], o.Reason)),
		}
	}
	switch p := params.(type) {
	case cuda.MemcpyParams:
		if !p.Box.IsRow() || p.HasArray() || !hasSides(refs) {
			return false
		}
		w.is_kernel, w.dst, w.src, w.size = 0, C.uint64_t(p.Dst), C.uint64_t(p.Src), C.uint64_t(p.Size)
		w.dst_host, w.src_host = border.Bool[C.int32_t](p.DstHost), border.Bool[C.int32_t](p.SrcHost)
	case cuda.KernelNodeParams:
		if p.Config.Attributes() != "" {
			return false
		}
		w.is_kernel, w.kernel = 1, 0
	default:
		return false
	}
	w.refs, w.n = (*C.cudago_ref)(C.malloc(C.size_t(len(refs)+1)*C.sizeof_cudago_ref)), C.int32_t(len(refs))
	copy(unsafe.Slice(w.refs, len(refs)), refs)
	for i := range refs {
		C.cudago_incref(refs[i].object)
		x.holder.show(refs[i].object)
	}
	return true
}

// hasSides reports whether both sides of a copy are retained.
func hasSides(refs []C.cudago_ref) bool {
	return len(refs) == 2 && refs[0].role+refs[1].role == C.ROLE_SRC+C.ROLE_DST && refs[0].role != refs[1].role
}

func roleOf(name string) int {
	if i := slices.Index(roles[:], name); i >= 0 {
		return i
	}
	return len(roles) + slices.Index(parameterNames[:], name)
}

// settle takes the nodes back that C owns. It needs the GIL.
func (x *pyExec) settle() {
	if x.block == nil || x.block.n_owned == 0 {
		return
	}
	owned := unsafe.Slice(x.block.owned, int(x.block.n_owned))
	for i := range owned {
		x.takeBack(&owned[i])
	}
	x.block.n_owned = 0
}

func (x *pyExec) takeBack(w *C.cudago_owned) {
	list := operands(w.refs, w.n)
	for _, o := range list {
		o.Retainer.(*pyRef).visible = 1 // C shows them to the collector already
	}
	n := x.node(uint64(w.node))
	params := n.Params()
	switch {
	case w.is_kernel == 0:
		params = cuda.MemcpyParams{
			Dst: uint64(w.dst), Src: uint64(w.src), Size: uint64(w.size), DstHost: w.dst_host != 0, SrcHost: w.src_host != 0,
		}
	case w.kernel != 0:
		if p, err := kernelParams(w.kernel, &w.shape, nil); err == nil {
			params = p
		}
	}
	n.Return(params, list)
	C.free(unsafe.Pointer(w.refs))
	C.free(unsafe.Pointer(w.params))
	w.refs, w.params, w.k = nil, nil, nil
}

// cudagoExecRetire takes over what nodes that C owns no longer use, and launches
// under way may.
//
//export cudagoExecRetire
func cudagoExecRetire(id C.uint64_t, refs *C.cudago_ref, n C.int) {
	list := operands(refs, n)
	err := border.Contained(func() error {
		x, err := execs.Unsettled(uint64(id))
		if err == nil {
			x.Retire(list)
		}
		return err
	})
	if err != nil {
		border.ReportAside(err)
	}
}
