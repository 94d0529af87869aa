// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/ordered"
)

// Remove removes n and its edges. What is inside n ends with it. Its operands
// are released, unless a clone, a parent or an executable holds them too;
// executables run n as before, but cannot update it any more. It calls
// cuGraphDestroyNode.
//
// Errors, here and in the calls below: an [*cuda.ArgumentError] for a node of
// another graph; a [*RemovedError]; [cuda.ErrClosed]; otherwise an
// [*cuda.Error], for instance if the graph allocates memory. On an error the
// graph is as it was.
func (g *Graph) Remove(n *Node) error {
	bundles, err := g.remove(n)
	releaseAll(bundles)
	return err
}

func (g *Graph) remove(n *Node) (bundles []*bundle, err error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.editable(n); err != nil {
		return nil, err
	}
	if n.child != nil && n.child.allocates() {
		return nil, &cuda.Error{Op: "cuGraphDestroyNode", Result: cuda.ErrorNotSupported,
			Detail: n.String() + " has memory, whose addresses would no longer be reserved"}
	}
	err = patiently("cuGraphDestroyNode", func() (bool, error) { return g.h.ctx.TryDestroyNode(n.handle) })
	if err != nil {
		return nil, g.explainRemoval(err)
	}
	n.removed, g.h.edited = true, true
	g.gone++
	delete(g.byName, n.name)
	for _, d := range n.deps.All() {
		g.uncount(d, n)
		d.next.Remove(n)
	}
	for _, m := range n.next.All() {
		g.uncount(n, m)
		m.dropDep(n)
	}
	n.deps, n.early, n.next = ordered.Set[*Node]{}, nil, ordered.Set[*Node]{}
	if g.order != nil {
		g.order.remove(n)
	}
	if n.bundle != nil {
		bundles = append(bundles, n.bundle)
	}
	n.bundle = nil
	n.eachInner("", func(_ string, inner *Graph) {
		bundles = append(bundles, inner.bundles()...)
		inner.forget()
	})
	g.pin(bundles)
	g.watch.notify(nil, bundles)
	return bundles, nil
}

// explainRemoval adds to a refusal what in the graph is the reason.
//
// Preconditions: g.h.mu is held.
func (g *Graph) explainRemoval(err error) error {
	var call *cuda.Error
	if errors.As(err, &call) && call.Result == cuda.ErrorNotSupported && (len(g.h.memory) > 0 || g.frees()) {
		call.Detail = "the graph allocates or frees memory, so that nothing can be removed from it: build it again"
	}
	return err
}

// patiently makes a call that destroys a graph inside a node: see
// [cuda.Context.TryDestroyNode]. Calls that keep it from that are short, except an
// instantiation, which may be waiting for this very thread.
//
// Preconditions: the lock of the node's graph is held.
func patiently(op string, try func() (done bool, err error)) error {
	const attempts, pause = 100, 50 * time.Microsecond
	for range attempts {
		if done, err := try(); done {
			return err
		}
		time.Sleep(pause)
	}
	return &cuda.Error{Op: op, Result: cuda.ErrorNotReady,
		Detail: "another thread is instantiating a graph: try again once it is done"}
}

// AddEdge makes to wait for what data says of from; the zero value is for its
// completion. It calls cuGraphAddDependencies.
//
// Errors: also an [*cuda.ArgumentError] for an edge that exists or that would
// close a cycle, with the path, and for data that is not for these nodes;
// [cuda.ErrorNotSupported] for data on a device without programmatic launches.
func (g *Graph) AddEdge(from, to *Node, data cuda.EdgeData) error {
	return g.ChangeEdges([]Edge{{from, to, data}}, nil)
}

// RemoveEdge undoes [Graph.AddEdge], or removes one of the dependencies that to
// was added with. It calls cuGraphRemoveDependencies.
//
// Errors: also an [*cuda.ArgumentError] if there is no such edge.
func (g *Graph) RemoveEdge(from, to *Node) error {
	return g.ChangeEdges(nil, []Edge{{From: from, To: to}})
}

// ChangeEdges adds edges, and removes others, whatever their data. All of them have
// one node in common, at the same end: so whether one closes a cycle does not depend
// on the others. On an error none has changed.
//
// Errors: as of [Graph.AddEdge] and [Graph.RemoveEdge].
func (g *Graph) ChangeEdges(add, remove []Edge) error {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	for _, e := range add {
		if err := g.mayAdd(e); err != nil {
			return err
		}
	}
	was := slices.Clone(remove)
	for i, e := range remove {
		if err := g.editable(e.From, e.To); err != nil {
			return err
		}
		if !e.To.deps.Has(e.From) {
			return badValue("edge", "must exist, and %v does not wait for %v", e.To, e.From)
		}
		was[i].Data = e.To.early[e.From]
	}
	// Removed first: a graph that allocates takes edges, and gives none back.
	if err := g.removeEdges(was); err != nil {
		return err
	}
	if err := g.addEdges(add); err != nil {
		return errors.Join(err, g.addEdges(was))
	}
	return nil
}

