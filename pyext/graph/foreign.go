// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoGraphWrap
func cudagoGraphWrap(ordinal C.int32_t, handle C.uint64_t, ref *C.cudago_ref, n C.int, held **C.cudago_held, st *C.cudago_status) (id C.uint64_t) {
	list := operands(ref, n)
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			releaseOperands(list)
			return err
		}
		ours, err := ourGraph(c, cuda.GraphHandle(handle))
		if err != nil {
			releaseOperands(list)
			return err
		}
		g := newPyGraph()
		of, err := graph.Wrap(c, cuda.GraphHandle(handle), ours, list, graph.Options{OnBundle: g.holder.tell, Reaper: border.Reaper})
		if err != nil {
			return err
		}
		g.adopt(of)
		*held = g.holder.open()
		id = C.uint64_t(graphs.Put(g))
		return nil
	})
	return id
}

// ourGraph returns the open graph with a handle, or nil.
func ourGraph(c *cuda.Context, handle cuda.GraphHandle) (*graph.Graph, error) {
	for _, id := range graphs.IDs() {
		g, err := graphs.Get(id)
		if err != nil || g.Graph == nil || g.Handle() != handle {
			continue
		}
		switch {
		case g.Context() != c:
			return nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "device", Text: "must be that of the graph"}
		case g.root != nil:
			return nil, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "handle", Text: "is that of a graph in another, which cannot be had twice"}
		}
		return g.Graph, nil
	}
	return nil, nil
}

//export cudagoGraphExport
func cudagoGraphExport(id C.uint64_t, st *C.cudago_status) (handle C.uint64_t) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		h, err := g.Export()
		handle = C.uint64_t(h)
		return err
	})
	return handle
}

// kept are the operands that graphs of other libraries keep.
var kept = border.NewTable[[]graph.Operand]("operands of a foreign graph")

// keepFor has the graph of a capture that another library began keep operands of
// an operation that is in it now. What the driver does not take is kept until
// the process ends, which is safe.
func keepFor(s *cuda.Stream, list []graph.Operand) {
	if len(list) == 0 {
		return
	}
	id := kept.Put(list)
	if data := C.cudago_kept_new(C.uint64_t(id)); data != 0 {
		_, _ = s.HoldForCapture(uintptr(C.cudago_kept_end()), uintptr(data))
	}
}

//export cudagoKeptRelease
func cudagoKeptRelease(id C.uint64_t) {
	if list, ok := kept.Take(uint64(id)); ok {
		releaseOperands(list)
	}
}

// cudagoCaptureHold has the graph of a capture that another library began call
// destroy with data at its end. 0 if there is no such capture.
//
//export cudagoCaptureHold
func cudagoCaptureHold(on, destroy, data C.uint64_t, st *C.cudago_status) (held C.int) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		if c, err := graph.CaptureOf(s); err != nil || c != nil {
			return err
		}
		yes, err := s.HoldForCapture(uintptr(destroy), uintptr(data))
		held = border.Bool[C.int](yes)
		return err
	})
	return held
}
