// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/ordered"
)

// An Added node is one that the caller has added to the driver's graph itself,
// without a name; a kernel node without attributes.
type Added struct {
	Handle cuda.NodeHandle
	Kind   cuda.NodeType
	// After is the index of the node that it waits for, or negative.
	After int
	// Params are those that [Node.Params] returns.
	Params   any
	Operands []Operand
	Site     uint32 // see [Node.Site]
}

// Adopt enters nodes that the caller has added to g.Handle by calls of its own,
// in that order, and returns nodes with them behind. It takes over the operands, of
// which one of a kernel node is named "kernel", and does not report them to OnBundle: the
// caller knows them. It makes no driver call, and cannot fail.
//
// Preconditions: nodes are those of g, by index; g is open and no body. The
// caller has kept other calls on g out since it added the first of these.
func (g *Graph) Adopt(nodes []*Node, list []Added) []*Node {
	made, bundles, deps := make([]Node, len(list)), make([]bundle, len(list)), make([]*Node, len(list))
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	for i := range list {
		a, n, b := &list[i], &made[i], &bundles[i]
		n.g, n.handle, n.kind, n.params, n.bundle = g, a.Handle, a.Kind, a.Params, b.take(a.Operands)
		n.SetSite(a.Site)
		n.name, _ = g.nameFor(a.Kind, "")
		if a.After >= 0 {
			deps[i] = nodes[a.After]
			n.deps = ordered.Of(deps[i : i+1 : i+1])
		}
		g.commit(n)
		n.link()
		nodes = append(nodes, n)
	}
	return nodes
}

// IsSpoiled reports whether a driver call has left the driver's graph half
// changed, so that it cannot be used any more.
func (g *Graph) IsSpoiled() bool {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return g.h.spoiled != nil
}
