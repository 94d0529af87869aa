// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"maps"
	"slices"

	"github.com/cudago/cudago/cuda"
)

// UpdateChild makes n, a child graph node, embed another graph as it is now, for
// later instantiations and clones. The view of what it embedded ends. It calls
// cuGraphNodeSetParams.
//
// Errors: an [*cuda.ArgumentError] if n is of another kind, or sub is or has n's
// graph; as for [Graph.Child]; [cuda.ErrorNotSupported] also if what n embeds has
// memory, which belongs to executables. On an error n is as it was.
func (n *Node) UpdateChild(sub *Graph) error {
	old, err := n.setChild(sub)
	releaseAll(old)
	return err
}

func (n *Node) setChild(sub *Graph) (old []*bundle, err error) {
	g := n.g
	defer lockBoth(g.h, sub.h)()
	if err := n.mayEmbed(sub); err != nil {
		return nil, err
	}
	err = patiently("cuGraphNodeSetParams", func() (bool, error) { return g.h.ctx.TrySetChildGraphNode(n.handle, sub.handle) })
	if err != nil {
		return nil, sub.explainRefusal("cuGraphNodeSetParams", "be embedded", "build it again", err)
	}
	child := sub.view(g.h)
	child.noteElsewhere(sub.h.ctx)
	old = n.child.bundles()
	n.child.forget()
	g.pin(old)
	n.child = child
	n.version++
	g.watch.notify(child.bundles(), old)
	return old, nil
}

// mayEmbed returns why n cannot embed another graph, or nil.
//
// Preconditions: the locks of both graphs are held.
func (n *Node) mayEmbed(sub *Graph) error {
	g := n.g
	if err := g.usable(beChanged); err != nil {
		return err
	}
	if n.removed {
		return &RemovedError{n.String()}
	}
	if n.kind != cuda.ChildGraphNode {
		return errKind(n.name, n.kind, cuda.ChildGraphNode)
	}
	if err := sub.usable("be embedded"); err != nil {
		return err
	}
	if sub.h == g.h {
		return badValue("graph", "must be another one than that of %v", n)
	}
	if g.owner != nil {
		if err := sub.mayBeInBody(g.owner); err != nil {
			return err
		}
	}
	if n.child.allocates() {
		return &cuda.Error{Op: "cuGraphNodeSetParams", Result: cuda.ErrorNotSupported,
			Detail: n.String() + " has memory, whose addresses would no longer be reserved"}
	}
	return nil
}

// UpdateChild gives the nodes inside n the parameters and operands of those of a
// graph, for later launches; launches under way keep the old ones. The graph needs
// the same nodes and edges as what n embedded, made in the same order. It calls
// cuGraphExecChildGraphNodeSetParams.
//
// Errors: an [*UpdateError] if the graph differs too much; otherwise as for
// [ExecNode.UpdateMemcpy]. On an error n is unchanged.
func (n *ExecNode) UpdateChild(sub *Graph) error {
	f, err := n.updateChild(sub)
	if err != nil {
		return err
	}
	f.start()
	return nil
}

func (n *ExecNode) updateChild(sub *Graph) (f *retirement, err error) {
	x := n.x
	err = n.change(func() error {
		defer lockBoth(x.h, sub.h)()
		if err := n.mayBecome(sub); err != nil {
			return err
		}
		// Relaxed: as for an update of the whole executable.
		x.h.ctx.Driver().Relaxed(func() { err = x.h.ctx.ExecSetChildGraph(x.handle, n.def, sub.handle) })
		var refused *cuda.Error
		switch {
		case errors.As(err, &refused) && refused.Result == cuda.ErrorInvalidValue:
			return &UpdateError{n.name, "embeds a graph that the driver does not accept for it", refused}
		case err != nil:
			return err
		}
		f = n.takeChild(sub)
		return nil
	})
	return f, err
}

