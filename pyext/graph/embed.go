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

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/stream"
)

// An embeddable becomes one node of a capture: a graph, or an executable.
type embeddable interface {
	Capture(c *graph.Capture, s *cuda.Stream, site uint32) (left graph.Retainer, err error)
}

// captureInto adds the node. In a capture that another library began the driver
// keeps what it uses, as long as the graph: see keepFor.
func captureInto(e embeddable, on C.uint64_t) error {
	s, err := stream.Streams.Get(uint64(on))
	if err != nil {
		return err
	}
	c, err := graph.CaptureOf(s)
	if err != nil {
		return err
	}
	left, err := e.Capture(c, s, site())
	if left != nil {
		keepFor(s, left)
	}
	return err
}

// cudagoCaptureGraph sets over, and adds nothing, if the capture has ended
// meanwhile.
//
//export cudagoCaptureGraph
func cudagoCaptureGraph(id, on C.uint64_t, over *C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			return err
		}
		return unlessOver(captureInto(g, on), over)
	})
}

func unlessOver(err error, over *C.int32_t) error {
	if errors.Is(err, graph.ErrNotCapturing) {
		*over = 1
		return nil
	}
	return err
}

// cudagoCaptureExec returns what has changed since the executable was made, for
// the caller to free, or NULL. over is as for a graph.
//
//export cudagoCaptureExec
func cudagoCaptureExec(id, on C.uint64_t, over *C.int32_t, st *C.cudago_status) (changed *C.char) {
	guard(st, func() error {
		x, err := execs.Get(uint64(id))
		if err != nil {
			return err
		}
		err = unlessOver(captureInto(x, on), over)
		var why *graph.ChangedError
		if errors.As(err, &why) {
			changed = C.CString(why.Reason)
			return nil
		}
		return err
	})
	return changed
}
