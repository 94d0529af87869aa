// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A modelNode is what a node has to be. Its operand is a new token for each
// version of its parameters.
type modelNode struct {
	n     *Node
	name  string
	deps  []string
	token *token
}

// A modelExec is what an executable has to be: the nodes of its graph at the
// time, with tokens of its own updates.
type modelExec struct {
	x     *Exec
	of    *modelGraph
	nodes []modelNode
	off   map[string]bool
	spare []*token // of the last whole update, where nodes could be paired otherwise
	dirty bool     // its graph was edited
}

// A modelGraph is a graph together with the simplest description of it.
type modelGraph struct {
	g      *Graph
	nodes  []modelNode
	mirror *mirror
	made   int
	dirty  bool // an edge was added, or an edge or a node removed
}

// A graphModel does random things to graphs, and to their model.
type graphModel struct {
	t      *testing.T
	ctx    *cuda.Context
	s      *cuda.Stream
	r      *rand.Rand
	graphs []*modelGraph
	execs  []*modelExec
	tokens []*token

	updated int // whole updates that were not refused

	mu  sync.Mutex
	ran []string // guarded by mu
}

func (m *graphModel) newToken() *token {
	k := &token{name: fmt.Sprint("token", len(m.tokens))}
	m.tokens = append(m.tokens, k)
	return k
}

// host returns the parameters of a node that notes that it ran.
func (m *graphModel) host(k *token) cuda.HostParams {
	return hostFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if k.isReleased() {
			m.ran = append(m.ran, "released "+k.name)
		}
		m.ran = append(m.ran, k.name)
	})
}

func (m *graphModel) newGraph() {
	g := &modelGraph{mirror: &mirror{}}
	g.g = newTestGraph(m.t, m.ctx, Options{OnBundle: g.mirror.apply})
	m.graphs = append(m.graphs, g)
}

// add adds a node after up to three others.
func (m *graphModel) add(g *modelGraph) {
	k := m.newToken()
	node := modelNode{name: fmt.Sprint("n", g.made), token: k}
	g.made++
	o := NodeOptions{Name: node.name, Operands: operands(k)}
	for range m.r.IntN(4) {
		if len(g.nodes) > 0 {
			d := g.nodes[m.r.IntN(len(g.nodes))]
			if !slices.Contains(node.deps, d.name) {
				node.deps = append(node.deps, d.name)
				o.Deps = append(o.Deps, d.n)
			}
		}
	}
	var err error
	node.n, err = g.g.Host(m.host(k), o)
	require.NoError(m.t, err)
	g.nodes = append(g.nodes, node)
}

func (m *graphModel) remove(g *modelGraph, i int) {
	n := g.nodes[i]
	require.NoError(m.t, g.g.Remove(n.n))
	var removed *RemovedError
	require.ErrorAs(m.t, g.g.Remove(n.n), &removed)
	_, err := g.g.Empty(NodeOptions{Deps: []*Node{n.n}})
	require.ErrorAs(m.t, err, &removed)
	g.dirty = true
	g.nodes = slices.Delete(g.nodes, i, i+1)
	for j := range g.nodes {
		g.nodes[j].deps = slices.DeleteFunc(slices.Clone(g.nodes[j].deps), func(d string) bool { return d == n.name })
	}
}

// reaches reports whether a path leads from one node to another.
func (g *modelGraph) reaches(from, to string) bool {
	if from == to {
		return true
	}
	for _, n := range g.nodes {
		if slices.Contains(n.deps, from) && g.reaches(n.name, to) {
			return true
		}
	}
	return false
}

func (m *graphModel) addEdge(g *modelGraph, i, j int) {
	from, to := &g.nodes[i], &g.nodes[j]
	err := g.g.AddEdge(from.n, to.n, cuda.EdgeData{})
	switch {
	case slices.Contains(to.deps, from.name):
		require.ErrorContains(m.t, err, "must be new")
	case g.reaches(to.name, from.name):
		require.ErrorContains(m.t, err, "must not close a cycle: "+to.name)
	default:
		require.NoError(m.t, err)
		to.deps = append(slices.Clone(to.deps), from.name)
		g.dirty = true
	}
}

func (m *graphModel) removeEdge(g *modelGraph, i, j int) {
	from, to := &g.nodes[i], &g.nodes[j]
	err := g.g.RemoveEdge(from.n, to.n)
	if !slices.Contains(to.deps, from.name) {
		require.ErrorContains(m.t, err, "must exist")
		return
	}
	require.NoError(m.t, err)
	to.deps = slices.DeleteFunc(slices.Clone(to.deps), func(d string) bool { return d == from.name })
	g.dirty = true
}

