// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A ConditionHandle is a CUgraphConditionalHandle. Kernels set its value by
// cudaGraphSetConditional.
type ConditionHandle uint64

// A ConditionalType says how a condition selects bodies.
type ConditionalType int32

// Types of conditional nodes. From cuda.h, CUDA 12.8.
const (
	If     ConditionalType = 0 // the first body; if it is 0 the second, if there is one
	While  ConditionalType = 1 // the body, as long as it is not 0
	Switch ConditionalType = 2 // the body with its number, or none
)

var conditionalTypeNames = [...]string{"if", "while", "switch"}

// String returns "if", "while" or "switch".
func (t ConditionalType) String() string {
	if t >= 0 && int(t) < len(conditionalTypeNames) {
		return conditionalTypeNames[t]
	}
	return fmt.Sprintf("conditional type %d", int32(t))
}

// ConditionCreate makes a condition for a conditional node of g, or of a body
// in it. With assign, its value is first at the start of each launch; otherwise
// it keeps the value of the previous launch. It calls
// cuGraphConditionalHandleCreate.
func (c *Context) ConditionCreate(g GraphHandle, first uint32, assign bool) (ConditionHandle, error) {
	flags := uint32(0)
	if assign {
		flags = driver.CU_GRAPH_COND_ASSIGN_DEFAULT
	}
	return call1(c, "cuGraphConditionalHandleCreate", func(api driver.API) (ConditionHandle, driver.CUresult) {
		h, r := api.CuGraphConditionalHandleCreate(driver.CUgraph(g), c.h, first, flags)
		return ConditionHandle(h), r
	})
}

// AddConditionalNode adds a conditional node and returns its bodies, which are
// empty and belong to the node. It calls cuGraphAddNode.
//
// Errors: [ErrorNotSupported] where the driver is older than CUDA 12.3, or 12.8
// for an else body and for Switch, or the device cannot do it.
func (c *Context) AddConditionalNode(g GraphHandle, deps []NodeHandle, h ConditionHandle, t ConditionalType, bodies uint32) (NodeHandle, []GraphHandle, error) {
	leave, err := c.Enter()
	if err != nil {
		return 0, nil, err
	}
	defer leave()
	n, made, r := c.drv.api.CuGraphAddNode(driver.CUgraph(g), toNodes(deps), &driver.CUgraphNodeParams{
		Type: driver.CU_GRAPH_NODE_TYPE_CONDITIONAL,
		Conditional: driver.CUDA_CONDITIONAL_NODE_PARAMS{
			Handle: driver.CUgraphConditionalHandle(h), Type: driver.CUgraphConditionalNodeType(t), Size: bodies, Ctx: c.h,
		},
	})
	if r != driver.CUDA_SUCCESS {
		return 0, nil, c.fail("cuGraphAddNode", r, fmt.Sprintf("%d bodies, of a node of type %v", bodies, t))
	}
	graphs := make([]GraphHandle, len(made))
	for i, b := range made {
		graphs[i] = GraphHandle(b)
	}
	return NodeHandle(n), graphs, nil
}
