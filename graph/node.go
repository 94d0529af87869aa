// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/ordered"
)

// A Node is one operation of a [Graph]. It lives as long as its graph, or until
// it is removed. Safe for concurrent use.
type Node struct {
	g      *Graph
	index  int             // immutable; how many nodes its graph made before
	handle cuda.NodeHandle // immutable; zero in an embedded graph
	kind   cuda.NodeType   // immutable
	site   atomic.Uint32   // where it was made: see Site
	name   string          // immutable
	bodies []*Graph        // immutable; of a conditional node
	memory *allocation     // immutable; of an alloc node

	child   *Graph  // guarded by g.h.mu; of a child graph node, which never lacks one
	params  any     // guarded by g.h.mu; see Params
	bundle  *bundle // guarded by g.h.mu
	version uint64  // guarded by g.h.mu; how often params and bundle have been replaced

	deps    ordered.Set[*Node]      // guarded by g.h.mu
	early   map[*Node]cuda.EdgeData // guarded by g.h.mu; of the edges from deps for whose completion n does not wait
	next    ordered.Set[*Node]      // guarded by g.h.mu; the nodes with n among their deps
	place   *place                  // guarded by g.h.mu; in g.order, if there is one
	removed bool                    // guarded by g.h.mu
	// resolved tells resolve that it has seen n.
	resolved uint64 // guarded by g.h.mu
}

// Graph returns the graph that n belongs to.
func (n *Node) Graph() *Graph { return n.g }

// Index returns how many nodes its graph had made before n. No other node of
// the graph ever has the same.
func (n *Node) Index() int { return n.index }

// Name returns the name, which is unique in the graph.
func (n *Node) Name() string { return n.name }

// Kind returns the kind of operation.
func (n *Node) Kind() cuda.NodeType { return n.kind }

// Site returns the number that the caller gave of the place that made n, or 0.
// Copies of n have it too.
func (n *Node) Site() uint32 { return n.site.Load() }

// SetSite says that n is a copy of what was made somewhere else.
func (n *Node) SetSite(site uint32) { n.site.Store(site) }

// Handle returns the CUgraphNode, or zero for a node of an embedded graph.
func (n *Node) Handle() cuda.NodeHandle { return n.handle }

// Dependencies returns the nodes that n waits for.
func (n *Node) Dependencies() []*Node {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return append([]*Node(nil), n.deps.All()...)
}

// WaitsFor reports whether other is among the dependencies of n.
func (n *Node) WaitsFor(other *Node) bool {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return n.deps.Has(other)
}

// IsRemoved reports whether n was removed from its graph.
func (n *Node) IsRemoved() bool {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return n.removed
}

// Dependents returns the nodes that wait for n, in the order in which their edges
// were made.
func (n *Node) Dependents() []*Node {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return append([]*Node(nil), n.next.All()...)
}

// Child returns a view of the graph that a child graph node embeds, or nil. It
// ends with an update of the node.
func (n *Node) Child() *Graph {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return n.child
}

// Bodies returns the graphs that a conditional node chooses from.
func (n *Node) Bodies() []*Graph { return append([]*Graph(nil), n.bodies...) }

// BodyCount returns how many Bodies has.
func (n *Node) BodyCount() int { return len(n.bodies) }

// eachInner visits the graphs inside n, with the prefix for the names of their
// nodes.
func (n *Node) eachInner(prefix string, visit func(prefix string, inner *Graph)) {
	if n.child != nil {
		visit(prefix+n.name+"/", n.child)
	}
	for i, b := range n.bodies {
		if len(n.bodies) == 1 {
			visit(prefix+n.name+"/", b)
		} else {
			visit(fmt.Sprintf("%s%s[%d]/", prefix, n.name, i), b)
		}
	}
}

// Params returns the parameters: a [cuda.MemcpyParams], [cuda.MemsetParams],
// [cuda.MemOpParams], [cuda.SemaphoreParams],
// [cuda.HostParams] or [cuda.KernelNodeParams], the last with Params nil; a
// [ConditionalParams], [AllocParams] or [FreeParams]; and nil for other kinds
// and for captured operations of other libraries.
func (n *Node) Params() any {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return n.params
}

