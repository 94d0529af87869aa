// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Flags of [Context.Instantiate].
const (
	// InstantiateAutoFree frees memory that an earlier launch left allocated.
	InstantiateAutoFree = driver.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
	// InstantiateUpload uploads to the stream given.
	InstantiateUpload = driver.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
	// InstantiateDeviceLaunch lets kernels launch the executable.
	InstantiateDeviceLaunch = driver.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
	// InstantiateUseNodePriority takes priorities from the nodes, not the stream.
	InstantiateUseNodePriority = driver.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
)

// An InstantiateError says why a graph cannot be instantiated. It unwraps to
// the [*Error] of the call.
type InstantiateError struct {
	Err *Error
	// Reason says why, in words.
	Reason string
	// Node is the node at fault, or zero.
	Node NodeHandle

	result driver.CUgraphInstantiateResult
}

// HasUnusedCondition reports whether a condition without a conditional node is the
// reason.
func (e *InstantiateError) HasUnusedCondition() bool {
	return e.result == driver.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED
}

// Error returns the reason and the driver's error.
func (e *InstantiateError) Error() string {
	return "cannot instantiate the graph: " + e.Reason + ": " + e.Err.Error()
}

// Unwrap returns e.Err.
func (e *InstantiateError) Unwrap() error { return e.Err }

var instantiateReasons = map[driver.CUgraphInstantiateResult]string{
	driver.CUDA_GRAPH_INSTANTIATE_ERROR:                        "the driver failed",
	driver.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE:            "its structure is invalid, for example a cycle",
	driver.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: "a node cannot be where it is: in a body of a conditional node",
	driver.CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED:  "its nodes belong to different devices",
	driver.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED:    "it has a condition without a conditional node",
}

// Instantiate makes an executable of g. flags are InstantiateXxx. It calls
// cuGraphInstantiateWithParams.
//
// Errors: [*InstantiateError] if the driver says why; otherwise an [*Error].
func (c *Context) Instantiate(g GraphHandle, flags uint64) (ExecHandle, error) {
	return c.instantiate(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{Flags: flags})
}

// InstantiateUploading is Instantiate with [InstantiateUpload] on s.
func (c *Context) InstantiateUploading(g GraphHandle, flags uint64, s *Stream) (ExecHandle, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.end()
	if err := s.ctx.hold(); err != nil {
		return 0, err
	}
	defer s.ctx.release()
	return c.instantiate(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{Flags: flags | InstantiateUpload, HUploadStream: s.h})
}

func (c *Context) instantiate(g GraphHandle, p *driver.CUDA_GRAPH_INSTANTIATE_PARAMS) (ExecHandle, error) {
	leave, err := c.Enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	const op = "cuGraphInstantiate"
	c.drv.related.RLock()
	x, r := c.drv.api.CuGraphInstantiateWithParams(driver.CUgraph(g), p)
	c.drv.related.RUnlock()
	if r == driver.CUDA_SUCCESS && p.Result_out == driver.CUDA_GRAPH_INSTANTIATE_SUCCESS {
		return ExecHandle(x), nil
	}
	if r == driver.CUDA_SUCCESS {
		// The driver may report a failure only in the result field.
		r = driver.CUDA_ERROR_INVALID_VALUE
		if x != 0 {
			c.drv.related.Lock()
			err := c.check("cuGraphExecDestroy", c.drv.api.CuGraphExecDestroy(x))
			c.drv.related.Unlock()
			if err != nil {
				c.drv.warn("graph executable", err)
			}
		}
	}
	e := c.fail(op, r, "")
	reason, ok := instantiateReasons[p.Result_out]
	if !ok {
		return 0, e
	}
	return 0, &InstantiateError{e, reason, NodeHandle(p.HErrNode_out), p.Result_out}
}

// ExecDestroy calls cuGraphExecDestroy. A launch under way completes. It does
// nothing if c is lost. It waits while any graph is being instantiated;
// [Context.TryExecDestroy] does not.
func (c *Context) ExecDestroy(x ExecHandle) error {
	c.drv.related.Lock()
	defer c.drv.related.Unlock()
	return c.destroyRelated("cuGraphExecDestroy", "graph executable", execDestroy(x))
}

