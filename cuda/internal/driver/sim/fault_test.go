// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestFaultReportNamesTheCause(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAllocAsync(128, o.stream)
	ok(t, r)
	ok(t, o.CuMemFreeAsync(p, o.stream))
	require.Empty(t, o.FaultReport(o.ctx))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
	report := o.FaultReport(o.ctx)
	for _, want := range []string{
		"kernel touch", "block (0,0,0)", "thread (0,0,0)", "ld.global.u32", "freed device memory of 128 bytes",
		"allocated at cuMemAllocAsync", "freed at cuMemFreeAsync", "parameter 0 (p) points to it",
	} {
		require.Contains(t, report, want)
	}
}

func TestFaultEndsWithTheContext(t *testing.T) {
	api := open(t, "")
	o := newOne(t, api)
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, 64)))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuCtxSynchronize())
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuMemFree(o.memory), "a free reports the fault, and frees")
	ok(t, api.CuDevicePrimaryCtxRelease(0))
	newOne(t, api)
}

func TestGraphWithFreedMemory(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	n, r := o.CuGraphAddMemsetNode(g, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: o.memory, ElementSize: 1, Width: 1, Height: 1}, 0)
	ok(t, r)
	_, r = o.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{n}, &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_DEVICE, SrcDevice: p, DstMemoryType: driver.CU_MEMORYTYPE_DEVICE, DstDevice: o.memory,
		WidthInBytes: 128, Height: 1, Depth: 1,
	}, 0)
	ok(t, r)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuMemFree(p))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream))
	require.Regexp(t, `^graph launch refused, nothing ran: node 1: copy of 128 bytes, its source is 0x\w+, at offset 0 of freed `+
		`device memory of 128 bytes at 0x\w+, allocated at cuMemAlloc \(buffer \d+\), freed at cuMemFree$`, o.FaultReport(o.ctx))
	ok(t, o.CuStreamSynchronize(o.stream))
}

func TestGraphWithFreedPinnedMemory(t *testing.T) {
	o := newOne(t, open(t, ""))
	host, r := o.CuMemHostAlloc(128, 0)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddMemcpyNode(g, nil, &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_HOST, SrcHost: host, DstMemoryType: driver.CU_MEMORYTYPE_DEVICE, DstDevice: o.memory,
		WidthInBytes: 128, Height: 1, Depth: 1,
	}, 0)
	ok(t, r)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	ok(t, o.CuMemFreeHost(host))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream))
	require.Regexp(t, "node 0: copy of 128 bytes, its source is .* freed pinned host memory of 128 bytes at .* freed at cuMemFreeHost",
		o.FaultReport(o.ctx))
}

func TestCopyFromUnmappedHostMemory(t *testing.T) {
	o := newOne(t, open(t, ""))
	const nowhere = 4096
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemcpyAsync(o.memory, nowhere, 16, o.stream), "found at the call")
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuMemcpyAsync(nowhere, o.memory, 16, o.stream), "found by the copy")
	require.Contains(t, o.FaultReport(o.ctx), "access of host memory at 0x1000, which is not mapped")
}

func TestUnloadedKernelInGraph(t *testing.T) {
	o := newOne(t, open(t, ""))
	m, _, r := o.CuModuleLoadDataEx([]byte(touchPTX))
	ok(t, r)
	f, r := o.CuModuleGetFunction(m, "touch")
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddKernelNode(g, nil, &driver.CUDA_KERNEL_NODE_PARAMS{
		Func: f, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, KernelParams: o.args,
	})
	ok(t, r)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	ok(t, o.CuModuleUnload(m))
	ok(t, o.CuGraphLaunch(x, o.stream))
	require.Equal(t, driver.CUDA_ERROR_LAUNCH_FAILED, o.CuStreamSynchronize(o.stream))
	require.Contains(t, o.FaultReport(o.ctx), "kernel touch, whose module was unloaded")
}
