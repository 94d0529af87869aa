// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// poolGranule is the unit in which a pool reserves memory.
const poolGranule = 2 << 20

// pool is a stream-ordered allocator. It does the accounting only: a device
// address is never used twice, so what it would reuse is a number of bytes.
type pool struct {
	dev    *device // of a pool of host memory: the first, whose reset ends it
	kind   memoryKind
	handle driver.CUmemoryPool
	limit  uint64 // most bytes in use; 0: the device's memory
	// preferred is where managed memory is by preference; of type INVALID if it has none.
	preferred driver.CUmemLocation
	access    *memory.Permission
	shared    *sharedPool // immutable; nil unless other processes may import it

	mu           sync.Mutex
	destroyed    bool                                  // guarded by mu; no longer keeps a reserve
	threshold    uint64                                // guarded by mu
	claimed      uint64                                // guarded by mu; requested, and not yet allocated
	used         uint64                                // guarded by mu
	usedHigh     uint64                                // guarded by mu
	reserved     uint64                                // guarded by mu
	reservedHigh uint64                                // guarded by mu
	slack        int64                                 // guarded by mu; reserved and not used, as the device counts it
	reuse        map[driver.CUmemPool_attribute]uint64 // guarded by mu
}

func newPool(dev *device, limit uint64) *pool {
	return &pool{dev: dev, kind: memPool, limit: limit, access: memory.NewPermission("cuMemPoolSetAccess"), reuse: defaultReuse()}
}

func defaultReuse() map[driver.CUmemPool_attribute]uint64 {
	return map[driver.CUmemPool_attribute]uint64{
		driver.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:   1,
		driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:         1,
		driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: 1,
	}
}

// claim requests an allocation, unless it exceeds the pool's limit. A claim is
// counted nowhere else until the memory is there: a full device must leave the
// pool unchanged.
func (p *pool) claim(size uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit != 0 && (size > p.limit || p.used+p.claimed > p.limit-size) {
		return false
	}
	p.claimed += size
	return true
}

// settle ends a claim: the memory was allocated, or is not available.
func (p *pool) settle(size uint64, had bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimed -= size
	if had {
		p.used += size
		p.usedHigh = max(p.usedHigh, p.used)
		p.reserve(max(p.reserved, granules(p.used)))
	}
}

// returned accounts for a free. It reports false if it has done so before.
func (p *pool) returned(a *allocation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.returned {
		return false
	}
	a.returned = true
	p.used -= a.size
	if p.destroyed {
		p.reserved = granules(p.used)
	}
	p.reserve(p.reserved)
	return true
}

// trim releases unused reserves beyond keep.
func (p *pool) trim(keep uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserve(min(p.reserved, max(granules(p.used), granules(keep))))
}

func (p *pool) trimToThreshold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reserved > p.threshold {
		p.reserve(min(p.reserved, max(granules(p.used), granules(p.threshold))))
	}
}

// reserve sets how much the pool holds, and keeps the device's sum of slack.
//
// Preconditions: p.mu must be locked; p.used is up to date.
func (p *pool) reserve(n uint64) {
	p.reserved = n
	p.reservedHigh = max(p.reservedHigh, n)
	if p.kind != memPool { // it takes none of the device's memory
		return
	}
	slack := int64(p.reserved) - int64(p.used)
	p.dev.poolSlack.Add(slack - p.slack)
	p.slack = slack
}

func granules(n uint64) uint64 {
	if n > 1<<62 {
		n = 1 << 62 // a threshold of UINT64_MAX means: keep everything
	}
	return (n + poolGranule - 1) / poolGranule * poolGranule
}

// trimPools runs at each synchronisation: pools release what exceeds their
// release threshold.
func (dev *device) trimPools() {
	if dev.poolSlack.Load() == 0 {
		return
	}
	dev.poolsMu.Lock()
	defer dev.poolsMu.Unlock()
	for _, p := range dev.pools {
		p.trimToThreshold()
	}
}

// freeWork is a stream-ordered free.
type freeWork struct{ a *allocation }

func (w *freeWork) run(x *execution) *failure {
	x.sim.release(w.a, "cuMemFreeAsync")
	return nil
}

