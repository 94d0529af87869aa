// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"

	"github.com/cudago/cudago/cuda"
)

// An UpdateError says which node keeps an executable from becoming a graph, and
// what differs. It unwraps to the [*cuda.Error] of the call, or to one with its
// code where the driver was not asked.
type UpdateError struct {
	// Node is the name of the node, or empty if there is no one node.
	Node string
	// Reason says what differs, in words.
	Reason string
	Err    error
}

// Error returns the reason and the driver's error.
func (e *UpdateError) Error() string {
	text := "cannot update the graph executable: "
	if e.Node != "" {
		text += "node \"" + e.Node + "\" "
	}
	return text + e.Reason + ": " + e.Err.Error()
}

// Unwrap returns e.Err.
func (e *UpdateError) Unwrap() error { return e.Err }

// Detail returns the attributes of the exception that Python gets.
func (e *UpdateError) Detail() map[string]any { return map[string]any{"node": e.Node} }

func differs(node, reason string) *UpdateError {
	return &UpdateError{node, reason, &cuda.Error{Op: "cuGraphExecUpdate", Result: cuda.ErrorGraphExecUpdateFailure}}
}

// Update gives x the parameters and operands of g as it is now, for later
// launches; launches under way keep the old ones. g needs the same nodes, by
// kind, in the same order and with the same dependencies in the same order; names
// may differ, and x keeps its own. A disabled node stays disabled. It calls
// cuGraphExecUpdate.
//
// The old operands are released once the last launch that may use them has
// completed. It waits as [ExecNode.UpdateMemcpy] does. g may be closed right
// after.
//
// Errors: an [*UpdateError] if g differs too much, or if the driver says so;
// [cuda.ErrClosed]; an [*cuda.ArgumentError] for a graph in another; otherwise
// an [*cuda.Error]. On an error x is unchanged.
func (x *Exec) Update(g *Graph) error {
	retired, err := x.update(g)
	for _, f := range retired {
		f.start()
	}
	return err
}

func (x *Exec) update(g *Graph) ([]*retirement, error) {
	defer x.gate.change()()
	defer lockBoth(x.h, g.h)()
	if x.IsClosed() {
		return nil, errClosedExec
	}
	if err := g.usable("update an executable"); err != nil {
		return nil, err
	}
	nodes := g.flat("", nil)
	if err := x.compare(g, nodes); err != nil {
		return nil, err
	}
	for _, n := range x.nodes {
		if n.disabled && n.kind == cuda.HostNode && n.of.isGone() {
			return nil, differs(n.name, "is disabled, and was removed from its graph: it could not be disabled again")
		}
	}
	calls, err := g.unknownCalls(&x.o)
	if err != nil {
		return nil, err
	}
	// Relaxed: what instantiating does to captures, this may do too.
	x.h.ctx.Driver().Relaxed(func() { err = x.h.ctx.ExecUpdate(x.handle, g.h.handle) })
	if err != nil {
		return nil, x.explain(nodes, err)
	}
	retired := x.take(g, nodes, calls)
	for _, n := range x.nodes {
		if n.disabled && n.kind == cuda.HostNode {
			x.disableAgain(n)
		}
	}
	return retired, nil
}

// disableAgain disables a host node that an update has enabled. If that fails
// the node is enabled, and nobody is left to tell but the warnings.
//
// Preconditions: x.gate is shut; the lock of n's graph is held.
func (x *Exec) disableAgain(n *ExecNode) {
	if err := n.setEnabled(false); err != nil {
		x.mu.Lock()
		n.disabled = false
		x.mu.Unlock()
		warn(err)
	}
}

// A flatNode is a node of a graph or of a body in it.
type flatNode struct {
	*Node
	path string
}

// flat appends the nodes of g and its bodies, as addNodes orders them.
//
// Preconditions: g.h.mu is held.
func (g *Graph) flat(prefix string, list []flatNode) []flatNode {
	for _, n := range g.all() {
		list = append(list, flatNode{n, prefix + n.name})
		if n.child == nil {
			n.eachInner(prefix, func(prefix string, body *Graph) { list = body.flat(prefix, list) })
		}
	}
	return list
}

// take replaces the bundles and parameters of x with those of a graph.
//
// Preconditions: x.gate is shut; the locks of both hierarchies are held; the
// driver has updated x.
func (x *Exec) take(g *Graph, nodes []flatNode, calls map[*Node]cuda.HostParams) []*retirement {
	x.mu.Lock()
	now := x.started()
	old := x.bundles()
	var idle, used []*bundle
	for i, n := range x.nodes {
		if n.bundle != nil {
			if now == n.since && now != unknown {
				idle = append(idle, n.bundle)
			} else {
				used = append(used, n.bundle)
			}
		}
		n.bundle, n.params, n.since, n.updated = nodes[i].bundle.retain(), nodes[i].params, now, true
		n.call = calls[nodes[i].Node]
	}
	used = append(used, x.loose()...)
	x.extra, x.spare = nil, nil
	for i, n := range nodes {
		if n.child != nil {
			x.holdInside(x.nodes[i], n.child)
		}
	}
	g.eachLoose("", func(path string, b *bundle) { x.hold(nil, path, b) })
	if g.h.edited || x.edited {
		// The driver's order may differ from ours, so that it may have paired
		// alike nodes otherwise: nothing of g is released before the next Update.
		for _, n := range x.nodes {
			if n.bundle != nil {
				x.spare = append(x.spare, n.bundle.retain())
			}
		}
	}
	x.watch.notify(x.bundles(), old)
	x.mu.Unlock()
	return []*retirement{{x: x, bundles: idle}, x.retirement(used, false)}
}

// loose lists the bundles that belong to no updatable node.
//
// Preconditions: x.mu is held.
func (x *Exec) loose() []*bundle {
	list := append([]*bundle(nil), x.spare...)
	for _, h := range x.extra {
		list = append(list, h.b)
	}
	return list
}

// explain names the node that the driver does not accept.
//
// Preconditions: the locks of both hierarchies are held.
func (x *Exec) explain(nodes []flatNode, err error) error {
	var refused *cuda.UpdateError
	if !errors.As(err, &refused) {
		return err
	}
	e := &UpdateError{Reason: "differs: " + refused.Reason, Err: refused.Err}
	for i, n := range nodes {
		if n.handle == refused.Node && n.handle != 0 {
			e.Node = n.path
			e.Reason += whatChanged(x.nodes[i].Params(), n.params)
		}
	}
	return e
}