// Retained returns what n keeps alive, the graphs in it included.
func (n *Node) Retained() []Retained {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	list := n.bundle.describe(nil, n.name)
	n.eachInner("", func(prefix string, inner *Graph) {
		inner.eachBundle(prefix, func(path string, b *bundle) { list = b.describe(list, path) })
	})
	return list
}

// Object returns the object that n keeps alive as the named operand, or nil.
func (n *Node) Object(operand string) any {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return n.bundle.object(operand)
}

// String returns `memcpy node "upload"`.
func (n *Node) String() string { return fmt.Sprintf("%v node %q", n.kind, n.name) }

// UpdateMemcpy gives n new parameters, for later instantiations and clones:
// existing executables keep the old parameters and operands. It calls
// cuGraphMemcpyNodeSetParams.
//
// Lifetime: operands belong to n from the call on; if it fails they are
// released.
//
// Errors: an [*cuda.ArgumentError] if n is of another kind; [cuda.ErrClosed];
// otherwise an [*cuda.Error]. On an error n is as it was.
func (n *Node) UpdateMemcpy(p cuda.MemcpyParams, operands []Operand) error {
	return n.update(cuda.MemcpyNode, p, operands, func() error {
		return n.g.h.ctx.SetMemcpyNodeParams(n.handle, &p)
	})
}

// UpdateMemset is [Node.UpdateMemcpy] for a memset node. It calls
// cuGraphMemsetNodeSetParams.
func (n *Node) UpdateMemset(p cuda.MemsetParams, operands []Operand) error {
	return n.update(cuda.MemsetNode, p, operands, func() error {
		return n.g.h.ctx.SetMemsetNodeParams(n.handle, &p)
	})
}

// UpdateMemOp is [Node.UpdateMemcpy] for a batch mem op node. It calls
// cuGraphBatchMemOpNodeSetParams.
func (n *Node) UpdateMemOp(p cuda.MemOpParams, operands []Operand) error {
	return n.update(cuda.BatchMemOpNode, p, operands, func() error {
		return n.g.h.ctx.SetMemOpNodeParams(n.handle, &p)
	})
}

// UpdateKernel is [Node.UpdateMemcpy] for a kernel node. It calls
// cuGraphKernelNodeSetParams, and cuGraphKernelNodeSetAttribute for attributes
// that change.
func (n *Node) UpdateKernel(p cuda.KernelNodeParams, operands []Operand) error {
	operands, err := retainKernel(p, operands)
	if err != nil {
		return err
	}
	return n.update(cuda.KernelNode, keepKernel(p), operands, func() error {
		return n.setKernel(&p)
	})
}

// UpdateHost is [Node.UpdateMemcpy] for a host node. It calls
// cuGraphHostNodeSetParams.
func (n *Node) UpdateHost(p cuda.HostParams, operands []Operand) error {
	return n.update(cuda.HostNode, p, operands, func() error {
		return n.g.h.ctx.SetHostNodeParams(n.handle, &p)
	})
}

// update prepares the bundle, calls the driver and commits. A definition is
// never launched itself, so the old bundle can be released at once.
func (n *Node) update(kind cuda.NodeType, params any, operands []Operand, set func() error) error {
	b := newBundle(operands)
	old, err := n.swap(kind, params, b, set)
	if err != nil {
		b.release()
		return err
	}
	old.release()
	return nil
}

func (n *Node) swap(kind cuda.NodeType, params any, b *bundle, set func() error) (old *bundle, err error) {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	if err := n.g.usable(beChanged); err != nil {
		return nil, err
	}
	if n.removed {
		return nil, &RemovedError{n.String()}
	}
	if n.kind != kind {
		return nil, errKind(n.name, n.kind, kind)
	}
	if err := n.g.mayHold(kind, params); err != nil {
		return nil, err
	}
	if err := b.mayUse(nil); err != nil {
		return nil, err
	}
	if err := set(); err != nil {
		return nil, err
	}
	old = n.bundle
	n.g.pin([]*bundle{old})
	n.bundle, n.params = b, params
	n.version++
	n.g.watch.notify([]*bundle{b}, []*bundle{old})
	return old, nil
}
