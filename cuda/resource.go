// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A MemoryResource allocates memory. Implementations are safe for concurrent
// use.
type MemoryResource interface {
	// Allocate returns size bytes of undefined content, for use in the order of
	// s. If Kind is [DeviceMemory], s is required, the caller must order work
	// in other streams after s, and the call does not block. Otherwise s may be
	// nil, the memory can be used at once, and the call may block.
	//
	// For zero bytes it returns a Buffer with address zero and no memory.
	//
	// Lifetime: the caller must Close the Buffer. A Buffer outlives its resource.
	//
	// Errors: [ErrClosed] if the resource or s is closed; [ErrorOutOfMemory];
	// [ErrorStreamCaptureUnsupported] if s is capturing.
	Allocate(size uint64, s *Stream) (*Buffer, error)
	// Kind returns where the memory is.
	Kind() MemoryKind
	// Device returns the device that the memory is for.
	Device() *Device
	// Close ends the use of the resource. Its allocations remain valid. Closing
	// twice is fine.
	Close() error
}

// emptyBuffer is returned for allocations of zero bytes, which the driver
// refuses.
func emptyBuffer(c *Context, mr MemoryResource, s *Stream) (*Buffer, error) {
	a := &allocation{ctx: c, kind: mr.Kind(), resource: mr, free: func(_ *allocation, s *Stream) { unuse(s) }}
	if err := a.useStream(s); err != nil {
		return nil, err
	}
	return newBuffer(a), nil
}

// PoolOptions are the options of [NewDeviceMemoryResource].
type PoolOptions struct {
	// ReleaseThreshold is how many unused bytes the pool keeps when a stream or
	// event is synchronized. Nil means all: returning memory to the system and
	// allocating it again is slow.
	ReleaseThreshold *uint64
	// MaxSize limits the pool, in bytes. Zero means as large as the device
	// allows.
	MaxSize uint64
	// Shareable lets other processes import the pool: see
	// [DeviceMemoryResource.Export].
	Shareable bool
}

// A DeviceMemoryResource allocates device memory from a pool of the driver,
// stream-ordered.
type DeviceMemoryResource struct {
	ctx    *Context
	kind   MemoryKind
	pool   driver.CUmemoryPool
	owned  bool
	limit  uint64 // immutable; most bytes of the pool, 0 if it has no limit of its own
	uses   uses
	held   refs                  // until it is closed, by the caller; and by each allocation
	lessor *lessor               // immutable; nil unless other processes can import it
	props  driver.CUmemPoolProps // immutable; of a pool of its own
}

