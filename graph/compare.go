// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// compare returns how a graph differs from what x was made of, or nil. The
// driver would accept a few graphs more, whose nodes are in another order; but
// then only it would know which node became which.
//
// Preconditions: the locks of both hierarchies are held.
func (x *Exec) compare(g *Graph, nodes []flatNode) error {
	if g.h.ctx != x.h.ctx {
		return differs("", "the graph and the executable are on different devices")
	}
	if len(nodes) != len(x.nodes) {
		return differs("", countText(x.nodes, nodes))
	}
	if g.h != x.h && (len(g.h.memory) > 0 || len(x.h.memory) > 0) {
		return differs("", "the graph allocates memory, and is not the one that the executable was made from")
	}
	if unused := g.h.unusedConditions(); unused != "" {
		return differs("", unused+", so that the graph could not be instantiated either")
	}
	p := pairing{
		was: make(map[*Node]int, len(nodes)), is: make(map[*Node]int, len(nodes)),
		pair: func(i int) (cuda.NodeType, string, string) { return x.nodes[i].kind, x.nodes[i].name, nodes[i].path },
	}
	for i, n := range nodes {
		p.was[x.nodes[i].of], p.is[n.Node] = i, i
	}
	for i, n := range nodes {
		if err := p.compareNode(x.nodes[i], n); err != nil {
			return err
		}
	}
	return nil
}

func (p *pairing) compareNode(was *ExecNode, is flatNode) error {
	if was.kind != is.kind {
		return differs(is.path, fmt.Sprintf("is of kind %v, where the executable has %v", is.kind, was))
	}
	if len(was.of.bodies) != len(is.bodies) {
		return differs(is.path, fmt.Sprintf("has %d bodies, and had %d", len(is.bodies), len(was.of.bodies)))
	}
	if err := p.compareEdges(is.path, was, was.edges, is.edges()); err != nil {
		return err
	}
	if is.child != nil {
		return compareChild(is.path, was.child, is.child)
	}
	return nil
}

// compareChild compares two embedded graphs, which never change.
//
// Preconditions: the locks of both graphs are held.
func compareChild(path string, was, is *Graph) error {
	old, new := was.all(), is.all()
	if len(old) != len(new) {
		return differs(path, fmt.Sprintf("embeds %d nodes, and embedded %d", len(new), len(old)))
	}
	p := pairing{
		was: make(map[*Node]int, len(old)), is: make(map[*Node]int, len(new)),
		pair: func(i int) (cuda.NodeType, string, string) { return old[i].kind, old[i].name, path + "/" + new[i].name },
	}
	for i := range new {
		p.was[old[i]], p.is[new[i]] = i, i
	}
	for i, n := range new {
		inner := path + "/" + n.name
		if n.kind != old[i].kind {
			return differs(inner, fmt.Sprintf("is of kind %v, where the executable has %v", n.kind, old[i]))
		}
		if err := p.compareEdges(inner, old[i], old[i].edges(), n.edges()); err != nil {
			return err
		}
		if n.child != nil {
			if err := compareChild(inner, old[i].child, n.child); err != nil {
				return err
			}
		}
	}
	return nil
}

// A pairing says which node of a graph becomes which of an executable: the one in
// the same place.
type pairing struct {
	was, is map[*Node]int // places
	// pair returns what is in a place: the kind and the name of the executable's
	// node, and the path of the graph's.
	pair func(place int) (kind cuda.NodeType, name, path string)
}

// compareEdges compares those of two nodes. Their order counts for the driver.
func (p *pairing) compareEdges(path string, node fmt.Stringer, was, is edges) error {
	before, after := places(was.deps, p.was), places(is.deps, p.is)
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] && was.dataAt(first) == is.dataAt(first) {
		first++
	}
	if first == len(before) && first == len(after) {
		return nil
	}
	reason := fmt.Sprintf("waits for %s, and %v for %s", is.text(first), node, was.text(first))
	reordered := !slices.Equal(before, after)
	slices.Sort(before)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		if place, ok := p.moved(was.deps, is.deps); ok {
			kind, name, path := p.pair(place)
			return differs(path, fmt.Sprintf("is in the place of %v node %q: nodes must be added in the same order", kind, name))
		}
	} else if reordered {
		reason += ": dependencies must be added in the same order"
	}
	return differs(path, reason)
}

