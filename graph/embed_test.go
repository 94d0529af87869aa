// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// An embedding of a graph within a graph: one host node inside "inner", one
// behind it. They count in ran.
func nested(t testing.TB, ctx *cuda.Context, ran *[]string, k []*token) *Graph {
	t.Helper()
	add := func(g *Graph, name string, k *token, deps ...*Node) *Node {
		p := hostFunc(func() { *ran = append(*ran, name) })
		n, err := g.Host(p, NodeOptions{Name: name, Deps: deps, Operands: operands(k)})
		require.NoError(t, err)
		return n
	}
	inner, err := New(ctx, Options{})
	require.NoError(t, err)
	add(inner, "deep", k[0])
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	n, err := g.Child(inner, NodeOptions{Name: "inner"})
	require.NoError(t, err)
	require.NoError(t, inner.Close())
	add(g, "after", k[1], n)
	return g
}

// embedIn embeds a graph or an executable in a capture of ours.
func embedIn(e interface {
	Capture(*Capture, *cuda.Stream, uint32) (Retainer, error)
}, c *Capture, s *cuda.Stream) error {
	left, err := e.Capture(c, s, 7)
	if left != nil {
		panic("BUG: the capture has left operands")
	}
	return err
}

// The operands outlive the graph, its executable and the closing of both.
func TestExecutableInACapture(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(4)
	var ran []string
	g := nested(t, ctx, &ran, k)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())

	var m mirror
	c := begin(t, s, Options{OnBundle: m.apply})
	first := hostFunc(func() { ran = append(ran, "first") })
	last := hostFunc(func() { ran = append(ran, "last") })
	require.NoError(t, recordHost(c, s, "first", first, operands(k[2])))
	require.NoError(t, embedIn(x, c, s))
	require.NoError(t, recordHost(c, s, "last", last, operands(k[3])))
	require.NoError(t, x.Close())
	require.ErrorIs(t, embedIn(x, c, s), cuda.ErrClosed)
	kept(t, k...)
	outer, err := c.End()
	require.NoError(t, err)
	m.holds(t, k...)
	child := outer.Node("child_graph_0")
	require.Equal(t, []*Node{outer.Node("first")}, child.Dependencies())
	require.Equal(t, []*Node{child}, outer.Node("last").Dependencies())
	require.Equal(t, []string{"child_graph_0/inner/deep:op0", "child_graph_0/after:op1"}, names(child.Retained()))

	y := instantiate(t, outer, ExecOptions{})
	clone, err := outer.Clone(Options{})
	require.NoError(t, err)
	require.NoError(t, outer.Close())
	require.NoError(t, y.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []string{"first", "deep", "after", "last"}, ran)
	require.NoError(t, y.Close())
	kept(t, k...)
	require.NoError(t, clone.Close())
	eventuallyReleased(t, k...)
}

func TestCaptureThatEmbedsAndIsAborted(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(2)
	var ran []string
	g := nested(t, ctx, &ran, k)
	x := instantiate(t, g, ExecOptions{})
	c := begin(t, s, Options{})
	require.NoError(t, embedIn(g, c, s))
	require.NoError(t, embedIn(x, c, s))
	require.NoError(t, g.Close())
	require.NoError(t, x.Close())
	kept(t, k...)
	require.NoError(t, c.Abort())
	eventuallyReleased(t, k...)
	require.Empty(t, ran)
}

// What has changed since is not embedded as it was.
func TestChangedExecutableInACapture(t *testing.T) {
	ctx := open(t)
	nothing := hostFunc(func() {})
	for want, change := range map[string]func(*testing.T, *Graph, *Exec) error{
		`host node "a" has been updated`: func(t *testing.T, g *Graph, x *Exec) error {
			return x.Node("a").UpdateHost(nothing, nil)
		},
		`host node "b" has been updated`: func(t *testing.T, g *Graph, x *Exec) error {
			return g.Node("b").UpdateHost(nothing, nil)
		},
		`host node "a" has been updated, as a whole`: func(t *testing.T, g *Graph, x *Exec) error { return x.Update(g) },
		`host node "b" is disabled`: func(t *testing.T, g *Graph, x *Exec) error {
			_, err := x.Node("b").SetEnabled(false)
			return err
		},
		`host node "b" waits for other nodes`: func(t *testing.T, g *Graph, x *Exec) error {
			return g.RemoveEdge(g.Node("a"), g.Node("b"))
		},
		`the graph lacks "a"`: func(t *testing.T, g *Graph, x *Exec) error { return g.Remove(g.Node("a")) },
		`only the graph has "empty_0"`: func(t *testing.T, g *Graph, x *Exec) error {
			_, err := g.Empty(NodeOptions{})
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			s := newStream(t, ctx)
			g, err := New(ctx, Options{})
			require.NoError(t, err)
			a, err := g.Host(nothing, NodeOptions{Name: "a"})
			require.NoError(t, err)
			_, err = g.Host(nothing, NodeOptions{Name: "b", Deps: []*Node{a}})
			require.NoError(t, err)
			x := instantiate(t, g, ExecOptions{Nothing: nothing.Fn})
			require.NoError(t, change(t, g, x))
			c := begin(t, s, Options{})
			var changed *ChangedError
			require.ErrorAs(t, embedIn(x, c, s), &changed)
			require.Contains(t, changed.Reason, strings.TrimSuffix(want, ", as a whole"))
			require.NoError(t, embedIn(g, c, s), "the graph itself can be captured as it is now")
			outer, err := c.End()
			require.NoError(t, err)
			require.Len(t, outer.Nodes(), 1)
			require.NoError(t, outer.Close())
			require.NoError(t, x.Close())
			require.NoError(t, g.Close())
		})
	}
}

