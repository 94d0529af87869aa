// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cudago/cudago/cuda"
)

// kernelOperand is the name of the operand that keeps a kernel's code loaded.
const kernelOperand = "kernel"

// retainKernel adds the kernel itself to the operands of a node: unloading its
// module under a graph would crash the next launch. It adds nothing if the
// caller already passes an operand named "kernel".
//
// The operands are released on an error.
func retainKernel(p cuda.KernelNodeParams, operands []Operand) ([]Operand, error) {
	if p.Kernel == nil {
		newBundle(operands).release()
		return nil, badValue("kernel", "must not be nil")
	}
	if p.Kernel.IsClosed() {
		newBundle(operands).release()
		return nil, &cuda.ClosedError{What: fmt.Sprintf("kernel %q", p.Kernel.Name())}
	}
	if slices.ContainsFunc(operands, func(o Operand) bool { return o.Name == kernelOperand }) {
		return operands, nil
	}
	if err := p.Kernel.Retain(); err != nil {
		newBundle(operands).release()
		return nil, err
	}
	// A new slice: appending to the caller's could overwrite what follows it.
	return append([]Operand{{Name: kernelOperand, Object: p.Kernel, Reason: "kernel", Retainer: p.Kernel}}, operands...), nil
}

// addKernel adds a node whose bundle was made.
func (g *Graph) addKernel(o NodeOptions, b *bundle, p *cuda.KernelNodeParams) (*Node, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	var data []cuda.EdgeData
	n, err := g.addLocked(cuda.KernelNode, o, b, keepKernel(*p), func(deps []cuda.NodeHandle) (n cuda.NodeHandle, err error) {
		if p.Config.Programmatic {
			data = earlyData(o.Deps, deps)
		}
		return g.callAddKernel(deps, data, p)
	})
	if err == nil {
		n.setEdges(inMadeOrder(n.deps.All(), data))
	}
	return n, err
}

// callAddKernel calls the driver. Where no node can be destroyed, and so none be taken
// back that gets only some of its attributes, it tries that in another graph
// first.
//
// Preconditions: g.h.mu is held.
func (g *Graph) callAddKernel(deps []cuda.NodeHandle, data []cuda.EdgeData, p *cuda.KernelNodeParams) (cuda.NodeHandle, error) {
	if p.Config.Programmatic {
		if err := g.h.ctx.Device().CheckProgrammatic("cuGraphAddKernelNode"); err != nil {
			return 0, err
		}
	}
	if g.hasMemory() && p.Config.Attributes() != "" {
		if err := g.h.ctx.TryKernelNode(p); err != nil {
			return 0, err
		}
	}
	whole, early := split(deps, data)
	n, err := g.h.ctx.AddKernelNode(g.handle, whole, early, p)
	return n, g.h.spoil(err)
}

// setKernel calls the driver.
//
// Preconditions: n.g.h.mu is held.
func (n *Node) setKernel(p *cuda.KernelNodeParams) error {
	var was *cuda.LaunchConfig
	if old, ok := n.params.(cuda.KernelNodeParams); ok {
		was = &old.Config
	}
	if early := was != nil && was.Programmatic; early != p.Config.Programmatic {
		return badValue("config", "cannot change whether %v is programmatic, which is a matter of its edges: remove them and add others", n)
	}
	return n.g.h.spoil(n.g.h.ctx.SetKernelNodeParams(n.handle, p, was))
}

// spoil notes if an error has left the driver's graph half changed, and returns
// it.
//
// Preconditions: h.mu is held.
func (h *hierarchy) spoil(err error) error {
	var half *cuda.HalfDoneError
	if errors.As(err, &half) {
		h.spoiled = err
	}
	return err
}

// keepsAttributes returns why an executable's node cannot take a configuration,
// or nil: cuGraphExecKernelNodeSetParams leaves attributes as they are.
//
// Preconditions: x.gate is shut.
func (n *ExecNode) keepsAttributes(p *cuda.KernelNodeParams) error {
	was, ok := n.Params().(cuda.KernelNodeParams)
	if p.Config.SameAttributes(&was.Config) || !ok && p.Config.Attributes() == "" {
		return nil
	}
	had := "unknown ones, of another library's capture"
	if ok {
		had = orNone(was.Config.Attributes())
	}
	return badValue("config", "cannot change cluster, cooperative, priority or programmatic in an executable: %v has %s, got %s; update the node of the graph and instantiate again",
		n, had, orNone(p.Config.Attributes()))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// keepKernel returns p without the argument values, which are the caller's and
// invalid after the call.
func keepKernel(p cuda.KernelNodeParams) cuda.KernelNodeParams {
	p.Params = nil
	return p
}

func kernelLabel(p cuda.KernelNodeParams) string {
	grid, block := p.Config.Dims()
	label := fmt.Sprintf("%s %v × %v", p.Kernel.Name(), grid, block)
	if attributes := p.Config.Attributes(); attributes != "" {
		label += ", " + attributes
	}
	return label
}
