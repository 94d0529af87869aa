// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// Options are how a [Graph] reports to its owner. The zero value reports
// nothing.
type Options struct {
	// OnBundle receives each change of what the graph holds: the operands of a
	// node that it has begun to hold, or that it no longer does, of which some may
	// have no retainer. What is reachable twice, through two embeddings of one
	// graph, is reported twice. The list must not be kept.
	// Nothing is reported as removed from a captured graph that its owner never
	// got: see [Capture.Abort].
	//
	// It runs within the call that makes the change, on that goroutine, with a
	// lock of the graph held: it must not call back into this package, nor run
	// foreign code, nor wait.
	OnBundle func(list []Operand, held bool)
	// Reaper frees memory that launches left allocated, once the graph and all
	// holders of its memory are gone. Nil: the one that [Reaper] returns.
	Reaper *finalize.Reaper
	// Origin says in words what a [Node.Site] is, or nothing; for the errors of a
	// capture's end. Nil: says nothing. It must not wait, and runs with a lock held.
	Origin func(site uint32) string
}

// A Graph is an editable graph: nodes and their dependencies. It keeps the
// operands of its nodes alive until it is closed or the node is updated; its
// clones, the graphs that embed it and its executables each hold them too.
//
// Close it when done. Safe for concurrent use.
type Graph struct {
	h        *hierarchy
	handle   cuda.GraphHandle // immutable; zero for a view
	embedded bool             // immutable; a view of a child graph node's graph
	owner    *Node            // immutable; the conditional node that g is a body of, or nil
	watch    watcher

	nodes []*Node // guarded by h.mu; in order of creation, with removed ones: see all
	made  int     // guarded by h.mu; nodes so far
	gone  int     // guarded by h.mu; removed ones among nodes
	// backward counts edges to an older node: captures and AddEdge make them.
	backward int                   // guarded by h.mu; zero: no path leads to an older node
	order    *order                // guarded by h.mu; nil until it is needed: see cycle
	byName   map[string]*Node      // guarded by h.mu; nil until it is needed: see names
	counts   map[cuda.NodeType]int // guarded by h.mu; for automatic names
	loose    []*bundle             // guarded by h.mu; of g as a whole, and of captured operations without a known node
	resolved uint64                // guarded by h.mu; how often dependencies were resolved
}

// A hierarchy is a driver graph with everything embedded in it. The driver does
// not synchronize graph objects, not even for calls that look read-only, and
// the graphs of one hierarchy share state: hence one lock for all of them.
type hierarchy struct {
	ctx    *cuda.Context
	order  uint64 // immutable; of two hierarchies, the lower one is locked first
	handle cuda.GraphHandle
	reaper *finalize.Reaper // immutable

	busy   atomic.Int32 // calls that may block, announced before they lock mu
	execs  atomic.Int32 // executables that are not closed; new ones are made with mu held
	ending atomic.Int32 // executables that are closed, and not destroyed yet

	// mu is never held while a Retainer is released. It is held across one call
	// that can block, cuGraphInstantiateWithParams: see [Graph.Busy].
	mu         sync.Mutex
	closed     bool                     // guarded by mu; the Graph was closed
	holders    int                      // guarded by mu; the open Graph, executables, and those of memory
	memory     map[uint64]*cuda.Context // guarded by mu; the addresses that its nodes allocate, and where
	frees      bool                     // guarded by mu; a graph that frees memory was moved into it
	conditions []*Condition             // guarded by mu; all that were made
	edited     bool                     // guarded by mu; an edge was added, or an edge or a node removed
	spoiled    error                    // guarded by mu; why the driver's graph is not what we know

	foreign  bool       // immutable; someone else destroys the driver's graph
	of       *hierarchy // held, if its driver graph is the same or has this one; guarded by mu, and set once
	exported bool       // guarded by mu; other code has the handle: see Graph.Export
	pinned   []*bundle  // guarded by mu; what was given up since
}

var hierarchies atomic.Uint64

// New makes an empty graph. It calls cuGraphCreate.
func New(ctx *cuda.Context, o Options) (*Graph, error) {
	handle, err := ctx.GraphCreate()
	if err != nil {
		return nil, err
	}
	return adopt(ctx, handle, o), nil
}

// adopt makes a Graph of a driver graph and becomes its owner.
func adopt(ctx *cuda.Context, handle cuda.GraphHandle, o Options) *Graph {
	h := &hierarchy{ctx: ctx, order: hierarchies.Add(1), handle: handle, holders: 1, reaper: o.Reaper}
	if h.reaper == nil {
		h.reaper = Reaper()
	}
	live.graphs.Add(1)
	return newGraph(h, handle, o.OnBundle)
}

