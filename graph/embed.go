// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cudago/cudago/cuda"
)

// Capture adds a node to the capture that s is in, which runs g as it is now:
// later changes of g do not affect it. The captured graph holds the operands
// itself. c is what [CaptureOf] returns for s, and site is the node's [Node.Site]. It calls cuGraphAddChildGraphNode
// and cuStreamUpdateCaptureDependencies.
//
// Lifetime: if c is nil another library has begun the capture, and does not know
// of operands. Then left is what the node uses, even with an error, for the caller
// to release once that capture's graph is gone; nil if there is no node.
//
// Errors: as for [Graph.Child].
func (g *Graph) Capture(c *Capture, s *cuda.Stream, site uint32) (left Retainer, err error) {
	defer c.lockAny()()
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.usable("be embedded"); err != nil {
		return nil, err
	}
	left, err = c.embed(s, g.h.handle, site, func() *Graph { return g.view(nil) })
	return left, g.explainRefusal("cuGraphAddChildGraphNode", "be embedded", "build it again", err)
}

// Capture is [Graph.Capture] for what launches of x run now. It needs the graph
// that x was made of as it was then, because the driver cannot copy executables:
// cuGraphLaunch on a stream that is capturing fails, and invalidates the capture.
//
// Errors: also a [*ChangedError], if that graph does something else by now, or x
// does; or an [*cuda.ArgumentError], if x could not be embedded before either.
func (x *Exec) Capture(c *Capture, s *cuda.Stream, site uint32) (left Retainer, err error) {
	defer c.lockAny()()
	x.gate.enter()
	defer x.gate.leave()
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosedExec
	}
	if why := x.changed(); why != "" {
		if what := x.hasUncopied(); what != "" {
			return nil, badValue("stream", "is capturing, and the executable %s, so that no capture can have a copy of it: %s", what, launchElsewhere)
		}
		return nil, &ChangedError{why}
	}
	left, err = c.embed(s, x.h.handle, site, x.view)
	return left, x.source.explainRefusal("cuGraphAddChildGraphNode", "be embedded", launchElsewhere, err)
}

const launchElsewhere = "launch it on a stream that is not capturing"

// hasUncopied says what of x the driver copies into no graph, whether x has changed
// or not; or nothing.
func (x *Exec) hasUncopied() string {
	for _, n := range x.nodes {
		switch {
		case n.kind == cuda.AllocNode, n.kind == cuda.FreeNode, n.child != nil && (n.child.allocates() || n.child.frees()):
			return "allocates or frees memory"
		case n.kind == cuda.ConditionalNode, n.child != nil && n.child.hasConditional():
			return "has conditional nodes"
		}
	}
	return ""
}

// A ChangedError says why an executable cannot be embedded.
type ChangedError struct{ Reason string }

// Error returns what has changed.
func (e *ChangedError) Error() string {
	return "the executable is not what its graph says: " + e.Reason
}

// changed returns what tells x from the graph that it was made of, or "".
//
// Preconditions: x.h.mu and x.mu are held.
func (x *Exec) changed() string {
	nodes := x.source.flat("", nil)
	if len(nodes) != len(x.nodes) {
		return countText(x.nodes, nodes)
	}
	for i, n := range x.nodes {
		switch {
		case n.of != nodes[i].Node:
			return fmt.Sprintf("%v is in another place", n)
		case n.disabled:
			return fmt.Sprintf("%v is disabled", n)
		case n.updated || n.version != n.of.version:
			return fmt.Sprintf("%v has been updated", n)
		case !n.edges.equal(n.of.edges()):
			return fmt.Sprintf("%v waits for other nodes", n)
		}
	}
	return ""
}

// lockAny is lock for callers that have no capture of ours, too.
func (c *Capture) lockAny() (unlock func()) {
	if c == nil {
		return func() {}
	}
	c.lock()
	return c.unlock
}

// ErrNotCapturing is what [Capture.Record], and Capture of a [Graph] or an [Exec],
// return if another thread has ended the stream's capture meanwhile. Nothing was
// added. It is a [cuda.ErrClosed].
var ErrNotCapturing error = &cuda.ClosedError{What: "the capture, which another thread has ended,"}

