// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// CuDevicePrimaryCtxReset destroys everything that the process has on a device.
// The context's holders stay holders: the next retain creates a new context.
// Handles of the old one are never valid again.
//
// A graph is destroyed if one of its nodes is bound to the context, an
// executable also if it was instantiated there.
func (d *simulator) CuDevicePrimaryCtxReset(dev driver.CUdevice) driver.CUresult {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	v.life.Lock()
	defer v.life.Unlock()
	v.mu.Lock()
	c := v.primary
	v.primary = nil
	v.mu.Unlock()
	if c != nil {
		c.abort()
		d.forgetGraphs(c)
		d.forgetGreens(c)
		c.end("cuDevicePrimaryCtxReset")
	}
	d.virtual.forget(v)
	v.renewPools()
	return driver.CUDA_SUCCESS
}

// abort ends the context's work: running work is stopped, queued work is
// dropped.
func (c *context) abort() {
	c.mu.Lock()
	c.code.Store(int32(driver.CUDA_ERROR_CONTEXT_IS_DESTROYED))
	c.report = ""
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.synchronize()
	}()
	for {
		// Repeatedly: a kernel that saw a healthy context may begin late.
		c.dev.cancel.end()
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// forgetGraphs destroys the graphs and executables that need the context.
func (d *simulator) forgetGraphs(c *context) {
	gone := d.execs.removeIf(func(x *graphExec) bool { return x.home == c || slices.Contains(x.contexts, c) })
	d.graphMu.Lock()
	for _, x := range gone {
		x.graph.execs--
	}
	for _, g := range d.graphs.all() {
		if g.parent == nil && g.capture == nil && g.isBound(c) {
			d.destroyGraph(g)
		}
	}
	d.graphMu.Unlock()
	for _, x := range gone {
		x.letGo()
	}
}

// isBound reports whether a node of the graph, or of one inside, needs the
// context.
//
// Preconditions: simulator.graphMu must be locked.
func (g *graph) isBound(c *context) bool {
	return slices.ContainsFunc(g.nodes.All(), func(n *node) bool {
		return n.work != nil && contextOfWork(n.work) == c || n.child != nil && n.child.isBound(c) ||
			slices.ContainsFunc(n.bodies, func(body *graph) bool { return body.isBound(c) })
	})
}

// forget removes a device's memory from all mappings. The reservations, which
// belong to no device, remain.
func (v *virtualSpace) forget(dev *device) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mapped = slices.DeleteFunc(v.mapped, func(m *virtualMapping) bool {
		if m.dev == dev {
			dev.memory.Unmap(m.base, "cuDevicePrimaryCtxReset")
		}
		return m.dev == dev
	})
	for _, p := range v.handles.removeIf(func(p *physical) bool { return p.dev == dev }) {
		p.release()
	}
}

// renewPools destroys the pools that the process created, and resets the
// default pool.
func (dev *device) renewPools() {
	own := dev.defaultPool
	for _, p := range dev.sim.pools.removeIf(func(p *pool) bool { return p.dev == dev && p != own }) {
		dev.sim.forgetPool(p)
	}
	dev.poolsMu.Lock()
	defer dev.poolsMu.Unlock()
	for _, p := range dev.pools {
		p.mu.Lock()
		p.destroyed = p != own
		p.threshold, p.reuse = 0, defaultReuse()
		p.mu.Unlock()
		p.trim(0)
		p.mu.Lock()
		p.usedHigh, p.reservedHigh = p.used, p.reserved
		p.mu.Unlock()
	}
	dev.pools = []*pool{own}
}
