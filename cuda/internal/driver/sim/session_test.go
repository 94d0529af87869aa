// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/sim"
)

// spinPTX never ends.
const spinPTX = `.version 6.4
.target sm_75
.address_size 64
.visible .entry spin()
{
again:
	bra again;
}
`

func ok(t testing.TB, r driver.CUresult) {
	t.Helper()
	require.Equal(t, driver.CUDA_SUCCESS, r, r.String())
}

func (o *one) load(t testing.TB, ptx, kernel string) driver.CUfunction {
	t.Helper()
	m, log, r := o.CuModuleLoadDataEx([]byte(ptx))
	require.Empty(t, log)
	ok(t, r)
	f, r := o.CuModuleGetFunction(m, kernel)
	ok(t, r)
	return f
}

func TestCloseEndsRunningWork(t *testing.T) {
	before := runtime.NumGoroutine()
	api, err := sim.Open(sim.Options{Printf: io.Discard})
	require.NoError(t, err)
	ok(t, api.CuInit(0))
	ctx, r := api.CuDevicePrimaryCtxRetain(0)
	ok(t, r)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ok(t, api.CuCtxPushCurrent(ctx))
	o := &one{API: api}
	spin := o.load(t, spinPTX, "spin")
	config := driver.CUlaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1}
	for range 3 {
		config.HStream, r = api.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
		ok(t, r)
		ok(t, api.CuLaunchKernelEx(&config, spin, nil))
		ok(t, api.CuLaunchKernelEx(&config, spin, nil))
	}
	_, r = api.CuMemHostAlloc(1<<20, 0)
	ok(t, r)
	require.NoError(t, api.Close())
	requireGoroutines(t, before)
}

// requireGoroutines requires that no more than n goroutines are left, once
// those that have done their work have had the time to end.
func requireGoroutines(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > n; {
		require.True(t, time.Now().Before(deadline), "%d goroutines, want %d", runtime.NumGoroutine(), n)
		time.Sleep(time.Millisecond)
	}
}

func TestIdleDriverHasNoGoroutine(t *testing.T) {
	o := newOne(t, open(t, ""))
	before := runtime.NumGoroutine()
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	ok(t, o.CuStreamSynchronize(o.stream))
	requireGoroutines(t, before)
}

func TestStaleHandles(t *testing.T) {
	o := newOne(t, open(t, ""))
	s, r := o.CuStreamCreateWithPriority(0, 0)
	ok(t, r)
	e, r := o.CuEventCreate(0)
	ok(t, r)
	m, _, r := o.CuModuleLoadDataEx([]byte(touchPTX))
	ok(t, r)
	f, r := o.CuModuleGetFunction(m, "touch")
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	n, r := o.CuGraphAddEmptyNode(g, nil)
	ok(t, r)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	ok(t, o.CuStreamDestroy(s))
	ok(t, o.CuEventDestroy(e))
	ok(t, o.CuModuleUnload(m))
	ok(t, o.CuGraphExecDestroy(x))
	ok(t, o.CuGraphDestroy(g))

	const invalid, value = driver.CUDA_ERROR_INVALID_HANDLE, driver.CUDA_ERROR_INVALID_VALUE
	require.Equal(t, invalid, o.CuStreamDestroy(s))
	require.Equal(t, invalid, o.CuStreamSynchronize(s))
	require.Equal(t, invalid, o.CuEventRecord(e, o.stream))
	require.Equal(t, invalid, o.CuEventRecord(e, s))
	require.Equal(t, invalid, o.CuEventDestroy(e))
	require.Equal(t, invalid, o.CuLaunchKernelEx(&o.config, f, o.args))
	require.Equal(t, invalid, o.CuModuleUnload(m))
	_, r = o.CuModuleGetFunction(m, "touch")
	require.Equal(t, invalid, r)
	require.Equal(t, value, o.CuGraphLaunch(x, o.stream))
	require.Equal(t, value, o.CuGraphExecDestroy(x))
	require.Equal(t, value, o.CuGraphDestroy(g))
	require.Equal(t, value, o.CuGraphDestroyNode(n))
	require.Equal(t, driver.CUDA_ERROR_INVALID_CONTEXT, o.CuCtxPushCurrent(driver.CUcontext(s)))
}

