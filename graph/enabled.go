// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda"
)

// SetEnabled makes later launches run n, or skip it, and returns whether they
// ran it before. A disabled node keeps its operands: it can be enabled again.
// Kernel, memcpy and memset nodes, and host nodes if the executable was made
// with Nothing of [ExecOptions]. It calls cuGraphNodeSetEnabled, or
// cuGraphExecHostNodeSetParams.
//
// It waits as [ExecNode.UpdateMemcpy] does. On an error n is unchanged.
func (n *ExecNode) SetEnabled(enabled bool) (was bool, err error) {
	err = n.change(func() error {
		n.x.mu.Lock()
		was = !n.disabled
		n.x.mu.Unlock()
		if err := n.driver(func() error { return n.setEnabled(enabled) }); err != nil {
			return err
		}
		n.x.mu.Lock()
		n.disabled = !enabled
		n.x.mu.Unlock()
		return nil
	})
	return was, err
}

// IsEnabled reports whether launches run n.
//
// Errors: [cuda.ErrClosed].
func (n *ExecNode) IsEnabled() (bool, error) {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	if n.x.closed {
		return false, errClosedExec
	}
	return !n.disabled, nil
}

// setEnabled makes the driver's call. The driver cannot disable host nodes, so
// one that is disabled calls a function that does nothing.
//
// Preconditions: the lock of n's graph is held, and the gate of n.x is shut.
func (n *ExecNode) setEnabled(enabled bool) error {
	ctx := n.x.h.ctx
	if n.kind != cuda.HostNode || n.x.o.Nothing == 0 {
		if err := n.canDisable(); err != nil {
			return err
		}
		return ctx.NodeSetEnabled(n.x.handle, n.def, enabled)
	}
	p := cuda.HostParams{Fn: n.x.o.Nothing}
	if enabled {
		p = n.hostParams()
	}
	return ctx.ExecSetHostParams(n.x.handle, n.def, &p)
}

// canDisable returns what the driver says of nodes that it cannot disable, with
// the node's name, or nil.
func (n *ExecNode) canDisable() error {
	kinds := []cuda.NodeType{cuda.KernelNode, cuda.MemcpyNode, cuda.MemsetNode}
	if slices.Contains(kinds, n.kind) {
		return nil
	}
	if n.x.o.Nothing != 0 {
		kinds = append(kinds, cuda.HostNode)
	}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.String()
	}
	return &cuda.Error{Op: "cuGraphNodeSetEnabled", Result: cuda.ErrorInvalidValue,
		Detail: fmt.Sprintf("%v cannot be disabled: only %s nodes can", n, strings.Join(names, ", "))}
}

// hostParams returns what n calls when it is enabled.
func (n *ExecNode) hostParams() cuda.HostParams {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	if p, ok := n.params.(cuda.HostParams); ok {
		return p
	}
	return n.call
}

// unknownCalls asks the driver what the host nodes of g call that another library has
// captured, for executables that can disable them. It is asked before an executable
// gets the nodes: an update of a node in the graph, or of the executable from another
// graph, changes what the driver says of the node afterwards.
//
// Preconditions: g.h.mu is held.
func (g *Graph) unknownCalls(o *ExecOptions) (calls map[*Node]cuda.HostParams, err error) {
	if o.Nothing == 0 {
		return nil, nil
	}
	for _, n := range g.all() { // bodies have none
		if _, known := n.params.(cuda.HostParams); known || n.kind != cuda.HostNode {
			continue
		}
		p, err := g.h.ctx.HostNodeParams(n.handle)
		if err != nil {
			return nil, err
		}
		if calls == nil {
			calls = make(map[*Node]cuda.HostParams)
		}
		calls[n] = p
	}
	return calls, nil
}

// isDisabled needs no lock other than the gate, which must be shut.
func (n *ExecNode) isDisabled() bool {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	return n.disabled
}
