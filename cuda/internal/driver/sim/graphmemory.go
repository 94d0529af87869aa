// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// graphAlloc is the memory of an allocation node. Its address never changes, so
// the memory is there from the making of the node until neither a graph nor an
// executable has the node and nobody has it allocated.
type graphAlloc struct {
	sim    *simulator
	memory *allocation

	mu sync.Mutex
	// refs counts the graph and the executables.
	refs int // guarded by mu
	// live says that a launch allocated it and that nothing that was called
	// since frees it. It follows the order of calls, not of execution.
	live bool // guarded by mu
}

func (a *graphAlloc) ref() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refs++
}

func (a *graphAlloc) unref() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refs--
	a.sweep()
}

// sweep gives the memory back if nobody can use it any more.
//
// Preconditions: a.mu must be locked.
func (a *graphAlloc) sweep() {
	if a.refs == 0 && !a.live && !a.memory.gone.Load() {
		a.sim.release(a.memory, "the end of its graph")
	}
}

// setLive notes an allocation or a free, and returns what it was before.
func (a *graphAlloc) setLive(live bool) (was bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, a.live = a.live, live
	if !live {
		a.sim.check.frees.Add(1)
	}
	return was
}

func (a *graphAlloc) isLive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live
}

// allocWork is an allocation node. The content is undefined after each.
type allocWork struct{ a *graphAlloc }

func (w *allocWork) run(x *execution) *failure {
	if x.sim.config.full {
		x.sim.poison(w.a.memory)
	}
	if x.mark != nil && x.mark.checks&checkUninitialized != 0 {
		w.a.memory.ctx.dev.memory.Undefine(w.a.memory.base)
	}
	return nil
}

// graphFreeWork is a free node, or a stream-ordered free of such memory.
type graphFreeWork struct{ a *graphAlloc }

func (w *graphFreeWork) run(*execution) *failure {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	w.a.sweep()
	return nil
}

// captureAlloc makes a captured allocation a node.
func (d *simulator) captureAlloc(s *stream, size uint64) (driver.CUdeviceptr, driver.CUresult) {
	a := &graphAlloc{sim: d, refs: 1, memory: &allocation{kind: memGraph}}
	a.memory.graph = a
	if r := d.allocate(s.ctx, size, a.memory); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, r := d.capturedNode(s, &allocWork{a}, driver.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
	if r != driver.CUDA_SUCCESS {
		a.unref()
		return 0, r
	}
	n.graph.hasMemory = true
	n.graph.allocs = append(n.graph.allocs, a)
	return driver.CUdeviceptr(a.memory.base), r
}

// captureFree makes a captured free a node.
func (d *simulator) captureFree(s *stream, a *allocation) driver.CUresult {
	if a.kind != memGraph {
		// Freeing a pool's memory from a graph would free it at each launch.
		d.spoilStream(s)
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	if c := s.capture.Load(); c != nil && c.graph.frees(a.graph) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	n, r := d.capturedNode(s, &graphFreeWork{a.graph}, driver.CU_GRAPH_NODE_TYPE_MEM_FREE)
	if r == driver.CUDA_SUCCESS {
		n.graph.hasMemory = true
	}
	return r
}

// frees reports whether a node of the graph frees a.
//
// Preconditions: simulator.graphMu must be locked.
func (g *graph) frees(a *graphAlloc) bool {
	for _, n := range g.nodes {
		if w, ok := n.work.(*graphFreeWork); ok && w.a == a {
			return true
		}
	}
	return false
}
