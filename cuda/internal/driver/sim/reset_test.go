// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// again makes the context after a reset current, and checks that it works.
func (o *one) again(t *testing.T) driver.CUcontext {
	t.Helper()
	fresh, r := o.CuDevicePrimaryCtxRetain(0)
	ok(t, r)
	t.Cleanup(func() { o.CuDevicePrimaryCtxRelease(0) })
	ok(t, o.CuCtxPushCurrent(fresh))
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	s := o.newStream(t)
	ok(t, o.CuMemsetD32Async(p, 4, 32, s))
	config := o.config
	config.HStream = s
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, touchPTX, "touch"), o.pointerTo(t, p)))
	ok(t, o.CuStreamSynchronize(s))
	ok(t, o.CuMemFree(p))
	_, r = o.CuCtxPopCurrent()
	ok(t, r)
	return fresh
}

func TestResetMakesHandlesStale(t *testing.T) {
	o := newOne(t, open(t, ""))
	e := o.newEvent(t)
	pool, r := o.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: 1})
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	o.touching(t, g, o.args)
	x := o.instantiate(t, g)
	empty, r := o.CuGraphCreate(0)
	ok(t, r)
	ok(t, o.CuDevicePrimaryCtxReset(0))

	const invalid, value, destroyed = driver.CUDA_ERROR_INVALID_HANDLE, driver.CUDA_ERROR_INVALID_VALUE, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	_, r = o.CuMemAlloc(16)
	require.Equal(t, destroyed, r)
	require.Equal(t, destroyed, o.CuCtxSynchronize())
	require.Equal(t, invalid, o.CuStreamSynchronize(o.stream))
	require.Equal(t, invalid, o.CuStreamDestroy(o.stream))
	require.Equal(t, invalid, o.CuEventQuery(e))
	require.Equal(t, invalid, o.CuEventDestroy(e))
	require.Equal(t, invalid, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	require.Equal(t, value, o.CuMemFree(o.memory))
	require.Equal(t, value, o.CuMemPoolDestroy(pool))
	require.Equal(t, value, o.CuGraphDestroy(g))
	require.Equal(t, value, o.CuGraphExecDestroy(x))
	require.Equal(t, driver.CUDA_ERROR_INVALID_CONTEXT, o.CuCtxPushCurrent(o.ctx))
	ok(t, o.CuGraphDestroy(empty)) // bound to nothing
	require.NotEqual(t, o.ctx, o.again(t), "handles are never used twice")
}

func TestResetKeepsTheHolders(t *testing.T) {
	o := newOne(t, open(t, ""))
	_, r := o.CuDevicePrimaryCtxRetain(0)
	ok(t, r)
	ok(t, o.CuDevicePrimaryCtxReset(0))
	ok(t, o.CuDevicePrimaryCtxReset(0))
	fresh := o.again(t) // the third
	for range 2 {
		ok(t, o.CuDevicePrimaryCtxRelease(0))
		ok(t, o.CuCtxPushCurrent(fresh))
		_, r = o.CuCtxPopCurrent()
		ok(t, r)
	}
	ok(t, o.CuDevicePrimaryCtxRelease(0))
	require.Equal(t, driver.CUDA_ERROR_INVALID_CONTEXT, o.CuCtxPushCurrent(fresh), "the last holder has gone")
	require.Equal(t, driver.CUDA_ERROR_INVALID_CONTEXT, o.CuDevicePrimaryCtxRelease(0))
}

func TestReleaseAfterReset(t *testing.T) {
	o := newOne(t, open(t, ""))
	ok(t, o.CuDevicePrimaryCtxReset(0))
	ok(t, o.CuDevicePrimaryCtxRelease(0))
	require.Equal(t, driver.CUDA_ERROR_INVALID_CONTEXT, o.CuDevicePrimaryCtxRelease(0))
	o.again(t)
}

