// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// The VM keeps access rights, and every access checks them: see
// memory.Permission. Behaviour that cuda.h does not specify was observed on two
// H200, driver 580.159, CUDA 13.0.

// peerings are the pairs of contexts of which the first may access memory of
// cuMemAlloc in the second.
type peerings struct {
	mu      sync.Mutex
	enabled map[[2]*context]struct{} // guarded by mu
}

// set enables or disables a pair, and reports whether that changed anything.
func (p *peerings) set(c, peer *context, enabled bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pair := [2]*context{c, peer}
	if _, was := p.enabled[pair]; was == enabled {
		return false
	}
	if !enabled {
		delete(p.enabled, pair)
	} else {
		if p.enabled == nil {
			p.enabled = map[[2]*context]struct{}{}
		}
		p.enabled[pair] = struct{}{}
	}
	peer.dev.memory.Peers().Allow(c.dev.memory, enabled)
	return true
}

// forget disables all pairs that a context is part of, as it ends.
func (p *peerings) forget(c *context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.enabled {
		if pair[0] == c || pair[1] == c {
			delete(p.enabled, pair)
			pair[1].dev.memory.Peers().Allow(pair[0].dev.memory, false)
		}
	}
}

// connect lets kernels of each device find memory of the others.
func (d *simulator) connect() {
	memories := make([]*memory.Memory, len(d.devices))
	for i, dev := range d.devices {
		memories[i] = dev.memory
	}
	memory.Connect(memories...)
}

// peer finds the two contexts of a call. They may be the same.
func (d *simulator) peer(h driver.CUcontext) (c, peer *context, r driver.CUresult) {
	if c, r = d.current(); r != driver.CUDA_SUCCESS {
		return nil, nil, r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return nil, nil, r
	}
	if peer = d.contexts.get(h); peer == nil {
		return nil, nil, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	return c, peer, driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxEnablePeerAccess(h driver.CUcontext, flags uint32) driver.CUresult {
	c, peer, r := d.peer(h)
	switch {
	case r != driver.CUDA_SUCCESS:
		return r
	case flags != 0:
		return driver.CUDA_ERROR_INVALID_VALUE
	case c == peer:
		return driver.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
	case !d.peerings.set(c, peer, true):
		return driver.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
	}
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxDisablePeerAccess(h driver.CUcontext) driver.CUresult {
	c, peer, r := d.peer(h)
	switch {
	case r != driver.CUDA_SUCCESS:
		return r
	case !d.peerings.set(c, peer, false):
		return driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
	}
	return driver.CUDA_SUCCESS
}

// CuMemPoolSetAccess changes all or nothing. A device cannot lose access to its
// own pool, and read-only access is not supported.
func (d *simulator) CuMemPoolSetAccess(h driver.CUmemoryPool, desc []driver.CUmemAccessDesc) driver.CUresult {
	if r := d.outsideCaptures(); r != driver.CUDA_SUCCESS {
		return r
	}
	p := d.pools.get(h)
	if p == nil || len(desc) == 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for i := range desc {
		if r := d.accessible(&desc[i]); r != driver.CUDA_SUCCESS {
			return r
		}
		if p.kind == memPool && d.devices[desc[i].Location.ID] == p.dev && desc[i].Flags == driver.CU_MEM_ACCESS_FLAGS_PROT_NONE {
			return driver.CUDA_ERROR_INVALID_DEVICE
		}
	}
	for i := range desc {
		p.access.Allow(d.devices[desc[i].Location.ID].memory, desc[i].Flags != driver.CU_MEM_ACCESS_FLAGS_PROT_NONE)
	}
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemPoolGetAccess(h driver.CUmemoryPool, location driver.CUmemLocation) (driver.CUmemAccess_flags, driver.CUresult) {
	if r := d.outsideCaptures(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	p := d.pools.get(h)
	if p == nil || location.Type != driver.CU_MEM_LOCATION_TYPE_DEVICE {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	dev, r := d.device(driver.CUdevice(location.ID))
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if p.kind == memManaged || p.kind == memPool && dev == p.dev || p.access.Allows(dev.memory) {
		return driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE, r
	}
	return driver.CU_MEM_ACCESS_FLAGS_PROT_NONE, r
}
