// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/kernel"
)

// A node whose parameters can be changed: of a graph, or of an executable.
type updatable interface {
	fmt.Stringer
	Kind() cuda.NodeType
	Params() any
	Retained() []graph.Retained
	Object(operand string) any
	Event() *cuda.Event
	UpdateMemcpy(p cuda.MemcpyParams, operands []graph.Operand) error
	UpdateMemset(p cuda.MemsetParams, operands []graph.Operand) error
	UpdateMemOp(p cuda.MemOpParams, operands []graph.Operand) error
	UpdateSemaphore(p cuda.SemaphoreParams, operands []graph.Operand) error
	UpdateKernel(p cuda.KernelNodeParams, operands []graph.Operand) error
	UpdateHost(p cuda.HostParams, operands []graph.Operand) error
	UpdateEvent(e *cuda.Event, operands []graph.Operand) error
}

// update changes a node's parameters. It takes over the operands even if it
// fails. Operands of the old version that the new one does not name are kept.
func update(id, node C.uint64_t, list []graph.Operand, st *C.cudago_status, do func(updatable, []graph.Operand) error) {
	guard(st, func() error {
		n, of, err := updatableNode(id, node)
		if err != nil {
			releaseOperands(list)
			return err
		}
		err = do(n, append(list, unchanged(n, list)...))
		of.apply()
		if g, missing := graphs.Get(uint64(id)); err != nil && missing == nil {
			g.noteFailure()
		}
		return err
	})
}

// updatableNode finds a node of a graph or of an executable: no two of these share
// numbers.
func updatableNode(id, node C.uint64_t) (updatable, *holder, error) {
	g, err := graphs.Get(uint64(id))
	if err != nil {
		x, n, err := execNode(id, node)
		if err != nil {
			return nil, nil, err
		}
		return n, &x.holder, nil
	}
	list, err := g.find(&node, 1)
	if err != nil {
		return nil, nil, err
	}
	return list[0], &g.outermost().holder, nil
}

func execNode(id, node C.uint64_t) (*pyExec, *graph.ExecNode, error) {
	x, err := execs.Get(uint64(id))
	if err != nil {
		return nil, nil, err
	}
	n := x.node(uint64(node))
	if n == nil {
		return nil, nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "node", Text: "is not one of the graph that was instantiated"}
	}
	return x, n, nil
}

// unchanged returns new references to the operands of a memcpy node that an
// update does not replace. Other nodes are always updated as a whole.
func unchanged(n updatable, list []graph.Operand) []graph.Operand {
	if n.Kind() != cuda.MemcpyNode {
		return nil
	}
	given := map[string]bool{}
	for _, o := range list {
		given[o.Name] = true
	}
	var kept []graph.Operand
	for _, r := range n.Retained() {
		ref, ok := r.Object.(*pyRef)
		if !ok || given[r.Operand] {
			continue
		}
		more := ref.another()
		kept = append(kept, graph.Operand{Name: r.Operand, Object: more, NBytes: r.NBytes, Reason: r.Reason, Retainer: more})
	}
	return kept
}

//export cudagoUpdateMemcpy
func cudagoUpdateMemcpy(id, node C.uint64_t, hasDst C.int, dst C.uint64_t, dstHost C.int32_t, dstSize C.uint64_t,
	hasSrc C.int, src C.uint64_t, srcHost C.int32_t, srcSize C.uint64_t, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	update(id, node, operands(refs, n), st, func(e updatable, list []graph.Operand) error {
		p, ok := e.Params().(cuda.MemcpyParams)
		if !ok {
			return e.UpdateMemcpy(cuda.MemcpyParams{}, list) // its error says what the node is
		}
		_, isExec := e.(*graph.ExecNode)
		if p.HasArray() {
			releaseOperands(list)
			text := fmt.Sprintf("%v copies an array, and cannot be given other memory: remove it, and add another node", e)
			return &cuda.ArgumentError{Kind: cuda.WrongValue, Text: text}
		}
		if hasDst != 0 && hasSrc != 0 && p.Box.IsRow() && dstSize == srcSize {
			p.Size, p.Box = uint64(dstSize), cuda.Box{}
		}
		for _, g := range []struct {
			given bool
			name  string
			size  uint64
		}{{hasDst != 0, "dst", uint64(dstSize)}, {hasSrc != 0, "src", uint64(srcSize)}} {
			if g.given && g.size != p.Size {
				releaseOperands(list)
				return &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: g.name,
					Text: fmt.Sprintf("must have the %d bytes that the node copies, got %d", p.Size, g.size)}
			}
		}
		// cuGraphExecMemcpyNodeSetParams refuses all others. Of those in a graph
		// that Python leaves to us nobody knows where the rows are.
		if !p.Box.IsRow() {
			releaseOperands(list)
			text := fmt.Sprintf("%v copies rows with gaps between them, and the driver can only update copies without: build another graph", e)
			if !isExec {
				text = fmt.Sprintf("%v copies rows with gaps between them, of memory that another library named: remove it, and add another node", e)
			}
			return &cuda.ArgumentError{Kind: cuda.WrongValue, Text: text}
		}
		for _, name := range []string{"dst", "src"} {
			if err := sameKind(e, name, list); isExec && err != nil {
				releaseOperands(list)
				return err
			}
		}
		// In an executable a side that was not made as host memory stays unified:
		// that is how the driver recorded what was captured, and it accepts host
		// memory there too.
		if hasDst != 0 {
			p.Dst, p.DstHost = uint64(dst), (p.DstHost || !isExec) && dstHost != 0
		}
		if hasSrc != 0 {
			p.Src, p.SrcHost = uint64(src), (p.SrcHost || !isExec) && srcHost != 0
		}
		return e.UpdateMemcpy(p, list)
	})
}

