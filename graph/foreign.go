// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"

	"github.com/cudago/cudago/cuda"
)

// Wrap makes a Graph of a driver graph that someone else owns and destroys. Its
// nodes are those that the graph has now; what others change later is not
// noticed, and must not be: a node that they remove must not be used here. The
// operands keep the owner alive, for as long as the Graph, or a clone, a parent
// or an executable of it. Operands of the nodes that are there already are not
// known. It calls cuGraphGetNodes, cuGraphNodeGetType and cuGraphGetEdges.
//
// of is the open Graph whose handle this is, or nil if it is none of ours. Its
// operands are held too, and its driver graph lives as long as the new Graph.
//
// Lifetime: operands belong to the Graph from the call on; if it fails they are
// released.
func Wrap(ctx *cuda.Context, handle cuda.GraphHandle, of *Graph, operands []Operand, o Options) (*Graph, error) {
	g := adopt(ctx, handle, o)
	g.h.foreign = true
	b := newBundle(operands)
	err := g.wrap(of, b)
	if err != nil {
		g.watch = nil // the owner has not been told of it
		err = errors.Join(err, g.Close())
		b.release()
		return nil, err
	}
	return g, nil
}

func (g *Graph) wrap(of *Graph, b *bundle) error {
	if of != nil {
		defer lockBoth(g.h, of.h)()
		if err := of.usable("be wrapped"); err != nil {
			return err
		}
	} else {
		g.h.mu.Lock()
		defer g.h.mu.Unlock()
	}
	nodes, edges, err := g.ask()
	if err == nil {
		_, err = g.read(nodes, edges, nil)
	}
	if err != nil {
		return err
	}
	g.nameRest()
	if b != nil {
		g.loose = append(g.loose, b)
	}
	if of != nil {
		of.h.holders++
		g.h.of = of.h
		g.h.edited = of.h.edited
		for _, theirs := range of.bundles() {
			g.loose = append(g.loose, theirs.retain())
		}
	}
	g.watch.notify(g.bundles(), nil)
	return nil
}

// Export returns the CUgraph for other code, which may make clones and
// executables of it that nobody here knows. So from now on nothing that g holds
// is released before g is closed: not by updates, nor by the removal of nodes.
func (g *Graph) Export() (cuda.GraphHandle, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.usable(beChanged); err != nil {
		return 0, err
	}
	g.h.exported = true
	return g.handle, nil
}

// pin keeps bundles that g gives up, if others may use them.
//
// Preconditions: g.h.mu is held.
func (g *Graph) pin(bundles []*bundle) {
	if !g.h.exported {
		return
	}
	for _, b := range bundles {
		if b != nil {
			g.h.pinned = append(g.h.pinned, b.retain())
		}
	}
}

// unpin returns what was kept so, for the caller to release.
//
// Preconditions: h.mu is held.
func (h *hierarchy) unpin() []*bundle {
	list := h.pinned
	h.pinned = nil
	return list
}