func (m *graphModel) update(g *modelGraph, i int) {
	k := m.newToken()
	require.NoError(m.t, g.nodes[i].n.UpdateHost(m.host(k), operands(k)))
	g.nodes[i].token = k
}

func (m *graphModel) clone(g *modelGraph) {
	c := &modelGraph{mirror: &mirror{}, made: g.made, dirty: g.dirty}
	of, err := g.g.Clone(Options{OnBundle: c.mirror.apply})
	require.NoError(m.t, err)
	m.t.Cleanup(func() { _ = of.Close() })
	c.g = of
	for _, n := range g.nodes {
		n.n = of.Node(n.name)
		c.nodes = append(c.nodes, n)
	}
	m.graphs = append(m.graphs, c)
}

func (m *graphModel) instantiate(g *modelGraph) {
	x := &modelExec{of: g, nodes: slices.Clone(g.nodes), off: map[string]bool{}, dirty: g.dirty}
	x.x = instantiate(m.t, g.g, ExecOptions{Nothing: hostFunc(func() {}).Fn})
	m.execs = append(m.execs, x)
}

// twin builds a graph of the same structure, with names and operands of its own.
func (m *graphModel) twin(nodes []modelNode) *modelGraph {
	m.newGraph()
	g := m.graphs[len(m.graphs)-1]
	names := map[string]string{}
	for _, n := range nodes {
		names[n.name] = fmt.Sprint("t", g.made)
		g.made++
	}
	by := map[string]*Node{}
	for _, n := range nodes { // nodes first: a dependency may be newer
		k := m.newToken()
		of, err := g.g.Host(m.host(k), NodeOptions{Name: names[n.name], Operands: operands(k)})
		require.NoError(m.t, err)
		by[n.name] = of
		g.nodes = append(g.nodes, modelNode{n: of, name: names[n.name], token: k})
	}
	for i, n := range nodes {
		for _, d := range n.deps {
			if by[d] == nil {
				continue // of an executable whose graph has changed since
			}
			require.NoError(m.t, g.g.AddEdge(by[d], by[n.name], cuda.EdgeData{}))
			g.nodes[i].deps = append(g.nodes[i].deps, names[d])
			g.dirty = true
		}
	}
	return g
}

// structure returns the structure of nodes, without their names.
func structure(nodes []modelNode) [][]int {
	var list [][]int
	for _, n := range nodes {
		var at []int
		for _, d := range n.deps {
			at = append(at, slices.IndexFunc(nodes, func(o modelNode) bool { return o.name == d }))
		}
		list = append(list, at)
	}
	return list
}

// updateWhole gives an executable the parameters of a graph, or is refused.
func (m *graphModel) updateWhole(x *modelExec, g *modelGraph) {
	err := x.x.Update(g.g)
	stuck := slices.ContainsFunc(x.nodes, func(n modelNode) bool { return x.off[n.name] && n.n.IsRemoved() })
	if stuck || !slices.EqualFunc(structure(x.nodes), structure(g.nodes), slices.Equal[[]int]) {
		var refused *UpdateError
		require.ErrorAs(m.t, err, &refused)
		require.ErrorIs(m.t, err, cuda.ErrorGraphExecUpdateFailure)
		return
	}
	require.NoError(m.t, err)
	m.updated++
	x.spare = nil
	for i := range x.nodes {
		x.nodes[i].token = g.nodes[i].token
		if x.dirty || g.dirty {
			x.spare = append(x.spare, g.nodes[i].token)
		}
	}
}

// updateExec updates a node of an executable, whose graph may have changed
// since.
func (m *graphModel) updateExec(x *modelExec, i int) {
	k := m.newToken()
	n := &x.nodes[i]
	err := x.x.Node(n.name).UpdateHost(m.host(k), operands(k))
	if n.n.IsRemoved() {
		var removed *RemovedError
		require.ErrorAs(m.t, err, &removed)
		return
	}
	require.NoError(m.t, err)
	n.token = k
}

func (m *graphModel) switchExec(x *modelExec, i int) {
	n := x.nodes[i]
	was, err := x.x.Node(n.name).SetEnabled(x.off[n.name])
	if n.n.IsRemoved() {
		require.Error(m.t, err)
		return
	}
	require.NoError(m.t, err)
	require.Equal(m.t, !x.off[n.name], was)
	x.off[n.name] = !x.off[n.name]
}

