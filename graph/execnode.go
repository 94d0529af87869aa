// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// An ExecNode is a node of an executable. Its parameters can be updated for
// later launches; the graph that it came from does not change. Safe for
// concurrent use.
type ExecNode struct {
	x     *Exec
	of    *Node           // immutable; of the graph, or body, that it came from
	def   cuda.NodeHandle // immutable; that node's, which is how the driver finds it
	kind  cuda.NodeType   // immutable
	name  string          // immutable
	edges                 // immutable; those of its node when the executable was made

	version uint64 // immutable; of its node when the executable was made
	child   *Graph // immutable; what its node embedded then

	params any     // guarded by x.mu; see Node.Params
	bundle *bundle // guarded by x.mu
	since  uint64  // guarded by x.mu; launches started before bundle was set
	// call is what a host node calls whose params are not known: see unknownCalls.
	call     cuda.HostParams // guarded by x.mu
	disabled bool            // guarded by x.mu; changes only while the gate is shut
	updated  bool            // guarded by x.mu; its parameters are not its node's
}

// Exec returns the executable that n belongs to.
func (n *ExecNode) Exec() *Exec { return n.x }

// Source returns the node that n was made from.
func (n *ExecNode) Source() *Node { return n.of }

// Site is [Node.Site] of the node that n was made from.
func (n *ExecNode) Site() uint32 { return n.of.Site() }

// Dependencies returns the sources of the nodes that n waits for: edges of the
// graph that were added or removed since do not count.
func (n *ExecNode) Dependencies() []*Node { return append([]*Node(nil), n.deps...) }

// Edges returns the edges to n, of which To is its source.
func (n *ExecNode) Edges() []Edge {
	list := make([]Edge, len(n.deps))
	for i, d := range n.deps {
		list[i] = Edge{d, n.of, n.dataAt(i)}
	}
	return list
}

// Name returns the name, which is unique in the executable.
func (n *ExecNode) Name() string { return n.name }

// Kind returns the kind of operation.
func (n *ExecNode) Kind() cuda.NodeType { return n.kind }

// Params returns the parameters of the next launch, as [Node.Params] does.
func (n *ExecNode) Params() any {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	return n.params
}

// Retained returns what the next launch of n keeps alive.
func (n *ExecNode) Retained() []Retained {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	list := n.bundle.describe(nil, n.name)
	if n.child == nil && n.of.bodies == nil {
		return list // most nodes have nothing inside: skip the search
	}
	for _, o := range n.x.nodes {
		if n.contains(o.name) {
			list = o.bundle.describe(list, o.name)
		}
	}
	for _, h := range n.x.extra {
		if n.contains(h.path) {
			list = h.b.describe(list, h.path)
		}
	}
	return list
}

// Object returns the object that the next launch of n keeps alive as the named
// operand, or nil.
func (n *ExecNode) Object(operand string) any {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	return n.bundle.object(operand)
}

// contains reports whether path names a node of a graph inside n.
func (n *ExecNode) contains(path string) bool {
	rest, ok := strings.CutPrefix(path, n.name)
	return ok && (strings.HasPrefix(rest, "/") || n.kind == cuda.ConditionalNode && strings.HasPrefix(rest, "["))
}

// String returns `memcpy node "upload"`.
func (n *ExecNode) String() string { return fmt.Sprintf("%v node %q", n.kind, n.name) }

// UpdateMemcpy gives n new parameters for later launches; launches under way
// keep the old ones. It calls cuGraphExecMemcpyNodeSetParams.
//
// The old operands are released once the last launch that may use them has
// completed: at once, if there was none. It waits for an [Exec.Launch] that is
// inside the driver: call it with the GIL only while there is none, see
// [Exec.Busy].
//
// Lifetime: operands belong to n from the call on; if it fails they are
// released.
//
// Errors: an [*cuda.ArgumentError] if n is of another kind; [cuda.ErrClosed];
// otherwise an [*cuda.Error], for instance if either side would be another kind
// of memory. On an error n is unchanged.
func (n *ExecNode) UpdateMemcpy(p cuda.MemcpyParams, operands []Operand) error {
	return n.update(cuda.MemcpyNode, p, operands, func(c *cuda.Context) error {
		return c.ExecSetMemcpyParams(n.x.handle, n.def, &p)
	})
}

