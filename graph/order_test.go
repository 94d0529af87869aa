// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// empties makes a graph of many nodes without edges.
func empties(t testing.TB, ctx *cuda.Context, count int) (*Graph, []*Node) {
	g := newTestGraph(t, ctx, Options{})
	nodes := make([]*Node, count)
	for i := range nodes {
		var err error
		nodes[i], err = g.Empty(NodeOptions{})
		require.NoError(t, err)
	}
	return g, nodes
}

// checkOrder requires the order to be one.
func checkOrder(t testing.TB, g *Graph) {
	count := 0
	for p := g.order.ends.next; p != &g.order.ends; p = p.next {
		require.Same(t, p, p.n.place)
		require.True(t, p.prev == &g.order.ends || p.prev.label < p.label)
		for _, d := range p.n.deps.All() {
			require.Less(t, d.place.label, p.label)
		}
		count++
	}
	require.Len(t, g.all(), count)
}

// What an edge costs does not grow with the graph.
func TestEdgesAreAddedInFewSteps(t *testing.T) {
	const count = 5000
	random := rand.New(rand.NewPCG(7, 7)).Perm(count)
	for name, edge := range map[string]func(i int) (from, to int){
		"from newer to older":              func(i int) (int, int) { return i + 1, i },
		"from newer to older, last first":  func(i int) (int, int) { return count - 1 - i, count - 2 - i },
		"one backwards, then forwards":     func(i int) (int, int) { return (count - 1 + i) % count, i },
		"one backwards, then from its end": func(i int) (int, int) { return (count - 1 - i), (count - i) % count },
		"to one node":                      func(i int) (int, int) { return i + 1, 0 },
		"from one node":                    func(i int) (int, int) { return count - 1, i },
		"a random path":                    func(i int) (int, int) { return random[i], random[i+1] },
		"a random path, in another order":  func(i int) (int, int) { return random[i*7%(count-1)], random[i*7%(count-1)+1] },
		"pairs":                            func(i int) (int, int) { return i ^ 1, i &^ 1 },
	} {
		t.Run(name, func(t *testing.T) {
			g, nodes := empties(t, open(t), count)
			for i := range count - 1 {
				from, to := edge(i)
				if from != to && !nodes[to].deps.Has(nodes[from]) {
					require.NoError(t, g.AddEdge(nodes[from], nodes[to], cuda.EdgeData{}), i)
				}
			}
			if g.order != nil {
				checkOrder(t, g)
				require.LessOrEqual(t, g.order.steps, 20*count)
			}
			require.NoError(t, g.Close())
		})
	}
}

// Edges among nodes in no order of theirs are looked at, but not all for each.
func TestRandomEdgesAreAddedInFewSteps(t *testing.T) {
	const count, most = 4000, 4
	r := rand.New(rand.NewPCG(3, 4))
	g, nodes := empties(t, open(t), count)
	perm := r.Perm(count)
	edges := 0
	for range most * count {
		a, b := r.IntN(count), r.IntN(count)
		from, to := nodes[perm[min(a, b)]], nodes[perm[max(a, b)]]
		if a == b || to.deps.Has(from) {
			continue
		}
		require.NoError(t, g.AddEdge(from, to, cuda.EdgeData{}))
		edges++
		require.ErrorContains(t, g.AddEdge(to, from, cuda.EdgeData{}), "must not close a cycle")
	}
	checkOrder(t, g)
	require.LessOrEqual(t, g.order.steps, 20*edges)
	require.NoError(t, g.Close())
}

// Nodes and edges come and go while there is an order.
func TestAnOrderIsKept(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			g, nodes := empties(t, open(t), 40)
			require.NoError(t, g.AddEdge(nodes[1], nodes[0], cuda.EdgeData{}))
			for range 2000 {
				i, j := r.IntN(len(nodes)), r.IntN(len(nodes))
				from, to := nodes[i], nodes[j]
				switch pick := r.IntN(20); {
				case pick == 0:
					n, err := g.Empty(NodeOptions{Deps: []*Node{from, to}})
					require.NoError(t, err)
					nodes = append(nodes, n)
				case pick == 1 && len(nodes) > 20:
					require.NoError(t, g.Remove(from))
					nodes[i] = nodes[len(nodes)-1]
					nodes = nodes[:len(nodes)-1]
				case to.deps.Has(from):
					require.NoError(t, g.RemoveEdge(from, to))
				case g.path(to, from) != nil:
					require.ErrorContains(t, g.AddEdge(from, to, cuda.EdgeData{}), "must not close a cycle")
				default:
					require.NoError(t, g.AddEdge(from, to, cuda.EdgeData{}))
				}
			}
			checkOrder(t, g)
			require.NoError(t, g.Close())
		})
	}
}

// Labels never run out, wherever places are put.
func TestPlacesAreSpread(t *testing.T) {
	const count = 20000
	r := rand.New(rand.NewPCG(1, 1))
	for name, behind := range map[string]func(o *order, places []*place) *place{
		"behind the first": func(o *order, _ []*place) *place { return o.ends.next },
		"before the last":  func(o *order, _ []*place) *place { return o.ends.prev.prev },
		"at the front":     func(o *order, _ []*place) *place { return &o.ends },
		"at the back":      func(o *order, _ []*place) *place { return o.ends.prev },
		"anywhere":         func(_ *order, places []*place) *place { return places[r.IntN(len(places))] },
		"behind the newest but one": func(_ *order, places []*place) *place {
			return places[max(len(places)-2, 0)]
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrder(nil)
			places := []*place{&o.ends}
			for range count {
				p := &place{}
				o.insert(p, behind(o, places))
				places = append(places, p)
			}
			for p := o.ends.next; p.next != &o.ends; p = p.next {
				require.Less(t, p.label, p.next.label)
			}
			require.LessOrEqual(t, o.steps, 20*count)
		})
	}
}

// At the ends of the numbers, too.
func TestPlacesAreSpreadAtTheEndsOfLabels(t *testing.T) {
	o := newOrder(nil)
	first, last := &place{}, &place{}
	o.insert(first, &o.ends)
	o.insert(last, first)
	first.label, last.label = 0, lastLabel
	for range 1000 {
		o.insert(&place{}, &o.ends)
		o.insert(&place{}, o.ends.prev)
	}
	for p := o.ends.next; p.next != &o.ends; p = p.next {
		require.Less(t, p.label, p.next.label)
	}
}

// A cycle that other code has made has no order; edges elsewhere can be added.
func TestAGraphWithACycleHasNoOrder(t *testing.T) {
	ctx := open(t)
	g, nodes := empties(t, ctx, 4)
	for i := range 2 {
		require.NoError(t, ctx.AddDependencies(g.handle, []cuda.NodeHandle{nodes[i].handle}, []cuda.NodeHandle{nodes[1-i].handle}, []cuda.EdgeData{{}}))
	}
	w, err := Wrap(ctx, g.handle, g, nil, Options{})
	require.NoError(t, err)
	of := w.Nodes()
	require.NoError(t, w.AddEdge(of[3], of[2], cuda.EdgeData{}))
	require.ErrorContains(t, w.AddEdge(of[2], of[3], cuda.EdgeData{}), "must not close a cycle")
	require.NoError(t, w.RemoveEdge(of[0], of[1]))
	require.ErrorContains(t, w.AddEdge(of[0], of[1], cuda.EdgeData{}), "must not close a cycle")
	checkOrder(t, w)
	require.NoError(t, w.Close())
	require.NoError(t, g.Close())
}