// launch runs an executable, and checks what ran, and after what.
func (m *graphModel) launch(x *modelExec) {
	m.ran = nil
	require.NoError(m.t, x.x.Launch(m.s))
	require.NoError(m.t, m.s.Synchronize())
	place := map[string]int{}
	for i, name := range m.ran {
		place[name] = i
	}
	var enabled []string
	by := map[string]*token{}
	for _, n := range x.nodes {
		by[n.name] = n.token
		if !x.off[n.name] {
			enabled = append(enabled, n.token.name)
		}
	}
	require.ElementsMatch(m.t, enabled, m.ran)
	for _, n := range x.nodes {
		for _, d := range n.deps {
			if !x.off[n.name] && !x.off[d] {
				require.Less(m.t, place[by[d].name], place[n.token.name], "%s waits for %s", n.name, d)
			}
		}
	}
}

func (m *graphModel) closeExec(i int) {
	require.NoError(m.t, m.execs[i].x.Close())
	m.execs = slices.Delete(m.execs, i, i+1)
}

func (m *graphModel) closeGraph(i int) {
	require.NoError(m.t, m.graphs[i].g.Close())
	m.graphs[i].mirror.holds(m.t)
	for _, x := range m.execs {
		if x.of == m.graphs[i] {
			x.of = nil
		}
	}
	m.graphs = slices.Delete(m.graphs, i, i+1)
}

// check compares everything with the model.
func (m *graphModel) check() {
	held := map[*token]bool{}
	for _, g := range m.graphs {
		var names []string
		var edges, tokens = []string(nil), []*token(nil)
		for _, n := range g.nodes {
			names = append(names, n.name)
			for _, d := range n.deps {
				edges = append(edges, d+" "+n.name)
			}
			held[n.token] = true
			tokens = append(tokens, n.token)
			require.Same(m.t, n.n, g.g.Node(n.name))
		}
		var gotNames, gotEdges []string
		for _, n := range g.g.Nodes() {
			gotNames = append(gotNames, n.Name())
			for _, d := range n.Dependents() {
				require.Contains(m.t, d.Dependencies(), n)
			}
		}
		for _, e := range g.g.Edges() {
			gotEdges = append(gotEdges, e.From.Name()+" "+e.To.Name())
		}
		require.Equal(m.t, names, gotNames)
		require.Equal(m.t, edges, gotEdges)
		g.mirror.holds(m.t, tokens...)
		handles, err := m.ctx.GraphNodes(g.g.Handle())
		require.NoError(m.t, err)
		require.Len(m.t, handles, len(names))
	}
	for _, x := range m.execs {
		for _, n := range x.nodes {
			held[n.token] = true
		}
		for _, k := range x.spare {
			held[k] = true
		}
	}
	for _, k := range m.tokens {
		if held[k] {
			kept(m.t, k)
		} else {
			eventuallyReleased(m.t, k)
		}
	}
}

// step does one random thing.
func (m *graphModel) step() {
	pick := m.r.IntN(100)
	if len(m.graphs) == 0 || pick < 2 {
		m.newGraph()
		return
	}
	i := m.r.IntN(len(m.graphs))
	g := m.graphs[i]
	var x *modelExec
	if len(m.execs) > 0 {
		x = m.execs[m.r.IntN(len(m.execs))]
	}
	switch n := len(g.nodes); {
	case n < 3 || pick < 25 && n < 12:
		m.add(g)
	case pick < 35:
		m.remove(g, m.r.IntN(n))
	case pick < 48:
		m.addEdge(g, m.r.IntN(n), m.r.IntN(n))
	case pick < 55:
		m.removeEdge(g, m.r.IntN(n), m.r.IntN(n))
	case pick < 60:
		m.update(g, m.r.IntN(n))
	case pick < 63:
		m.clone(g)
	case pick < 70:
		m.instantiate(g)
	case pick < 72:
		m.closeGraph(i)
	case x == nil || len(x.nodes) == 0:
	case pick < 75:
		m.updateWhole(x, g)
	case pick < 77:
		m.updateWhole(x, m.twin(x.nodes))
	case pick < 82:
		m.updateExec(x, m.r.IntN(len(x.nodes)))
	case pick < 86:
		m.switchExec(x, m.r.IntN(len(x.nodes)))
	case pick < 90:
		m.closeExec(slices.Index(m.execs, x))
	default:
		m.launch(x)
	}
}

// Random edits of graphs, clones and executables: structure, order of running
// and what is held are as in the simplest description.
func TestGraphModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			ctx := open(t)
			m := &graphModel{t: t, ctx: ctx, s: newStream(t, ctx), r: rand.New(rand.NewPCG(seed, 1))}
			for range 250 {
				m.step()
				m.check()
			}
			for len(m.execs) > 0 {
				m.closeExec(0)
			}
			for len(m.graphs) > 0 {
				m.closeGraph(0)
			}
			m.check()
			require.NotZero(t, m.updated, "the model never updated a whole executable")
		})
	}
}
