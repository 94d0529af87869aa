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
	place := make(map[*Node]int, 2*len(nodes))
	for i, n := range nodes {
		place[n.Node] = i
	}
	before := make(map[*Node]int, len(nodes))
	for i, n := range x.nodes {
		before[n.of] = i
	}
	for i, n := range nodes {
		if err := x.compareNode(x.nodes[i], n, before, place); err != nil {
			return err
		}
	}
	return nil
}

func (x *Exec) compareNode(was *ExecNode, is flatNode, before, place map[*Node]int) error {
	if was.kind != is.kind {
		return differs(is.path, fmt.Sprintf("is of kind %v, where the executable has %v", is.kind, was))
	}
	if len(was.of.bodies) != len(is.bodies) {
		return differs(is.path, fmt.Sprintf("has %d bodies, and had %d", len(is.bodies), len(was.of.bodies)))
	}
	if !slices.Equal(places(was.deps, before), places(is.deps, place)) || !sameData(was.data, is.data, len(is.deps)) {
		return differs(is.path, fmt.Sprintf("waits for %s, and %v for %s", depList(is.deps, is.data), was, depList(was.deps, was.data)))
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
	for i, n := range new {
		inner := path + "/" + n.name
		if n.kind != old[i].kind {
			return differs(inner, fmt.Sprintf("is of kind %v, where the executable has %v", n.kind, old[i]))
		}
		if o := old[i]; !slices.Equal(indices(o.deps), indices(n.deps)) || !sameData(o.data, n.data, len(n.deps)) {
			return differs(inner, fmt.Sprintf("waits for %s, and %v for %s", depList(n.deps, n.data), o, depList(o.deps, o.data)))
		}
		if n.child != nil {
			if err := compareChild(inner, old[i].child, n.child); err != nil {
				return err
			}
		}
	}
	return nil
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

func indices(nodes []*Node) []int {
	list := make([]int, len(nodes))
	for i, n := range nodes {
		list[i] = n.index
	}
	return list
}

// depList lists dependencies, as `"a", "b" (programmatic)`.
func depList(deps []*Node, data []cuda.EdgeData) string {
	if len(deps) == 0 {
		return "nothing"
	}
	at := make([]int, len(deps))
	for i := range at {
		at[i] = i
	}
	return listed(at, func(i int) string {
		text := strconv.Quote(deps[i].name)
		if d := dataAt(data, i); d != (cuda.EdgeData{}) {
			text += fmt.Sprintf(" (%v)", d)
		}
		return text
	})
}

// quoted lists at most some of the names.
func quoted[T any](list []T, name func(T) string) string {
	return listed(list, func(item T) string { return strconv.Quote(name(item)) })
}

func listed[T any](list []T, text func(T) string) string {
	const most = 8
	var names []string
	for i, n := range list {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		names = append(names, text(n))
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