// StillCapturing returns [ErrNotCapturing] unless another library's capture is open
// in s, for a stream of which [CaptureOf] has found no capture of ours; or an error
// if a capture is open that was invalidated, whoever began it.
func StillCapturing(s *cuda.Stream) error {
	info, err := s.CaptureIdentity()
	if err != nil {
		return err
	}
	switch info.Status {
	case cuda.CaptureNone:
		return ErrNotCapturing
	case cuda.CaptureInvalidated: // it ends at any moment, and the call would then be made after all
		return &cuda.Error{Op: "cuStreamGetCaptureInfo", Result: cuda.ErrorStreamCaptureInvalidated}
	}
	captures.settle() // otherwise one that begins now passes for another library's
	began, err := CaptureOf(s)
	if began != nil { // one of ours, meanwhile
		return ErrNotCapturing
	}
	return err
}

// embed adds a node that runs a graph of the driver. view is called once the node
// is there; it holds what the node keeps alive, and is left to the caller if c is
// nil.
//
// Errors: [ErrNotCapturing]; an [*cuda.Error] of the driver.
//
// Preconditions: c.mu is held, unless c is nil; so is the lock of the graph.
func (c *Capture) embed(s *cuda.Stream, sub cuda.GraphHandle, site uint32, view func() *Graph) (left Retainer, err error) {
	if c != nil && c.ended {
		return nil, ErrNotCapturing
	}
	if c == nil {
		if err := StillCapturing(s); err != nil {
			return nil, err
		}
	}
	info, err := s.CaptureInfo()
	if err != nil {
		return nil, err
	}
	if info.Status != cuda.CaptureActive {
		return nil, &cuda.Error{Op: "cuGraphAddChildGraphNode", Result: cuda.ErrorStreamCaptureInvalidated}
	}
	n, err := s.Context().AddChildGraphNode(info.Graph, info.Dependencies, sub)
	if err != nil {
		return nil, err
	}
	v := view()
	err = s.SetCaptureDependencies([]cuda.NodeHandle{n})
	if c == nil {
		return bundles(v.bundles()), err
	}
	c.noteStream(s)
	c.holdGreenContext(s)
	c.recorded[n] = &recordedOp{child: v, site: site}
	// While it is captured no node can be removed: what nothing waits for must not
	// become a graph.
	c.spoiled = errors.Join(c.spoiled, err)
	return nil, err
}

// bundles are held together.
type bundles []*bundle

// Release implements [Retainer].
func (b bundles) Release() { releaseAll(b) }

// view is [Graph.view] of what launches of x run. The graph that x was made of
// may have been closed: only x has its operands then.
//
// Preconditions: x.h.mu and x.mu are held; no node is conditional.
func (x *Exec) view() *Graph {
	v := newGraph(nil, 0, nil)
	v.embedded = true
	inner := make(map[string][]*bundle) // in the order of eachBundle
	for _, h := range x.extra {
		inner[h.path] = append(inner[h.path], h.b.retain())
	}
	v.names() // copied names are no counts
	copies := make(map[*Node]*Node, len(x.nodes))
	for _, e := range x.nodes {
		c := &Node{g: v, kind: e.kind, name: e.name, params: e.params, bundle: e.bundle.retain()}
		c.SetSite(e.Site())
		if e.child != nil {
			c.child = e.child.viewOf(e.name+"/", inner)
		}
		copies[e.of] = c
		v.commit(c)
	}
	for _, e := range x.nodes {
		copies[e.of].copyEdges(e.edges, copies)
	}
	for _, path := range slices.Sorted(maps.Keys(inner)) {
		v.loose = append(v.loose, inner[path]...)
	}
	return v
}

// viewOf copies an embedded graph with bundles that are given by paths.
func (g *Graph) viewOf(prefix string, bundles map[string][]*bundle) *Graph {
	v := newGraph(nil, 0, nil)
	v.embedded = true
	v.names()
	copies := make(map[*Node]*Node, len(g.all()))
	for _, n := range g.all() {
		c := &Node{g: v, kind: n.kind, name: n.name, params: n.params}
		c.SetSite(n.Site())
		if path := prefix + n.name; len(bundles[path]) > 0 {
			c.bundle, bundles[path] = bundles[path][0], bundles[path][1:]
		}
		if n.child != nil {
			c.child = n.child.viewOf(prefix+n.name+"/", bundles)
		}
		copies[n] = c
		v.commit(c)
	}
	g.linkCopies(copies)
	return v
}

// settle makes a view part of the graph that a capture has become.
//
// Preconditions: h.mu is held, or nobody else knows h yet.
func (g *Graph) settle(h *hierarchy) {
	g.h = h
	for _, n := range g.nodes {
		if n.child != nil {
			n.child.settle(h)
		}
	}
}

// bundles lists what an operation that never became a node of a graph holds.
func (op *recordedOp) bundles() []*bundle {
	if op.child == nil {
		return []*bundle{op.bundle}
	}
	return op.child.bundles()
}
