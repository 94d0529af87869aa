// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
)

// AllocParams are those of an alloc node: Size bytes, always at Ptr, on the device
// with the ordinal, which other devices may use too: a bit for each. A captured
// node has [UnknownPeers].
type AllocParams struct {
	Ptr, Size uint64
	Ordinal   int
	Peers     uint32
}

// UnknownPeers says that a memory resource knew which devices may use the memory.
const UnknownPeers = ^uint32(0)

// FreeParams are those of a free node.
type FreeParams struct{ Ptr uint64 }

// Memory is what an alloc node allocates: see [Node.Memory] and [Capture.Alloc].
// Until it is released, the address stays reserved.
type Memory interface {
	Retainer
	// Ptr is the address, which all launches use. Memory that comes after a free
	// of this one may have the same.
	Ptr() uint64
	node() *allocation
}

// An allocation is the memory of one alloc node, as distinct from others that
// have its address.
type allocation struct {
	ptr   uint64
	h     atomic.Pointer[hierarchy] // of the node; nil while a capture is open
	freed atomic.Bool               // by a node of the graph itself, which cannot be removed again
}

// freeable returns why nothing more can free the memory, or nil. The driver
// would free what has the address now.
func (a *allocation) freeable() error {
	if a.freed.Load() {
		return badValue("memory", "%#x is freed by a node of the graph that allocates it", a.ptr)
	}
	return nil
}

// FreeAsync frees m, which a launch has left allocated, after the work that is
// in s. It calls cuMemFreeAsync.
//
// Errors: an [*cuda.ArgumentError] if a node of the graph of m frees it;
// otherwise an [*cuda.Error].
func FreeAsync(m Memory, s *cuda.Stream) error {
	if err := m.node().freeable(); err != nil {
		return err
	}
	return s.Context().FreeAsync(m.Ptr(), s)
}

// Alloc adds a node that allocates device memory at each launch, always at the
// same address: see [AllocParams] and [Node.Memory]. The content is undefined
// each time. Memory that no free node of the graph frees stays allocated after
// the launch, until it is freed by another graph, by [cuda.Context.FreeAsync],
// or by the next launch of an executable with [cuda.InstantiateAutoFree]; at
// the latest when the graph, its executables and all holders of the memory are
// gone. A graph that allocates cannot be cloned or embedded, and has one
// executable at a time. It calls cuGraphAddMemAllocNode.
func (g *Graph) Alloc(size uint64, o NodeOptions) (*Node, error) {
	return g.AllocOn(cuda.AllocNodeParams{Size: size}, o)
}

// AllocOn is [Graph.Alloc] for memory of any device, which others may use.
func (g *Graph) AllocOn(p cuda.AllocNodeParams, o NodeOptions) (*Node, error) {
	b := newBundle(o.Operands)
	g.h.mu.Lock()
	n, err := g.addAlloc(p, o, b)
	g.h.mu.Unlock()
	if err != nil {
		b.release()
	}
	return n, err
}

func (g *Graph) addAlloc(wanted cuda.AllocNodeParams, o NodeOptions, b *bundle) (*Node, error) {
	if wanted.Size == 0 {
		return nil, badValue("size", "must be at least 1 byte")
	}
	if wanted.On == nil {
		wanted.On = g.h.ctx
	}
	p := AllocParams{Size: wanted.Size, Ordinal: wanted.On.Device().Ordinal()}
	for _, peer := range wanted.Peers {
		p.Peers |= 1 << peer.Ordinal()
	}
	n, err := g.addLocked(cuda.AllocNode, o, b, nil, func(deps []cuda.NodeHandle) (n cuda.NodeHandle, err error) {
		n, p.Ptr, err = g.h.ctx.AddAllocNode(g.handle, deps, wanted)
		return n, err
	})
	if err != nil {
		return nil, err
	}
	n.params, n.memory = p, &allocation{ptr: p.Ptr}
	n.memory.h.Store(g.h)
	g.h.remember(p.Ptr, wanted.On)
	return n, nil
}

// Free adds a node that frees what an alloc node allocates: one of this graph, or
// of another that is launched before. It calls cuGraphAddMemFreeNode.
//
// Errors: an [*cuda.ArgumentError] if a node of the graph of m frees it already;
// an [*cuda.Error] if another node of this graph does.
func (g *Graph) Free(m Memory, o NodeOptions) (*Node, error) {
	a := m.node()
	return g.add(cuda.FreeNode, o, FreeParams{a.ptr}, func(deps []cuda.NodeHandle) (n cuda.NodeHandle, err error) {
		if err := a.freeable(); err != nil {
			return n, g.explainFreed(err, a.ptr)
		}
		n, err = g.h.ctx.AddFreeNode(g.handle, deps, a.ptr)
		if errors.Is(err, cuda.ErrorInvalidValue) {
			err = g.explainFreed(err, a.ptr)
		}
		if err == nil && a.h.Load() == g.h {
			a.freed.Store(true)
		}
		return n, err
	})
}

// explainFreed adds to an error which node of g frees an address already, if there
// is one: memory that is never allocated at once can have one address.
//
// Preconditions: g.h.mu is held.
func (g *Graph) explainFreed(err error, ptr uint64) error {
	var by *Node
	for _, n := range g.all() {
		if p, ok := n.params.(FreeParams); ok && p.Ptr == ptr {
			if by != nil {
				return err
			}
			by = n
		}
	}
	var call *cuda.Error
	switch {
	case by == nil:
		return err
	case errors.As(err, &call):
		call.Detail = fmt.Sprintf("%v of this graph frees the memory at %#x already", by, ptr)
		return err
	}
	return badValue("memory", "%#x is freed by %v of this graph already", ptr, by)
}

