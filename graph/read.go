// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/ordered"
)

// ask returns what the driver's graph has.
//
// Preconditions: g.h.mu is held.
func (g *Graph) ask() (nodes []cuda.NodeHandle, edges cuda.Edges, err error) {
	if nodes, err = g.h.ctx.GraphNodes(g.h.handle); err == nil {
		edges, err = g.h.ctx.GraphEdges(g.h.handle)
	}
	return nodes, edges, err
}

// read makes nodes of what the driver's graph has, without names. They take over
// the operands of those in the list, of which the driver is asked less; left is
// of those that are not in the graph. On an error g has no nodes, and nothing is
// taken over.
//
// A graph can have many nodes: what they need is allocated for all at once.
//
// Preconditions: g.h.mu is held; g has no nodes; handles and edges are from ask.
func (g *Graph) read(handles []cuda.NodeHandle, edges cuda.Edges, list []Added) (left []*bundle, err error) {
	known, missing := match(handles, list)
	nodes := make([]Node, len(handles))
	for i, h := range handles {
		n := &nodes[i]
		n.g, n.handle = g, h
		if known[i] != nil {
			n.kind = known[i].Kind
		} else if n.kind, err = g.h.ctx.NodeType(h); err != nil {
			return nil, err
		}
	}
	g.nodes = make([]*Node, 0, len(nodes))
	bundles := make([]bundle, len(list))
	for i := range nodes {
		n := &nodes[i]
		if a := known[i]; a != nil {
			n.params, n.bundle = a.Params, bundles[0].take(a.Operands)
			bundles = bundles[1:]
			n.SetSite(a.Site)
		}
		g.appendNode(n)
	}
	connect(handles, nodes, edges)
	for _, a := range missing {
		left = append(left, newBundle(a.Operands))
	}
	return left, nil
}

// match returns what the list has of each node, or nil, and what it has of none.
// The driver names nodes in the order in which they were made, as a rule.
func match(handles []cuda.NodeHandle, list []Added) (known, missing []*Added) {
	known = make([]*Added, len(handles))
	at := 0
	for i, h := range handles {
		if at < len(list) && list[at].Handle == h {
			known[i] = &list[at]
			at++
		}
	}
	if at == len(list) {
		return known, nil
	}
	others := make(map[cuda.NodeHandle]*Added, len(list)-at)
	for i := range list[at:] {
		a := &list[at+i]
		if a.Handle == 0 || others[a.Handle] != nil {
			missing = append(missing, a)
			continue
		}
		others[a.Handle] = a
	}
	for i, h := range handles {
		if a := others[h]; a != nil && known[i] == nil {
			known[i] = a
			delete(others, h)
		}
	}
	for i := range list[at:] {
		if a := &list[at+i]; others[a.Handle] == a {
			missing = append(missing, a)
		}
	}
	return known, missing
}

// connect gives nodes their dependencies.
func connect(handles []cuda.NodeHandle, nodes []Node, edges cuda.Edges) {
	from, to := finder{handles: handles}, finder{handles: handles}
	ends, counts := make([][2]int, len(edges.To)), make([][2]int, len(nodes))
	for i := range edges.To {
		f, t := from.find(edges.From[i]), to.find(edges.To[i])
		ends[i] = [2]int{f, t}
		counts[f][0]++
		counts[t][1]++
	}
	next, deps := make([]*Node, len(ends)), make([]*Node, len(ends))
	for i, c := range counts {
		nodes[i].next, nodes[i].deps = ordered.Of(next[:0:c[0]]), ordered.Of(deps[:0:c[1]])
		next, deps = next[c[0]:], deps[c[1]:]
	}
	for i, e := range ends {
		nodes[e[1]].addDep(&nodes[e[0]], edges.Data[i])
	}
	for i := range nodes {
		nodes[i].link()
	}
}

// A finder finds nodes by their handles, fast if it is asked in their order.
type finder struct {
	handles []cuda.NodeHandle
	next    int // the likely index
	by      map[cuda.NodeHandle]int
}

// find returns the index of a node.
func (f *finder) find(h cuda.NodeHandle) int {
	for i := f.next; i < min(f.next+2, len(f.handles)); i++ {
		if f.handles[i] == h {
			f.next = i
			return i
		}
	}
	if f.by == nil {
		f.by = make(map[cuda.NodeHandle]int, len(f.handles))
		for i, h := range f.handles {
			f.by[h] = i
		}
	}
	f.next = f.by[h]
	return f.next
}
