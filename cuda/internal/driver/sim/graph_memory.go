// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"iter"
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// graphAlloc is the memory of an allocation node. Its address never changes, so
// the memory exists from the creation of the node until no graph or executable
// has the node and the memory is not allocated.
type graphAlloc struct {
	sim    *simulator
	memory *allocation
	peers  uint64 // immutable; the other devices that may access it, a bit for each

	mu sync.Mutex
	// refs counts the graph and the executables.
	refs int // guarded by mu
	// live says that a launch allocated it and no later call frees it. It
	// follows the order of calls, not of execution.
	live bool // guarded by mu
	used bool // guarded by mu; see graphUsage
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

// sweep frees the memory if it can no longer be used.
//
// Preconditions: a.mu must be locked.
func (a *graphAlloc) sweep() {
	if a.refs > 0 || a.live {
		return
	}
	a.count(false)
	if !a.memory.gone.Load() {
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

// allocWork is an allocation node. Each run leaves the content undefined.
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

// graphAlloc makes the memory of an allocation node that comes after the nodes in
// before, held for a graph. Like NVIDIA's driver, it gives memory that a node
// before it frees, at the same address, so an address alone does not identify an
// allocation. Devices of which may is true may access it.
//
// Preconditions: simulator.graphMu must be locked.
func (d *simulator) graphAlloc(g *graph, c *context, size uint64, before []*node, may func(*device) bool) (*graphAlloc, driver.CUresult) {
	access, peers := memory.NewPermission("an access descriptor of its node"), uint64(0)
	for _, dev := range d.devices {
		if dev != c.dev && may(dev) {
			access.Allow(dev.memory, true)
			peers |= 1 << dev.ordinal
		}
	}
	for n := range ancestors(before) {
		w, ok := n.work.(*graphFreeWork)
		if ok && w.a.memory.size == size && w.a.memory.ctx == c && w.a.peers == peers && g.isFree(w.a) {
			w.a.ref()
			return w.a, driver.CUDA_SUCCESS
		}
	}
	a := &graphAlloc{sim: d, refs: 1, peers: peers, memory: &allocation{kind: memGraph, access: access}}
	a.memory.graph = a
	return a, d.allocate(c, size, a.memory)
}

// ancestors yields nodes and all that come before them, in no particular order.
//
// Preconditions: simulator.graphMu must be locked.
func ancestors(nodes []*node) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		seen := make(map[*node]bool, len(nodes))
		for todo := slices.Clone(nodes); len(todo) > 0; {
			n := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[n] {
				continue
			}
			seen[n] = true
			if !yield(n) {
				return
			}
			todo = append(todo, n.before.All()...)
		}
	}
}

// allocates makes a an allocation of the node's graph.
//
// Preconditions: simulator.graphMu must be locked.
func (n *node) allocates(a *graphAlloc) driver.CUdeviceptr {
	n.graph.hasMemory = true
	n.graph.allocs = append(n.graph.allocs, a)
	return driver.CUdeviceptr(a.memory.base)
}

// captureAlloc makes a captured allocation a node. It has the access that the pool
// has now (programming guide, "Peer Access with Stream Capture").
func (d *simulator) captureAlloc(s *stream, size uint64, p *pool) (at driver.CUdeviceptr, captured bool, r driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	capture := s.capture.Load()
	switch {
	case capture == nil: // another thread has ended it meanwhile
		return 0, false, driver.CUDA_SUCCESS
	case p.kind != memPool || p.shared != nil:
		// Of a shared pool as for an allocation node: cuda.h. Of host memory it is
		// a guess, since cuda.h does not say what a node would be.
		return 0, true, driver.CUDA_ERROR_NOT_SUPPORTED
	case capture.invalidated:
		return 0, true, driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	a, r := d.graphAlloc(capture.graph, s.ctx, size, s.front, func(dev *device) bool { return p.access.Allows(dev.memory) })
	if r != driver.CUDA_SUCCESS {
		return 0, true, r
	}
	n, r := d.capturedNode(s, &allocWork{a}, driver.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
	if r != driver.CUDA_SUCCESS {
		a.unref()
		return 0, true, r
	}
	return n.allocates(a), true, r
}

// CuGraphAddMemAllocNode adds an allocation. The codes were seen on an H200,
// driver 580.159, CUDA 13.0.
func (d *simulator) CuGraphAddMemAllocNode(h driver.CUgraph, deps []driver.CUgraphNode, p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	c, r := d.allocContext(p)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, before, r := d.target(h, deps)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if g.moved {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	a, r := d.graphAlloc(g, c, p.Bytesize, before, func(dev *device) bool { return grants(p, dev) })
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	n := d.addNode(g, &node{kind: driver.CU_GRAPH_NODE_TYPE_MEM_ALLOC, work: &allocWork{a}}, before)
	p.Dptr = n.allocates(a)
	return n.handle, r
}

// allocContext checks the parameters of an allocation and finds its context.
func (d *simulator) allocContext(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) (*context, driver.CUresult) {
	const pinned, nowhere, onDevice = 1, 0, 1 // CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_...
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	props := driver.CUmemPoolProps{}
	if p != nil {
		props = p.PoolProps
	}
	switch {
	case p == nil || p.Bytesize == 0 || props.AllocType != pinned || props.LocationType == nowhere:
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	case props.LocationType != onDevice || props.HandleTypes != 0:
		return nil, driver.CUDA_ERROR_NOT_SUPPORTED
	case p.AccessDescCount > uint64(len(d.devices)):
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	for _, desc := range accessOf(p) {
		if r := d.accessible(&desc); r != driver.CUDA_SUCCESS {
			return nil, r
		}
	}
	switch {
	case int(props.LocationID) == c.dev.ordinal:
		return c, r
	}
	dev, r := d.device(driver.CUdevice(props.LocationID))
	if r != driver.CUDA_SUCCESS {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	if c = dev.primaryContext(); c == nil {
		return nil, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	return c, r
}

// CuGraphAddMemFreeNode adds a free of memory that a node of this graph or of
// another allocates.
func (d *simulator) CuGraphAddMemFreeNode(h driver.CUgraph, deps []driver.CUgraphNode, p driver.CUdeviceptr) (driver.CUgraphNode, driver.CUresult) {
	a := d.space.start(p)
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, before, r := d.target(h, deps)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if a == nil || a.kind != memGraph || g.frees(a.graph) {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if g.moved {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	n := d.addNode(g, &node{kind: driver.CU_GRAPH_NODE_TYPE_MEM_FREE, work: &graphFreeWork{a.graph}}, before)
	g.hasMemory = true
	return n.handle, r
}

// isReserved reports whether a belongs to a graph and is not allocated by a
// launch now.
func (a *allocation) isReserved() bool { return a.graph != nil && !a.graph.isLive() }

// captureFree makes a captured free a node.
func (d *simulator) captureFree(s *stream, a *allocation) (captured bool, r driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	capture := s.capture.Load()
	switch {
	case capture == nil: // another thread has ended it meanwhile
		return false, driver.CUDA_SUCCESS
	case a.kind != memGraph:
		// A graph would free the pool's memory at each launch.
		capture.invalidated = true
		return true, driver.CUDA_ERROR_INVALID_VALUE
	case capture.graph.frees(a.graph):
		return true, driver.CUDA_ERROR_INVALID_VALUE
	}
	n, r := d.capturedNode(s, &graphFreeWork{a.graph}, driver.CU_GRAPH_NODE_TYPE_MEM_FREE)
	if r == driver.CUDA_SUCCESS {
		n.graph.hasMemory = true
	}
	return true, r
}

// frees reports whether no node of the graph may free a: as many do as allocate
// it, or one does and nodes of another graph allocate it.
//
// Preconditions: simulator.graphMu must be locked.
func (g *graph) frees(a *graphAlloc) bool {
	allocs, frees := g.count(a)
	return frees >= max(allocs, 1)
}

// isFree reports whether nodes of the graph allocate a and free it again.
//
// Preconditions: simulator.graphMu must be locked.
func (g *graph) isFree(a *graphAlloc) bool {
	allocs, frees := g.count(a)
	return allocs > 0 && allocs == frees
}

// count returns how many nodes of the graph allocate and free a.
//
// Preconditions: simulator.graphMu must be locked.
func (g *graph) count(a *graphAlloc) (allocs, frees int) {
	for _, n := range g.nodes.All() {
		switch w := n.work.(type) {
		case *allocWork:
			if w.a == a {
				allocs++
			}
		case *graphFreeWork:
			if w.a == a {
				frees++
			}
		}
	}
	return allocs, frees
}