// DefaultMemoryResource returns the resource over the device's default pool,
// which other libraries may use too; the same pointer each time until the
// device is reset. If the pool's release threshold is zero it is raised, so
// that the pool keeps its memory. Close has no effect on it.
func (d *Device) DefaultMemoryResource() (*DeviceMemoryResource, error) {
	old := d.pool.Load()
	if old != nil && !old.ctx.IsLost() {
		return old, nil
	}
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	pool, err := call1(c, "cuDeviceGetDefaultMemPool", func(api driver.API) (driver.CUmemoryPool, driver.CUresult) {
		return api.CuDeviceGetDefaultMemPool(d.h)
	})
	if err != nil {
		return nil, err
	}
	mr := &DeviceMemoryResource{ctx: c, kind: DeviceMemory, pool: pool}
	mr.held.init()
	threshold, err := mr.attribute(driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
	if err != nil {
		return nil, err
	}
	if threshold == 0 {
		if err := mr.SetReleaseThreshold(math.MaxUint64); err != nil {
			return nil, err
		}
	}
	// Two first callers make equal resources, of which one is kept.
	if !d.pool.CompareAndSwap(old, mr) {
		return d.pool.Load(), nil
	}
	return mr, nil
}

// NewDeviceMemoryResource creates a resource with a pool of its own. It calls
// cuMemPoolCreate, unless a pool with these options is parked: see [poolParking].
//
// Lifetime: the caller must Close it.
func NewDeviceMemoryResource(d *Device, o PoolOptions) (*DeviceMemoryResource, error) {
	return newPool(d, DeviceMemory, o, &driver.CUmemPoolProps{
		AllocType: int32(driver.CU_MEM_ALLOCATION_TYPE_PINNED), LocationType: int32(driver.CU_MEM_LOCATION_TYPE_DEVICE),
		LocationID: int32(d.ordinal), MaxSize: o.MaxSize,
	})
}

// Kind returns where the pool's memory is: [DeviceMemory], unless
// [NewPinnedPool] or [NewManagedPool] made it.
func (mr *DeviceMemoryResource) Kind() MemoryKind { return mr.kind }

// Device returns the device whose memory the pool holds.
func (mr *DeviceMemoryResource) Device() *Device { return mr.ctx.dev }

// PoolHandle returns the CUmemoryPool.
func (mr *DeviceMemoryResource) PoolHandle() uintptr { return uintptr(mr.pool) }

// IsDefault reports whether mr allocates from the device's default pool.
func (mr *DeviceMemoryResource) IsDefault() bool { return !mr.owned }

// Allocate is documented at [MemoryResource]. It calls cuMemAllocFromPoolAsync.
func (mr *DeviceMemoryResource) Allocate(size uint64, s *Stream) (*Buffer, error) {
	if s == nil {
		return nil, badType("stream", "is required: device memory is allocated in the order of a stream")
	}
	if s.ctx != mr.ctx {
		return nil, badValue("stream", "must be of %v, as the pool is, got one of %v", mr.ctx.dev, s.ctx.dev)
	}
	if err := mr.begin(); err != nil {
		return nil, err
	}
	defer mr.end()
	if size == 0 {
		return emptyBuffer(mr.ctx, mr, s)
	}
	mr.ctx.Drain()
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	capturing, err := s.capturing()
	if err != nil {
		return nil, err
	}
	if capturing {
		// It would become an alloc node, whose memory belongs to the graph and
		// not to this Buffer.
		return nil, mr.ctx.fail(allocFromPool, driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "allocate before the capture begins")
	}
	a, err := mr.expect(size, s) // before the call: another thread may close s meanwhile
	if err != nil {
		return nil, err
	}
	p, r := mr.ctx.drv.api.CuMemAllocFromPoolAsync(size, mr.pool, s.h)
	if r != driver.CUDA_SUCCESS {
		unuse(s)
		mr.release()
		return nil, mr.Failure(int32(r), size)
	}
	return mr.got(a, uint64(p)), nil
}

const allocFromPool = "cuMemAllocFromPoolAsync"

// Failure returns the error for an allocation from the pool that the caller has
// tried, of size bytes. If the pool's size is limited, that may be why there is not
// enough: so it says the limit, and how much is used.
func (mr *DeviceMemoryResource) Failure(result int32, size uint64) error {
	why := ""
	if mr.limit > 0 && Result(result) == ErrorOutOfMemory {
		why = fmt.Sprintf("; the pool is limited to %d bytes", mr.limit)
		if used, err := mr.attribute(driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT); err == nil {
			why += fmt.Sprintf(", of which %d are used", used)
		}
	}
	return mr.ctx.failAllocOf(mr.kind, allocFromPool, driver.CUresult(result), size, why)
}

// AllocateNode is Allocate on a stream that is capturing: it adds a node to the
// captured graph, which the memory belongs to. It calls cuMemAllocFromPoolAsync,
// which takes from the pool nothing but its properties then. The caller ensures
// that s is capturing.
func (mr *DeviceMemoryResource) AllocateNode(size uint64, s *Stream) (ptr uint64, err error) {
	if err := mr.begin(); err != nil {
		return 0, err
	}
	defer mr.end()
	leave, err := s.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	p, r := mr.ctx.drv.api.CuMemAllocFromPoolAsync(size, mr.pool, s.h)
	if r != driver.CUDA_SUCCESS {
		return 0, mr.Failure(int32(r), size)
	}
	return uint64(p), nil
}

// AllocateBeside allocates for s, which may be capturing, without a node of a
// graph: the memory is there when the call returns, in no stream's order, and
// whoever has it frees it. It invalidates no capture, and blocks until work has
// ended that the driver makes the allocation wait for. It calls cuStreamCreate,
// cuMemAllocFromPoolAsync, cuStreamSynchronize and cuStreamDestroy. After an
// error there is no memory; what then cannot be released is a warning.
func (mr *DeviceMemoryResource) AllocateBeside(size uint64) (ptr uint64, err error) {
	mr.ctx.drv.Relaxed(func() { ptr, err = mr.allocateBeside(size) })
	return ptr, err
}

func (mr *DeviceMemoryResource) allocateBeside(size uint64) (ptr uint64, err error) {
	if err := mr.begin(); err != nil {
		return 0, err
	}
	defer mr.end()
	s, err := mr.ctx.NewStream(StreamOptions{})
	if err != nil {
		return 0, err
	}
	// If that fails it is reported, and no error: with one, the caller would not
	// have the memory.
	defer func() { _ = s.Close() }()
	if ptr, err = mr.AllocateNode(size, s); err != nil {
		return 0, err
	}
	if err := s.Synchronize(); err != nil {
		b, second := mr.adopt(ptr, size, s)
		if second == nil {
			second = b.Close() // a Buffer's free is tried again, or reported and counted
		}
		return 0, errors.Join(err, second)
	}
	return ptr, nil
}

// adopt makes a Buffer of size bytes at ptr that was allocated from the pool in the
// order of s.
func (mr *DeviceMemoryResource) adopt(ptr, size uint64, s *Stream) (*Buffer, error) {
	a, err := mr.expect(size, s)
	if err != nil {
		return nil, err
	}
	return mr.got(a, ptr), nil
}

// expect keeps mr and s for memory that is yet to come.
func (mr *DeviceMemoryResource) expect(size uint64, s *Stream) (*allocation, error) {
	if !mr.held.retain() {
		return nil, &ClosedError{"memory resource"}
	}
	a := &allocation{ctx: mr.ctx, kind: mr.kind, size: size, resource: mr, free: mr.free}
	if err := a.useStream(s); err != nil {
		mr.release()
		return nil, err
	}
	return a, nil
}

// got makes a Buffer of expected memory.
func (mr *DeviceMemoryResource) got(a *allocation, ptr uint64) *Buffer {
	a.base = ptr
	mr.ctx.drv.live.allocations.Add(1)
	return newBuffer(a)
}

// free frees a in the order of s.
func (mr *DeviceMemoryResource) free(a *allocation, s *Stream) {
	on := s.OnAnyThread()
	waits := func() (bool, error) { return !mr.MayFree(a.base), nil }
	a.ctx.dispose("cuMemFreeAsync", a.what(), waits, &a.ctx.drv.live.allocations, func(driver.API) driver.CUresult {
		return on.uncaptured(driver.CUDA_SUCCESS, func(api driver.API) driver.CUresult {
			return api.CuMemFreeAsync(driver.CUdeviceptr(a.base), on.h)
		})
	}, func() {
		unuse(s)
		mr.release()
	})
}

// OnAnyThread returns the stream to use for s on any thread, such as that on which
// the last holder of memory releases it: the per-thread default stream would be another one there.
// The legacy default stream waits for the per-thread ones of all threads.
func (s *Stream) OnAnyThread() *Stream {
	if s != nil && s == s.ctx.perThread {
		return s.ctx.legacy
	}
	return s
}

// what describes a for a warning.
func (a *allocation) what() string {
	return fmt.Sprintf("%d bytes of %v memory at %#x", a.bytes(), a.kind, a.base)
}

func (mr *DeviceMemoryResource) begin() error {
	if mr.ctx.IsLost() {
		return mr.ctx.lostError("memory resource")
	}
	if !mr.uses.begin() {
		return &ClosedError{"memory resource"}
	}
	return nil
}

func (mr *DeviceMemoryResource) end() {
	if mr.uses.end() {
		mr.release()
	}
}

// PoolStatistics are byte counts of a pool.
type PoolStatistics struct {
	// Reserved is the device memory that the pool holds, Used the part that is
	// allocated; the High ones are their maxima so far.
	Reserved, ReservedHigh, Used, UsedHigh uint64
}

// Statistics calls cuMemPoolGetAttribute.
func (mr *DeviceMemoryResource) Statistics() (PoolStatistics, error) {
	var st PoolStatistics
	for _, f := range []struct {
		attr driver.CUmemPool_attribute
		out  *uint64
	}{
		{driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &st.Reserved},
		{driver.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &st.ReservedHigh},
		{driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &st.Used},
		{driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH, &st.UsedHigh},
	} {
		v, err := mr.attribute(f.attr)
		if err != nil {
			return PoolStatistics{}, err
		}
		*f.out = v
	}
	return st, nil
}

// poolCall runs a call on mr's pool in relaxed capture mode: otherwise even
// querying a pool is refused while a capture is open, and invalidates it.
func poolCall[T any](mr *DeviceMemoryResource, op string, f func(driver.API, driver.CUmemoryPool) (T, driver.CUresult)) (T, error) {
	var zero T
	if err := mr.begin(); err != nil {
		return zero, err
	}
	defer mr.end()
	return call1(mr.ctx, op, func(api driver.API) (T, driver.CUresult) {
		defer mr.ctx.drv.relax()()
		return f(api, mr.pool)
	})
}

func (mr *DeviceMemoryResource) attribute(attr driver.CUmemPool_attribute) (uint64, error) {
	return poolCall(mr, "cuMemPoolGetAttribute", func(api driver.API, pool driver.CUmemoryPool) (uint64, driver.CUresult) {
		return api.CuMemPoolGetAttribute(pool, attr)
	})
}

// A PoolSetting is an attribute of a pool that can be changed. From cuda.h, CUDA
// 12.6.
type PoolSetting int32

const (
	// FollowEventDependencies lets the pool reuse memory that another stream
	// freed, if events order the two streams.
	FollowEventDependencies PoolSetting = 1
	// AllowOpportunistic lets it reuse memory whose free has already happened.
	AllowOpportunistic PoolSetting = 2
	// AllowInternalDependencies lets it make a stream wait for another one's free.
	AllowInternalDependencies PoolSetting = 3
)

// Setting calls cuMemPoolGetAttribute.
func (mr *DeviceMemoryResource) Setting(s PoolSetting) (bool, error) {
	v, err := mr.attribute(driver.CUmemPool_attribute(s))
	return v != 0, err
}

// Set calls cuMemPoolSetAttribute.
func (mr *DeviceMemoryResource) Set(s PoolSetting, on bool) error {
	var v uint64
	if on {
		v = 1
	}
	return mr.set(driver.CUmemPool_attribute(s), v)
}

// ResetHigh makes the maxima of [PoolStatistics] what is used and reserved now.
// It calls cuMemPoolSetAttribute.
func (mr *DeviceMemoryResource) ResetHigh() error {
	if err := mr.set(driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0); err != nil {
		return err
	}
	return mr.set(driver.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)
}

func (mr *DeviceMemoryResource) set(attr driver.CUmemPool_attribute, value uint64) error {
	_, err := poolCall(mr, "cuMemPoolSetAttribute", func(api driver.API, pool driver.CUmemoryPool) (none, driver.CUresult) {
		return none{}, api.CuMemPoolSetAttribute(pool, attr, value)
	})
	return explained(err, "%d for attribute %d", value, attr)
}

// ReleaseThreshold returns how many unused bytes the pool keeps.
func (mr *DeviceMemoryResource) ReleaseThreshold() (uint64, error) {
	return mr.attribute(driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
}

// SetReleaseThreshold calls cuMemPoolSetAttribute.
func (mr *DeviceMemoryResource) SetReleaseThreshold(bytes uint64) error {
	return mr.set(driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
}

// Trim returns unused memory to the system until at most keep bytes are
// reserved. It calls cuMemPoolTrimTo.
func (mr *DeviceMemoryResource) Trim(keep uint64) error {
	_, err := poolCall(mr, "cuMemPoolTrimTo", func(api driver.API, pool driver.CUmemoryPool) (none, driver.CUresult) {
		return none{}, api.CuMemPoolTrimTo(pool, keep)
	})
	return explained(err, "to keep %d bytes", keep)
}

// IsClosed reports whether Close was called.
func (mr *DeviceMemoryResource) IsClosed() bool { return mr.uses.closed() }
