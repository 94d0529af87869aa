// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/nvidia/hostfn"
)

// addPTX adds n to *p. Of a version that every supported driver takes.
const addPTX = `
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd2, %rd1;
    atom.global.add.u32 %r2, [%rd2], %r1;
    ret;
}
`

// gpu is a context with a stream and the kernel of addPTX, on a thread of its
// own until the test ends.
type gpu struct {
	driver.API
	ctx    driver.CUcontext
	stream driver.CUstream
	module driver.CUmodule
	add    driver.CUfunction
	host   *int32 // pinned; the kernel's target too
}

func newGPU(t *testing.T) *gpu {
	t.Helper()
	g := &gpu{API: openGPU(t)}
	runtime.LockOSThread()
	dev, r := g.CuDeviceGet(0)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	g.ctx, r = g.CuDevicePrimaryCtxRetain(dev)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, driver.CUDA_SUCCESS, g.CuCtxSetCurrent(g.ctx))
	t.Cleanup(func() {
		require.Equal(t, driver.CUDA_SUCCESS, g.CuCtxSetCurrent(0))
		require.Equal(t, driver.CUDA_SUCCESS, g.CuDevicePrimaryCtxRelease(dev))
		runtime.UnlockOSThread()
	})
	g.stream, r = g.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	var log string
	g.module, log, r = g.CuModuleLoadDataEx([]byte(addPTX))
	require.Equal(t, driver.CUDA_SUCCESS, r, log)
	g.add, r = g.CuModuleGetFunction(g.module, "add")
	require.Equal(t, driver.CUDA_SUCCESS, r)
	cell, r := g.CuMemHostAlloc(4, driver.CU_MEMHOSTALLOC_PORTABLE)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	g.host = *(**int32)(unsafe.Pointer(&cell)) // the driver's memory, not Go's
	*g.host = 0
	return g
}

func (g *gpu) address() driver.CUdeviceptr {
	return driver.CUdeviceptr(uintptr(unsafe.Pointer(g.host)))
}

// params are the kernel's parameters, pinned until the test ends.
func (g *gpu) params(t *testing.T, n uint32) unsafe.Pointer {
	t.Helper()
	var pin runtime.Pinner
	t.Cleanup(pin.Unpin)
	p, count := new(uint64), new(uint32)
	*p, *count = uint64(g.address()), n
	list := &[2]unsafe.Pointer{unsafe.Pointer(p), unsafe.Pointer(count)}
	pin.Pin(p)
	pin.Pin(count)
	pin.Pin(list)
	return unsafe.Pointer(list)
}

func (g *gpu) sync(t *testing.T) {
	t.Helper()
	require.Equal(t, driver.CUDA_SUCCESS, g.CuStreamSynchronize(g.stream))
}

func TestGPULaunchesAKernel(t *testing.T) {
	g := newGPU(t)
	config := driver.CUlaunchConfig{
		GridDimX: 2, GridDimY: 1, GridDimZ: 1, BlockDimX: 32, BlockDimY: 1, BlockDimZ: 1, HStream: g.stream,
	}
	require.Equal(t, driver.CUDA_SUCCESS, g.CuLaunchKernelEx(&config, g.add, g.params(t, 3)))
	cell := hostfn.NewCell()
	defer cell.Free()
	require.Equal(t, driver.CUDA_SUCCESS, g.CuLaunchHostFunc(g.stream, hostfn.Count(), cell.UserData()))
	g.sync(t)
	require.EqualValues(t, 3*64, *g.host)
	require.EqualValues(t, 1, cell.Value())
}

func TestGPUTellsAboutTheModule(t *testing.T) {
	g := newGPU(t)
	names, r := g.CuModuleFunctionNames(g.module)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, []string{"add"}, names)
	offset, size, r := g.CuFuncGetParamInfo(g.add, 1)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, [2]uint64{8, 4}, [2]uint64{offset, size})
	_, _, r = g.CuFuncGetParamInfo(g.add, 2)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	_, log, r := g.CuModuleLoadDataEx([]byte(".version 7.0\n.target sm_75\nnonsense\n"))
	require.Equal(t, driver.CUDA_ERROR_INVALID_PTX, r)
	require.Contains(t, log, "nonsense")
}