// cudagoUpdateBox updates a copy in a graph, all of it.
//
//export cudagoUpdateBox
func cudagoUpdateBox(id, node, dst, src C.uint64_t, dstSide, srcSide C.int32_t, box *C.cudago_box, refs *C.cudago_ref, st *C.cudago_status) {
	p := kernel.BoxParams(uint64(dst), uint64(src), int32(dstSide), int32(srcSide), unsafe.Pointer(box))
	if p.Box.IsRow() {
		p.Box = cuda.Box{}
	}
	update(id, node, operands(refs, 2), st, func(e updatable, list []graph.Operand) error { return e.UpdateMemcpy(p, list) })
}

// sameKind returns why one side of a copy in an executable cannot become the
// memory that it is given, or nil. The driver refuses memory of the host, of a
// device and managed memory in each other's place without a word. It takes the
// host's in that of managed memory, but what it copies then is not there: seen on
// an H200, driver 580.159.
func sameKind(e updatable, name string, list []graph.Operand) error {
	was, ok := e.Object(name).(*pyRef)
	at := slices.IndexFunc(list, func(o graph.Operand) bool { return o.Name == name })
	if !ok || at < 0 {
		return nil
	}
	is, ok := list[at].Object.(*pyRef)
	if !ok || placeOf(was) == placeOf(is) {
		return nil
	}
	text := fmt.Sprintf("of %v must stay %s, got %s: update the node of the graph, and instantiate again", e, kindOf(was), kindOf(is))
	return &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: name, Text: text}
}

func placeOf(ref *pyRef) C.enum_cudago_place_of {
	return C.cudago_operand_place(C.cudago_operand_at(C.uintptr_t(ref.object)))
}

// kindOf says in words which memory an Operand is.
func kindOf(ref *pyRef) string {
	kind := C.GoString(C.cudago_operand_kind(C.cudago_operand_at(C.uintptr_t(ref.object))))
	if kind == "host" {
		kind = "pageable host"
	}
	return kind + " memory"
}

//export cudagoUpdateMemset
func cudagoUpdateMemset(id, node, dst C.uint64_t, value, width C.uint32_t, count C.uint64_t, ref *C.cudago_ref, st *C.cudago_status) {
	p := cuda.MemsetParams{Dst: uint64(dst), Value: uint32(value), ElementSize: uint32(width), Count: uint64(count)}
	update(id, node, operands(ref, 1), st, func(e updatable, list []graph.Operand) error { return e.UpdateMemset(p, list) })
}

//export cudagoUpdateMemOp
func cudagoUpdateMemOp(id, node, at C.uint64_t, m *C.cudago_memop, ref *C.cudago_ref, st *C.cudago_status) {
	p := kernel.MemOpParams(uint64(at), unsafe.Pointer(m))
	update(id, node, operands(ref, 1), st, func(e updatable, list []graph.Operand) error { return e.UpdateMemOp(p, list) })
}

//export cudagoUpdateKernel
func cudagoUpdateKernel(id, node, kernel C.uint64_t, shape *C.cudago_shape, params *unsafe.Pointer,
	refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	update(id, node, operands(refs, n), st, func(e updatable, list []graph.Operand) error {
		p, err := kernelParams(kernel, shape, params)
		if err != nil {
			releaseOperands(list)
			return err
		}
		return e.UpdateKernel(p, list)
	})
}

//export cudagoUpdateHost
func cudagoUpdateHost(id, node C.uint64_t, fn, data C.uintptr_t, ref *C.cudago_ref, st *C.cudago_status) {
	p := cuda.HostParams{Fn: uintptr(fn), UserData: uintptr(data)}
	update(id, node, operands(ref, 1), st, func(e updatable, list []graph.Operand) error { return e.UpdateHost(p, list) })
}

// cudagoExecUpdate updates an executable as a whole.
//
//export cudagoExecUpdate
func cudagoExecUpdate(id, graph C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		x, err := execs.Get(uint64(id))
		if err != nil {
			return err
		}
		g, err := graphs.Get(uint64(graph))
		if err != nil {
			return err
		}
		err = x.Update(g.Graph)
		x.holder.apply()
		return err
	})
}

//export cudagoExecEnable
func cudagoExecEnable(id, node C.uint64_t, enabled C.int, st *C.cudago_status) (was C.int) {
	guard(st, func() error {
		_, n, err := execNode(id, node)
		if err != nil {
			return err
		}
		before, err := n.SetEnabled(enabled != 0)
		was = border.Bool[C.int](before)
		return err
	})
	return was
}
