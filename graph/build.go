// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/ordered"
)

// NodeOptions are the options that every kind of node has.
type NodeOptions struct {
	// Name must be unique in the graph. If it is empty the node is named after
	// its kind and number: memcpy_0, kernel_3.
	Name string
	// Deps are the nodes that the new one waits for, all of the same graph.
	Deps []*Node
	// Operands belong to the graph from the call on; if it fails they are
	// released.
	Operands []Operand
	// Site is what [Node.Site] returns.
	Site uint32
	// Again says that another node has the event or the semaphore, which may then
	// be closed.
	Again bool
}

// Memcpy adds a node that copies. Host memory is read again at each launch. It
// calls cuGraphAddMemcpyNode.
//
// Errors, here and in the calls below: an [*cuda.ArgumentError] for a name in
// use, a dependency of another graph, or an operation that cannot be in a body
// of a conditional node; [cuda.ErrClosed]; otherwise an [*cuda.Error]. On an
// error the graph is as it was.
func (g *Graph) Memcpy(p cuda.MemcpyParams, o NodeOptions) (*Node, error) {
	return g.add(cuda.MemcpyNode, o, p, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.AddMemcpyNode(g.handle, deps, &p)
	})
}

// Memset adds a node that fills memory. It calls cuGraphAddMemsetNode.
func (g *Graph) Memset(p cuda.MemsetParams, o NodeOptions) (*Node, error) {
	return g.add(cuda.MemsetNode, o, p, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.AddMemsetNode(g.handle, deps, &p)
	})
}

// MemOp adds a node that writes a value into memory, or waits for one. It calls
// cuGraphAddBatchMemOpNode.
func (g *Graph) MemOp(p cuda.MemOpParams, o NodeOptions) (*Node, error) {
	return g.add(cuda.BatchMemOpNode, o, p, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.AddMemOpNode(g.handle, deps, &p)
	})
}

// Kernel adds a node that launches a kernel. Argument values are copied now;
// what they point to is used at each launch. If p.Config is programmatic, so are
// the edges from kernels. It calls cuGraphAddKernelNode,
// cuGraphKernelNodeSetAttribute for cluster, cooperative and priority, and
// cuGraphAddDependencies for programmatic edges.
func (g *Graph) Kernel(p cuda.KernelNodeParams, o NodeOptions) (*Node, error) {
	var err error
	if o.Operands, err = retainKernel(p, o.Operands); err != nil {
		return nil, err
	}
	b := newBundle(o.Operands)
	n, err := g.addKernel(o, b, &p)
	if err != nil {
		b.release()
	}
	return n, err
}

// Host adds a node that calls a C function on a thread of the driver. The
// function must not call the driver, and does not run once the context has
// failed. It calls cuGraphAddHostNode.
func (g *Graph) Host(p cuda.HostParams, o NodeOptions) (*Node, error) {
	return g.add(cuda.HostNode, o, p, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.AddHostNode(g.handle, deps, &p)
	})
}

// Empty adds a node that does nothing but join its dependencies. It calls
// cuGraphAddEmptyNode.
func (g *Graph) Empty(o NodeOptions) (*Node, error) {
	return g.add(cuda.EmptyNode, o, nil, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.AddEmptyNode(g.handle, deps)
	})
}

// handleUse keeps the handle of an event or a semaphore valid.
type handleUse struct {
	done  func()
	on    *cuda.Context
	event *cuda.Event // nil: it is of a semaphore
}

// Release implements [Retainer].
func (u handleUse) Release() { u.done() }

// Child adds a node that runs sub as it is now: later changes of sub do not
// affect it. g holds the operands of sub itself. It calls
// cuGraphAddChildGraphNode.
func (g *Graph) Child(sub *Graph, o NodeOptions) (*Node, error) {
	b := newBundle(o.Operands)
	n, err := g.addChild(sub, o, b)
	if err != nil {
		b.release()
	}
	return n, err
}

func (g *Graph) addChild(sub *Graph, o NodeOptions, b *bundle) (*Node, error) {
	defer lockBoth(g.h, sub.h)()
	if err := sub.usable("be embedded"); err != nil {
		return nil, err
	}
	if g.owner != nil {
		if err := sub.mayBeInBody(g.owner); err != nil {
			return nil, err
		}
	}
	var child *Graph
	n, err := g.addLocked(cuda.ChildGraphNode, o, b, nil, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		h, err := g.embed(sub, deps)
		if err == nil {
			child = sub.view(g.h) // here: sub may be g, which does not have the new node yet
		}
		return h, err
	})
	if err != nil {
		return nil, sub.explainRefusal("cuGraphAddChildGraphNode", "be embedded", "build it again", err)
	}
	n.child = child
	child.noteElsewhere(sub.h.ctx)
	g.watch.notify(n.child.bundles(), nil)
	return n, nil
}

