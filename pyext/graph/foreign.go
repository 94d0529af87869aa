// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"sync"

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
		*held = g.holder.open(g.EachHeld)
		id = C.uint64_t(graphs.Put(g))
		return nil
	})
	return id
}

// ourGraph returns the open graph with a handle, or nil.
func ourGraph(c *cuda.Context, handle cuda.GraphHandle) (*graph.Graph, error) {
	for _, id := range graphs.IDs() {
		g, err := graphs.Get(id)
		if err != nil || g.Graph == nil || g.left != nil || g.Handle() != handle {
			continue // or its capture has ended this moment, and nobody has it yet
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

// kept is what graphs of other libraries keep.
var kept = border.NewTable[graph.Retainer]("operands of a foreign graph")

// operandList is operands as one Retainer.
type operandList []graph.Operand

// Release implements graph.Retainer.
func (l operandList) Release() { releaseOperands(l) }

// keepFor has the graph of a capture that another library began keep what an
// operation that is in it now uses. What the driver does not take stays until the
// process ends, which is safe, and a warning says so.
//
// Preconditions: the GIL is held, so that no drain releases meanwhile what is in
// doubt.
func keepFor(s *cuda.Stream, r graph.Retainer) {
	id := kept.Put(r)
	data := C.cudago_kept_new(C.uint64_t(id))
	if data == 0 {
		stays("there is no memory left")
		return
	}
	hold, err := s.HoldForCapture(uintptr(C.cudago_kept_end()), uintptr(data))
	switch hold {
	case cuda.HoldGraph:
		return
	case cuda.HoldNoGraph: // nothing ever runs the operation
		kept.Take(id)
		r.Release()
		return
	case cuda.HoldInDoubt: // what the driver still does with data is to have no effect
		kept.Take(id)
		kept.Put(r)
	}
	stays(whyNotHeld(err))
}

func whyNotHeld(err error) string {
	if err != nil {
		return err.Error()
	}
	return "another thread has ended the capture during the operation"
}

// keptWarnings are reasons why something stays until the process ends.
var keptWarnings struct {
	mu    sync.Mutex
	told  map[string]bool // guarded by mu
	queue []string        // guarded by mu; not told yet
}

// stays warns, once for each reason, in the next drain: no Python code may run
// here.
func stays(reason string) {
	w := &keptWarnings
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[reason] {
		return
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	w.told[reason] = true
	w.queue = append(w.queue, reason)
	C.cudago_request_drain()
}

// cudagoKeptWarning returns the next warning, for the caller to free, or NULL.
//
//export cudagoKeptWarning
func cudagoKeptWarning() *C.char {
	w := &keptWarnings
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil
	}
	reason := w.queue[0]
	w.queue = w.queue[1:]
	return C.CString("what a graph uses that another library captured stays until the process ends: " + reason)
}

//export cudagoKeptRelease
func cudagoKeptRelease(id C.uint64_t) {
	if r, ok := kept.Take(uint64(id)); ok {
		r.Release()
	}
}

// cudagoCaptureHold has the graph of a capture that another library began call
// destroy with data at its end. 0 if there is no such capture. If that has ended
// meanwhile, what data refers to stays until the process ends.
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
		hold, err := s.HoldForCapture(uintptr(destroy), uintptr(data))
		if hold == cuda.HoldInDoubt {
			stays(whyNotHeld(nil))
		}
		held = border.Bool[C.int](hold == cuda.HoldGraph || hold == cuda.HoldInDoubt)
		return err
	})
	return held
}
