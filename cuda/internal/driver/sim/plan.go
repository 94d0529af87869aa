// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// plan is what an executable runs: nodes in an order that respects the edges,
// with child graphs flattened. A plan that was launched is immutable.
type plan struct {
	nodes   []planNode
	records []int32 // the event record nodes among nodes
	awaits  []int32 // the event wait nodes among nodes
	waits   bool    // a node waits for a value or a semaphore

	ancestry sync.Once
	ancients [][]uint64 // by node, the set of those that happen before what it does
}

// planNode is a node of a plan. Empty nodes, and the ends of child graphs, have
// no work.
type planNode struct {
	work     work
	disabled bool
	after    []int32 // what it depends on; all of lower index
	early    []int32 // of these, what need not have ended when it starts
	bodies   []span  // of a conditional node, behind it
	inside   int32   // the conditional node in whose body it is, or -1

	// For messages: the name and number in its graph, and the node that starts
	// the child graph, or has the body, that it is in, or -1.
	name   string
	order  int32
	within int32
}

// span is a range of nodes of a plan.
type span struct{ from, to int32 }

// next returns the node behind n, which is at i, and behind its bodies.
func (n *planNode) next(i int32) int32 {
	if len(n.bodies) > 0 {
		return n.bodies[len(n.bodies)-1].to
	}
	return i + 1
}

// shape is the structure of a graph at the time of instantiating it. Updates
// compare with it, since the graph may have changed or gone. All but the objects
// is immutable.
type shape struct {
	nodes []shapeNode
	sinks []int32
	// objects are what the executable holds for this graph, not for an inner one.
	objects userObjects // guarded by graphExec.mu
}

type shapeNode struct {
	source *node
	kind   driver.CUgraphNodeType
	before []int32 // indices into nodes, in the order of making the edges
	data   []driver.CUgraphEdgeData
	child  *shape
	bodies []*shape
	at     int32 // the node in the plan; for a child graph, its end
}

// planner flattens a graph.
type planner struct {
	plan   *plan
	index  map[*node]int32 // where a node is in the plan
	inside int32           // the conditional node whose body is planned, or -1
}

func newPlanner() planner { return planner{plan: &plan{}, index: map[*node]int32{}, inside: -1} }

// shape adds a graph to the plan, to run after the nodes in roots. It returns
// nil if the graph has a cycle.
//
// Preconditions: simulator.graphMu must be locked.
func (b *planner) shape(g *graph, roots []int32) *shape {
	nodes := g.nodes.All()
	order := sorted(nodes)
	if order == nil && len(nodes) > 0 {
		return nil
	}
	inner := map[*node][]*shape{}
	position := make(map[*node]int32, len(nodes))
	for i, n := range nodes {
		position[n] = int32(i)
	}
	within := int32(-1)
	if g.parent != nil && len(roots) > 0 {
		within = roots[0]
	}
	for _, n := range order {
		after := make([]int32, 0, max(n.before.Len(), len(roots)))
		var early []int32
		for _, p := range n.before.All() {
			after = append(after, b.index[p])
			if n.data[p].FromPort != 0 {
				early = append(early, b.index[p])
			}
			if p.bodies != nil {
				after = append(after, ends(inner[p])...)
			}
		}
		if n.before.Len() == 0 {
			after = append(after, roots...)
		}
		if n.child != nil {
			start := planNode{after: after, name: n.name, order: position[n], within: within}
			if after = b.embed(n, start, inner); after == nil {
				return nil
			}
		}
		b.index[n] = b.add(planNode{work: n.work, after: after, early: early, name: n.name, order: position[n], within: within})
		if !b.conditional(n, inner) {
			return nil
		}
	}
	return b.describe(g, inner, position)
}

// conditional adds the bodies of a conditional node behind it. It reports false
// if one has a cycle.
func (b *planner) conditional(n *node, inner map[*node][]*shape) bool {
	at, outer := b.index[n], b.inside
	b.inside = at
	defer func() { b.inside = outer }()
	for _, body := range n.bodies {
		from := int32(len(b.plan.nodes))
		s := b.shape(body, []int32{at})
		if s == nil {
			return false
		}
		inner[n] = append(inner[n], s)
		b.plan.nodes[at].bodies = append(b.plan.nodes[at].bodies, span{from, int32(len(b.plan.nodes))})
	}
	return true
}

