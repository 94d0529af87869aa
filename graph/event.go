// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import "github.com/cudago/cudago/cuda"

// EventRecord adds a node that records e at each launch, for [cuda.Stream.Wait]
// and for the host. Even if closed, the event lives as long as the node can
// run. It calls cuGraphAddEventRecordNode.
func (g *Graph) EventRecord(e *cuda.Event, o NodeOptions) (*Node, error) {
	return g.event(cuda.EventRecordNode, e, o, g.h.ctx.AddEventRecordNode)
}

// EventWait adds a node that waits for the latest recording of e at the time
// the node runs. It calls cuGraphAddEventWaitNode.
func (g *Graph) EventWait(e *cuda.Event, o NodeOptions) (*Node, error) {
	return g.event(cuda.EventWaitNode, e, o, g.h.ctx.AddEventWaitNode)
}

func (g *Graph) event(kind cuda.NodeType, e *cuda.Event, o NodeOptions,
	call func(cuda.GraphHandle, []cuda.NodeHandle, *cuda.Event) (cuda.NodeHandle, error)) (*Node, error) {
	var err error
	if o.Operands, err = retainEvent(e, o.Operands, o.Again); err != nil {
		return nil, err
	}
	return g.add(kind, o, nil, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return call(g.handle, deps, e)
	})
}

// retainEvent adds the event's handle to the operands of a node, which are
// released on an error.
func retainEvent(e *cuda.Event, operands []Operand, again bool) ([]Operand, error) {
	use := e.Use
	if again {
		use = e.UseAgain
	}
	_, done, err := use()
	if err != nil {
		newBundle(operands).release()
		return nil, err
	}
	return append([]Operand{{Reason: "event", Retainer: handleUse{done, e.Context(), e}}}, operands...), nil
}

// Event returns the event of a node that records one or waits for one, even if
// that was closed; nil for other nodes.
func (n *Node) Event() *cuda.Event {
	n.g.h.mu.Lock()
	defer n.g.h.mu.Unlock()
	return n.bundle.event()
}

// Event is [Node.Event], of the next launch.
func (n *ExecNode) Event() *cuda.Event {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	return n.bundle.event()
}

// UpdateEvent is [Node.UpdateMemcpy] for a node that records an event or waits for
// one: it does so with another event. It calls cuGraphEventRecordNodeSetEvent or
// cuGraphEventWaitNodeSetEvent.
func (n *Node) UpdateEvent(e *cuda.Event, operands []Operand) error {
	operands, err := retainEvent(e, operands, false)
	if err != nil {
		return err
	}
	kind := eventKind(n.kind)
	return n.update(kind, nil, operands, func() error {
		return n.g.h.ctx.SetEventNode(n.handle, e, kind == cuda.EventWaitNode)
	})
}

// UpdateEvent is [ExecNode.UpdateMemcpy] for a node that records an event or waits
// for one. It calls cuGraphExecEventRecordNodeSetEvent or
// cuGraphExecEventWaitNodeSetEvent.
func (n *ExecNode) UpdateEvent(e *cuda.Event, operands []Operand) error {
	operands, err := retainEvent(e, operands, false)
	if err != nil {
		return err
	}
	kind := eventKind(n.kind)
	return n.update(kind, nil, operands, func(c *cuda.Context) error {
		return c.ExecSetEvent(n.x.handle, n.def, e, kind == cuda.EventWaitNode)
	})
}

// eventKind is the kind that a node must be of to be given an event.
func eventKind(kind cuda.NodeType) cuda.NodeType {
	if kind == cuda.EventWaitNode {
		return kind
	}
	return cuda.EventRecordNode
}
