// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// graphUsage counts the memory of a device's allocation nodes. Memory is used from
// the first launch that allocates it until it is released, as CUDA's stays mapped
// to its graph, or until a trim finds that it is not allocated (seen on driver
// 580.159, where it is mapped by an upload already); it is reserved until a trim.
type graphUsage struct {
	mu   sync.Mutex
	used map[*graphAlloc]struct{} // guarded by mu
	// Sizes in bytes, by CUgraphMem_attribute.
	sizes [4]uint64 // guarded by mu
}

// note notes that a's memory is used, or no longer.
func (u *graphUsage) note(a *graphAlloc, used bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	bytes := int64(a.memory.size)
	if used {
		if u.used == nil {
			u.used = map[*graphAlloc]struct{}{}
		}
		u.used[a] = struct{}{}
	} else {
		delete(u.used, a)
		bytes = -bytes
	}
	u.set(driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, u.sizes[driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT]+uint64(bytes))
	u.set(driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
		max(u.sizes[driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT], granules(u.sizes[driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT])))
}

// set sets a current size and, behind it, its maximum.
//
// Preconditions: u.mu must be locked.
func (u *graphUsage) set(attr driver.CUgraphMem_attribute, bytes uint64) {
	u.sizes[attr] = bytes
	u.sizes[attr+1] = max(u.sizes[attr+1], bytes)
}

// use notes that a launch allocates a's memory.
func (a *graphAlloc) use() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(true)
}

// count counts a's memory as used, or no longer.
//
// Preconditions: a.mu must be locked.
func (a *graphAlloc) count(used bool) {
	if a.used == used {
		return
	}
	a.used = used
	a.memory.ctx.dev.graphs.note(a, used)
}

// trim counts a's memory as no longer used unless it is allocated.
func (a *graphAlloc) trim() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.live {
		a.count(false)
	}
}

// all returns what is used.
func (u *graphUsage) all() []*graphAlloc {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.used))
}

func (d *simulator) graphDevice(dev driver.CUdevice) (*device, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	return d.device(dev)
}

func (d *simulator) CuDeviceGraphMemTrim(dev driver.CUdevice) driver.CUresult {
	v, r := d.graphDevice(dev)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	u := &v.graphs
	for _, a := range u.all() {
		a.trim()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.set(driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, granules(u.sizes[driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT]))
	return r
}

func (d *simulator) CuDeviceGetGraphMemAttribute(dev driver.CUdevice, attr driver.CUgraphMem_attribute) (uint64, driver.CUresult) {
	v, r := d.graphDevice(dev)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	u := &v.graphs
	u.mu.Lock()
	defer u.mu.Unlock()
	if attr < 0 || int(attr) >= len(u.sizes) {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return u.sizes[attr], r
}

func (d *simulator) CuDeviceSetGraphMemAttribute(dev driver.CUdevice, attr driver.CUgraphMem_attribute, value uint64) driver.CUresult {
	v, r := d.graphDevice(dev)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	isHigh := attr == driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
	if !isHigh || value != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	u := &v.graphs
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sizes[attr] = u.sizes[attr-1]
	return r
}