func TestResetGivesAllMemoryBack(t *testing.T) {
	o := newOne(t, open(t, "devices=2"))
	pool, r := o.CuDeviceGetDefaultMemPool(0)
	ok(t, r)
	ok(t, o.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1<<40))
	for range 3 {
		p, r := o.CuMemAllocAsync(100<<20, o.stream)
		ok(t, r)
		ok(t, o.CuMemFreeAsync(p, o.stream))
	}
	_, r = o.CuMemAllocAsync(1<<20, o.stream)
	ok(t, r)
	_, r = o.CuMemHostAlloc(1<<20, 0)
	ok(t, r)
	at, r := o.CuMemAddressReserve(2*granule, 0, 0, 0)
	ok(t, r)
	mapGranule(t, o, at)
	theirs, r := o.CuMemCreate(granule, pinnedOn(1), 0)
	ok(t, r)
	ok(t, o.CuMemMap(at+granule, granule, 0, theirs, 0))
	unmapped, r := o.CuMemCreate(granule, pinnedOn(0), 0)
	ok(t, r)

	ok(t, o.CuDevicePrimaryCtxReset(0))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemRelease(unmapped))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemUnmap(at, granule))
	ok(t, o.CuMemUnmap(at+granule, granule)) // the other device's
	ok(t, o.CuMemRelease(theirs))
	ok(t, o.CuMemAddressFree(at, 2*granule))
	for _, a := range []driver.CUmemPool_attribute{
		driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH, driver.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
		driver.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
	} {
		v, r := o.CuMemPoolGetAttribute(pool, a)
		ok(t, r)
		require.Zero(t, v, "attribute %d", a)
	}
	ok(t, o.CuCtxPushCurrent(o.again(t)))
	free, total, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, total, free, "the module of again has no variables")
	_, r = o.CuCtxPopCurrent()
	ok(t, r)
}

// A reset ends only the work of its own device, even if that would run forever
// and others wait for it.
func TestResetStopsOneDevice(t *testing.T) {
	o := newOne(t, open(t, "devices=2"))
	other, r := o.CuDevicePrimaryCtxRetain(1)
	ok(t, r)
	spin := driver.CUlaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, HStream: o.stream}
	endless := o.load(t, spinPTX, "spin")
	for range 3 {
		ok(t, o.CuLaunchKernelEx(&spin, endless, nil))
	}
	waiting := make(chan driver.CUresult)
	go func() { waiting <- o.CuStreamSynchronize(o.stream) }()
	var s driver.CUstream
	o.on(t, other, func() {
		s = o.newStream(t)
		spin.HStream = s
		ok(t, o.CuLaunchKernelEx(&spin, o.load(t, spinPTX, "spin"), nil))
	})
	time.Sleep(10 * time.Millisecond) // most likely the other thread waits by then
	ok(t, o.CuDevicePrimaryCtxReset(0))
	require.Contains(t, []driver.CUresult{driver.CUDA_ERROR_CONTEXT_IS_DESTROYED, driver.CUDA_ERROR_INVALID_HANDLE}, <-waiting)
	o.on(t, other, func() { require.Equal(t, driver.CUDA_ERROR_NOT_READY, o.CuStreamQuery(s)) })
	o.again(t)
	require.Empty(t, driver.CheckerOf(o.API).TakeReports(), "nobody is interested in where the reset stopped a kernel")
}

// A kernel that was stopped for a reset is a finding only if there was none.
func TestKernelsStoppedForAReset(t *testing.T) {
	for _, given := range []string{"up", "up late", "on"} {
		t.Run("given "+given, func(t *testing.T) {
			o := newOne(t, open(t, ""))
			k := driver.CheckerOf(o.API)
			spin := driver.CUlaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, HStream: o.stream}
			ok(t, o.CuLaunchKernelEx(&spin, o.load(t, spinPTX, "spin"), nil))
			require.Eventually(t, func() bool {
				k.CancelDevice(0)
				return o.CuStreamQuery(o.stream) != driver.CUDA_ERROR_NOT_READY
			}, 10*time.Second, time.Millisecond)
			require.Empty(t, k.TakeReports())
			require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuStreamSynchronize(o.stream))
			if given == "on" {
				ok(t, o.CuDevicePrimaryCtxReset(0))
				o.again(t)
				require.Empty(t, k.TakeReports())
				return
			}
			if given == "up late" { // another wait has reported it
				require.Contains(t, o.FaultReport(o.ctx), "for a reset of its device")
				ok(t, o.CuStreamSynchronize(o.stream))
			}
			k.KeepDevice(0)
			if given == "up" {
				require.Len(t, k.TakeReports(), 1)
				require.Contains(t, o.FaultReport(o.ctx), "canceled in kernel spin")
			}
			require.Empty(t, k.TakeReports())
			ok(t, o.CuStreamSynchronize(o.stream))
		})
	}
}

