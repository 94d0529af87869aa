// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A poolParking keeps the pools of closed resources for the next ones with the
// same properties. They are not destroyed, because NVIDIA's driver, 580.159, reads
// freed host memory if cuMemPoolDestroy runs while any thread of the process, of
// whatever library, is inside cuCtxSynchronize, even if all memory of the pool was
// freed and waited for before.
//
// There are never more parked pools than were open at the same time, unless their
// properties differ, and never more than there are spaces. They end with the context.
type poolParking struct {
	mu    sync.Mutex
	pools map[driver.CUmemPoolProps][]driver.CUmemoryPool // guarded by mu
	taken map[driver.CUmemLocationType]int                // guarded by mu; spaces, by where the memory is
}

// spacesFor is how many pools of memory in a place are parked. Each takes twice the
// place's memory of the process's 128 TiB of addresses, so that there is room for
// some 470 on a device and some 47 on a NUMA node (H200, driver 580.159); then other
// allocations fail too.
func spacesFor(place driver.CUmemLocationType) int {
	if place == driver.CU_MEM_LOCATION_TYPE_DEVICE {
		return 64
	}
	return 8
}

// isFull reports whether a pool has to be destroyed instead.
func (p *poolParking) isFull(like driver.CUmemPoolProps) bool {
	place := driver.CUmemLocationType(like.LocationType)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[place] >= spacesFor(place)
}

func (p *poolParking) put(like driver.CUmemPoolProps, pool driver.CUmemoryPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools == nil {
		p.pools = make(map[driver.CUmemPoolProps][]driver.CUmemoryPool)
		p.taken = make(map[driver.CUmemLocationType]int)
	}
	p.pools[like] = append(p.pools[like], pool)
	p.taken[driver.CUmemLocationType(like.LocationType)]++
}

// take removes and returns a pool with these properties.
func (p *poolParking) take(like driver.CUmemPoolProps) (pool driver.CUmemoryPool, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.pools[like]
	if len(list) == 0 {
		return 0, false
	}
	last := len(list) - 1
	p.pools[like] = list[:last]
	p.taken[driver.CUmemLocationType(like.LocationType)]--
	return list[last], true
}

// takeAll removes and returns all pools.
func (p *poolParking) takeAll() (all []driver.CUmemoryPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.pools {
		all = append(all, list...)
	}
	p.pools, p.taken = nil, nil
	return all
}

// newPool makes a resource with a parked or a new pool.
func newPool(d *Device, kind MemoryKind, o PoolOptions, props *driver.CUmemPoolProps) (*DeviceMemoryResource, error) {
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	mr := &DeviceMemoryResource{ctx: c, kind: kind, owned: true, limit: o.MaxSize}
	if o.Shareable {
		if err := mr.share(props); err != nil {
			return nil, err
		}
	}
	mr.props = *props
	again, err := mr.open()
	if err != nil {
		mr.closeLeases()
		return nil, err
	}
	c.drv.live.pools.Add(1)
	mr.held.init()
	threshold := uint64(math.MaxUint64)
	if o.ReleaseThreshold != nil {
		threshold = *o.ReleaseThreshold
	}
	err = mr.SetReleaseThreshold(threshold)
	if again && err == nil {
		err = mr.makeLikeNew()
	}
	if err != nil {
		_ = mr.Close()
		return nil, err
	}
	return mr, nil
}

// open takes a parked pool or creates one. There is room for some 470 pools of
// device memory (H200, driver 580.159): if the parked ones are in the way, they go.
func (mr *DeviceMemoryResource) open() (again bool, err error) {
	c := mr.ctx
	leave, err := c.enterRelaxed()
	if err != nil {
		return false, err
	}
	defer leave()
	if mr.pool, again = c.parkedPools.take(mr.props); again {
		return true, nil
	}
	pool, r := c.drv.api.CuMemPoolCreate(&mr.props)
	if r == driver.CUDA_ERROR_OUT_OF_MEMORY && c.destroyParked() {
		pool, r = c.drv.api.CuMemPoolCreate(&mr.props)
	}
	mr.pool = pool
	return false, explained(c.check("cuMemPoolCreate", r), "%s", describePool(&mr.props))
}

