// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Handles of the driver's graph objects. The methods of [Context] that take
// them are one to one with the driver's calls, for package graph: they own
// nothing, keep nothing alive and lock nothing. Calls on one graph, its children
// included, need the caller's lock.
type (
	// A GraphHandle is a CUgraph.
	GraphHandle uintptr
	// A NodeHandle is a CUgraphNode.
	NodeHandle uintptr
	// An ExecHandle is a CUgraphExec.
	ExecHandle uintptr
)

// A NodeType is the kind of a graph node.
type NodeType int32

// Kinds of node. From cuda.h, CUDA 12.6.
const (
	KernelNode          NodeType = 0
	MemcpyNode          NodeType = 1
	MemsetNode          NodeType = 2
	HostNode            NodeType = 3
	ChildGraphNode      NodeType = 4
	EmptyNode           NodeType = 5
	EventWaitNode       NodeType = 6
	EventRecordNode     NodeType = 7
	SemaphoreSignalNode NodeType = 8
	SemaphoreWaitNode   NodeType = 9
	AllocNode           NodeType = 10
	FreeNode            NodeType = 11
	BatchMemOpNode      NodeType = 12
	ConditionalNode     NodeType = 13
)

var nodeTypeNames = [...]string{
	"kernel", "memcpy", "memset", "host", "child graph", "empty", "event wait", "event record",
	"semaphore signal", "semaphore wait", "alloc", "free", "batch mem op", "conditional",
}

// String returns "kernel", "memcpy" and so on.
func (t NodeType) String() string {
	if t >= 0 && int(t) < len(nodeTypeNames) {
		return nodeTypeNames[t]
	}
	return fmt.Sprintf("node type %d", int32(t))
}

// call1 runs a driver call that returns one value, with c current.
func call1[T any](c *Context, op string, f func(driver.API) (T, driver.CUresult)) (T, error) {
	var zero T
	leave, err := c.Enter()
	if err != nil {
		return zero, err
	}
	defer leave()
	v, r := f(c.drv.api)
	if r != driver.CUDA_SUCCESS {
		return zero, c.fail(op, r, "")
	}
	return v, nil
}

// none is the result of a driver call that only succeeds or fails.
type none = struct{}

// call0 runs a driver call that returns nothing, with c current.
func call0(c *Context, op string, f func(driver.API) driver.CUresult) error {
	return c.call(op, func() driver.CUresult { return f(c.drv.api) })
}

// GraphCreate calls cuGraphCreate.
func (c *Context) GraphCreate() (GraphHandle, error) {
	return call1(c, "cuGraphCreate", func(api driver.API) (GraphHandle, driver.CUresult) {
		g, r := api.CuGraphCreate(0)
		return GraphHandle(g), r
	})
}

// GraphDestroy calls cuGraphDestroy. Executables made from g remain valid. It
// does nothing if c is lost. It waits while any graph is being instantiated;
// [Context.TryGraphDestroy] does not.
func (c *Context) GraphDestroy(g GraphHandle) error {
	c.drv.related.Lock()
	defer c.drv.related.Unlock()
	return c.destroyRelated("cuGraphDestroy", "graph", graphDestroy(g))
}

// TryGraphDestroy is [Context.GraphDestroy], but does nothing and reports false
// while another graph is being cloned, embedded or instantiated, or if the call could
// not be made for a reason that may pass, such as a reset. Does not block.
func (c *Context) TryGraphDestroy(g GraphHandle) (done bool, err error) {
	if !c.drv.related.TryLock() {
		return false, nil
	}
	defer c.drv.related.Unlock()
	return c.tryDestroy("cuGraphDestroy", graphDestroy(g))
}

func graphDestroy(g GraphHandle) func(driver.API) driver.CUresult {
	return func(api driver.API) driver.CUresult { return api.CuGraphDestroy(driver.CUgraph(g)) }
}

// GraphClone calls cuGraphClone.
func (c *Context) GraphClone(g GraphHandle) (GraphHandle, error) {
	c.drv.related.RLock()
	defer c.drv.related.RUnlock()
	return call1(c, "cuGraphClone", func(api driver.API) (GraphHandle, driver.CUresult) {
		h, r := api.CuGraphClone(driver.CUgraph(g))
		return GraphHandle(h), r
	})
}

