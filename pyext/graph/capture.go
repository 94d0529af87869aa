// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"runtime"
	"strings"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/kernel"
	"github.com/cudago/cudago/pyext/stream"
)

// pyCapture is a capture that a Python with block holds open.
type pyCapture struct {
	*graph.Capture
	g *pyGraph // the graph that the capture becomes
}

// captures are the open captures. Their streams cannot serve as keys: a stream
// may begin another capture before its first is known to be over.
var captures = border.NewTable[*pyCapture]("capture")

// cudagoCaptureBegin begins a capture. The driver ties it to its OS thread,
// which is the Python thread that called; the same thread calls again to end it.
//
//export cudagoCaptureBegin
func cudagoCaptureBegin(on C.uint64_t, mode C.int, recorded *C.cudago_recorded, st *C.cudago_status) (capture C.uint64_t) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		g := newPyGraph()
		c, err := graph.Begin(s, cuda.CaptureMode(mode), graph.Options{OnBundle: g.holder.tell, Reaper: border.Reaper, Origin: lineText})
		if err != nil {
			return err
		}
		c.RecordBy(&recorder{recorded, g})
		capture = C.uint64_t(captures.Put(&pyCapture{c, g}))
		return nil
	})
	return capture
}

//export cudagoContextWaited
func cudagoContextWaited() C.int { return border.Bool[C.int](border.Driver.Load().ContextWaited()) }

// cudagoCaptureEnd returns the graph, or 0 if it is discarded. It does not need
// the GIL; cudagoCaptureAdopt, which does, follows.
//
//export cudagoCaptureEnd
func cudagoCaptureEnd(capture C.uint64_t, discard C.int, open *C.int32_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, ok := captures.Take(uint64(capture))
		if !ok {
			return &cuda.ClosedError{What: "capture"}
		}
		defer func() {
			if !c.IsEnded() { // another thread or another stream must end it: the caller can try again
				captures.Set(uint64(capture), c)
				*open = 1
			}
		}()
		if discard != 0 {
			return c.Abort()
		}
		g, err := c.End()
		if err != nil {
			return err
		}
		c.g.adopt(g)
		id = C.uint64_t(graphs.Put(c.g))
		return nil
	})
	return id
}

// cudagoCaptureHas reports whether a stream is in the capture, as far as the
// driver says.
//
//export cudagoCaptureHas
func cudagoCaptureHas(capture, on C.uint64_t) C.int {
	has := false
	_ = border.Contained(func() error {
		c, err := captures.Get(uint64(capture))
		if err != nil {
			return err
		}
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		of, err := graph.CaptureOf(s)
		has = of == c.Capture
		return err
	})
	return border.Bool[C.int](has)
}

//export cudagoCaptureAdopt
func cudagoCaptureAdopt(id C.uint64_t, nodes **C.cudago_nodes) *C.cudago_held {
	g, err := graphs.Unsettled(uint64(id))
	if err != nil {
		return nil
	}
	if g.left != nil {
		g.openBlock(g.left)
		g.left = nil
	}
	*nodes = g.block
	return g.holder.open(g.EachHeld)
}

// record makes a driver call on a stream that is capturing, and gives the
// capture what the call uses. For a capture that another library began the driver
// keeps it, as long as the graph: see keepFor. It needs the GIL.
func record(on C.uint64_t, op graph.Operation, st *C.cudago_status, call func(*cuda.Stream) error) {
	op.Site = site()
	guard(st, func() error { return recordAs(on, op, call) })
}

// recordAs is record for callers that have released the GIL: another thread may have
// ended the capture, [graph.ErrNotCapturing].
func recordAs(on C.uint64_t, op graph.Operation, call func(*cuda.Stream) error) error {
	s, err := stream.Streams.Get(uint64(on))
	if err != nil {
		releaseOperands(op.Operands)
		return err
	}
	c, err := graph.CaptureOf(s)
	if c != nil {
		return c.Record(s, op, func() error { return call(s) })
	}
	if err == nil {
		err = graph.StillCapturing(s)
	}
	if err != nil {
		releaseOperands(op.Operands)
		return err
	}
	used, err := op.Uses(s)
	if err != nil {
		return err
	}
	if err := call(s); err != nil {
		releaseOperands(used)
		return err
	}
	if len(used) > 0 {
		keepFor(s, operandList(used))
	}
	return nil
}