// A capture that another library has begun: what it uses is left to the caller.
func TestEmbeddingInACaptureThatIsNotOurs(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(2)
	var ran []string
	g := nested(t, ctx, &ran, k)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, s.BeginCapture(cuda.CaptureRelaxed))
	left, err := x.Capture(nil, s, 0)
	require.NoError(t, err)
	also, err := g.Capture(nil, s, 0)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, x.Close())
	handle, err := s.EndCapture()
	require.NoError(t, err)
	steps(t)
	kept(t, k...)
	exec, err := ctx.Instantiate(handle, 0)
	require.NoError(t, err)
	require.NoError(t, ctx.ExecLaunch(exec, s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []string{"deep", "after", "deep", "after"}, ran)
	require.NoError(t, ctx.ExecDestroy(exec))
	require.NoError(t, ctx.GraphDestroy(handle))
	left.Release()
	kept(t, k...)
	also.Release()
	eventuallyReleased(t, k...)
}

func TestWhatACaptureCannotEmbed(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	g, _, _ := allocating(t, ctx, buffers(t, ctx, 1, 8)[0])
	x := instantiate(t, g, ExecOptions{})
	c := begin(t, s, Options{})
	for _, err := range []error{embedIn(x, c, s), embedIn(g, c, s)} {
		require.ErrorIs(t, err, cuda.ErrorNotSupported)
		require.ErrorContains(t, err, "the graph allocates or frees memory")
	}
	outer, err := c.End()
	require.NoError(t, err)
	require.Empty(t, outer.Nodes())
	require.NoError(t, outer.Close())
	require.ErrorIs(t, embedIn(g, c, s), ErrNotCapturing)
}

// The copy holds the operands itself, and is of what the executable runs.
func TestChildOfAnExecutable(t *testing.T) {
	ctx := open(t)
	s, k := newStream(t, ctx), tokens(3)
	var ran []string
	g := nested(t, ctx, &ran, k)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	inner, after := x.Node("inner"), x.Node("after")

	var m mirror
	outer, err := New(ctx, Options{OnBundle: m.apply})
	require.NoError(t, err)
	_, err = outer.ChildOf(after, NodeOptions{})
	require.ErrorContains(t, err, `"after" is of kind host`)
	n, err := outer.ChildOf(inner, NodeOptions{Name: "again", Operands: operands(k[2])})
	require.NoError(t, err)
	require.NoError(t, x.Close())
	eventuallyReleased(t, k[1])
	kept(t, k[0], k[2])
	m.holds(t, k[0], k[2])
	require.Equal(t, []string{"again:op2", "again/deep:op0"}, names(n.Retained()))
	_, err = outer.ChildOf(inner, NodeOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)

	y := instantiate(t, outer, ExecOptions{})
	require.NoError(t, outer.Close())
	require.NoError(t, y.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []string{"deep"}, ran)
	require.NoError(t, y.Close())
	eventuallyReleased(t, k...)
}

func TestChildOfAnExecutableThatChanged(t *testing.T) {
	ctx := open(t)
	k := tokens(4)
	var ran []string
	g := nested(t, ctx, &ran, k)
	other := nested(t, ctx, &ran, k[2:])
	sub, err := New(ctx, Options{})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	_, err = sub.Host(hostFunc(func() {}), NodeOptions{Name: "deep"})
	require.NoError(t, err)
	require.NoError(t, x.Node("inner").UpdateChild(sub))
	_, err = other.ChildOf(x.Node("inner"), NodeOptions{})
	require.ErrorContains(t, err, `"inner" embeds something else`)
	require.NoError(t, errors.Join(x.Close(), g.Close(), other.Close(), sub.Close()))
	eventuallyReleased(t, k...)
}