// NodeFindInClone returns the node of clone that was made from original. It
// calls cuGraphNodeFindInClone.
func (c *Context) NodeFindInClone(original NodeHandle, clone GraphHandle) (NodeHandle, error) {
	c.drv.related.RLock()
	defer c.drv.related.RUnlock()
	return callNode(c, "cuGraphNodeFindInClone", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphNodeFindInClone(driver.CUgraphNode(original), driver.CUgraph(clone))
	})
}

// callNode is call1 for calls that return a node.
func callNode(c *Context, op string, f func(driver.API) (driver.CUgraphNode, driver.CUresult)) (NodeHandle, error) {
	n, err := call1(c, op, f)
	return NodeHandle(n), err
}

// AddHostNode calls cuGraphAddHostNode.
func (c *Context) AddHostNode(g GraphHandle, deps []NodeHandle, p *HostParams) (NodeHandle, error) {
	return callNode(c, "cuGraphAddHostNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddHostNode(driver.CUgraph(g), toNodes(deps), p.abi())
	})
}

// AddEmptyNode adds a node that only joins dependencies. It calls
// cuGraphAddEmptyNode.
func (c *Context) AddEmptyNode(g GraphHandle, deps []NodeHandle) (NodeHandle, error) {
	return callNode(c, "cuGraphAddEmptyNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddEmptyNode(driver.CUgraph(g), toNodes(deps))
	})
}

// AddChildGraphNode embeds a clone of child. It calls cuGraphAddChildGraphNode.
func (c *Context) AddChildGraphNode(g GraphHandle, deps []NodeHandle, child GraphHandle) (NodeHandle, error) {
	c.drv.related.RLock()
	defer c.drv.related.RUnlock()
	return callNode(c, "cuGraphAddChildGraphNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddChildGraphNode(driver.CUgraph(g), toNodes(deps), driver.CUgraph(child))
	})
}

// TrySetChildGraphNode embeds a clone of child in a child graph node, instead of
// what is embedded there, which ends: it does nothing and reports false where
// [Context.TryDestroyNode] does. It calls cuGraphNodeSetParams.
func (c *Context) TrySetChildGraphNode(n NodeHandle, child GraphHandle) (done bool, err error) {
	if !c.drv.related.TryLock() {
		return false, nil
	}
	defer c.drv.related.Unlock()
	return true, call0(c, "cuGraphNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphNodeSetParams(driver.CUgraphNode(n), driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{
			Graph: driver.CUgraph(child),
		}))
	})
}

// MoveChildGraphNode embeds child itself, which belongs to the node from then on:
// it can neither be instantiated nor embedded again, nor destroyed. It calls
// cuGraphAddNode.
//
// Errors: [ErrorNotSupported] where the driver is older than CUDA 12.9.
func (c *Context) MoveChildGraphNode(g GraphHandle, deps []NodeHandle, child GraphHandle) (NodeHandle, error) {
	const op, least = "cuGraphAddNode", 12090
	if v := c.drv.Version(); v < least { // it would make a copy
		return 0, &Error{Op: op, Result: ErrorNotSupported, Detail: fmt.Sprintf("a graph can be moved into another by drivers of CUDA 12.9 and newer, "+
			"and this one is of CUDA %d.%d: embed a copy", v/1000, v%1000/10)}
	}
	c.drv.related.RLock()
	defer c.drv.related.RUnlock()
	return callNode(c, op, func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		n, _, r := api.CuGraphAddNode(driver.CUgraph(g), toNodes(deps), driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{
			Graph: driver.CUgraph(child), Ownership: driver.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
		}))
		return n, r
	})
}

// AddEventRecordNode calls cuGraphAddEventRecordNode.
func (c *Context) AddEventRecordNode(g GraphHandle, deps []NodeHandle, e *Event) (n NodeHandle, err error) {
	err = withEvent(e, func() error {
		n, err = callNode(c, "cuGraphAddEventRecordNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
			return api.CuGraphAddEventRecordNode(driver.CUgraph(g), toNodes(deps), e.h)
		})
		return err
	})
	return n, err
}

// AddEventWaitNode calls cuGraphAddEventWaitNode.
func (c *Context) AddEventWaitNode(g GraphHandle, deps []NodeHandle, e *Event) (n NodeHandle, err error) {
	err = withEvent(e, func() error {
		n, err = callNode(c, "cuGraphAddEventWaitNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
			return api.CuGraphAddEventWaitNode(driver.CUgraph(g), toNodes(deps), e.h)
		})
		return err
	})
	return n, err
}