// UpdateMemset is [ExecNode.UpdateMemcpy] for a memset node. It calls
// cuGraphExecMemsetNodeSetParams.
func (n *ExecNode) UpdateMemset(p cuda.MemsetParams, operands []Operand) error {
	return n.update(cuda.MemsetNode, p, operands, func(c *cuda.Context) error {
		return c.ExecSetMemsetParams(n.x.handle, n.def, &p)
	})
}

// UpdateMemOp is [ExecNode.UpdateMemcpy] for a batch mem op node: a write stays
// one, a wait too, and the width stays. It calls
// cuGraphExecBatchMemOpNodeSetParams.
func (n *ExecNode) UpdateMemOp(p cuda.MemOpParams, operands []Operand) error {
	return n.update(cuda.BatchMemOpNode, p, operands, func(c *cuda.Context) error {
		was, ok := n.Params().(cuda.MemOpParams)
		if ok && (was.IsWait != p.IsWait || was.Width != p.Width) {
			return badValue("", "%v can only change address, value and condition in an executable: to %v, got %v; update the node of the graph and instantiate again",
				n, was.String(), p.String())
		}
		return c.ExecSetMemOpParams(n.x.handle, n.def, &p)
	})
}

// UpdateKernel is [ExecNode.UpdateMemcpy] for a kernel node, whose cluster,
// cooperative and priority must stay. It calls cuGraphExecKernelNodeSetParams.
func (n *ExecNode) UpdateKernel(p cuda.KernelNodeParams, operands []Operand) error {
	operands, err := retainKernel(p, operands)
	if err != nil {
		return err
	}
	return n.update(cuda.KernelNode, keepKernel(p), operands, func(c *cuda.Context) error {
		if err := n.keepsAttributes(&p); err != nil {
			return err
		}
		return c.ExecSetKernelParams(n.x.handle, n.def, &p)
	})
}

// UpdateHost is [ExecNode.UpdateMemcpy] for a host node. It calls
// cuGraphExecHostNodeSetParams.
func (n *ExecNode) UpdateHost(p cuda.HostParams, operands []Operand) error {
	return n.update(cuda.HostNode, p, operands, func(c *cuda.Context) error {
		if n.isDisabled() {
			return nil // until it is enabled it calls a function that does nothing
		}
		return c.ExecSetHostParams(n.x.handle, n.def, &p)
	})
}

// change runs a driver call that changes or queries x, with launches and Close
// kept out. It waits for a Launch that is inside the driver.
func (n *ExecNode) change(f func() error) error {
	x := n.x
	defer x.gate.change()()
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return errClosedExec
	}
	return f()
}

// driver runs f, which looks the node up in the graph that x was made of.
func (n *ExecNode) driver(f func() error) error {
	n.x.h.mu.Lock()
	defer n.x.h.mu.Unlock()
	if n.of.isGone() { // the driver would follow a dangling handle
		return &RemovedError{n.String()}
	}
	return f()
}

// update prepares the bundle, calls the driver and commits; it rolls back on
// failure.
func (n *ExecNode) update(kind cuda.NodeType, params any, operands []Operand, set func(*cuda.Context) error) error {
	b := newBundle(operands)
	var f *retirement
	err := n.change(func() error {
		if n.kind != kind {
			return errKind(n.name, n.kind, kind)
		}
		if err := b.mayUse(nil); err != nil {
			return err
		}
		err := n.driver(func() error {
			if err := n.of.g.mayHold(kind, params); err != nil {
				return err
			}
			return set(n.x.h.ctx)
		})
		if err != nil {
			return err
		}
		f = n.commit(b, params)
		return nil
	})
	if err != nil {
		b.release()
		return err
	}
	f.start()
	return nil
}

// commit replaces n's bundle with b and retires the old one: at once, if no
// launch was started since it was set.
//
// Preconditions: x.gate is shut.
func (n *ExecNode) commit(b *bundle, params any) *retirement {
	x := n.x
	x.mu.Lock()
	now := x.started()
	old, since := n.bundle, n.since
	n.bundle, n.params, n.since, n.updated = b, params, now, true
	x.watch.notify([]*bundle{b}, []*bundle{old})
	x.mu.Unlock()
	switch {
	case old == nil:
		return &retirement{x: x}
	case now == since && now != unknown:
		return &retirement{x: x, bundles: []*bundle{old}}
	}
	return x.retirement([]*bundle{old}, false)
}
