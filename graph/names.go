// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"strconv"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// names returns the nodes by their names. Until somebody asks for it, all names
// are made up from counts that only grow, and cannot meet.
//
// Preconditions: g.h.mu is held.
func (g *Graph) names() map[string]*Node {
	if g.byName != nil {
		return g.byName
	}
	g.byName = make(map[string]*Node, len(g.nodes))
	for _, n := range g.all() {
		if n.name != "" {
			g.byName[n.name] = n
		}
	}
	return g.byName
}

// nameFor checks a name, or makes one up.
//
// Preconditions: g.h.mu is held.
func (g *Graph) nameFor(kind cuda.NodeType, name string) (string, error) {
	if name != "" {
		if other := g.names()[name]; other != nil {
			return "", badValue("name", "must be unique in the graph, and %q already names a node of kind %v", name, other.kind)
		}
		return name, nil
	}
	var room [32]byte // so that only the name itself is allocated
	prefix := appendPrefix(room[:0], kind)
	for i := int64(g.counts[kind]); ; i++ {
		name := strconv.AppendInt(prefix, i, 10)
		if g.byName[string(name)] == nil {
			return string(name), nil
		}
	}
}

func appendPrefix(b []byte, kind cuda.NodeType) []byte {
	return append(append(b, strings.ReplaceAll(kind.String(), " ", "_")...), '_')
}

// nameRest names nodes that have no name, and counts all.
//
// Preconditions: g.h.mu is held.
func (g *Graph) nameRest() {
	if g.byName == nil {
		g.nameAll()
		return
	}
	for _, n := range g.all() {
		if n.name == "" {
			// It cannot fail: only a given name can be taken.
			n.name, _ = g.nameFor(n.kind, "")
			g.byName[n.name] = n
		}
		g.counts[n.kind]++
	}
}

// nameAll is nameRest for a graph in which nobody has named a node. The names
// share their memory.
//
// Preconditions: g.h.mu is held.
func (g *Graph) nameAll() {
	nodes := g.all()
	text, ends := make([]byte, 0, 16*len(nodes)), make([]int, len(nodes))
	var prefix []byte
	for i, n := range nodes {
		if i == 0 || n.kind != nodes[i-1].kind {
			prefix = appendPrefix(prefix[:0], n.kind)
		}
		text = strconv.AppendInt(append(text, prefix...), int64(g.counts[n.kind]), 10)
		ends[i] = len(text)
		g.counts[n.kind]++
	}
	all, begin := string(text), 0
	for i, n := range nodes {
		n.name, begin = all[begin:ends[i]], ends[i]
	}
}