func newGraph(h *hierarchy, handle cuda.GraphHandle, watch watcher) *Graph {
	return &Graph{
		h: h, handle: handle, watch: watch,
		counts: make(map[cuda.NodeType]int),
	}
}

// Context returns the context that g belongs to.
func (g *Graph) Context() *cuda.Context { return g.h.ctx }

// Handle returns the CUgraph, for calls made elsewhere that neither change nor
// copy the graph. It must not be used after Close. For other code see
// [Graph.Export].
func (g *Graph) Handle() cuda.GraphHandle { return g.handle }

// IsEmbedded reports whether g is the view that [Node.Child] returns. Such a
// graph is read-only: it cannot be changed, cloned, instantiated or closed.
func (g *Graph) IsEmbedded() bool { return g.embedded }

// Owner returns the conditional node that g is a body of, or nil. Such a graph
// can be changed, but not cloned, embedded, instantiated or closed.
func (g *Graph) Owner() *Node { return g.owner }

// IsClosed reports whether g, or the graph that g is in, was closed.
func (g *Graph) IsClosed() bool {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return g.h.closed
}

// Nodes returns the nodes in order of creation.
func (g *Graph) Nodes() []*Node {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return append([]*Node(nil), g.all()...)
}

// all returns the nodes in order of creation.
//
// Preconditions: g.h.mu is held.
func (g *Graph) all() []*Node {
	if g.gone > 0 {
		g.nodes = slices.DeleteFunc(g.nodes, func(n *Node) bool { return n.removed })
		g.gone = 0
	}
	return g.nodes
}

// Node returns the node with the given name, or nil.
func (g *Graph) Node(name string) *Node {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return g.names()[name]
}

// An Edge says that To waits for From, and for what of it.
type Edge struct {
	From, To *Node
	Data     cuda.EdgeData
}

// Edges returns the edges, in order of their ends' creation.
func (g *Graph) Edges() []Edge {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	var edges []Edge
	for _, n := range g.all() {
		of := n.edges()
		for i, d := range of.deps {
			edges = append(edges, Edge{d, n, of.dataAt(i)})
		}
	}
	return edges
}

// Retained returns what g keeps alive.
func (g *Graph) Retained() []Retained {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	var list []Retained
	g.eachBundle("", func(path string, b *bundle) {
		list = b.describe(list, path)
	})
	return list
}

// Retainers returns what g holds now, as reported to OnBundle.
func (g *Graph) Retainers() []Retainer {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return retainersOf(g.bundles())
}

// EachHeld visits what g holds now, as reported to OnBundle, with a lock of g
// held: see there.
func (g *Graph) EachHeld(visit func(list []Operand)) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	g.eachBundle("", func(_ string, b *bundle) { b.visit(visit) })
}

// eachBundle visits the bundles of g and of the graphs inside it.
//
// Preconditions: g.h.mu is held.
func (g *Graph) eachBundle(prefix string, visit func(path string, b *bundle)) {
	for _, n := range g.all() {
		if n.bundle != nil {
			visit(prefix+n.name, n.bundle)
		}
		if n.child == nil && n.bodies == nil {
			continue
		}
		n.eachInner(prefix, func(prefix string, inner *Graph) { inner.eachBundle(prefix, visit) })
	}
	for _, b := range g.loose {
		visit(prefix, b)
	}
}

// eachLoose visits the bundles of g as a whole, and of the bodies in it.
//
// Preconditions: g.h.mu is held.
func (g *Graph) eachLoose(prefix string, visit func(path string, b *bundle)) {
	for _, n := range g.all() {
		if n.child == nil {
			n.eachInner(prefix, func(prefix string, body *Graph) { body.eachLoose(prefix, visit) })
		}
	}
	for _, b := range g.loose {
		visit(prefix, b)
	}
}

// bundles lists what eachBundle visits.
//
// Preconditions: g.h.mu is held.
func (g *Graph) bundles() []*bundle {
	list := make([]*bundle, 0, len(g.nodes)+len(g.loose))
	g.eachBundle("", func(_ string, b *bundle) { list = append(list, b) })
	return list
}

