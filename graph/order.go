// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/cudago/cudago/internal/ordered"
)

// An order is a list of the nodes of a graph in which each comes after those that
// it waits for. An edge that agrees with it closes no cycle; for another, nodes are
// moved.
//
// This is the two-way compatible search of Haeupler, Kavitha, Mathew, Sen and
// Tarjan, "Incremental Cycle Detection, Topological Ordering, and Strong Component
// Maintenance", ACM Transactions on Algorithms 8 (2012): it looks at O(√m) edges
// per edge on average, and at few where either end has few edges.
type order struct {
	ends  place // before the first and after the last
	steps int   // edges looked at and places given so far, for tests
}

// newOrder returns an order of nodes, or nil if there is none: other code may have
// made a cycle.
func newOrder(nodes []*Node) *order {
	o := &order{}
	o.ends.prev, o.ends.next = &o.ends, &o.ends
	wanted := make(map[*Node]int, len(nodes))
	var ready []*Node
	for _, n := range nodes {
		if wanted[n] = n.deps.Len(); wanted[n] == 0 {
			ready = append(ready, n)
		}
	}
	for i := 0; i < len(ready); i++ { // it grows
		for _, next := range ready[i].next.All() {
			if wanted[next]--; wanted[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	if len(ready) < len(nodes) {
		return nil
	}
	for _, n := range ready {
		o.append(n)
	}
	return o
}

// append puts a node that nothing waits for at the end.
func (o *order) append(n *Node) {
	n.place = &place{n: n}
	o.insert(n.place, o.ends.prev)
}

func (o *order) remove(n *Node) {
	n.place.unlink()
	n.place = nil
}

// admit makes one node come before another. It reports false if a path leads from
// to to from.
func (o *order) admit(from, to *Node) bool {
	switch {
	case from == to:
		return false
	case from.place.label < to.place.label:
		return true
	}
	ahead := side{ahead: true, seen: map[*Node]bool{}}
	behind := side{seen: map[*Node]bool{}}
	ahead.see(to)
	behind.see(from)
	for ahead.Len() > 0 && behind.Len() > 0 && ahead.first().label < behind.first().label {
		o.steps += 2
		next := ahead.follow()
		if behind.seen[next] {
			return false
		}
		ahead.see(next)
		before := behind.follow()
		if ahead.seen[before] {
			return false
		}
		behind.see(before)
	}
	o.move(from, &ahead, &behind)
	return true
}

// move puts what was seen from one end of an edge in front of what was seen from
// the other. What lies beyond the mark is there already: the search has ended since
// no edge is left that leads over it.
func (o *order) move(from *Node, ahead, behind *side) {
	mark := from.place
	if ahead.Len() > 0 && ahead.first().label < mark.label {
		mark = ahead.first()
	}
	front := behind.places(func(p *place) bool { return p.label > mark.label })
	back := ahead.places(func(p *place) bool { return p.label < mark.label })
	at := mark.prev
	if mark == from.place {
		at = mark
	}
	moved := append(front, back...)
	for _, p := range moved {
		if p == at {
			at = at.prev
		}
		p.unlink()
	}
	for _, p := range moved {
		o.insert(p, at)
		at = p
	}
}

// A side is what was seen from one end of an edge: forwards from the one that
// is to wait, or backwards. It is a heap of the nodes with edges that were not
// followed yet; the one nearest to the other side comes first.
type side struct {
	ahead bool
	seen  map[*Node]bool
	live  []visit
}

// A visit is a node with an edge that was not followed yet.
type visit struct {
	*Node
	other *Node // at the other end of that edge
	next  int   // the place of the edge behind it
}

func (s *side) edges(n *Node) *ordered.Set[*Node] {
	if s.ahead {
		return &n.next
	}
	return &n.deps
}

func (s *side) see(n *Node) {
	if s.seen[n] {
		return
	}
	s.seen[n] = true
	if other, next, ok := s.edges(n).Next(0); ok {
		heap.Push(s, visit{n, other, next})
	}
}

// first returns the place of the nearest node with an edge.
func (s *side) first() *place { return s.live[0].place }

// follow returns the node at the other end of the nearest edge.
func (s *side) follow() *Node {
	v := &s.live[0]
	to := v.other
	var ok bool
	if v.other, v.next, ok = s.edges(v.Node).Next(v.next); !ok {
		heap.Pop(s)
	}
	return to
}

// places returns those of seen nodes, in their order.
func (s *side) places(wanted func(*place) bool) (list []*place) {
	for n := range s.seen {
		if wanted(n.place) {
			list = append(list, n.place)
		}
	}
	slices.SortFunc(list, func(a, b *place) int { return cmp.Compare(a.label, b.label) })
	return list
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (s *side) Len() int { return len(s.live) }

// Less is of [heap.Interface].
func (s *side) Less(i, j int) bool {
	return (s.live[i].place.label < s.live[j].place.label) == s.ahead
}

// Swap is of [heap.Interface].
func (s *side) Swap(i, j int) { s.live[i], s.live[j] = s.live[j], s.live[i] }

// Push is of [heap.Interface].
func (s *side) Push(v any) { s.live = append(s.live, v.(visit)) }

// Pop is of [heap.Interface].
func (s *side) Pop() any {
	last := s.live[len(s.live)-1]
	s.live = s.live[:len(s.live)-1]
	return last
}