// Another process would take the work before the record for done.
func TestAnEventBehindAKernelStoppedForAReset(t *testing.T) {
	o := newOne(t, open(t, ""))
	k := driver.CheckerOf(o.API)
	e, r := o.CuEventCreate(driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING)
	ok(t, r)
	handle, r := o.CuIpcGetEventHandle(e)
	ok(t, r)
	theirs, r := o.CuIpcOpenEventHandle(handle)
	ok(t, r)
	ok(t, o.CuEventRecord(e, o.stream))
	ok(t, o.CuEventSynchronize(theirs))
	spin := driver.CUlaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, HStream: o.stream}
	ok(t, o.CuLaunchKernelEx(&spin, o.load(t, spinPTX, "spin"), nil))
	ok(t, o.CuEventRecord(e, o.stream))
	require.Eventually(t, func() bool {
		k.CancelDevice(0)
		return o.CuStreamQuery(o.stream) != driver.CUDA_ERROR_NOT_READY
	}, 10*time.Second, time.Millisecond)
	o.FaultReport(o.ctx)
	require.Equal(t, driver.CUDA_ERROR_LAUNCH_FAILED, o.CuEventQuery(theirs))
	require.Contains(t, o.FaultReport(o.ctx), "the work that process")
}

func TestResetEndsALoop(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, _, _ := o.loop(t)
	ok(t, o.CuGraphLaunch(o.instantiate(t, g), o.stream))
	ok(t, o.CuDevicePrimaryCtxReset(0))
	o.again(t)
}

func TestResetEndsACapture(t *testing.T) {
	o := newOne(t, open(t, ""))
	ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	o.touch(t, o.stream)
	ok(t, o.CuDevicePrimaryCtxReset(0))
	_, r := o.CuStreamEndCapture(o.stream)
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, r)
	o.again(t) // its allocation would be refused
}

func TestResetBesideCalls(t *testing.T) {
	o := newOne(t, open(t, "devices=2"))
	done := make(chan struct{})
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for {
				select {
				case <-done:
					return
				default:
					o.everything()
				}
			}
		})
	}
	for range 30 {
		ok(t, o.CuDevicePrimaryCtxReset(0))
		time.Sleep(time.Millisecond)
	}
	close(done)
	users.Wait()
	ok(t, o.CuDevicePrimaryCtxReset(0))
	ok(t, o.CuCtxPushCurrent(o.again(t)))
	free, total, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, total, free)
	_, r = o.CuCtxPopCurrent()
	ok(t, r)
}

// everything makes calls of all kinds, any of which may fail.
func (o *one) everything() {
	ctx, _ := o.CuDevicePrimaryCtxRetain(0)
	defer o.CuDevicePrimaryCtxRelease(0)
	o.CuCtxPushCurrent(ctx)
	defer o.CuCtxPopCurrent()
	s, _ := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	m, _, _ := o.CuModuleLoadDataEx([]byte(touchPTX))
	f, _ := o.CuModuleGetFunction(m, "touch")
	p, _ := o.CuMemAllocAsync(4096, s)
	pinned, _ := o.CuMemHostAlloc(4096, 0)
	config := o.config
	config.HStream = s
	o.CuMemsetD8Async(p, 1, 4096, s)
	o.CuLaunchKernelEx(&config, f, nil)
	o.CuStreamBeginCapture(s, driver.CU_STREAM_CAPTURE_MODE_RELAXED)
	o.CuMemsetD8Async(p, 2, 4096, s)
	g, _ := o.CuStreamEndCapture(s)
	x, _ := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	o.CuGraphLaunch(x, s)
	e, _ := o.CuEventCreate(0)
	o.CuEventRecord(e, s)
	o.CuEventSynchronize(e)
	o.CuMemFreeAsync(p, s)
	o.CuStreamSynchronize(s)
	o.CuGraphExecDestroy(x)
	o.CuGraphDestroy(g)
	o.CuEventDestroy(e)
	o.CuMemFreeHost(pinned)
	o.CuModuleUnload(m)
	o.CuStreamDestroy(s)
}
