// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// context is a device's primary context, from the first holder to the last.
type context struct {
	sim    *simulator
	dev    *device
	handle driver.CUcontext
	legacy *stream // immutable

	code atomic.Int32 // CUresult that every call returns; sticky

	findings findings
	limits   limits

	mu        sync.Mutex
	report    string               // guarded by mu
	streams   map[*stream]struct{} // guarded by mu; also destroyed ones that still have work
	perThread map[int]*stream      // guarded by mu; by OS thread
}

func newContext(dev *device) *context {
	c := &context{sim: dev.sim, dev: dev, streams: map[*stream]struct{}{}, perThread: map[int]*stream{}}
	c.legacy = newStream(c, driver.CU_STREAM_DEFAULT, 0)
	c.legacy.handle, c.legacy.isLegacy = driver.CU_STREAM_LEGACY, true
	c.handle = dev.sim.contexts.add(c)
	return c
}

// result is the sticky error of the context.
func (c *context) result() driver.CUresult { return driver.CUresult(c.code.Load()) }

// fail poisons the context. The first failure wins: its consequences would only
// hide it.
func (c *context) fail(f *failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code.CompareAndSwap(int32(driver.CUDA_SUCCESS), int32(f.code)) {
		c.report = f.text
	}
}

// threadStream returns the per-thread default stream of an OS thread.
func (c *context) threadStream(tid int) *stream {
	c.mu.Lock()
	s := c.perThread[tid]
	c.mu.Unlock()
	if s != nil {
		return s
	}
	s = newStream(c, driver.CU_STREAM_DEFAULT, 0)
	s.handle = driver.CU_STREAM_PER_THREAD
	c.mu.Lock()
	defer c.mu.Unlock()
	c.perThread[tid] = s
	return s
}

// synchronize waits for all work that is queued now, as the host.
func (c *context) synchronize() {
	c.drain()
	c.sim.waitedForAll(c)
}

// drain is synchronize for a call that has to wait before it can free something.
// A program has not waited for the work: when it lets go of what is freed is its
// own affair, and may be a collection's.
func (c *context) drain() {
	c.mu.Lock()
	points := make([]point, 0, len(c.streams))
	for s := range c.streams {
		points = append(points, s.end())
	}
	c.mu.Unlock()
	for _, p := range points {
		p.wait()
	}
}

// destroy ends the context: its work is dropped, its objects are destroyed.
func (c *context) destroy() {
	c.abort()
	c.end("cuDevicePrimaryCtxRelease")
}

// end destroys the objects of a context without work. The call is for messages
// about later accesses.
func (c *context) end(call string) {
	d := c.sim
	d.contexts.remove(c.handle)
	d.peerings.forget(c)
	c.code.Store(int32(driver.CUDA_ERROR_CONTEXT_IS_DESTROYED))
	d.abandonCaptures(c)
	d.streams.removeIf(func(s *stream) bool { return s.ctx == c })
	d.events.removeIf(func(e *event) bool { return e.ctx == c })
	d.semaphores.removeIf(func(e *externalSemaphore) bool { return e.ctx == c })
	for _, m := range d.externals.removeIf(func(m *externalMemory) bool { return m.ctx == c }) {
		m.file.letGo()
	}
	d.functions.removeIf(func(f *function) bool { return f.module.ctx == c })
	for _, m := range d.modules.removeIf(func(m *module) bool { return m.ctx == c }) {
		m.unload()
	}
	for _, a := range d.space.ofContext(c) {
		d.release(a, call)
	}
}

func (d *simulator) CuDevicePrimaryCtxRetain(dev driver.CUdevice) (driver.CUcontext, driver.CUresult) {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	v.life.Lock()
	defer v.life.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.primary == nil {
		v.primary = newContext(v)
	}
	v.holders++
	return v.primary.handle, driver.CUDA_SUCCESS
}

func (d *simulator) CuDevicePrimaryCtxRelease(dev driver.CUdevice) driver.CUresult {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	v.mu.Lock()
	if v.holders == 0 {
		v.mu.Unlock()
		return driver.CUDA_ERROR_INVALID_CONTEXT
	}
	v.holders--
	c := v.primary
	if v.holders > 0 {
		v.mu.Unlock()
		return driver.CUDA_SUCCESS
	}
	v.primary = nil
	v.mu.Unlock()
	if c != nil { // else it was reset
		c.destroy()
	}
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuDevicePrimaryCtxGetState(dev driver.CUdevice) (flags uint32, active int32, r driver.CUresult) {
	v, r := d.device(dev)
	if r != driver.CUDA_SUCCESS {
		return 0, 0, r
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.primary != nil {
		active = 1
	}
	return 0, active, driver.CUDA_SUCCESS
}

// CuCtxGetId needs no counter: handles are never reused here.
func (d *simulator) CuCtxGetId(h driver.CUcontext) (uint64, driver.CUresult) {
	if d.contexts.get(h) == nil {
		return 0, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	return uint64(h), driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxGetCurrent() (driver.CUcontext, driver.CUresult) {
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	_, c, _ := d.threadState()
	if c == nil {
		return 0, driver.CUDA_SUCCESS
	}
	return c.handle, driver.CUDA_SUCCESS
}

// CuCtxSetCurrent replaces the top of the thread's stack; zero pops it.
func (d *simulator) CuCtxSetCurrent(ctx driver.CUcontext) driver.CUresult {
	if !d.initialized.Load() {
		return driver.CUDA_ERROR_NOT_INITIALIZED
	}
	c := d.contexts.get(ctx)
	if c == nil && ctx != 0 {
		return driver.CUDA_ERROR_INVALID_CONTEXT
	}
	d.onThread(func(t *thread) {
		if n := len(t.stack); n > 0 {
			t.stack = t.stack[:n-1]
		}
		if c != nil {
			t.stack = append(t.stack, c)
		}
	})
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxPushCurrent(ctx driver.CUcontext) driver.CUresult {
	if !d.initialized.Load() {
		return driver.CUDA_ERROR_NOT_INITIALIZED
	}
	c := d.contexts.get(ctx)
	if c == nil {
		return driver.CUDA_ERROR_INVALID_CONTEXT
	}
	d.onThread(func(t *thread) { t.stack = append(t.stack, c) })
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxPopCurrent() (driver.CUcontext, driver.CUresult) {
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	var c *context
	d.onThread(func(t *thread) {
		if n := len(t.stack); n > 0 {
			c, t.stack = t.stack[n-1], t.stack[:n-1]
		}
	})
	if c == nil {
		return 0, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	return c.handle, driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxGetDevice() (driver.CUdevice, driver.CUresult) {
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	_, c, _ := d.threadState()
	if c == nil {
		return 0, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	return driver.CUdevice(c.dev.ordinal), driver.CUDA_SUCCESS
}

func (d *simulator) CuCtxSynchronize() driver.CUresult {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.invalidateAll(c); r != driver.CUDA_SUCCESS {
		return r
	}
	defer d.enterWait()()
	c.synchronize()
	c.dev.trimPools()
	return c.outcome()
}

// CuProfilerStart does nothing: no profiler knows of this device.
func (d *simulator) CuProfilerStart() driver.CUresult {
	_, r := d.current()
	return r
}

func (d *simulator) CuProfilerStop() driver.CUresult {
	_, r := d.current()
	return r
}

func (d *simulator) CuCtxGetStreamPriorityRange() (least, greatest int32, r driver.CUresult) {
	if _, r := d.current(); r != driver.CUDA_SUCCESS {
		return 0, 0, r
	}
	return leastPriority, greatestPriority, driver.CUDA_SUCCESS
}