func TestContextGoesWithItsLastHolder(t *testing.T) {
	api := open(t, "")
	o := newOne(t, api)
	ok(t, api.CuDevicePrimaryCtxRelease(0))
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuStreamSynchronize(o.stream))
	_, r := o.CuMemAlloc(16)
	require.Equal(t, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED, r)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemFree(o.memory))
	require.Equal(t, driver.CUDA_ERROR_INVALID_CONTEXT, api.CuDevicePrimaryCtxRelease(0))

	again, r := api.CuDevicePrimaryCtxRetain(0)
	ok(t, r)
	require.NotEqual(t, o.ctx, again, "handles are never used twice")
	ok(t, o.CuCtxPushCurrent(again))
	free, total, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, total, free, "the memory went with the context")
	_, r = o.CuCtxPopCurrent()
	ok(t, r)
}

func TestCallsBeforeInit(t *testing.T) {
	api := open(t, "")
	_, r := api.CuDeviceGetCount()
	require.Equal(t, driver.CUDA_ERROR_NOT_INITIALIZED, r)
	_, r = api.CuMemAlloc(16)
	require.Equal(t, driver.CUDA_ERROR_NOT_INITIALIZED, r)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, api.CuInit(1))
}

func TestHostFunctionMayNotCall(t *testing.T) {
	o := newOne(t, open(t, ""))
	const fn driver.CUhostFn = 0xC1
	var got [3]driver.CUresult
	hostFunctions[fn] = func(uintptr) {
		_, got[0] = o.CuMemAlloc(16)
		got[1] = o.CuStreamSynchronize(o.stream)
		got[2] = o.CuLaunchKernelEx(&o.config, o.kernel, o.args)
	}
	defer delete(hostFunctions, fn)
	ok(t, o.CuLaunchHostFunc(o.stream, fn, 0))
	ok(t, o.CuStreamSynchronize(o.stream))
	for _, r := range got {
		require.Equal(t, driver.CUDA_ERROR_NOT_PERMITTED, r)
	}
	_, r := o.CuMemAlloc(16)
	ok(t, r)
}

func TestHostFunctionNeedsCallHost(t *testing.T) {
	api, err := sim.Open(sim.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	o := newOne(t, api)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, o.CuLaunchHostFunc(o.stream, 1, 0))
}

func TestDevicesAreApart(t *testing.T) {
	o := newOne(t, open(t, "devices=2"))
	other, r := o.CuDevicePrimaryCtxRetain(1)
	ok(t, r)
	ok(t, o.CuCtxPushCurrent(other))
	s, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(t, r)
	p, r := o.CuMemAlloc(128)
	ok(t, r)

	// An event of one device orders a stream of the other, and copies cross.
	e, r := o.CuEventCreate(0)
	ok(t, r)
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuEventRecord(e, o.stream))
	ok(t, o.CuMemsetD32Async(p, 41, 32, s))
	ok(t, o.CuEventRecord(e, s))
	ok(t, o.CuStreamWaitEvent(o.stream, e, 0))
	ok(t, o.CuMemcpyAsync(o.memory, p, 128, o.stream))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	require.Equal(t, uint32(42), o.read(t, o.memory)[0])

	// A kernel may not touch the other device's memory, and its fault stays on
	// its own device.
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuStreamSynchronize(s))
	ok(t, o.CuCtxSynchronize())
	_, r = o.CuCtxPopCurrent()
	ok(t, r)
	ok(t, o.CuDevicePrimaryCtxRelease(1))
}

func TestPrintf(t *testing.T) {
	const ptx = `.version 6.4
.target sm_75
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 hello[7] = {104, 101, 108, 108, 111, 10, 0};
.visible .entry greet()
{
	.reg .b64 %d<2>;
	mov.u64 %d0, hello;
	cvta.global.u64 %d1, %d0;
	{
	.param .b64 p0;
	.param .b64 p1;
	.param .b32 r0;
	st.param.b64 [p0], %d1;
	st.param.b64 [p1], 0;
	call.uni (r0), vprintf, (p0, p1);
	}
	ret;
}
`
	var out bytes.Buffer
	api, err := sim.Open(sim.Options{Printf: &out})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	o := newOne(t, api)
	config := o.config
	config.BlockDimX = 2
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, ptx, "greet"), nil))
	ok(t, o.CuStreamSynchronize(o.stream))
	require.Equal(t, 2, strings.Count(out.String(), "hello\n"))
}
