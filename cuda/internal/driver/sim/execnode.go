// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// change edits one node of the executable, for later launches. edit returns
// the new node, or why the old one cannot become it.
func (d *simulator) change(h driver.CUgraphExec, hn driver.CUgraphNode, edit func(planNode) (planNode, driver.CUresult)) driver.CUresult {
	x, at, r := d.execNode(h, hn)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	n, r := edit(x.plan.nodes[at])
	if r != driver.CUDA_SUCCESS {
		return r
	}
	x.writable().nodes[at] = n
	return r
}

// writable returns the plan for a change, replaced by a copy if a launch may
// run it. The next launch looks for dangling operands again.
//
// Preconditions: x.mu must be locked.
func (x *graphExec) writable() *plan {
	x.soundAt = 0
	if x.launched {
		x.plan, x.launched = x.plan.clone(), false
	}
	return x.plan
}

// execNode finds a node of the graph that an executable was made from. The node
// must still exist.
func (d *simulator) execNode(h driver.CUgraphExec, hn driver.CUgraphNode) (*graphExec, int32, driver.CUresult) {
	x, r := d.exec(h)
	if r != driver.CUDA_SUCCESS {
		return nil, 0, r
	}
	n, r := d.node(hn)
	if r != driver.CUDA_SUCCESS {
		return nil, 0, r
	}
	at, ok := x.index[n]
	if !ok {
		return nil, 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return x, at, r
}

func (d *simulator) CuGraphExecKernelNodeSetParams(h driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_KERNEL_NODE_PARAMS) driver.CUresult {
	w, r := d.newKernelWork(params)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.change(h, n, func(p planNode) (planNode, driver.CUresult) {
		old, ok := p.work.(*kernelWork)
		if !ok {
			return p, driver.CUDA_ERROR_INVALID_VALUE
		}
		w.cooperative, w.priority = old.cooperative, old.priority // attributes, which parameters leave alone
		if !compatible(old, w) {
			return p, driver.CUDA_ERROR_INVALID_VALUE
		}
		if r := w.check(); r != driver.CUDA_SUCCESS {
			return p, r
		}
		p.work = w
		return p, driver.CUDA_SUCCESS
	})
}

func (d *simulator) CuGraphExecMemcpyNodeSetParams(h driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_MEMCPY3D, ctx driver.CUcontext) driver.CUresult {
	c, r := d.contextOf(ctx)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newCopyWork(params, c)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(h, n, w)
}

func (d *simulator) CuGraphExecMemsetNodeSetParams(h driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_MEMSET_NODE_PARAMS, ctx driver.CUcontext) driver.CUresult {
	c, r := d.contextOf(ctx)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newFillNode(params, c)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(h, n, w)
}

func (d *simulator) CuGraphExecHostNodeSetParams(h driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_HOST_NODE_PARAMS) driver.CUresult {
	w, r := d.newHostWork(params)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(h, n, w)
}

func (d *simulator) CuGraphExecEventRecordNodeSetEvent(h driver.CUgraphExec, n driver.CUgraphNode, he driver.CUevent) driver.CUresult {
	e, r := d.nodeEvent(he)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(h, n, &eventRecordWork{e})
}

func (d *simulator) CuGraphExecEventWaitNodeSetEvent(h driver.CUgraphExec, n driver.CUgraphNode, he driver.CUevent) driver.CUresult {
	e, r := d.nodeEvent(he)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(h, n, &eventWaitWork{e})
}

// replace gives a node new work, if updates allow it.
func (d *simulator) replace(h driver.CUgraphExec, n driver.CUgraphNode, w work) driver.CUresult {
	return d.change(h, n, func(p planNode) (planNode, driver.CUresult) {
		if !compatible(p.work, w) {
			return p, driver.CUDA_ERROR_INVALID_VALUE
		}
		p.work = w
		return p, driver.CUDA_SUCCESS
	})
}

// compatible reports whether updates may put new in the place of old. The
// limits are those that cuda.h, CUDA 12.6, lists at cuGraphExec…NodeSetParams.
func compatible(old, new work) bool {
	switch w := new.(type) {
	case nil:
		return old == nil
	case *kernelWork:
		o, ok := old.(*kernelWork)
		return ok && o.fn.module.ctx == w.fn.module.ctx && o.cooperative == w.cooperative
	case *copyWork:
		o, ok := old.(*copyWork)
		return ok && o.ctx == w.ctx && o.linear() && w.linear() &&
			o.src.memoryType() == w.src.memoryType() && o.dst.memoryType() == w.dst.memoryType()
	case *fillWork:
		o, ok := old.(*fillWork)
		if !ok || o.ctx != w.ctx || o.params.Height != w.params.Height {
			return false
		}
		return o.params.Height == 1 || o.params.Width == w.params.Width && o.params.ElementSize == w.params.ElementSize
	case *memOpWork:
		o, ok := old.(*memOpWork)
		return ok && o.ctx == w.ctx && slices.EqualFunc(o.ops, w.ops, func(a, b memOp) bool { return a.kind == b.kind })
	case *semaphoreWork:
		return w.replaces(old)
	case *hostWork:
		_, ok := old.(*hostWork)
		return ok
	case *eventRecordWork:
		_, ok := old.(*eventRecordWork)
		return ok
	case *eventWaitWork:
		_, ok := old.(*eventWaitWork)
		return ok
	}
	return false // allocations and frees never change
}

// canDisable reports whether a node can be switched off.
func canDisable(w work) bool {
	switch w.(type) {
	case *kernelWork, *copyWork, *fillWork:
		return true
	}
	return false
}

func (d *simulator) CuGraphNodeSetEnabled(h driver.CUgraphExec, n driver.CUgraphNode, enabled bool) driver.CUresult {
	return d.change(h, n, func(p planNode) (planNode, driver.CUresult) {
		if !canDisable(p.work) {
			return p, driver.CUDA_ERROR_INVALID_VALUE
		}
		p.disabled = !enabled
		return p, driver.CUDA_SUCCESS
	})
}

func (d *simulator) CuGraphNodeGetEnabled(h driver.CUgraphExec, hn driver.CUgraphNode) (bool, driver.CUresult) {
	x, at, r := d.execNode(h, hn)
	if r != driver.CUDA_SUCCESS {
		return false, r
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.plan.nodes[at]
	if !canDisable(n.work) {
		return false, driver.CUDA_ERROR_INVALID_VALUE
	}
	return !n.disabled, r
}
