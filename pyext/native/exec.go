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
	"fmt"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

// pyExec is an executable that a Python GraphExec stands for.
type pyExec struct {
	*graph.Exec
	holder holder
	block  *C.cudago_exec // until cudagoExecClose, whose caller frees it; read with the GIL

	of *pyGraph // what it is made from; until it is adopted

	// Both are made when it is adopted, and immutable then.
	nodes  []numbered     // in the order of their numbers
	byName map[string]int // in nodes
}

var execs = newTable[*pyExec]("graph executable")

// uses is graph's: where C has launched it, and up to which position. It runs
// within updates and Close, so with the GIL, while no launch is in the driver.
func (x *pyExec) uses() []graph.Use {
	u := &x.block.uses
	list := make([]graph.Use, 0, int(u.n))
	for _, use := range unsafe.Slice(C.cudago_uses_at(u), int(u.n)) {
		if l, err := lines.get(uint64(use.clock.id)); err == nil {
			list = append(list, graph.Use{Line: l.Line, Pos: uint64(use.position)})
		}
	}
	return list
}

// launches is graph's too, and runs as uses does.
func (x *pyExec) launches() uint64 { return uint64(x.block.launches) }

// cudagoGraphInstantiate runs without the GIL; cudagoExecAdopt follows with it.
//
//export cudagoGraphInstantiate
func cudagoGraphInstantiate(id, flags C.uint64_t, st *C.cudago_status) (exec C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.get(uint64(id))
		if err != nil {
			return err
		}
		x, err := instantiate(g, uint64(flags))
		if err != nil {
			return err
		}
		x.of = g
		exec = C.uint64_t(execs.put(x))
		x.block.id = exec
		return nil
	})
	return exec
}

// instantiate makes an executable and its block.
func instantiate(g *pyGraph, flags uint64) (*pyExec, error) {
	b := (*C.cudago_exec)(C.calloc(1, C.sizeof_cudago_exec))
	x := &pyExec{block: b}
	x.holder.launches = true
	err := afterReleases(func() (err error) {
		x.Exec, err = g.Instantiate(graph.ExecOptions{
			Flags: flags, OnBundles: x.holder.tell, Uses: x.uses, Launches: x.launches,
			OnReleased: released, Quiet: true, Reaper: reaper,
		})
		return err
	})
	if err != nil {
		C.free(unsafe.Pointer(b))
		return nil, err
	}
	b.h, b.ctx = C.uintptr_t(x.Handle()), C.uintptr_t(x.Context().Handle())
	b.device = C.int32_t(x.Context().Device().Ordinal())
	for _, e := range x.Nodes() {
		if e.Kind() == cuda.HostNode {
			b.calls_python = 1
		}
	}
	return x, nil
}

//export cudagoExecAdopt
func cudagoExecAdopt(id C.uint64_t, held **C.cudago_held) *C.cudago_exec {
	x, err := execs.get(uint64(id))
	if err != nil {
		return nil
	}
	*held = x.holder.open()
	x.numberNodes(x.of)
	x.of = nil
	return x.block
}

// cudagoExecClose: nobody is inside the driver with it. Launches in flight go
// on, and the reaper waits for them. The block is the caller's from now on.
//
//export cudagoExecClose
func cudagoExecClose(id C.uint64_t) {
	x, ok := execs.take(uint64(id))
	if !ok {
		return
	}
	if err := contained(x.Close); err != nil {
		reportAside(err)
	}
	x.holder.end()
	x.block = nil
}

// cudagoCallbackEnter comes before a launch that may call Python, without the
// GIL.
//
//export cudagoCallbackEnter
func cudagoCallbackEnter() { callbacks.enter() }

// cudagoCallbackLeave comes after it; position 0: the driver has refused it.
//
//export cudagoCallbackLeave
func cudagoCallbackLeave(id, position C.uint64_t) {
	if position == 0 {
		callbacks.leave(nil)
		return
	}
	callbacks.leave(func(ended func()) {
		onLine(id, func(l *graph.Line) { l.After(uint64(position), ended) })
	})
}

