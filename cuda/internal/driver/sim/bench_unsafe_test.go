// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// touchPTX adds 1 to p[tid].
const touchPTX = `.version 6.4
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 p)
{
	.reg .b32 %r<2>;
	.reg .b64 %d<3>;
	ld.param.u64 %d0, [p];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d1, %r0, 4;
	add.u64 %d2, %d0, %d1;
	ld.global.u32 %r1, [%d2];
	add.u32 %r1, %r1, 1;
	st.global.u32 [%d2], %r1;
	ret;
}
`

// one is what a benchmark or test of one kernel works with.
type one struct {
	driver.API
	ctx    driver.CUcontext
	stream driver.CUstream
	kernel driver.CUfunction
	memory driver.CUdeviceptr
	config driver.CUlaunchConfig
	args   unsafe.Pointer
}

func newOne(t testing.TB, api driver.API) *one {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	o := &one{API: api}
	ok := func(r driver.CUresult) {
		t.Helper()
		require.Equal(t, driver.CUDA_SUCCESS, r)
	}
	ok(api.CuInit(0))
	var r driver.CUresult
	o.ctx, r = api.CuDevicePrimaryCtxRetain(0)
	ok(r)
	ok(api.CuCtxPushCurrent(o.ctx))
	t.Cleanup(func() {
		_, r := api.CuCtxPopCurrent()
		ok(r)
		api.CuDevicePrimaryCtxRelease(0)
	})
	o.stream, r = api.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(r)
	m, log, r := api.CuModuleLoadDataEx([]byte(touchPTX))
	require.Empty(t, log)
	ok(r)
	o.kernel, r = api.CuModuleGetFunction(m, "touch")
	ok(r)
	o.memory, r = api.CuMemAlloc(128)
	ok(r)
	o.config = driver.CUlaunchConfig{
		GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 32, BlockDimY: 1, BlockDimZ: 1, HStream: o.stream,
	}
	o.args = o.pointerTo(t, o.memory)
	return o
}

// pointerTo makes the void** of a launch with one address.
func (o *one) pointerTo(t testing.TB, p driver.CUdeviceptr) unsafe.Pointer {
	pinner := &runtime.Pinner{}
	t.Cleanup(pinner.Unpin)
	box, list := &p, new(unsafe.Pointer)
	pinner.Pin(box)
	*list = unsafe.Pointer(box)
	pinner.Pin(list)
	return unsafe.Pointer(list)
}

func BenchmarkLaunch(b *testing.B) {
	o := newOne(b, openBench(b))
	b.ReportAllocs()
	for b.Loop() {
		o.CuLaunchKernelEx(&o.config, o.kernel, o.args)
	}
	o.CuStreamSynchronize(o.stream)
}

func BenchmarkLaunchAndSynchronize(b *testing.B) {
	o := newOne(b, openBench(b))
	b.ReportAllocs()
	for b.Loop() {
		o.CuLaunchKernelEx(&o.config, o.kernel, o.args)
		o.CuStreamSynchronize(o.stream)
	}
}

func BenchmarkGraphOf10Kernels(b *testing.B) {
	o := newOne(b, openBench(b))
	g, _ := o.CuGraphCreate(0)
	var deps []driver.CUgraphNode
	for range 10 {
		n, r := o.CuGraphAddKernelNode(g, deps, &driver.CUDA_KERNEL_NODE_PARAMS{
			Func: o.kernel, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 32, BlockDimY: 1, BlockDimZ: 1, KernelParams: o.args,
		})
		require.Equal(b, driver.CUDA_SUCCESS, r)
		deps = []driver.CUgraphNode{n}
	}
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	require.Equal(b, driver.CUDA_SUCCESS, r)
	b.ReportAllocs()
	for b.Loop() {
		o.CuGraphLaunch(x, o.stream)
		o.CuStreamSynchronize(o.stream)
	}
}

func BenchmarkRecord(b *testing.B) {
	o := newOne(b, openBench(b))
	e, _ := o.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	b.ReportAllocs()
	for b.Loop() {
		o.CuEventRecord(e, o.stream)
	}
}

func BenchmarkAllocFree(b *testing.B) {
	o := newOne(b, openBench(b))
	b.ReportAllocs()
	for b.Loop() {
		p, _ := o.CuMemAllocAsync(4096, o.stream)
		o.CuMemFreeAsync(p, o.stream)
	}
}
