// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// A Condition is a number that controls a conditional node. Kernels of the
// graph set it, by its handle, with cudaGraphSetConditional. It belongs to its
// graph.
type Condition struct {
	h      *hierarchy
	handle cuda.ConditionHandle // immutable
	first  uint32               // immutable; meaningless unless assign is true
	assign bool                 // immutable
	node   *Node                // guarded by h.mu; the one that it controls, which may be removed
}

// Handle returns the CUgraphConditionalHandle, for kernels.
func (c *Condition) Handle() cuda.ConditionHandle { return c.handle }

// Default returns the value at the start of each launch. If assign is false,
// the value of the previous launch is kept.
func (c *Condition) Default() (first uint32, assign bool) { return c.first, c.assign }

// ConditionalParams are those of a conditional node.
type ConditionalParams struct {
	Condition *Condition
	Type      cuda.ConditionalType
}

// MaxBodies is how many bodies a conditional node may have here.
const MaxBodies = 1 << 16

// Condition makes a condition. With assign, its value is first at the start of
// each launch; otherwise it keeps the value of the previous launch, initially
// 0. It must control one conditional node, of g or of a graph in it, before g
// is instantiated. It calls cuGraphConditionalHandleCreate.
//
// Errors: [cuda.ErrClosed]; otherwise an [*cuda.Error].
func (g *Graph) Condition(first uint32, assign bool) (*Condition, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.usable(beChanged); err != nil {
		return nil, err
	}
	// On the outermost graph, so that any node in it can use the condition.
	handle, err := g.h.ctx.ConditionCreate(g.h.handle, first, assign)
	if err != nil {
		return nil, err
	}
	c := &Condition{h: g.h, handle: handle, first: first, assign: assign}
	g.h.conditions = append(g.h.conditions, c)
	return c, nil
}

// unusedConditions says which conditions control no conditional node, or nothing if
// there are none. The driver has no way to give conditions back.
//
// Preconditions: h.mu is held.
func (h *hierarchy) unusedConditions() string {
	var list []string
	for _, c := range h.conditions {
		switch {
		case c.node == nil:
			list = append(list, fmt.Sprintf("condition %#x controls no conditional node", uint64(c.handle)))
		case c.node.removed: // what was inside one that was removed is gone as well, and in nobody's way
			list = append(list, fmt.Sprintf("condition %#x controls no conditional node since %v was removed", uint64(c.handle), c.node))
		}
	}
	return strings.Join(list, ", ")
}

// Conditional adds a node that runs one of its bodies, repeatedly or not, or
// none, depending on the value of c when the node runs. Bodies are empty graphs
// at first, to which the caller adds kernels, copies and fills that do not
// touch pageable memory, joins, embedded graphs and conditional nodes. A graph
// with such a node cannot be cloned or embedded, and has one executable at a
// time. It calls cuGraphAddNode.
//
// Errors: an [*cuda.ArgumentError] also for a condition of another graph or of
// another node, and for a number of bodies that the type does not allow.
func (g *Graph) Conditional(c *Condition, t cuda.ConditionalType, bodies int, o NodeOptions) (*Node, error) {
	b := newBundle(o.Operands)
	g.h.mu.Lock()
	n, err := g.addConditional(c, t, bodies, o, b)
	g.h.mu.Unlock()
	if err != nil {
		b.release()
	}
	return n, err
}

func (g *Graph) addConditional(c *Condition, t cuda.ConditionalType, bodies int, o NodeOptions, b *bundle) (*Node, error) {
	if err := g.checkConditional(c, t, bodies); err != nil {
		return nil, err
	}
	var made []cuda.GraphHandle
	n, err := g.addLocked(cuda.ConditionalNode, o, b, ConditionalParams{c, t}, func(deps []cuda.NodeHandle) (n cuda.NodeHandle, err error) {
		n, made, err = g.h.ctx.AddConditionalNode(g.handle, deps, c.handle, t, uint32(bodies))
		return n, err
	})
	if err != nil {
		return nil, err
	}
	c.node = n
	for _, handle := range made {
		body := newGraph(g.h, handle, g.watch)
		body.owner = n
		n.bodies = append(n.bodies, body)
	}
	return n, nil
}

// checkConditional checks what the driver would refuse without saying why.
//
// Preconditions: g.h.mu is held.
func (g *Graph) checkConditional(c *Condition, t cuda.ConditionalType, bodies int) error {
	switch {
	case c == nil || c.h != g.h:
		return badValue("condition", "must be one that this graph has made")
	case c.node != nil && !c.node.isGone():
		return badValue("condition", "already controls %v: make another one", c.node)
	case c.node != nil && !c.node.removed:
		return badValue("condition", "controlled %v, which was removed with the node that it was inside of: make another one", c.node)
	}
	least, most := 1, 1
	switch t {
	case cuda.If:
		most = 2
	case cuda.Switch:
		most = MaxBodies
	case cuda.While:
	default:
		return badValue("type", "must be if, while or switch, got %v", t)
	}
	if bodies < least || bodies > most {
		return badValue("count", "must be %d to %d for the bodies of a %v node, got %d", least, most, t, bodies)
	}
	return nil
}

// mayHold refuses what a body of a conditional node cannot hold.
//
// Preconditions: g.h.mu is held.
func (g *Graph) mayHold(kind cuda.NodeType, params any) error {
	if g.owner == nil {
		return nil
	}
	return g.mayHoldIn(g.owner, kind, params, false)
}

// mayHoldIn is mayHold for a body of n. A captured copy may involve pageable
// memory without being marked so.
//
// Preconditions: the lock of n's graph is held.
func (g *Graph) mayHoldIn(n *Node, kind cuda.NodeType, params any, captured bool) error {
	switch kind {
	case cuda.KernelNode, cuda.MemsetNode, cuda.EmptyNode, cuda.ChildGraphNode, cuda.ConditionalNode:
		return nil
	case cuda.MemcpyNode:
		p, ok := params.(cuda.MemcpyParams)
		if !ok {
			return badValue("graph", "has a copy with unknown operands, which cannot be in a body of %v", n)
		}
		return g.refusePageable(n, p, captured)
	}
	return badValue("graph", "is a body of %v: it can hold kernels, copies, fills, joins, graphs and conditional nodes, not %v nodes", n, kind)
}

// refusePageable refuses a copy from or to pageable memory: NVIDIA's driver
// (580.159, CUDA 13.0) crashes when it instantiates one in a body.
func (g *Graph) refusePageable(n *Node, p cuda.MemcpyParams, captured bool) error {
	for _, side := range []struct {
		name  string
		ptr   uint64
		host  bool
		array bool
	}{{"dst", p.Dst, p.DstHost, p.DstArray}, {"src", p.Src, p.SrcHost, p.SrcArray}} {
		if side.array || !side.host && !captured {
			continue
		}
		info, err := g.h.ctx.PointerInfo(side.ptr)
		if err != nil {
			return err
		}
		if info.Kind == cuda.HostMemory {
			return badValue(side.name, "is ordinary host memory, which cannot be copied in a body of %v: pin it", n)
		}
	}
	return nil
}

// mayBeInBody refuses a graph that cannot be embedded in a body of owner.
//
// Preconditions: g.h.mu and the lock of owner's graph are held.
func (g *Graph) mayBeInBody(owner *Node) error {
	for _, n := range g.all() {
		if err := g.mayHoldIn(owner, n.kind, n.params, true); err != nil {
			return fmt.Errorf("%v of the graph to embed: %w", n, err)
		}
		if n.child != nil {
			if err := n.child.mayBeInBody(owner); err != nil {
				return err
			}
		}
	}
	return nil
}
