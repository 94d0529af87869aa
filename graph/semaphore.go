// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import "github.com/cudago/cudago/cuda"

// semaphoreKind is the kind of a node with such parameters.
func semaphoreKind(p *cuda.SemaphoreParams) cuda.NodeType {
	if p.IsWait {
		return cuda.SemaphoreWaitNode
	}
	return cuda.SemaphoreSignalNode
}

// Semaphore adds a node that signals a semaphore of another API, or waits for
// one. Even if closed, the semaphore lives as long as the node can run. It calls
// cuGraphAddExternalSemaphoresSignalNode or cuGraphAddExternalSemaphoresWaitNode.
func (g *Graph) Semaphore(p cuda.SemaphoreParams, o NodeOptions) (*Node, error) {
	var err error
	if o.Operands, err = retainSemaphore(p, o.Operands, o.Again); err != nil {
		return nil, err
	}
	return g.add(semaphoreKind(&p), o, p, func(deps []cuda.NodeHandle) (cuda.NodeHandle, error) {
		return g.h.ctx.AddSemaphoreNode(g.handle, deps, &p)
	})
}

// retainSemaphore adds the semaphore's handle to the operands of a node, which
// are released on an error. What a node has already, another may have again, even
// closed.
func retainSemaphore(p cuda.SemaphoreParams, operands []Operand, again bool) ([]Operand, error) {
	use := p.Semaphore.Use
	if again {
		use = p.Semaphore.UseAgain
	}
	done, err := use()
	if err != nil {
		newBundle(operands).release()
		return nil, err
	}
	return append([]Operand{{Reason: "semaphore", Retainer: handleUse{done: done, on: p.Semaphore.Context()}}}, operands...), nil
}

func hasSemaphore(params any, e *cuda.ExternalSemaphore) bool {
	p, ok := params.(cuda.SemaphoreParams)
	return ok && p.Semaphore == e
}

// UpdateSemaphore is [Node.UpdateMemcpy] for a semaphore node: one that signals
// stays one, and so does one that waits. It calls
// cuGraphExternalSemaphoresSignalNodeSetParams or
// cuGraphExternalSemaphoresWaitNodeSetParams.
func (n *Node) UpdateSemaphore(p cuda.SemaphoreParams, operands []Operand) error {
	operands, err := retainSemaphore(p, operands, hasSemaphore(n.Params(), p.Semaphore))
	if err != nil {
		return err
	}
	return n.update(semaphoreKind(&p), p, operands, func() error {
		return n.g.h.ctx.SetSemaphoreNodeParams(n.handle, &p)
	})
}

// UpdateSemaphore is [ExecNode.UpdateMemcpy] for a semaphore node. It calls
// cuGraphExecExternalSemaphoresSignalNodeSetParams or
// cuGraphExecExternalSemaphoresWaitNodeSetParams.
func (n *ExecNode) UpdateSemaphore(p cuda.SemaphoreParams, operands []Operand) error {
	operands, err := retainSemaphore(p, operands, hasSemaphore(n.Params(), p.Semaphore))
	if err != nil {
		return err
	}
	return n.update(semaphoreKind(&p), p, operands, func(c *cuda.Context) error {
		return c.ExecSetSemaphoreParams(n.x.handle, n.def, &p)
	})
}