// mayAdd returns why an edge cannot be added, or nil.
//
// Preconditions: g.h.mu is held.
func (g *Graph) mayAdd(e Edge) error {
	if err := g.editable(e.From, e.To); err != nil {
		return err
	}
	if e.To.deps.Has(e.From) {
		return badValue("edge", "must be new, and %v already waits for %v", e.To, e.From)
	}
	if path := g.cycle(e.From, e.To); path != nil {
		return badValue("edge", "must not close a cycle: %s", pathText(path))
	}
	return mayHave(e.Data, e.From, e.To)
}

// addEdges adds edges that may be added, in one call: all or none.
//
// Preconditions: g.h.mu is held.
func (g *Graph) addEdges(edges []Edge) error {
	if len(edges) == 0 {
		return nil
	}
	if err := g.h.ctx.AddDependencies(raw(g, edges)); err != nil {
		return err
	}
	g.h.edited = true
	for _, e := range edges {
		if g.order != nil {
			g.order.admit(e.From, e.To) // again: another edge, admitted since, may have moved nodes
		}
		e.To.addDep(e.From, e.Data)
		e.From.next.Add(e.To)
		if e.From.index > e.To.index {
			g.backward++
		}
	}
	return nil
}

// removeEdges removes edges that there are, in one call: all or none.
//
// Preconditions: g.h.mu is held.
func (g *Graph) removeEdges(edges []Edge) error {
	if len(edges) == 0 {
		return nil
	}
	if err := g.h.ctx.RemoveDependencies(raw(g, edges)); err != nil {
		return g.explainRemoval(err)
	}
	g.h.edited = true
	for _, e := range edges {
		g.uncount(e.From, e.To)
		e.To.dropDep(e.From)
		e.From.next.Remove(e.To)
	}
	return nil
}

func raw(g *Graph, edges []Edge) (of cuda.GraphHandle, from, to []cuda.NodeHandle, data []cuda.EdgeData) {
	for _, e := range edges {
		from, to, data = append(from, e.From.handle), append(to, e.To.handle), append(data, e.Data)
	}
	return g.handle, from, to, data
}

// editable returns why the edges of nodes cannot be changed, or nil.
//
// Preconditions: g.h.mu is held.
func (g *Graph) editable(nodes ...*Node) error {
	if err := g.usable(beChanged); err != nil {
		return err
	}
	for _, n := range nodes {
		if n == nil || n.g != g {
			return badValue("node", "must be one of this graph, got %s", describeNode(n))
		}
		if n.removed {
			return &RemovedError{n.String()}
		}
	}
	return nil
}

// isGone reports whether n, or a node that n is inside of, was removed.
//
// Preconditions: the lock of n's graph is held.
func (n *Node) isGone() bool { return n.removed || n.g.removedOwner() != nil }

// uncount takes an edge out of g.backward.
func (g *Graph) uncount(from, to *Node) {
	if from.index > to.index {
		g.backward--
	}
}

// cycle returns the path that an edge would close, from a node to itself, or nil.
//
// Preconditions: g.h.mu is held.
func (g *Graph) cycle(from, to *Node) []*Node {
	if from.index < to.index && g.backward == 0 && g.order == nil {
		return nil // the order of creation is one
	}
	if g.order == nil {
		g.order = newOrder(g.all())
	}
	if g.order != nil && g.order.admit(from, to) {
		return nil
	}
	if path := g.path(to, from); path != nil {
		return append(path, to)
	}
	return nil
}

// path returns nodes that lead from one to the other, or nil.
//
// Preconditions: g.h.mu is held.
func (g *Graph) path(from, to *Node) []*Node {
	came := map[*Node]*Node{from: nil}
	for todo := []*Node{from}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n == to {
			var path []*Node
			for ; n != nil; n = came[n] {
				path = append(path, n)
			}
			slices.Reverse(path)
			return path
		}
		for _, next := range n.next.All() {
			if _, seen := came[next]; !seen {
				came[next] = n
				todo = append(todo, next)
			}
		}
	}
	return nil
}

// pathText returns "a → b → c", with the middle of a long path left out.
func pathText(path []*Node) string {
	const most = 12
	var names []string
	for i, n := range path {
		switch {
		case len(path) <= most || i < most/2 || i >= len(path)-most/2:
			names = append(names, n.name)
		case i == most/2:
			names = append(names, "…")
		}
	}
	return strings.Join(names, " → ")
}
