// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
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

// keepKernel returns p without the argument values, which are the caller's and
// invalid after the call.
func keepKernel(p cuda.KernelNodeParams) cuda.KernelNodeParams {
	p.Params = nil
	return p
}

func kernelLabel(p cuda.KernelNodeParams) string {
	grid, block := p.Config.Dims()
	return fmt.Sprintf("%s %v × %v", p.Kernel.Name(), grid, block)
}
