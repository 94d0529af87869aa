// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/cudago/cudago/cuda"
)

// Move adds a node that runs sub itself, where [Graph.Child] makes a copy: so sub
// may allocate and free memory. g takes over what sub holds, and sub is closed by
// the call; what holds its memory keeps g's driver graph then. It calls
// cuGraphAddNode.
//
// Errors: as for [Graph.Child]; an [*cuda.ArgumentError] also if sub has open
// executables, is in g or has g in it, or if other code has its handle. sub is as
// it was then.
func (g *Graph) Move(sub *Graph, o NodeOptions) (*Node, error) {
	b := newBundle(o.Operands)
	n, gone, err := g.addMoved(sub, o, b)
	if err != nil {
		b.release()
		return nil, err
	}
	live.graphs.Add(-1)
	releaseAll(gone) // g holds them, so nothing ends here
	if err := sub.h.drop(); err != nil {
		warn(err)
	}
	return n, nil
}

func (g *Graph) addMoved(sub *Graph, o NodeOptions, b *bundle) (n *Node, gone []*bundle, err error) {
	defer lockBoth(g.h, sub.h)()
	if err := sub.mayMove(g); err != nil {
		return nil, nil, err
	}
	n, err = g.addLocked(cuda.ChildGraphNode, o, b, nil, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.MoveChildGraphNode(g.handle, deps, sub.handle)
	})
	if err != nil {
		if sub.hasConditional() || sub.h.unusedConditions() != "" {
			return nil, nil, sub.explainRefusal("cuGraphAddNode", "be moved", "build it again", err)
		}
		return nil, nil, err
	}
	n.child = sub.view(g.h)
	n.child.takeMemory(sub, g.h)
	n.child.noteElsewhere(sub.h.ctx)
	g.watch.notify(n.child.bundles(), nil)
	return n, sub.giveUp(g.h), nil
}

// mayMove returns why g cannot be moved into another graph, or nil.
//
// Preconditions: the locks of both graphs are held.
func (g *Graph) mayMove(into *Graph) error {
	if err := g.usable("be moved"); err != nil {
		return err
	}
	execs := g.h.execs.Load()
	switch {
	case g.h == into.h:
		return badValue("graph", "is the one that it would be moved into, or has that in it")
	case g.h.foreign || g.h.exported:
		return badValue("graph", "has a handle that other code has, and may destroy: embed a copy")
	case execs > 0:
		return badValue("graph", "has %d open executables: close them first, or embed a copy", execs)
	}
	if into.owner != nil {
		return g.mayBeInBody(into.owner)
	}
	return nil
}

// takeMemory gives the nodes of a view, in which the nodes of the graph itself
// are, the memory of that graph.
//
// Preconditions: the locks of both graphs are held.
func (g *Graph) takeMemory(from *Graph, h *hierarchy) {
	nodes := g.all()
	for i, n := range from.all() {
		if n.memory != nil {
			nodes[i].memory = n.memory
			n.memory.h.Store(h)
		}
		if n.child != nil {
			nodes[i].child.takeMemory(n.child, h)
		}
	}
}

// allocates reports whether a node of g, or of what it embeds, allocates memory.
func (g *Graph) allocates() bool {
	return slices.ContainsFunc(g.nodes, func(n *Node) bool { return n.memory != nil || n.child != nil && n.child.allocates() })
}

// giveUp closes a graph whose driver graph is part of another now. It returns the
// bundles of g, for the caller to release.
//
// Preconditions: the locks of both are held; executables of g are closed.
func (g *Graph) giveUp(to *hierarchy) []*bundle {
	to.frees = to.frees || g.h.frees || g.frees()
	for ptr, on := range g.h.memory {
		to.remember(ptr, on)
	}
	g.h.memory = nil
	g.h.closed, g.h.of = true, to
	to.holders++
	bundles := g.bundles()
	g.forget()
	g.watch.notify(nil, bundles)
	return bundles
}