// mayBecome returns why what n embeds cannot become another graph, or nil.
//
// Preconditions: the locks of both hierarchies are held.
func (n *ExecNode) mayBecome(sub *Graph) error {
	if n.kind != cuda.ChildGraphNode {
		return errKind(n.name, n.kind, cuda.ChildGraphNode)
	}
	if n.of.isGone() {
		return &RemovedError{n.String()}
	}
	if err := sub.usable("update an executable"); err != nil {
		return err
	}
	switch {
	case sub.h.ctx != n.x.h.ctx:
		return differs(n.name, "the graph and the executable are on different devices")
	case len(sub.h.memory) > 0 || sub.frees() || n.child.allocates() || n.child.frees():
		return differs(n.name, "allocates or frees memory, which cannot change")
	case sub.hasConditional():
		return differs(n.name, "has conditional nodes, and cannot be embedded")
	case sub.h.unusedConditions() != "":
		return differs(n.name, "has conditions ("+sub.h.unusedConditions()+"), and cannot be embedded")
	}
	return compareChild(n.name, n.child, sub)
}

// takeChild holds what a graph holds in the place of what is inside n.
//
// Preconditions: x.gate is shut; the locks of both hierarchies are held; the driver
// has updated n.
func (n *ExecNode) takeChild(sub *Graph) *retirement {
	x := n.x
	x.mu.Lock()
	was := x.extra
	var old []*bundle
	x.extra = make([]held, 0, len(was))
	for _, h := range was {
		if h.in == n {
			old = append(old, h.b)
		} else {
			x.extra = append(x.extra, h)
		}
	}
	x.holdInside(n, sub)
	n.updated = true
	x.watch.notify(sub.bundles(), old)
	x.mu.Unlock()
	return x.retirement(old, false)
}

// ChildOf adds a node that runs what n, a child graph node of an executable, runs
// now. The driver copies a graph and no executable, so that n must still embed
// what its node embeds. It calls cuGraphChildGraphNodeGetGraph and
// cuGraphAddChildGraphNode.
//
// Errors: an [*cuda.ArgumentError] if n is of another kind, or embeds something
// else since the executable was made; [cuda.ErrClosed]; as for [Graph.Child].
func (g *Graph) ChildOf(n *ExecNode, o NodeOptions) (*Node, error) {
	b := newBundle(o.Operands)
	added, err := g.addChildOf(n, o, b)
	if err != nil {
		b.release()
	}
	return added, err
}

func (g *Graph) addChildOf(n *ExecNode, o NodeOptions, b *bundle) (*Node, error) {
	x := n.x
	x.gate.enter()
	defer x.gate.leave()
	defer lockBoth(g.h, x.h)()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := n.mayEmbedAgain(); err != nil {
		return nil, err
	}
	if g.owner != nil {
		if err := n.child.mayBeInBody(g.owner); err != nil {
			return nil, err
		}
	}
	from, err := x.h.ctx.ChildGraph(n.def)
	if err != nil {
		return nil, err
	}
	added, err := g.addLocked(cuda.ChildGraphNode, o, b, nil, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.embedCopy(deps, from)
	})
	if err != nil {
		return nil, n.child.explainRefusal("cuGraphAddChildGraphNode", "be embedded", "build it again", err)
	}
	added.child = n.view(g.h)
	added.child.noteElsewhere(x.h.ctx)
	g.watch.notify(added.child.bundles(), nil)
	return added, nil
}

// mayEmbedAgain returns why no other graph can embed what n does, or nil.
//
// Preconditions: the lock of n's graph and x.mu are held.
func (n *ExecNode) mayEmbedAgain() error {
	switch {
	case n.x.closed:
		return errClosedExec
	case n.kind != cuda.ChildGraphNode:
		return errKind(n.name, n.kind, cuda.ChildGraphNode)
	case n.of.isGone() || n.updated || n.version != n.of.version:
		return badValue("node", "%q embeds something else than when its executable was made, of which the driver makes no copy: "+
			"instantiate a graph that embeds it", n.name)
	}
	return nil
}

// view is [Graph.view] of what launches of n run.
//
// Preconditions: h.mu, the lock of n's graph and x.mu are held.
func (n *ExecNode) view(h *hierarchy) *Graph {
	inner := make(map[string][]*bundle) // in the order of eachBundle
	for _, held := range n.x.extra {
		if held.in == n {
			inner[held.path] = append(inner[held.path], held.b.retain())
		}
	}
	v := n.child.viewOf(n.name+"/", inner)
	v.settle(h)
	for _, path := range slices.Sorted(maps.Keys(inner)) {
		v.loose = append(v.loose, inner[path]...)
	}
	return v
}