// allocFromPool makes pool memory that is in use from now on in stream order.
func (d *simulator) allocFromPool(size uint64, p *pool, s *stream) (driver.CUdeviceptr, driver.CUresult) {
	if size == 0 || p.shared != nil && p.shared.imported {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if s.capture.Load() != nil {
		if at, captured, r := d.captureAlloc(s, size, p); captured {
			return at, r
		}
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if r := d.implicitCapture(s); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if p.kind != memPool {
		return d.allocateHostPooled(s, size, p)
	}
	a := &allocation{kind: memPool, pool: p}
	if p.shared != nil {
		at, err := p.shared.take(size)
		if err != nil {
			return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
		}
		a.place = at
	}
	r := d.withReuse(p, s, func() driver.CUresult { return d.allocatePooled(s.ctx, size, a) })
	if r != driver.CUDA_SUCCESS && a.place != nil {
		a.place.end(size)
	}
	return driver.CUdeviceptr(a.base), r
}

func (d *simulator) allocatePooled(c *context, size uint64, a *allocation) driver.CUresult {
	if !a.pool.claim(size) {
		return driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	return d.allocate(c, size, a)
}

func (d *simulator) CuMemAllocAsync(size uint64, h driver.CUstream) (driver.CUdeviceptr, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return d.allocFromPool(size, s.ctx.dev.defaultPool, s)
}

func (d *simulator) CuMemAllocFromPoolAsync(size uint64, h driver.CUmemoryPool, hs driver.CUstream) (driver.CUdeviceptr, driver.CUresult) {
	s, r := d.stream(hs)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	p := d.pools.get(h)
	if p == nil || p.kind == memPool && p.dev != s.ctx.dev {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return d.allocFromPool(size, p, s)
}

func (d *simulator) CuMemFreeAsync(p driver.CUdeviceptr, h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	s.behindOwn()
	a := d.space.start(p)
	if a == nil || a.pool == nil && a.kind != memGraph {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if s.capture.Load() != nil {
		if captured, r := d.captureFree(s, a); captured {
			return r
		}
	}
	if a.place != nil && a.place.pool.imported {
		defer d.enterPoolChange()()
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.implicitCapture(s); r != driver.CUDA_SUCCESS {
		return r
	}
	if a.kind == memGraph {
		if !a.graph.setLive(false) {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		s.enqueueQuick(&graphFreeWork{a.graph})
		return driver.CUDA_SUCCESS
	}
	if !d.give(a, "cuMemFreeAsync") {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	s.enqueueQuick(&freeWork{a})
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuDeviceGetDefaultMemPool(dev driver.CUdevice) (driver.CUmemoryPool, driver.CUresult) {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return v.defaultPool.handle, r
}

// CuMemPoolCreate makes a pool of device memory, of host memory or of managed
// memory. Of device memory, or on the host's NUMA node, it can be shared with other
// processes.
func (d *simulator) CuMemPoolCreate(props *driver.CUmemPoolProps) (driver.CUmemoryPool, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if props == nil {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	kind, at, r := poolKind(props)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	dev, r := d.device(driver.CUdevice(at))
	if r == driver.CUDA_ERROR_INVALID_DEVICE {
		r = driver.CUDA_ERROR_INVALID_VALUE
	}
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if dev.hasPools(maxPools) {
		return 0, driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	p := newPool(dev, props.MaxSize)
	p.kind = kind
	if kind == memManaged {
		p.preferred = driver.CUmemLocation{Type: driver.CUmemLocationType(props.LocationType), ID: props.LocationID}
	}
	if props.HandleTypes != 0 {
		shared, err := newSharedPool(dev, kind)
		if err != nil {
			return 0, resultOf(err, driver.CUDA_ERROR_NOT_SUPPORTED)
		}
		p.shared = shared
	}
	return d.addPool(p), r
}

// maxPools is how many pools a device has room for: an H200 with driver 580.159 has
// it for some 470 of its own memory.
const maxPools = 470

func (dev *device) hasPools(n int) bool {
	dev.poolsMu.Lock()
	defer dev.poolsMu.Unlock()
	return len(dev.pools) >= n
}

func (d *simulator) addPool(p *pool) driver.CUmemoryPool {
	p.handle = d.pools.add(p)
	p.dev.poolsMu.Lock()
	defer p.dev.poolsMu.Unlock()
	p.dev.pools = append(p.dev.pools, p)
	return p.handle
}

// CuMemPoolDestroy ends the pool; its allocations remain valid.
func (d *simulator) CuMemPoolDestroy(h driver.CUmemoryPool) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	p := d.pools.get(h)
	if p == nil || p == p.dev.defaultPool {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	defer d.enterPoolChange()()
	if p.shared != nil && p.shared.imported {
		if now, r := d.mayDestroyImported(p.shared); !now {
			return r
		}
	}
	if d.pools.take(h) == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	p.mu.Lock()
	p.destroyed = true
	p.mu.Unlock()
	p.trim(0)
	p.dev.poolsMu.Lock()
	p.dev.pools = slices.DeleteFunc(p.dev.pools, func(o *pool) bool { return o == p })
	p.dev.poolsMu.Unlock()
	d.forgetPool(p)
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemPoolTrimTo(h driver.CUmemoryPool, keep uint64) driver.CUresult {
	if r := d.outsideCaptures(); r != driver.CUDA_SUCCESS {
		return r
	}
	p := d.pools.get(h)
	if p == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	p.trim(keep)
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemPoolSetAttribute(h driver.CUmemoryPool, attr driver.CUmemPool_attribute, value uint64) driver.CUresult {
	if r := d.outsideCaptures(); r != driver.CUDA_SUCCESS {
		return r
	}
	p := d.pools.get(h)
	if p == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch attr {
	case driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p.threshold = value
	case driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH, driver.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		// A high watermark can be reset, and nothing else.
		if value != 0 {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		if attr == driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH {
			p.usedHigh = p.used
		} else {
			p.reservedHigh = p.reserved
		}
	default:
		if _, ok := p.reuse[attr]; !ok {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		p.reuse[attr] = value
	}
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemPoolGetAttribute(h driver.CUmemoryPool, attr driver.CUmemPool_attribute) (uint64, driver.CUresult) {
	if r := d.outsideCaptures(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	p := d.pools.get(h)
	if p == nil {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch attr {
	case driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return p.threshold, driver.CUDA_SUCCESS
	case driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return p.reserved, driver.CUDA_SUCCESS
	case driver.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return p.reservedHigh, driver.CUDA_SUCCESS
	case driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return p.used, driver.CUDA_SUCCESS
	case driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return p.usedHigh, driver.CUDA_SUCCESS
	}
	v, ok := p.reuse[attr]
	if !ok {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	return v, driver.CUDA_SUCCESS
}