//export cudagoCaptureMemcpy
func cudagoCaptureMemcpy(on, dst, src, size C.uint64_t, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	p := cuda.MemcpyParams{Dst: uint64(dst), Src: uint64(src), Size: uint64(size)} // unified, as a capture records it
	record(on, graph.Operation{Params: p, Operands: operands(refs, n)}, st, func(s *cuda.Stream) error {
		return cuda.Memcpy(p.Dst, p.Src, p.Size, s)
	})
}

//export cudagoCaptureBox
func cudagoCaptureBox(on, dst, src C.uint64_t, dstSide, srcSide C.int32_t, box *C.cudago_box, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	p := kernel.BoxParams(uint64(dst), uint64(src), int32(dstSide), int32(srcSide), unsafe.Pointer(box))
	record(on, graph.Operation{Params: p, Operands: operands(refs, n)}, st, func(s *cuda.Stream) error { return cuda.Memcpy3D(p, s) })
}

//export cudagoCaptureMemset
func cudagoCaptureMemset(on, dst C.uint64_t, value, width C.uint32_t, count C.uint64_t, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	p := cuda.MemsetParams{Dst: uint64(dst), Value: uint32(value), ElementSize: uint32(width), Count: uint64(count)}
	record(on, graph.Operation{Params: p, Operands: operands(refs, n)}, st, func(s *cuda.Stream) error {
		return cuda.Memset(p.Dst, p.Value, int(p.ElementSize), p.Count, s)
	})
}

//export cudagoCaptureMemOp
func cudagoCaptureMemOp(on, at C.uint64_t, m *C.cudago_memop, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	p := kernel.MemOpParams(uint64(at), unsafe.Pointer(m))
	record(on, graph.Operation{Params: p, Operands: operands(refs, n)}, st, func(s *cuda.Stream) error { return cuda.MemOp(p, s) })
}

//export cudagoCaptureSemaphore
func cudagoCaptureSemaphore(on, semaphore, value C.uint64_t, waits C.int32_t, ref *C.cudago_ref, st *C.cudago_status) {
	list := operands(ref, 1)
	e, err := stream.Semaphores.Get(uint64(semaphore))
	if err != nil {
		releaseOperands(list)
		guard(st, func() error { return err })
		return
	}
	p := cuda.SemaphoreParams{Semaphore: e, Value: uint64(value), IsWait: waits != 0}
	record(on, graph.Operation{Params: p, Operands: list}, st, func(s *cuda.Stream) error { return cuda.SemaphoreOp(p, s) })
}

// cudagoInvalidated answers with what is known to have invalidated open captures,
// one text: see [graph.Invalidated].
//
//export cudagoInvalidated
func cudagoInvalidated(cause *C.char, to *C.cudago_answer) {
	var a answer
	a.Row(nil, strings.Join(graph.Invalidated(C.GoString(cause)), "; "))
	a.give(to)
}

// cudagoCaptureLaunch records a launch, which records events. It returns 1 if
// these stand for places in a capture.
//
//export cudagoCaptureLaunch
func cudagoCaptureLaunch(on C.uint64_t, config unsafe.Pointer, kernel C.uint64_t, shape *C.cudago_shape,
	params *unsafe.Pointer, refs *C.cudago_ref, n C.int, ids *C.uint64_t, nIDs C.int, st *C.cudago_status) (captured C.int) {
	list := operands(refs, n)
	p, err := kernelParams(kernel, shape, params)
	events := make([]*cuda.Event, nIDs)
	for i, id := range unsafe.Slice(ids, int(nIDs)) {
		if err == nil {
			events[i], err = stream.Events.Get(uint64(id))
		}
	}
	if err != nil {
		releaseOperands(list)
		guard(st, func() error { return err })
		return 0
	}
	record(on, graph.Operation{Params: p, Operands: list}, st, func(s *cuda.Stream) error {
		runtime.LockOSThread() // the current context set below belongs to the thread
		defer runtime.UnlockOSThread()
		is, err := s.WhileRecording(events, func() error {
			return s.Context().Do(func() error {
				r := border.Driver.Load().RawLaunchKernelEx(config, p.Kernel.Handle(), unsafe.Pointer(params))
				return s.Context().Failure("cuLaunchKernelEx", r, "kernel "+p.Kernel.Name())
			})
		})
		captured = border.Bool[C.int](is)
		return err
	})
	return captured
}