func TestGPUTellsAboutPointers(t *testing.T) {
	g := newGPU(t)
	p, r := g.CuMemAllocAsync(1<<20, g.stream)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	tests := []struct {
		name string
		attr driver.CUpointer_attribute
		p    driver.CUdeviceptr
		want uint64
	}{
		{"device memory's type", driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, uint64(driver.CU_MEMORYTYPE_DEVICE)},
		{"pinned memory's type", driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, g.address(), uint64(driver.CU_MEMORYTYPE_HOST)},
		{"managed", driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, p, 0},
		{"ordinal", driver.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p, 0},
		{"context", driver.CU_POINTER_ATTRIBUTE_CONTEXT, g.address(), uint64(g.ctx)},
	}
	for _, tt := range tests {
		// No t.Run: its goroutine would be on a thread without the context.
		got, r := g.CuPointerGetAttribute(tt.attr, tt.p)
		require.Equal(t, driver.CUDA_SUCCESS, r, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
	require.Equal(t, driver.CUDA_SUCCESS, g.CuMemFreeAsync(p, g.stream))
	g.sync(t)
}

func TestGPURunsABuiltGraph(t *testing.T) {
	g := newGPU(t)
	graph, r := g.CuGraphCreate(0)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	fill, r := g.CuGraphAddMemsetNode(graph, nil, &driver.CUDA_MEMSET_NODE_PARAMS{
		Dst: g.address(), Value: 100, ElementSize: 4, Width: 1, Height: 1,
	}, g.ctx)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	kernel := driver.CUDA_KERNEL_NODE_PARAMS{
		Func: g.add, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1,
		KernelParams: g.params(t, 5),
	}
	node, r := g.CuGraphAddKernelNode(graph, []driver.CUgraphNode{fill}, &kernel)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	from, to, _, r := g.CuGraphGetEdges(graph)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, [2][]driver.CUgraphNode{{fill}, {node}}, [2][]driver.CUgraphNode{from, to})
	deps, r := g.CuGraphNodeGetDependencies(node)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, []driver.CUgraphNode{fill}, deps)

	var params driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	x, r := g.CuGraphInstantiateWithParams(graph, &params)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, driver.CUDA_GRAPH_INSTANTIATE_SUCCESS, params.Result_out)
	require.Equal(t, driver.CUDA_SUCCESS, g.CuGraphLaunch(x, g.stream))
	g.sync(t)
	require.EqualValues(t, 105, *g.host)

	kernel.KernelParams = g.params(t, 7)
	require.Equal(t, driver.CUDA_SUCCESS, g.CuGraphExecKernelNodeSetParams(x, node, &kernel))
	require.Equal(t, driver.CUDA_SUCCESS, g.CuGraphLaunch(x, g.stream))
	g.sync(t)
	require.EqualValues(t, 107, *g.host)
	require.Equal(t, driver.CUDA_SUCCESS, g.CuGraphExecDestroy(x))
	require.Equal(t, driver.CUDA_SUCCESS, g.CuGraphDestroy(graph))
}

func TestGPUTellsAboutACapture(t *testing.T) {
	g := newGPU(t)
	require.Equal(t, driver.CUDA_SUCCESS, g.CuStreamBeginCapture(g.stream, driver.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
	require.Equal(t, driver.CUDA_SUCCESS, g.CuMemsetD32Async(g.address(), 1, 1, g.stream))
	info, r := g.CuStreamGetCaptureInfo(g.stream, true)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE, info.Status)
	require.Len(t, info.Deps, 1)
	kind, r := g.CuGraphNodeGetType(info.Deps[0])
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, driver.CU_GRAPH_NODE_TYPE_MEMSET, kind)
	graph, r := g.CuStreamEndCapture(g.stream)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, info.Graph, graph)
	require.Equal(t, driver.CUDA_SUCCESS, g.CuGraphDestroy(graph))
}