// ends lists the last nodes of the bodies of a conditional node: what follows it
// comes after them. A child graph has a node of its own for that.
func ends(bodies []*shape) []int32 {
	var list []int32
	for _, s := range bodies {
		for _, sink := range s.sinks {
			list = append(append(list, s.nodes[sink].at), ends(s.nodes[sink].bodies)...)
		}
	}
	return list
}

// embed adds a child graph between a node that starts it and, by the caller,
// one that ends it.
func (b *planner) embed(n *node, first planNode, inner map[*node][]*shape) []int32 {
	start := b.add(first)
	s := b.shape(n.child, []int32{start})
	if s == nil {
		return nil
	}
	inner[n] = []*shape{s}
	ends := []int32{start}
	for _, sink := range s.sinks {
		ends = append(ends, s.nodes[sink].at)
	}
	return ends
}

func (b *planner) add(n planNode) int32 {
	n.inside = b.inside
	switch n.work.(type) {
	case *eventRecordWork:
		b.plan.records = append(b.plan.records, int32(len(b.plan.nodes)))
	case *eventWaitWork:
		b.plan.awaits = append(b.plan.awaits, int32(len(b.plan.nodes)))
	}
	if w, ok := n.work.(awaiting); ok && w.mayWait() {
		b.plan.waits = true
	}
	b.plan.nodes = append(b.plan.nodes, n)
	return int32(len(b.plan.nodes) - 1)
}

func (b *planner) describe(g *graph, inner map[*node][]*shape, position map[*node]int32) *shape {
	s := &shape{nodes: make([]shapeNode, g.nodes.Len())}
	for i, n := range g.nodes.All() {
		sn := shapeNode{source: n, kind: n.kind, data: n.edgeData(), at: b.index[n]}
		if n.child != nil {
			sn.child = inner[n][0]
		} else {
			sn.bodies = inner[n]
		}
		for _, p := range n.before.All() {
			sn.before = append(sn.before, position[p])
		}
		s.nodes[i] = sn
		if n.after.Len() == 0 {
			s.sinks = append(s.sinks, int32(i))
		}
	}
	return s
}

// sorted returns the nodes in an order that respects the edges and otherwise
// follows their creation; nil if there is a cycle.
func sorted(nodes []*node) []*node {
	wanted := make(map[*node]int, len(nodes))
	var ready []*node
	for _, n := range nodes {
		wanted[n] = n.before.Len()
		if wanted[n] == 0 {
			ready = append(ready, n)
		}
	}
	order := make([]*node, 0, len(nodes))
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		order = append(order, n)
		for _, a := range n.after.All() {
			if wanted[a]--; wanted[a] == 0 {
				ready = append(ready, a)
			}
		}
	}
	if len(order) < len(nodes) {
		return nil
	}
	return order
}

func (p *plan) clone() *plan {
	return &plan{nodes: slices.Clone(p.nodes), records: p.records, awaits: p.awaits, waits: p.waits}
}

// contexts returns the contexts that the plan's work is bound to.
func (p *plan) contexts() []*context {
	var list []*context
	for i := range p.nodes {
		if c := contextOfWork(p.nodes[i].work); c != nil && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

func contextOfWork(w work) *context {
	switch w := w.(type) {
	case *conditionalWork:
		return w.condition.ctx
	case *kernelWork:
		return w.fn.module.ctx
	case *copyWork:
		return w.ctx
	case *fillWork:
		return w.ctx
	case *memOpWork:
		return w.ctx
	case *semaphoreWork:
		return w.context()
	case *allocWork:
		return w.a.memory.ctx
	}
	return nil
}

// isDenied reports whether a captured fill cannot reach its memory.
func (p *plan) isDenied() bool {
	return slices.ContainsFunc(p.nodes, func(n planNode) bool {
		w, ok := n.work.(*fillWork)
		return ok && w.captured && w.isDenied()
	})
}

// allocs returns what the plan allocates, and which of that it does not free.
func (p *plan) allocs() (all, unfreed []*graphAlloc, frees []*graphAlloc) {
	left := map[*graphAlloc]int{} // nodes that allocate, less nodes that free
	for i := range p.nodes {
		switch w := p.nodes[i].work.(type) {
		case *allocWork:
			all = append(all, w.a)
			left[w.a]++
		case *graphFreeWork:
			frees = append(frees, w.a)
			left[w.a]--
		}
	}
	for _, a := range all {
		if left[a] > 0 && !slices.Contains(unfreed, a) {
			unfreed = append(unfreed, a)
		}
	}
	return all, unfreed, frees
}
