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
	"fmt"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/memory"
	"github.com/cudago/cudago/pyext/stream"
)

// pyExec is the executable behind a Python GraphExec.
type pyExec struct {
	*graph.Exec
	holder holder
	block  *C.cudago_exec // valid until cudagoExecClose, whose caller frees it; read with the GIL

	of *pyGraph // the graph it is made from; only until it is adopted

	// Both are made when it is adopted, and immutable from then on.
	nodes  []numbered       // in the order of their numbers
	byName map[string]int   // in nodes
	same   map[string][]int // in nodes, of names that several have; nearly always nil
}

var execs = execTable{border.NewTable[*pyExec]("graph executable")}

// uses answers package graph: on which streams C has launched the executable,
// and up to which position. It runs within updates and Close, so with the GIL,
// while no launch is in the driver.
func (x *pyExec) uses() []graph.Use {
	u := &x.block.uses
	list := make([]graph.Use, 0, int(u.n))
	for _, use := range unsafe.Slice(C.cudago_uses_at(u), int(u.n)) {
		if l, err := stream.Lines.Get(uint64(use.clock.id)); err == nil {
			list = append(list, graph.Use{Line: l.Line, Pos: uint64(use.position)})
		}
	}
	return list
}

// launches answers package graph too, and runs when uses does.
func (x *pyExec) launches() uint64 { return uint64(x.block.launches) }

// cudagoGraphInstantiate runs without the GIL; cudagoGraphSettle, with the GIL,
// comes before it, and cudagoExecAdopt follows.
//
//export cudagoGraphInstantiate
func cudagoGraphInstantiate(id, flags C.uint64_t, st *C.cudago_status) (exec C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Unsettled(uint64(id))
		if err != nil {
			return err
		}
		x, err := instantiate(g, uint64(flags))
		if err != nil {
			return err
		}
		x.of = g
		exec = C.uint64_t(execs.Put(x))
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
	err := memory.AfterReleases(func() (err error) {
		x.Exec, err = g.Instantiate(graph.ExecOptions{
			Flags: flags, OnBundle: x.holder.tell, Uses: x.uses, Launches: x.launches,
			OnReleased: released, Nothing: uintptr(C.cudago_nothing()), Quiet: true, Reaper: border.Reaper,
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
	frees := x.Frees()
	b.n_frees, b.frees = C.int32_t(len(frees)), (*C.uint64_t)(C.calloc(C.size_t(len(frees)), C.sizeof_uint64_t))
	for i, ptr := range frees {
		unsafe.Slice(b.frees, len(frees))[i] = C.uint64_t(ptr)
	}
	return x, nil
}

// cudagoExecLaunchError adds to the driver's error what it can be due to.
//
//export cudagoExecLaunchError
func cudagoExecLaunchError(id C.uint64_t, code C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		x, err := execs.Unsettled(uint64(id))
		if err != nil {
			return err
		}
		detail := ""
		if cuda.Result(code) == cuda.ErrorInvalidValue {
			detail = launchDetail(x.Exec)
		}
		return x.Context().Failure("cuGraphLaunch", int32(code), detail)
	})
}

// launchDetail says which memory of graphs is in the way of a launch, or nothing.
func launchDetail(x *graph.Exec) string {
	if names := x.Unallocated(); len(names) > 0 {
		return fmt.Sprintf("the memory that %q frees is not allocated: launch the graph that allocates it before each launch", names)
	}
	if names := x.Unfreed(); len(names) > 0 {
		return fmt.Sprintf("an earlier launch has left the memory of %q allocated: free it with its buffer's free(stream=s), which close() "+
			"does not do, or instantiate with auto_free=True", names)
	}
	return ""
}

//export cudagoExecAdopt
func cudagoExecAdopt(id C.uint64_t, held **C.cudago_held) *C.cudago_exec {
	x, err := execs.Unsettled(uint64(id))
	if err != nil {
		return nil
	}
	*held = x.holder.open(x.EachHeld)
	x.numberNodes(x.of)
	x.of = nil
	return x.block
}

// cudagoExecClose closes an executable that no call is in the driver with.
// Launches in flight continue, and the reaper waits for them. From now on the
// caller owns the block.
//
//export cudagoExecClose
func cudagoExecClose(id C.uint64_t) {
	x, ok := execs.Take(uint64(id))
	if !ok {
		return
	}
	err := border.Contained(func() error {
		x.settle() // what C holds is released with the rest
		return x.Close()
	})
	if err != nil {
		border.ReportAside(err)
	}
	x.holder.end()
	C.free(unsafe.Pointer(x.block.owned))
	x.block.owned = nil
	x.block = nil
}

// cudagoCallbackEnter is called before a launch that may call Python, without
// the GIL.
//
//export cudagoCallbackEnter
func cudagoCallbackEnter() { border.Callbacks.Enter() }

// cudagoCallbackLeave is called after it; position 0: the stream is gone.
//
//export cudagoCallbackLeave
func cudagoCallbackLeave(id, position C.uint64_t) {
	if position == 0 {
		border.Callbacks.Leave(nil)
		return
	}
	border.Callbacks.Leave(func(ended func()) {
		stream.OnLine(uint64(id), func(l *graph.Line) { l.After(uint64(position), ended) })
	})
}

// cudagoExecUpload runs without the GIL; the caller notes the use.
//
//export cudagoExecUpload
func cudagoExecUpload(id, on C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		x, err := execs.Unsettled(uint64(id))
		if err != nil {
			return err
		}
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		return x.Context().ExecUpload(x.Handle(), s)
	})
}
