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
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/memory"
	"github.com/cudago/cudago/pyext/stream"
)

// pyCaptured is memory of a capture. Its state is C memory, which cells read.
type pyCaptured struct {
	*graph.CapturedMemory
	state *C.int32_t
}

// Release implements graph.Retainer.
func (m *pyCaptured) Release() {
	m.CapturedMemory.Release() // from here on it does not report
	C.free(unsafe.Pointer(m.state))
}

// capturedOf returns the memory of a number that C has, or nil.
func capturedOf(number C.uint64_t) *pyCaptured {
	if number == 0 {
		return nil
	}
	hold, err := memories.Get(uint64(number))
	if err != nil {
		return nil
	}
	m, _ := hold.(*pyCaptured)
	return m
}

// cudagoCaptureAlloc takes over state if it succeeds. In a capture that another
// library began it sets others, and allocates nothing.
//
//export cudagoCaptureAlloc
func cudagoCaptureAlloc(on, resource, size C.uint64_t, state *C.int32_t, ptr *C.uint64_t, others *C.int32_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		pool, err := memory.PoolOf(uint64(resource))
		if err != nil {
			return err
		}
		c, err := graph.CaptureOf(s)
		if err != nil {
			return err
		}
		if c == nil {
			*others = 1
			return nil
		}
		m, err := c.Alloc(s, uint64(size), site(), func(isGraph bool) { setCaptured(state, isGraph) }, func() (uint64, error) {
			return pool.AllocateNode(uint64(size), s)
		})
		if err != nil {
			return explainCaptured(err)
		}
		*ptr = C.uint64_t(m.Ptr())
		id = C.uint64_t(memories.Put(&pyCaptured{m, state}))
		return nil
	})
	return id
}

// explainCaptured adds to an error why the allocation is not tried again.
func explainCaptured(err error) error {
	var call *cuda.Error
	if errors.As(err, &call) && errors.Is(err, cuda.ErrorOutOfMemory) {
		call.Detail += ", in a capture, during which no memory can be waited for or given back"
	}
	return err
}

func setCaptured(state *C.int32_t, isGraph bool) {
	v := int32(C.CAPTURED_GONE)
	if isGraph {
		v = C.CAPTURED_IN_GRAPH
	}
	atomic.StoreInt32((*int32)(unsafe.Pointer(state)), v)
}

// cudagoCaptureFreeLast makes the capture free memory that the user has let go,
// if it is still open and has not freed it. site is the node's. It needs no GIL.
//
//export cudagoCaptureFreeLast
func cudagoCaptureFreeLast(number C.uint64_t, site C.uint32_t) {
	m := capturedOf(number)
	if m == nil {
		return
	}
	err := border.Contained(func() error { return m.Capture().Free(m.CapturedMemory, nil, nil, uint32(site)) })
	if err != nil && !errors.Is(err, cuda.ErrClosed) && !errors.Is(err, cuda.ErrorStreamCaptureInvalidated) {
		border.ReportAside(err)
	}
}

// cudagoCaptureFree makes a node that frees memory of a graph: of the one that is
// captured, or of another.
//
//export cudagoCaptureFree
func cudagoCaptureFree(on, memory C.uint64_t, ref *C.cudago_ref, site C.uint32_t, st *C.cudago_status) {
	m, err := memories.Get(uint64(memory))
	if err != nil {
		guard(st, func() error { return err })
		return
	}
	list := operands(ref, 1)
	if mine := list[0].Memory; mine != nil {
		s, err := stream.Streams.Get(uint64(on))
		var c *graph.Capture
		if err == nil {
			c, err = graph.CaptureOf(s)
		}
		if err == nil && c == mine.Capture() {
			guard(st, func() error { return c.Free(mine, s, list, uint32(site)) })
			return
		}
	}
	op := graph.Operation{Params: graph.FreeParams{Ptr: m.Ptr()}, Operands: list, Site: uint32(site)}
	guard(st, func() error { return recordAs(on, op, func(s *cuda.Stream) error { return graph.FreeAsync(m, s) }) })
}
