// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// userObject is something of the host's that graphs hold.
type userObject struct {
	sim     *simulator
	handle  driver.CUuserObject
	destroy driver.CUhostFn
	data    uintptr
	refs    atomic.Int64
}

// userObjects has an object once for each reference.
type userObjects []*userObject

func (l userObjects) retain() userObjects {
	for _, o := range l {
		o.refs.Add(1)
	}
	return slices.Clone(l)
}

// release calls what destroys an object on a thread of its own: as CUDA's, it
// may run with locks of the driver held by others, and is waited for by nobody.
func (l userObjects) release() {
	for _, o := range l {
		if o.refs.Add(-1) == 0 {
			o.sim.objects.remove(o.handle)
			go o.sim.runHost(o.destroy, o.data)
		}
	}
}

// hold retains what a graph and its inner graphs hold. The shape was made from the
// graph, which has not changed since.
//
// Preconditions: simulator.graphMu must be locked.
func (s *shape) hold(g *graph) {
	s.objects = g.objects.retain()
	for i, n := range g.nodes.All() {
		if n.child != nil {
			s.nodes[i].child.hold(n.child)
		}
		for b, body := range n.bodies {
			s.nodes[i].bodies[b].hold(body)
		}
	}
}

// allObjects appends what a shape and those inside have to a list.
func (s *shape) allObjects(list userObjects) userObjects {
	list = append(list, s.objects...)
	for i := range s.nodes {
		if child := s.nodes[i].child; child != nil {
			list = child.allObjects(list)
		}
		for _, b := range s.nodes[i].bodies {
			list = b.allObjects(list)
		}
	}
	return list
}

func (d *simulator) CuUserObjectCreate(p uintptr, destroy driver.CUhostFn, count, flags uint32) (driver.CUuserObject, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	if destroy == 0 || count == 0 || flags != driver.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if d.callHost == nil {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	o := &userObject{sim: d, destroy: destroy, data: p}
	o.refs.Store(int64(count))
	o.handle = d.objects.add(o)
	return o.handle, driver.CUDA_SUCCESS
}

func (d *simulator) CuGraphRetainUserObject(h driver.CUgraph, object driver.CUuserObject, count, flags uint32) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	o := d.objects.get(object)
	if o == nil || count == 0 || flags&^driver.CU_GRAPH_USER_OBJECT_MOVE != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for range count {
		g.objects = append(g.objects, o)
		if flags == 0 {
			o.refs.Add(1)
		}
	}
	return r
}