// Close releases the operands of g and destroys the driver graph; if
// executables need that for updates, the last of them destroys it. Closing
// twice is fine. It calls cuGraphDestroy, or leaves that to the reaper while
// another thread is inside a call that must not run at the same time. Does not
// block.
//
// Errors: an [*cuda.ArgumentError] for a graph in another; an [*cuda.Error] if
// the driver refuses. The operands are released in either case.
func (g *Graph) Close() error {
	if err := g.inside("be closed"); err != nil {
		return err
	}
	g.h.mu.Lock()
	if g.h.closed {
		g.h.mu.Unlock()
		return nil
	}
	g.h.closed = true
	bundles := g.bundles()
	g.forget()
	pinned := g.h.unpin()
	g.watch.notify(nil, bundles)
	g.h.mu.Unlock()

	live.graphs.Add(-1)
	err := g.h.drop()
	releaseAll(bundles)
	releaseAll(pinned)
	return err
}

// forget drops the bundles of g and of the graphs inside it; the caller takes
// over their counts.
//
// Preconditions: g.h.mu is held.
func (g *Graph) forget() {
	g.loose = nil
	for _, n := range g.all() {
		n.bundle = nil
		n.eachInner("", func(_ string, inner *Graph) { inner.forget() })
	}
}

// drop removes a holder. The last one destroys the driver graph, and frees the
// memory that its launches left allocated.
//
// Preconditions: h.mu is not held.
func (h *hierarchy) drop() error {
	h.mu.Lock()
	h.holders--
	last := h.holders == 0
	h.mu.Unlock()
	if !last {
		return nil
	}
	done, err := (*unheldGraph)(h).Step()
	if !done && !h.reaper.Add((*unheldGraph)(h)) {
		live.abandoned.Add(1)
	}
	return err
}

// An unheldGraph is a driver graph without holders, as an item of the reaper.
type unheldGraph hierarchy

// Step implements [finalize.Item]. It does nothing while another thread is
// inside a call during which NVIDIA's driver must not destroy a graph.
func (t *unheldGraph) Step() (done bool, err error) {
	h := (*hierarchy)(t)
	if len(h.allocated()) > 0 {
		h.freeLeft()
		return true, nil
	}
	return h.destroy()
}

func (h *hierarchy) destroy() (done bool, err error) {
	switch {
	case h.of != nil:
		return true, h.of.drop()
	case h.foreign:
		return true, nil
	}
	// Relaxed: nothing that happens here can invalidate a capture of another thread.
	h.ctx.Driver().Relaxed(func() { done, err = h.ctx.TryGraphDestroy(h.handle) })
	return done, err
}

// Busy reports whether a call on g, or on a graph inside it, may be blocking:
// then all other calls on them wait, including updates of its executables. A
// caller with the GIL must ask first, and release the GIL until the answer is
// no: the blocking call may wait for a callback that needs the GIL.
func (g *Graph) Busy() bool { return g.h.busy.Load() > 0 }

// Announce makes Busy true until end, which must be called once. Call it before
// releasing the GIL for [Graph.Instantiate], so that no thread that takes the
// GIL meanwhile finds Busy false and then waits.
func (g *Graph) Announce() (end func()) {
	g.h.busy.Add(1)
	return func() { g.h.busy.Add(-1) }
}

// lockBoth locks two hierarchies, which may be the same, in their order.
func lockBoth(a, b *hierarchy) (unlock func()) {
	if a == b {
		a.mu.Lock()
		return a.mu.Unlock
	}
	if a.order > b.order {
		a, b = b, a
	}
	a.mu.Lock()
	b.mu.Lock()
	return func() { b.mu.Unlock(); a.mu.Unlock() }
}

// beChanged is the only verb that is allowed for a body.
const beChanged = "be changed"

// usable returns why g cannot be used as the verb says, or nil.
//
// Preconditions: g.h.mu is held.
func (g *Graph) usable(verb string) error {
	if err := g.inside(verb); err != nil && (g.embedded || verb != beChanged) {
		return err
	}
	if g.h.closed {
		return &cuda.ClosedError{What: "graph"}
	}
	if g.h.spoiled != nil {
		return fmt.Errorf("the graph cannot be used any more: %w", g.h.spoiled)
	}
	if n := g.removedOwner(); n != nil {
		return &RemovedError{"body of " + n.String()}
	}
	return nil
}

// removedOwner returns the removed node that g was inside of, or nil.
//
// Preconditions: g.h.mu is held.
func (g *Graph) removedOwner() *Node {
	for n := g.owner; n != nil; n = n.g.owner {
		if n.removed {
			return n
		}
	}
	return nil
}
