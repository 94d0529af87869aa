// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

// #include "graph.h"
import "C"

import (
	"slices"
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
)

// A recorder is C, which records launches in an open capture: see recorded.c.
// The memory is the Python graph's, which frees it after the capture's end.
type recorder struct {
	recorded *C.cudago_recorded
	g        *pyGraph // the graph that the capture becomes
}

// Stop implements [graph.Recorder]. It needs no GIL, without which C may be
// under way: in a driver call that waits for nobody.
func (r *recorder) Stop() {
	for nap := time.Microsecond; C.cudago_recorded_stop(r.recorded) == 0; nap = min(2*nap, time.Millisecond) {
		time.Sleep(nap)
	}
}

// Resume implements [graph.Recorder].
func (r *recorder) Resume() { C.cudago_recorded_resume(r.recorded) }

// Leave implements [graph.Recorder]. The graph is then like one that C has built.
func (r *recorder) Leave(nodes []cuda.NodeHandle) bool {
	recorded := unsafe.Slice(r.recorded.nodes.handles, int(r.recorded.nodes.n))
	if !slices.EqualFunc(nodes, recorded, func(n cuda.NodeHandle, h C.uintptr_t) bool { return n == cuda.NodeHandle(h) }) {
		return false
	}
	r.g.left = C.cudago_nodes_move(&r.recorded.nodes)
	return r.g.left != nil
}

// Take implements [graph.Recorder].
func (r *recorder) Take() []graph.Added {
	list := readAdded(&r.recorded.nodes, 0)
	C.cudago_nodes_taken(&r.recorded.nodes, nil)
	return list
}