// cudagoExecUpload runs without the GIL; the caller notes the use.
//
//export cudagoExecUpload
func cudagoExecUpload(id, stream C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		x, err := execs.get(uint64(id))
		if err != nil {
			return err
		}
		s, err := streams.get(uint64(stream))
		if err != nil {
			return err
		}
		return x.Context().ExecUpload(x.Handle(), s)
	})
}

// update changes a node's parameters. The operands are taken over in any case;
// those of the old version that the new one does not name are kept.
func update(id, node C.uint64_t, list []graph.Operand, st *C.cudago_status, do func(*graph.ExecNode, []graph.Operand) error) {
	guard(st, func() error {
		x, n, err := execNode(id, node)
		if err != nil {
			releaseOperands(list)
			return err
		}
		err = do(n, append(list, unchanged(n, list)...))
		x.holder.apply()
		return err
	})
}

func execNode(id, node C.uint64_t) (*pyExec, *graph.ExecNode, error) {
	x, err := execs.get(uint64(id))
	if err != nil {
		return nil, nil, err
	}
	n := x.node(uint64(node))
	if n == nil {
		return nil, nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "node", Text: "is not one of the graph that was instantiated"}
	}
	return x, n, nil
}

// unchanged returns new references to those operands of a memcpy node that an
// update does not replace. Other nodes are always updated as a whole.
func unchanged(n *graph.ExecNode, list []graph.Operand) []graph.Operand {
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

//export cudagoExecMemcpy
func cudagoExecMemcpy(id, node C.uint64_t, hasDst C.int, dst C.uint64_t, dstHost C.int32_t, dstSize C.uint64_t,
	hasSrc C.int, src C.uint64_t, srcHost C.int32_t, srcSize C.uint64_t, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	update(id, node, operands(refs, n), st, func(e *graph.ExecNode, list []graph.Operand) error {
		p, ok := e.Params().(cuda.MemcpyParams)
		if !ok {
			return e.UpdateMemcpy(cuda.MemcpyParams{}, list) // says what the node is
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
		// A side that was not made as host memory stays unified: so the driver has
		// recorded what was captured, and takes host memory there too.
		if hasDst != 0 {
			p.Dst, p.DstHost = uint64(dst), p.DstHost && dstHost != 0
		}
		if hasSrc != 0 {
			p.Src, p.SrcHost = uint64(src), p.SrcHost && srcHost != 0
		}
		return e.UpdateMemcpy(p, list)
	})
}

//export cudagoExecMemset
func cudagoExecMemset(id, node, dst C.uint64_t, value, width C.uint32_t, count C.uint64_t, ref *C.cudago_ref, st *C.cudago_status) {
	p := cuda.MemsetParams{Dst: uint64(dst), Value: uint32(value), ElementSize: uint32(width), Count: uint64(count)}
	update(id, node, operands(ref, 1), st, func(e *graph.ExecNode, list []graph.Operand) error { return e.UpdateMemset(p, list) })
}

//export cudagoExecKernel
func cudagoExecKernel(id, node, kernel C.uint64_t, grid, block *C.uint32_t, shared C.uint32_t, params *unsafe.Pointer,
	refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	update(id, node, operands(refs, n), st, func(e *graph.ExecNode, list []graph.Operand) error {
		p, err := kernelParams(kernel, grid, block, shared, params)
		if err != nil {
			releaseOperands(list)
			return err
		}
		return e.UpdateKernel(p, list)
	})
}

//export cudagoExecHost
func cudagoExecHost(id, node C.uint64_t, fn, data C.uintptr_t, ref *C.cudago_ref, st *C.cudago_status) {
	p := cuda.HostParams{Fn: uintptr(fn), UserData: uintptr(data)}
	update(id, node, operands(ref, 1), st, func(e *graph.ExecNode, list []graph.Operand) error { return e.UpdateHost(p, list) })
}

//export cudagoExecEnable
func cudagoExecEnable(id, node C.uint64_t, enabled C.int, st *C.cudago_status) {
	guard(st, func() error {
		_, n, err := execNode(id, node)
		if err != nil {
			return err
		}
		return n.SetEnabled(enabled != 0)
	})
}