// moved returns the place of a node of the executable whose name another place of
// the graph has, if dependencies have the same names: a list of them would not say
// what differs.
func (p *pairing) moved(was, is []*Node) (place int, ok bool) {
	now := make(map[string]int, len(is))
	for _, d := range is {
		now[d.name] = p.is[d]
	}
	for _, d := range was {
		at, known := now[d.name]
		if !known || len(was) != len(is) {
			return 0, false
		}
		if then := p.was[d]; then != at && (!ok || then < place) {
			place, ok = then, true
		}
	}
	return place, ok
}

func places(nodes []*Node, in map[*Node]int) []int {
	list := make([]int, len(nodes))
	for i, n := range nodes {
		at, ok := in[n]
		if !ok {
			at = -1
		}
		list[i] = at
	}
	return list
}

// text lists dependencies, as `"a", "b" (programmatic)`; of many, only the first
// that differs.
func (e edges) text(first int) string {
	name := func(i int) string {
		text := strconv.Quote(e.deps[i].name)
		if d := e.dataAt(i); d != (cuda.EdgeData{}) {
			text += fmt.Sprintf(" (%v)", d)
		}
		return text
	}
	switch count := len(e.deps); {
	case count == 0:
		return "nothing"
	case count > mostListed && first < count:
		return fmt.Sprintf("%d nodes (number %d: %s)", count, first+1, name(first))
	case count > mostListed:
		return fmt.Sprintf("%d nodes", count)
	}
	names := make([]string, len(e.deps))
	for i := range names {
		names[i] = name(i)
	}
	return strings.Join(names, ", ")
}

// mostListed is how many nodes an error lists.
const mostListed = 8

// quoted lists at most some of the names.
func quoted[T any](list []T, name func(T) string) string {
	var names []string
	for i, n := range list {
		if i == mostListed {
			names = append(names, fmt.Sprintf("and %d more", len(list)-mostListed))
			break
		}
		names = append(names, strconv.Quote(name(n)))
	}
	return strings.Join(names, ", ")
}

// countText says which nodes are only on one side.
func countText(was []*ExecNode, is []flatNode) string {
	old, new := map[string]bool{}, map[string]bool{}
	for _, n := range was {
		old[n.name] = true
	}
	for _, n := range is {
		new[n.path] = true
	}
	text := fmt.Sprintf("the graph has %d nodes, and the executable %d", len(is), len(was))
	if gone := slices.DeleteFunc(slices.Clone(was), func(n *ExecNode) bool { return new[n.name] }); len(gone) > 0 {
		text += "; the graph lacks " + quoted(gone, func(n *ExecNode) string { return n.name })
	}
	if more := slices.DeleteFunc(slices.Clone(is), func(n flatNode) bool { return old[n.path] }); len(more) > 0 {
		text += "; only the graph has " + quoted(more, func(n flatNode) string { return n.path })
	}
	return text
}

// whatChanged compares parameters that the driver does not accept.
func whatChanged(was, is any) string {
	before, after := paramsText(was), paramsText(is)
	if before == after {
		return ""
	}
	return fmt.Sprintf(": %s instead of %s", after, before)
}

func paramsText(params any) string {
	switch p := params.(type) {
	case cuda.KernelNodeParams:
		return "kernel " + kernelLabel(p)
	case cuda.MemcpyParams:
		return fmt.Sprintf("%d bytes from %s %#x to %s %#x", p.Size, hostText(p.SrcHost, p.SrcArray), p.Src, hostText(p.DstHost, p.DstArray), p.Dst)
	case cuda.MemsetParams:
		return fmt.Sprintf("%d elements of %d bytes at %#x", p.Count, p.ElementSize, p.Dst)
	}
	switch p := params.(type) {
	case cuda.MemOpParams:
		return p.String()
	case cuda.SemaphoreParams:
		return p.String()
	}
	return "unknown parameters"
}

func hostText(host, array bool) string {
	switch {
	case host:
		return "host memory at"
	case array:
		return "array"
	}
	return "memory at"
}
