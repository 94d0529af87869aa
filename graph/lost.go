// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// context returns the context that a kernel, an event, a semaphore or a node
// belongs to, if o says that. Memory is its owner's affair.
func (o *Operand) context() *cuda.Context {
	switch r := o.Retainer.(type) {
	case *cuda.Kernel:
		return r.Context()
	case handleUse:
		return r.on
	case elsewhere:
		return r.on
	}
	return nil
}

// An elsewhere is in a graph that has nodes of another context than its own.
type elsewhere struct{ on *cuda.Context }

// Release implements [Retainer].
func (elsewhere) Release() {}

// noteElsewhere notes that g, the view of what a node of a graph on another
// device embeds, has its nodes in on.
//
// Preconditions: the lock of the graph is held, and nobody was told of g's bundles.
func (g *Graph) noteElsewhere(on *cuda.Context) {
	if on != g.h.ctx {
		g.loose = append(g.loose, newBundle([]Operand{{Reason: "graph in it", Retainer: elsewhere{on}}}))
	}
}

// noteElsewhere notes that the capture has nodes of the device of s.
//
// Preconditions: c.mu is held.
func (c *Capture) noteElsewhere(s *cuda.Stream) {
	on := s.Context()
	if on == c.stream.Context() || slices.Contains(c.elsewhere, on) {
		return
	}
	c.elsewhere = append(c.elsewhere, on)
	c.loose = append(c.loose, newBundle([]Operand{{Reason: "work captured there", Retainer: elsewhere{on}}}))
}

// lost returns the first operand of which isLost says so.
func (b *bundle) lost(isLost func(*cuda.Context) bool) *Operand {
	if b == nil {
		return nil
	}
	for i := range b.operands {
		if c := b.operands[i].context(); c != nil && isLost(c) {
			return &b.operands[i]
		}
	}
	return nil
}

func describeLost(path string, o *Operand) (what string, on *cuda.Device) {
	on = o.context().Device()
	if path == "" {
		return "the " + o.Reason, on
	}
	return fmt.Sprintf("node %q: the %s", strings.TrimSuffix(path, "/"), o.Reason), on
}

const lostMemory = "memory that the graph allocates"

// Lost returns a kernel, an event, a semaphore or memory of g of which isLost
// says so, in words, and its device; or an empty text. A graph can have such
// things of another device than its own. isLost runs with a lock held.
func (g *Graph) Lost(isLost func(*cuda.Context) bool) (what string, on *cuda.Device) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	g.eachBundle("", func(path string, b *bundle) {
		if what != "" {
			return
		}
		if o := b.lost(isLost); o != nil {
			what, on = describeLost(path, o)
		}
	})
	if what != "" {
		return what, on
	}
	for _, c := range g.h.memory {
		if isLost(c) {
			return lostMemory, c.Device()
		}
	}
	return "", nil
}

// Lost is [Graph.Lost], of what the next launch uses.
func (x *Exec) Lost(isLost func(*cuda.Context) bool) (what string, on *cuda.Device) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.nodes {
		if o := n.bundle.lost(isLost); o != nil {
			return describeLost(n.name, o)
		}
	}
	for _, h := range x.extra {
		if o := h.b.lost(isLost); o != nil {
			return describeLost(h.path, o)
		}
	}
	for _, c := range x.allocates {
		if isLost(c) {
			return lostMemory, c.Device()
		}
	}
	return "", nil
}

// visit counts an executable that is about to be made of g in the contexts other
// than its own in which g has nodes, or memory of nodes, and lists them: before
// the driver's call, since a reset of them must not come amid that.
//
// Preconditions: g.h.mu is held.
func (g *Graph) visit() ([]*cuda.Context, error) {
	list := g.elsewhere()
	for i, c := range list {
		if err := c.AddGuest(); err != nil {
			endVisits(list[:i])
			return nil, err
		}
	}
	return list, nil
}

func endVisits(visited []*cuda.Context) {
	for _, c := range visited {
		c.RemoveGuest()
	}
}

func (g *Graph) elsewhere() []*cuda.Context {
	var list []*cuda.Context
	add := func(c *cuda.Context) {
		if c != g.h.ctx && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	g.eachWhole(func(b *bundle) {
		for i := range b.operands {
			if e, ok := b.operands[i].Retainer.(elsewhere); ok {
				add(e.on)
			}
		}
	})
	for _, c := range g.h.memory {
		add(c)
	}
	return list
}

// eachWhole visits the bundles of g as a whole, and of all graphs in it.
func (g *Graph) eachWhole(visit func(b *bundle)) {
	for _, n := range g.all() {
		n.eachInner("", func(_ string, inner *Graph) { inner.eachWhole(visit) })
	}
	for _, b := range g.loose {
		visit(b)
	}
}

// contexts lists where the nodes allocate.
//
// Preconditions: h.mu is held.
func (h *hierarchy) contexts() []*cuda.Context {
	var list []*cuda.Context
	for _, c := range h.memory {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}
