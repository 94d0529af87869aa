// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// target finds the graph that a node is added to, and what the node depends on.
//
// Preconditions: d.graphMu must be locked.
func (d *simulator) target(h driver.CUgraph, deps []driver.CUgraphNode) (*graph, []*node, driver.CUresult) {
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return nil, nil, r
	}
	before, r := d.members(g, deps)
	if r != driver.CUDA_SUCCESS {
		return nil, nil, r
	}
	for i := range before {
		if slices.Contains(before[:i], before[i]) {
			return nil, nil, driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	return g, before, r
}

// addWork adds a node to a graph once its parameters have been checked.
func (d *simulator) addWork(h driver.CUgraph, deps []driver.CUgraphNode, kind driver.CUgraphNodeType, w work, r driver.CUresult) (driver.CUgraphNode, driver.CUresult) {
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, before, r := d.target(h, deps)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return d.addNode(g, &node{kind: kind, work: w}, before).handle, r
}

// contextOf finds the context of a copy or fill node.
func (d *simulator) contextOf(h driver.CUcontext) (*context, driver.CUresult) {
	if h == 0 {
		return d.current()
	}
	c := d.contexts.get(h)
	if c == nil {
		return nil, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	return c, c.result()
}

func (d *simulator) CuGraphAddKernelNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_KERNEL_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	w, r := d.newKernelWork(params)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_KERNEL, w, r)
}

func (d *simulator) CuGraphAddMemcpyNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_MEMCPY3D, ctx driver.CUcontext) (driver.CUgraphNode, driver.CUresult) {
	c, r := d.contextOf(ctx)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	w, r := d.newCopyWork(params, c)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_MEMCPY, w, r)
}

func (d *simulator) CuGraphAddMemsetNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_MEMSET_NODE_PARAMS, ctx driver.CUcontext) (driver.CUgraphNode, driver.CUresult) {
	c, r := d.contextOf(ctx)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	w, r := d.newFillNode(params, c)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_MEMSET, w, r)
}

func (d *simulator) CuGraphAddHostNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_HOST_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	w, r := d.newHostWork(params)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_HOST, w, r)
}

func (d *simulator) CuGraphAddEmptyNode(g driver.CUgraph, deps []driver.CUgraphNode) (driver.CUgraphNode, driver.CUresult) {
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_EMPTY, nil, driver.CUDA_SUCCESS)
}

func (d *simulator) CuGraphAddEventRecordNode(g driver.CUgraph, deps []driver.CUgraphNode, h driver.CUevent) (driver.CUgraphNode, driver.CUresult) {
	e, r := d.nodeEvent(h)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_EVENT_RECORD, &eventRecordWork{e}, r)
}

func (d *simulator) CuGraphAddEventWaitNode(g driver.CUgraph, deps []driver.CUgraphNode, h driver.CUevent) (driver.CUgraphNode, driver.CUresult) {
	e, r := d.nodeEvent(h)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_WAIT_EVENT, &eventWaitWork{e}, r)
}

func (d *simulator) CuGraphEventRecordNodeSetEvent(h driver.CUgraphNode, he driver.CUevent) driver.CUresult {
	e, r := d.nodeEvent(he)
	return setWork(d, h, &eventRecordWork{e}, r)
}

func (d *simulator) CuGraphEventWaitNodeSetEvent(h driver.CUgraphNode, he driver.CUevent) driver.CUresult {
	e, r := d.nodeEvent(he)
	return setWork(d, h, &eventWaitWork{e}, r)
}

// setWork gives a node new work of the same type, once its parameters have been
// checked.
func setWork[W work](d *simulator, h driver.CUgraphNode, w W, r driver.CUresult) driver.CUresult {
	if r != driver.CUDA_SUCCESS {
		return r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, _, r := workOf[W](d, h)
	if r == driver.CUDA_SUCCESS {
		n.work = w
	}
	return r
}

// nodeEvent returns an event that can be in a graph: none of several processes.
func (d *simulator) nodeEvent(h driver.CUevent) (*event, driver.CUresult) {
	e, r := d.event(h)
	if r == driver.CUDA_SUCCESS && e.shared != nil {
		r = driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return e, r
}

// workOf returns a node's work, if it is of type W.
func workOf[W work](d *simulator, h driver.CUgraphNode) (*node, W, driver.CUresult) {
	var none W
	n, r := d.node(h)
	if r != driver.CUDA_SUCCESS {
		return nil, none, r
	}
	w, ok := n.work.(W)
	if !ok {
		return nil, none, driver.CUDA_ERROR_INVALID_VALUE
	}
	return n, w, r
}

func (d *simulator) CuGraphKernelNodeGetParams(h driver.CUgraphNode) (driver.CUDA_KERNEL_NODE_PARAMS, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	_, w, r := workOf[*kernelWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return driver.CUDA_KERNEL_NODE_PARAMS{}, r
	}
	return w.nodeParams(), r
}

func (d *simulator) CuGraphMemcpyNodeGetParams(h driver.CUgraphNode) (driver.CUDA_MEMCPY3D, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	_, w, r := workOf[*copyWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return driver.CUDA_MEMCPY3D{}, r
	}
	return w.params, r
}

func (d *simulator) CuGraphMemsetNodeGetParams(h driver.CUgraphNode) (driver.CUDA_MEMSET_NODE_PARAMS, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	_, w, r := workOf[*fillWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return driver.CUDA_MEMSET_NODE_PARAMS{}, r
	}
	return w.params, r
}

func (d *simulator) CuGraphHostNodeGetParams(h driver.CUgraphNode) (driver.CUDA_HOST_NODE_PARAMS, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	_, w, r := workOf[*hostWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return driver.CUDA_HOST_NODE_PARAMS{}, r
	}
	return w.params, r
}

func (d *simulator) CuGraphKernelNodeSetParams(h driver.CUgraphNode, params *driver.CUDA_KERNEL_NODE_PARAMS) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, old, r := workOf[*kernelWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newKernelWork(params)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w.cooperative, w.priority = old.cooperative, old.priority
	if r = w.check(); r == driver.CUDA_SUCCESS {
		n.work = w
	}
	return r
}

func (d *simulator) CuGraphMemcpyNodeSetParams(h driver.CUgraphNode, params *driver.CUDA_MEMCPY3D) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, old, r := workOf[*copyWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newCopyWork(params, old.ctx)
	if r == driver.CUDA_SUCCESS {
		n.work = w
	}
	return r
}

func (d *simulator) CuGraphMemsetNodeSetParams(h driver.CUgraphNode, params *driver.CUDA_MEMSET_NODE_PARAMS) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, old, r := workOf[*fillWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newFillNode(params, old.ctx)
	if r == driver.CUDA_SUCCESS {
		n.work = w
	}
	return r
}

func (d *simulator) CuGraphHostNodeSetParams(h driver.CUgraphNode, params *driver.CUDA_HOST_NODE_PARAMS) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, _, r := workOf[*hostWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newHostWork(params)
	if r == driver.CUDA_SUCCESS {
		n.work = w
	}
	return r
}