// embed makes the driver calls of [Graph.Child]. NVIDIA's driver, 580, dies of a
// graph that is to be embedded in itself: it is given a clone of it.
//
// Preconditions: g.h.mu and sub.h.mu are held.
func (g *Graph) embed(sub *Graph, deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
	if sub.handle == g.handle {
		return g.embedCopy(deps, sub.handle)
	}
	return g.h.ctx.AddChildGraphNode(g.handle, deps, sub.handle)
}

// embedCopy adds a node that runs a clone of a graph of the driver: for those that
// it does not embed themselves, as one that is inside a node already.
//
// Preconditions: g.h.mu is held, and so is the lock of that graph.
func (g *Graph) embedCopy(deps []cuda.NodeHandle, from cuda.GraphHandle) (cuda.NodeHandle, error) {
	handle, err := g.h.ctx.GraphClone(from)
	if err != nil {
		return 0, err
	}
	clone := adopt(g.h.ctx, handle, Options{})
	defer func() {
		if err := clone.Close(); err != nil { // where that would have to wait, later
			warn(err)
		}
	}()
	return g.h.ctx.AddChildGraphNode(g.handle, deps, handle)
}

// view copies the nodes of g for an embedding in h, and retains their bundles.
// Its nodes have no handles: the driver does not report which node became
// which.
//
// Preconditions: g.h.mu and h.mu are held.
func (g *Graph) view(h *hierarchy) *Graph {
	v := newGraph(h, 0, nil)
	v.embedded = true
	// It cannot fail: it makes no driver call.
	_ = v.copyFrom(g, func(*Node) (cuda.NodeHandle, error) { return 0, nil })
	return v
}

// add prepares the bundle, calls the driver and commits; it rolls back on
// failure.
func (g *Graph) add(kind cuda.NodeType, o NodeOptions, params any,
	call func([]cuda.NodeHandle) (cuda.NodeHandle, error)) (*Node, error) {
	b := newBundle(o.Operands)
	g.h.mu.Lock()
	n, err := g.addLocked(kind, o, b, params, call)
	g.h.mu.Unlock()
	if err != nil {
		b.release()
	}
	return n, err
}

func (g *Graph) addLocked(kind cuda.NodeType, o NodeOptions, b *bundle, params any,
	call func([]cuda.NodeHandle) (cuda.NodeHandle, error)) (*Node, error) {
	if err := g.usable(beChanged); err != nil {
		return nil, err
	}
	if err := g.mayHold(kind, params); err != nil {
		return nil, err
	}
	if err := b.mayUse(nil); err != nil {
		return nil, err
	}
	name, err := g.nameFor(kind, o.Name)
	if err != nil {
		return nil, err
	}
	deps, handles, err := g.resolve(o.Deps)
	if err != nil {
		return nil, err
	}
	handle, err := call(handles)
	if err != nil {
		return nil, err
	}
	n := &Node{g: g, handle: handle, kind: kind, name: name, deps: ordered.Of(deps), params: params, bundle: b}
	n.SetSite(o.Site)
	g.commit(n)
	n.link()
	g.watch.notify([]*bundle{b}, nil)
	return n, nil
}

// commit enters n in the tables.
//
// Preconditions: g.h.mu is held; n.name is free, and nameFor's or in a graph
// whose names are known.
func (g *Graph) commit(n *Node) {
	g.appendNode(n)
	g.counts[n.kind]++
	if g.byName != nil {
		g.byName[n.name] = n
	}
}

// appendNode appends n to the nodes of g.
//
// Preconditions: g.h.mu is held.
func (g *Graph) appendNode(n *Node) {
	n.index = g.made
	g.made++
	if g.gone > len(g.nodes)/2 {
		g.all()
	}
	g.nodes = append(g.nodes, n)
	if g.order != nil {
		g.order.append(n)
	}
}

// link adds n to the dependents of its dependencies. Nodes are linked in their
// order.
//
// Preconditions: the lock of n's graph is held; n has its dependencies.
func (n *Node) link() {
	for _, d := range n.deps.All() {
		d.next.Add(n)
		if d.index > n.index {
			n.g.backward++
		}
	}
}

// resolve checks dependencies and drops duplicates, which the driver refuses.
//
// Preconditions: g.h.mu is held.
func (g *Graph) resolve(deps []*Node) ([]*Node, []cuda.NodeHandle, error) {
	g.resolved++
	nodes, handles := make([]*Node, 0, len(deps)), make([]cuda.NodeHandle, 0, len(deps))
	for i, d := range deps {
		if d == nil || d.g != g {
			return nil, nil, badValue("deps", "must be nodes of this graph, got %v at position %d", describeNode(d), i)
		}
		if d.removed {
			return nil, nil, &RemovedError{d.String()}
		}
		if d.resolved != g.resolved {
			d.resolved = g.resolved
			nodes = append(nodes, d)
			handles = append(handles, d.handle)
		}
	}
	return nodes, handles, nil
}

func describeNode(n *Node) string {
	if n == nil {
		return "nil"
	}
	return n.String() + " of another graph"
}
