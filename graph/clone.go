// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"

	"github.com/cudago/cudago/cuda"
)

// Clone returns a copy of g as it is now, with the same names. The copy holds
// the operands itself: updating or closing one graph does not affect the other.
// It calls cuGraphClone, and cuGraphNodeFindInClone for each node.
//
// Errors: [cuda.ErrClosed]; an [*cuda.ArgumentError] for an embedded graph;
// otherwise an [*cuda.Error].
func (g *Graph) Clone(o Options) (*Graph, error) {
	g.h.mu.Lock()
	c, err := g.clone(o)
	g.h.mu.Unlock()
	if err != nil && c != nil {
		// A partial clone, which retained the bundles of the nodes found so
		// far.
		c.watch = nil // the owner has not heard of it
		return nil, errors.Join(err, c.Close())
	}
	return c, err
}

// clone returns a partial clone with an error, for the caller to close after
// unlocking.
//
// Preconditions: g.h.mu is held.
func (g *Graph) clone(o Options) (*Graph, error) {
	if err := g.usable("be cloned"); err != nil {
		return nil, err
	}
	ctx := g.h.ctx
	handle, err := ctx.GraphClone(g.h.handle)
	if err != nil {
		return nil, g.explainRefusal("cuGraphClone", "be cloned", "build it again", err)
	}
	c := adopt(ctx, handle, o)
	c.h.edited = g.h.edited
	// Nobody else knows c yet, but view and commit want the lock held.
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	err = c.copyFrom(g, func(n *Node) (cuda.NodeHandle, error) {
		return ctx.NodeFindInClone(n.handle, handle)
	})
	if err != nil {
		return c, err
	}
	c.watch.notify(c.bundles(), nil)
	return c, nil
}

// explainRefusal returns err, or if the driver has refused to copy g an error that
// says what in g is the reason, and what to do instead.
//
// Preconditions: g.h.mu is held.
func (g *Graph) explainRefusal(op, verb, instead string, err error) error {
	why := ""
	switch {
	case !errors.Is(err, cuda.ErrorNotSupported):
	case g.hasConditional():
		why = "has conditional nodes"
	case g.h.unusedConditions() != "":
		why = "has conditions (" + g.h.unusedConditions() + ")"
	case len(g.h.memory) > 0 || g.frees():
		why = "allocates or frees memory"
	}
	if why == "" {
		return err
	}
	return &cuda.Error{
		Op: op, Result: cuda.ErrorNotSupported,
		Detail: "the graph " + why + ", with which no graph can " + verb + ": " + instead,
	}
}

// frees reports whether a node of g, or of what it embeds, frees memory.
func (g *Graph) frees() bool {
	return g.counts[cuda.FreeNode] > 0 || slices.ContainsFunc(g.all(), func(n *Node) bool { return n.child != nil && n.child.frees() })
}

// hasConditional reports whether a node of g, or of what it embeds, is
// conditional.
func (g *Graph) hasConditional() bool {
	for _, n := range g.all() {
		if len(n.bodies) > 0 || n.child != nil && n.child.hasConditional() {
			return true
		}
	}
	return false
}

// copyFrom copies the nodes of another graph and retains their bundles.
// handleOf returns the node of the driver's copy for a node. After an error g
// has only some of them.
//
// Preconditions: the locks of both graphs are held.
func (g *Graph) copyFrom(from *Graph, handleOf func(*Node) (cuda.NodeHandle, error)) error {
	g.names() // copied names are no counts
	copies := make(map[*Node]*Node, len(from.all()))
	for _, n := range from.all() {
		handle, err := handleOf(n)
		if err != nil {
			return err
		}
		c := &Node{g: g, handle: handle, kind: n.kind, name: n.name, params: n.params, bundle: n.bundle.retain()}
		c.SetSite(n.Site())
		if n.child != nil {
			c.child = n.child.view(g.h)
		}
		copies[n] = c
		g.commit(c)
	}
	// In a second pass: a captured graph's nodes come in the driver's order, so
	// a dependency may come later.
	from.linkCopies(copies)
	for _, b := range from.loose {
		g.loose = append(g.loose, b.retain())
	}
	return nil
}

// linkCopies gives copies of g's nodes the dependencies of the originals.
func (g *Graph) linkCopies(copies map[*Node]*Node) {
	for _, n := range g.all() {
		copies[n].copyEdges(n.edges(), copies)
	}
}