// TryExecDestroy is [Context.ExecDestroy], but does nothing and reports false
// while a graph is being cloned, embedded, instantiated or destroyed, or if the call
// could not be made for a reason that may pass, such as a reset. The call
// itself may wait for another thread's full launch queue, and those that clone
// wait for it then.
func (c *Context) TryExecDestroy(x ExecHandle) (done bool, err error) {
	if !c.drv.related.TryLock() {
		return false, nil
	}
	defer c.drv.related.Unlock()
	return c.tryDestroy("cuGraphExecDestroy", execDestroy(x))
}

func execDestroy(x ExecHandle) func(driver.API) driver.CUresult {
	return func(api driver.API) driver.CUresult { return api.CuGraphExecDestroy(driver.CUgraphExec(x)) }
}

// ExecLaunch launches x. It calls cuGraphLaunch.
//
// Stream-ordered on s, and after earlier launches of x; returns before
// completion. Captured as a child graph node.
func (c *Context) ExecLaunch(x ExecHandle, s *Stream) error {
	if err := c.hold(); err != nil { // s may be of another context
		return err
	}
	defer c.release()
	return s.call("cuGraphLaunch", func(api driver.API) driver.CUresult {
		return api.CuGraphLaunch(driver.CUgraphExec(x), s.h)
	})
}

// ExecUpload prepares x for its first launch. It calls cuGraphUpload.
// Stream-ordered on s; returns before completion.
func (c *Context) ExecUpload(x ExecHandle, s *Stream) error {
	if err := c.hold(); err != nil {
		return err
	}
	defer c.release()
	return s.call("cuGraphUpload", func(api driver.API) driver.CUresult {
		return api.CuGraphUpload(driver.CUgraphExec(x), s.h)
	})
}

// An UpdateError says why an executable cannot be updated from a graph. It
// unwraps to the [*Error] of the call.
type UpdateError struct {
	Err *Error
	// Reason says why, in words.
	Reason string
	// Node is the node of the graph that does not fit, and From the one that it
	// depends on where that edge does not fit; either may be zero.
	Node, From NodeHandle
}

// Error returns the reason and the driver's error.
func (e *UpdateError) Error() string {
	return "cannot update the graph executable: " + e.Reason + ": " + e.Err.Error()
}

// Unwrap returns e.Err.
func (e *UpdateError) Unwrap() error { return e.Err }

var updateReasons = map[driver.CUgraphExecUpdateResult]string{
	driver.CU_GRAPH_EXEC_UPDATE_ERROR:                             "the driver failed",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED:            "its nodes or edges are not the same",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED:           "a node is of another type",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED:            "a node's kernel cannot be replaced by this one",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED:          "a parameter that cannot change has changed",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED:               "a node cannot be updated",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: "a node's kernel cannot be replaced by this one",
	driver.CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED:          "an attribute that cannot change has changed",
}

// ExecUpdate gives x the parameters of g, which must have the same nodes and
// edges, for later launches. On an error x is as it was. It calls
// cuGraphExecUpdate.
//
// Errors: [*UpdateError] if the driver says why; otherwise an [*Error].
func (c *Context) ExecUpdate(x ExecHandle, g GraphHandle) error {
	leave, err := c.Enter()
	if err != nil {
		return err
	}
	defer leave()
	info, r := c.drv.api.CuGraphExecUpdate(driver.CUgraphExec(x), driver.CUgraph(g))
	if r == driver.CUDA_SUCCESS {
		return nil
	}
	e := c.fail("cuGraphExecUpdate", r, "")
	reason, ok := updateReasons[info.Result]
	if !ok {
		return e
	}
	return &UpdateError{e, reason, NodeHandle(info.ErrorNode), NodeHandle(info.ErrorFromNode)}
}