// withEvent runs f while the event, which may be of another context, is valid.
func withEvent(e *Event, f func() error) error {
	if err := e.count(func() bool { return e.uses.begin() || e.uses.again() }); err != nil { // what a node has may be closed
		return err
	}
	defer e.end()
	if err := e.ctx.hold(); err != nil {
		return err
	}
	defer e.ctx.release()
	return f()
}

// SetEventNode gives a node that records an event, or waits for one, another. It
// calls cuGraphEventRecordNodeSetEvent or cuGraphEventWaitNodeSetEvent.
func (c *Context) SetEventNode(n NodeHandle, e *Event, isWait bool) error {
	return withEvent(e, func() error {
		if isWait {
			return call0(c, "cuGraphEventWaitNodeSetEvent", func(api driver.API) driver.CUresult {
				return api.CuGraphEventWaitNodeSetEvent(driver.CUgraphNode(n), e.h)
			})
		}
		return call0(c, "cuGraphEventRecordNodeSetEvent", func(api driver.API) driver.CUresult {
			return api.CuGraphEventRecordNodeSetEvent(driver.CUgraphNode(n), e.h)
		})
	})
}

// DestroyNode removes a node and its edges. It calls cuGraphDestroyNode. It
// waits as [Context.GraphDestroy] does, since a node may own a graph;
// [Context.TryDestroyNode] does not.
func (c *Context) DestroyNode(n NodeHandle) error {
	c.drv.related.Lock()
	defer c.drv.related.Unlock()
	return c.destroyNode(n)
}

// TryDestroyNode is [Context.DestroyNode], but does nothing and reports false
// while a graph is being cloned, embedded, instantiated or destroyed. Does not
// block.
func (c *Context) TryDestroyNode(n NodeHandle) (done bool, err error) {
	if !c.drv.related.TryLock() {
		return false, nil
	}
	defer c.drv.related.Unlock()
	return true, c.destroyNode(n)
}

func (c *Context) destroyNode(n NodeHandle) error {
	return call0(c, "cuGraphDestroyNode", func(api driver.API) driver.CUresult {
		return api.CuGraphDestroyNode(driver.CUgraphNode(n))
	})
}

// GraphNodes calls cuGraphGetNodes.
func (c *Context) GraphNodes(g GraphHandle) ([]NodeHandle, error) {
	nodes, err := call1(c, "cuGraphGetNodes", func(api driver.API) ([]driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphGetNodes(driver.CUgraph(g))
	})
	return fromNodes(nodes), err
}

// NodeType calls cuGraphNodeGetType.
func (c *Context) NodeType(n NodeHandle) (NodeType, error) {
	return call1(c, "cuGraphNodeGetType", func(api driver.API) (NodeType, driver.CUresult) {
		t, r := api.CuGraphNodeGetType(driver.CUgraphNode(n))
		return NodeType(t), r
	})
}

// NodeDependencies returns the nodes that n waits for. It calls
// cuGraphNodeGetDependencies.
func (c *Context) NodeDependencies(n NodeHandle) ([]NodeHandle, error) {
	nodes, err := call1(c, "cuGraphNodeGetDependencies", func(api driver.API) ([]driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphNodeGetDependencies(driver.CUgraphNode(n))
	})
	return fromNodes(nodes), err
}

// ChildGraph returns the graph that a child graph node embeds. It belongs to
// the node. It calls cuGraphChildGraphNodeGetGraph.
func (c *Context) ChildGraph(n NodeHandle) (GraphHandle, error) {
	return call1(c, "cuGraphChildGraphNodeGetGraph", func(api driver.API) (GraphHandle, driver.CUresult) {
		g, r := api.CuGraphChildGraphNodeGetGraph(driver.CUgraphNode(n))
		return GraphHandle(g), r
	})
}

func toNodes(nodes []NodeHandle) []driver.CUgraphNode {
	if len(nodes) == 0 {
		return nil
	}
	out := make([]driver.CUgraphNode, len(nodes))
	for i, n := range nodes {
		out[i] = driver.CUgraphNode(n)
	}
	return out
}

func fromNodes(nodes []driver.CUgraphNode) []NodeHandle {
	if len(nodes) == 0 {
		return nil
	}
	out := make([]NodeHandle, len(nodes))
	for i, n := range nodes {
		out[i] = NodeHandle(n)
	}
	return out
}