// explainFreed is [Graph.explainFreed] for an error of an operation of c, whose
// nodes have no names yet.
//
// Preconditions: c.mu is held.
func (c *Capture) explainFreed(err error, params any) error {
	var call *cuda.Error
	p, ok := params.(FreeParams)
	if !ok || !errors.As(err, &call) || call.Result != cuda.ErrorInvalidValue {
		return err
	}
	for _, op := range c.recorded {
		if op.params == any(p) {
			call.Detail = fmt.Sprintf("this capture frees the memory at %#x already", p.Ptr)
		}
	}
	return err
}

// Memory returns a holder of the memory of an alloc node: until it is released,
// the address stays reserved, even if the graph is closed.
//
// Errors: an [*cuda.ArgumentError] for a node of another kind; [cuda.ErrClosed].
func (n *Node) Memory() (Memory, error) {
	h := n.g.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if n.kind != cuda.AllocNode {
		return nil, badValue("node", "%q is of kind %v and has no memory", n.name, n.kind)
	}
	if h.closed {
		return nil, &cuda.ClosedError{What: "graph"}
	}
	if n.removed {
		return nil, &RemovedError{n.String()}
	}
	if n.memory == nil {
		return nil, badValue("node", "%q was captured without a trace of its memory", n.name)
	}
	if on := h.memory[n.memory.ptr]; on != nil && on.IsLost() {
		return nil, &cuda.LostError{What: "memory of " + n.String(), Device: on.Device()}
	}
	h.holders++
	return &memoryHold{h: h, allocation: n.memory}, nil
}

// memoryHold is a holder of a hierarchy, on behalf of memory in it.
type memoryHold struct {
	h          *hierarchy
	allocation *allocation
	released   atomic.Bool
}

// Ptr implements [Memory].
func (m *memoryHold) Ptr() uint64 { return m.allocation.ptr }

func (m *memoryHold) node() *allocation { return m.allocation }

// Release implements [Retainer].
func (m *memoryHold) Release() {
	if m.released.Swap(true) {
		panic("BUG: graph memory was released twice")
	}
	if err := m.h.drop(); err != nil {
		warn(err)
	}
}

// HasMemory reports whether g, or a graph that was moved into it, allocates or
// frees memory: the driver removes no node of such a graph. A body does neither.
func (g *Graph) HasMemory() bool {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return g.hasMemory()
}

// hasMemory is HasMemory.
//
// Preconditions: g.h.mu is held.
func (g *Graph) hasMemory() bool {
	return len(g.h.memory) > 0 || g.h.frees || g.counts[cuda.AllocNode] > 0 || g.counts[cuda.FreeNode] > 0
}

// remember notes memory of an alloc node. Nodes whose memory is never allocated
// at once can have one address, which is noted once: it must not be freed twice.
//
// Preconditions: h.mu is held.
func (h *hierarchy) remember(ptr uint64, on *cuda.Context) {
	if h.memory == nil {
		h.memory = make(map[uint64]*cuda.Context)
	}
	h.memory[ptr] = on
}

// allocated lists the memory that launches have left allocated.
//
// Preconditions: h has no holder left.
func (h *hierarchy) allocated() []uint64 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(h.memory)), func(ptr uint64) bool {
		allocated, err := h.memory[ptr].IsAllocated(ptr)
		return err != nil || !allocated
	})
}

// devices lists the contexts whose work may use the memory of alloc nodes: that of
// the graph, and those of the memory.
//
// Preconditions: h has no holder left.
func (h *hierarchy) devices() []*cuda.Context {
	list := []*cuda.Context{h.ctx}
	for _, on := range h.memory {
		if !slices.Contains(list, on) {
			list = append(list, on)
		}
	}
	return list
}

// freeLeft makes the reaper free the memory that launches left allocated, and
// destroy the driver graph. Nothing refers to the memory any more, but work in
// any stream may still use it, so the reaper waits for all work of the context.
func (h *hierarchy) freeLeft() {
	if !h.reaper.Add(&unfreedMemory{h: h}) {
		live.abandoned.Add(1) // at exit: the process's end frees it
	}
}

// unfreedMemory is a driver graph without holders whose launches left memory
// allocated, as an item of the reaper.
type unfreedMemory struct {
	h     *hierarchy
	freed bool
}

// Step implements finalize.Item.
func (m *unfreedMemory) Step() (done bool, err error) {
	if !m.freed {
		m.h.ctx.Driver().Relaxed(func() { m.freed, err = m.h.freeNow() })
	}
	if !m.freed {
		return false, err
	}
	done, second := m.h.destroy()
	return done, errors.Join(err, second)
}

// freeNow frees what is still allocated once all work is over: a node of another
// graph may have freed it meanwhile. It must come before the graph is destroyed,
// because the address may then belong to somebody else.
func (h *hierarchy) freeNow() (done bool, err error) {
	for _, ctx := range h.devices() {
		if ctx.IsLost() {
			continue
		}
		second := ctx.Synchronize()
		if isCaptureRefusal(second) {
			return false, nil // asked again
		}
		err = errors.Join(err, second)
	}
	for _, ptr := range h.allocated() {
		on := h.memory[ptr]
		err = errors.Join(err, on.FreeAsync(ptr, on.DefaultStream(cuda.Legacy)))
	}
	return true, err
}