// ExecSetKernelParams changes the node of x that was made from n, for later
// launches. n must still be in the graph that x was made from; the same holds
// for the three calls below. Cluster, cooperative and priority stay as they are.
// It calls cuGraphExecKernelNodeSetParams.
func (c *Context) ExecSetKernelParams(x ExecHandle, n NodeHandle, p *KernelNodeParams) error {
	err := call0(c, "cuGraphExecKernelNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphExecKernelNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), p.abi())
	})
	return explained(err, "%v", p)
}

// ExecSetMemcpyParams calls cuGraphExecMemcpyNodeSetParams.
func (c *Context) ExecSetMemcpyParams(x ExecHandle, n NodeHandle, p *MemcpyParams) error {
	if err := p.apart(); err != nil {
		return err
	}
	err := call0(c, "cuGraphExecMemcpyNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphExecMemcpyNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), p.abi(), c.h)
	})
	return explained(err, "%v", p)
}

// ExecSetMemsetParams calls cuGraphExecMemsetNodeSetParams.
func (c *Context) ExecSetMemsetParams(x ExecHandle, n NodeHandle, p *MemsetParams) error {
	err := call0(c, "cuGraphExecMemsetNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphExecMemsetNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), p.abi(), c.h)
	})
	return explained(err, "%v", p)
}

// ExecSetHostParams calls cuGraphExecHostNodeSetParams.
func (c *Context) ExecSetHostParams(x ExecHandle, n NodeHandle, p *HostParams) error {
	return call0(c, "cuGraphExecHostNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphExecHostNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), p.abi())
	})
}

// ExecSetEvent calls cuGraphExecEventRecordNodeSetEvent or
// cuGraphExecEventWaitNodeSetEvent.
func (c *Context) ExecSetEvent(x ExecHandle, n NodeHandle, e *Event, isWait bool) error {
	return withEvent(e, func() error {
		if isWait {
			return call0(c, "cuGraphExecEventWaitNodeSetEvent", func(api driver.API) driver.CUresult {
				return api.CuGraphExecEventWaitNodeSetEvent(driver.CUgraphExec(x), driver.CUgraphNode(n), e.h)
			})
		}
		return call0(c, "cuGraphExecEventRecordNodeSetEvent", func(api driver.API) driver.CUresult {
			return api.CuGraphExecEventRecordNodeSetEvent(driver.CUgraphExec(x), driver.CUgraphNode(n), e.h)
		})
	})
}

// ExecSetChildGraph gives the nodes inside one of x the parameters of those of g,
// whose nodes and edges must be the same. It calls
// cuGraphExecChildGraphNodeSetParams.
func (c *Context) ExecSetChildGraph(x ExecHandle, n NodeHandle, g GraphHandle) error {
	return call0(c, "cuGraphExecChildGraphNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphExecChildGraphNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), driver.CUgraph(g))
	})
}

// NodeSetEnabled makes later launches of x run the node made from n, or skip
// it. Kernel, memcpy and memset nodes only. It calls cuGraphNodeSetEnabled.
func (c *Context) NodeSetEnabled(x ExecHandle, n NodeHandle, enabled bool) error {
	leave, err := c.Enter()
	if err != nil {
		return err
	}
	defer leave()
	r := c.drv.api.CuGraphNodeSetEnabled(driver.CUgraphExec(x), driver.CUgraphNode(n), enabled)
	if r == driver.CUDA_ERROR_INVALID_VALUE {
		return c.fail("cuGraphNodeSetEnabled", r, fmt.Sprintf("node %#x; only kernel, memcpy and memset nodes can be disabled", uintptr(n)))
	}
	return c.check("cuGraphNodeSetEnabled", r)
}

// NodeEnabled calls cuGraphNodeGetEnabled.
func (c *Context) NodeEnabled(x ExecHandle, n NodeHandle) (bool, error) {
	return call1(c, "cuGraphNodeGetEnabled", func(api driver.API) (bool, driver.CUresult) {
		return api.CuGraphNodeGetEnabled(driver.CUgraphExec(x), driver.CUgraphNode(n))
	})
}