// destroyParked destroys the parked pools, and reports whether there were any. It
// lets waits for the context go first, if they do not take too long; those of other
// libraries must not be under way, see [poolParking].
//
// Preconditions: c is current, in relaxed capture mode.
func (c *Context) destroyParked() bool {
	n := 0
	c.drv.waits.apartSoon(func() {
		pools := c.parkedPools.takeAll()
		n = len(pools)
		for _, pool := range pools {
			if r := c.drv.api.CuMemPoolDestroy(pool); r != driver.CUDA_SUCCESS {
				c.drv.warn("memory pool", c.fail("cuMemPoolDestroy", r, ""))
			}
		}
	})
	return n > 0
}

// ReleaseUnused destroys the pools that are kept for resources to come, of all
// devices, for an allocation that has failed: they have no memory, but take room.
func (d *Driver) ReleaseUnused() {
	for _, c := range d.contexts() {
		if leave, err := c.enterRelaxed(); err == nil {
			c.destroyParked()
			leave()
		}
	}
}

// makeLikeNew undoes what the last user of the pool has set, except for the release
// threshold.
func (mr *DeviceMemoryResource) makeLikeNew() error {
	for _, s := range []PoolSetting{FollowEventDependencies, AllowOpportunistic, AllowInternalDependencies} {
		if err := mr.Set(s, true); err != nil {
			return err
		}
	}
	if err := mr.ResetHigh(); err != nil {
		return err
	}
	if mr.kind != DeviceMemory {
		return nil // whoever makes the pool gives access to all devices
	}
	for i := range mr.ctx.drv.count {
		peer, err := mr.ctx.drv.Device(i)
		if err != nil {
			return err
		}
		if peer == mr.ctx.dev {
			continue
		}
		if allowed, err := mr.PeerAccess(peer); err != nil {
			return err
		} else if allowed {
			if err := mr.SetPeerAccess(peer, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close is documented at [MemoryResource]. Once the last allocation is closed it
// parks the pool, whose memory goes back to the system as soon as somebody waits for
// the streams that it was freed on. It has no effect on the default pool. It calls
// cuMemPoolSetAttribute and cuMemPoolTrimTo.
func (mr *DeviceMemoryResource) Close() error {
	if !mr.owned {
		return nil
	}
	if mr.uses.close() {
		mr.release()
	}
	return nil
}

// release lets go of the pool for the caller or for an allocation.
func (mr *DeviceMemoryResource) release() {
	if mr.held.release() {
		mr.park()
	}
}

// park parks the pool, or destroys it if there is no space.
func (mr *DeviceMemoryResource) park() {
	c := mr.ctx
	c.disposeSteps("memory pool", nil, &c.drv.live.pools, func(api driver.API) (string, driver.CUresult) {
		if c.parkedPools.isFull(mr.props) {
			return "cuMemPoolDestroy", c.drv.waits.tryApart(func() driver.CUresult { return api.CuMemPoolDestroy(mr.pool) })
		}
		if r := api.CuMemPoolSetAttribute(mr.pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0); r != driver.CUDA_SUCCESS {
			return "cuMemPoolSetAttribute", r
		}
		r := api.CuMemPoolTrimTo(mr.pool, 0)
		if r == driver.CUDA_SUCCESS {
			c.parkedPools.put(mr.props, mr.pool)
		}
		return "cuMemPoolTrimTo", r
	}, mr.closeLeases)
}

// describePool says what of a new pool a driver may refuse.
func describePool(p *driver.CUmemPoolProps) string {
	text := "a pool"
	if p.MaxSize > 0 {
		text = fmt.Sprintf("a pool of at most %d bytes", p.MaxSize)
	}
	if driver.CUmemLocationType(p.LocationType) == driver.CU_MEM_LOCATION_TYPE_HOST_NUMA {
		text += fmt.Sprintf(" on NUMA node %d", p.LocationID)
		if nodes, err := os.ReadFile("/sys/devices/system/node/online"); err == nil {
			text += fmt.Sprintf("; the host has nodes %s", strings.TrimSpace(string(nodes)))
		}
	}
	return text
}
