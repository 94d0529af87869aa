// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/nvidia/hostfn"
)

func TestDeviceCalls(t *testing.T) {
	s, d := openStandin(t)
	version, r := d.CuDriverGetVersion()
	require.Zero(t, r)
	require.EqualValues(t, 12040, version)
	name, r := d.CuDeviceGetName(3)
	require.Zero(t, r)
	require.Equal(t, "Stand-in 3", name)
	require.Equal(t, []string{"cuDeviceGetName 256 3"}, s.calls(t))
}

func TestResourcesAreCopied(t *testing.T) {
	s, d := openStandin(t)
	all := driver.CUdevResource{Type: driver.CU_DEV_RESOURCE_TYPE_SM, SmCount: 20}
	n, _, r := d.CuDevSmResourceSplitByCount(nil, &all, 0, 6)
	require.Zero(t, r)
	require.EqualValues(t, 3, n)
	groups := make([]driver.CUdevResource, n)
	n, left, r := d.CuDevSmResourceSplitByCount(groups, &all, 1, 6)
	require.Zero(t, r)
	require.EqualValues(t, 3, n)
	require.EqualValues(t, 2, left.SmCount)
	for i, g := range groups {
		require.Equal(t, driver.CUdevResource{Type: 1, SmCount: 6, MinSmPartitionSize: 2, SmCoscheduledAlignment: uint32(i)}, g)
	}
	desc, r := d.CuDevResourceGenerateDesc(groups)
	require.Zero(t, r)
	require.EqualValues(t, 0x70, desc)
	require.Equal(t, []string{
		"cuDevSmResourceSplitByCount groups=0 0 1 20 0 6",
		"cuDevSmResourceSplitByCount groups=1 3 1 20 1 6",
		"cuDevResourceGenerateDesc 3 6 2",
	}, s.calls(t))
}

func TestTextureWithoutView(t *testing.T) {
	s, d := openStandin(t)
	res, tex := driver.CUDA_RESOURCE_DESC{ResType: 2}, driver.CUDA_TEXTURE_DESC{}
	tex.AddressMode[0] = 3
	h, r := d.CuTexObjectCreate(&res, &tex, nil)
	require.Zero(t, r)
	require.EqualValues(t, 0x90, h)
	_, r = d.CuTexObjectCreate(&res, &tex, &driver.CUDA_RESOURCE_VIEW_DESC{Format: 5})
	require.Zero(t, r)
	require.Equal(t, []string{"cuTexObjectCreate 2 3 view=-1", "cuTexObjectCreate 2 3 view=5"}, s.calls(t))
}

func TestTensorMapIsCopied(t *testing.T) {
	s, d := openStandin(t)
	m, r := d.CuTensorMapEncodeTiled(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0x1000, []uint64{64, 32}, []uint64{256}, []uint32{16, 8}, []uint32{1, 2},
		driver.CU_TENSOR_MAP_INTERLEAVE_NONE, driver.CU_TENSOR_MAP_SWIZZLE_64B, driver.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
		driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
	require.Zero(t, r)
	require.Equal(t, driver.CUtensorMap{Opaque: [16]uint64{0: 7, 15: 8}}, m)
	require.Equal(t, []string{"cuTensorMapEncodeTiled aligned=1 7 2 0x1000 64,32 256 16,8 1,2 0 2 3 1"}, s.calls(t))
	_, r = d.CuTensorMapEncodeTiled(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0x1000, []uint64{64, 32}, nil, []uint32{16, 8}, []uint32{1, 2}, 0, 0, 0, 0)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
}

func TestTensorMapOfColumnsIsCopied(t *testing.T) {
	s, d := openStandin(t)
	m, r := d.CuTensorMapEncodeIm2col(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0x1000, []uint64{64, 32, 2}, []uint64{256, 8192}, []int32{-1}, []int32{1}, 16, 8,
		[]uint32{1, 2, 1}, driver.CU_TENSOR_MAP_INTERLEAVE_NONE, driver.CU_TENSOR_MAP_SWIZZLE_64B, driver.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
		driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
	require.Zero(t, r)
	require.Equal(t, driver.CUtensorMap{Opaque: [16]uint64{0: 9}}, m)
	require.Equal(t, []string{"cuTensorMapEncodeIm2col aligned=1 7 3 0x1000 64,32,2 256,8192 -1 1 16 8 1,2,1 0 2 3 1"}, s.calls(t))
	_, r = d.CuTensorMapEncodeIm2col(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0x1000, []uint64{64, 32, 2}, []uint64{256, 8192}, nil, []int32{1}, 16, 8, []uint32{1, 2, 1}, 0, 0, 0, 0)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
}

func TestTensorMapOfWideColumnsIsCopied(t *testing.T) {
	s, d := openStandin(t)
	m, r := d.CuTensorMapEncodeIm2colWide(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0x1000, []uint64{64, 32, 2}, []uint64{256, 8192}, -1, 2, 16, 8,
		[]uint32{1, 2, 1}, driver.CU_TENSOR_MAP_INTERLEAVE_NONE, driver.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128, driver.CU_TENSOR_MAP_SWIZZLE_64B,
		driver.CU_TENSOR_MAP_L2_PROMOTION_L2_256B, driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
	require.Zero(t, r)
	require.Equal(t, driver.CUtensorMap{Opaque: [16]uint64{0: 10}}, m)
	require.Equal(t, []string{"cuTensorMapEncodeIm2colWide aligned=1 7 3 0x1000 64,32,2 256,8192 -1 2 16 8 1,2,1 0 1 2 3 1"}, s.calls(t))
	_, r = d.CuTensorMapEncodeIm2colWide(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 0x1000, []uint64{64, 32, 2}, []uint64{256}, 0, 0, 16, 8, []uint32{1, 2, 1}, 0, 0, 0, 0, 0)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
}

func TestCaptureModeIsExchanged(t *testing.T) {
	s, d := openStandin(t)
	old, r := d.CuThreadExchangeStreamCaptureMode(driver.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
	require.Zero(t, r)
	require.Equal(t, driver.CU_STREAM_CAPTURE_MODE_RELAXED, old)
	require.Equal(t, []string{"cuThreadExchangeStreamCaptureMode 1"}, s.calls(t))
}

func TestCaptureInfoIsCopied(t *testing.T) {
	s, d := openStandin(t)
	info, r := d.CuStreamGetCaptureInfo(0x10, true)
	require.Zero(t, r)
	require.Equal(t, driver.CaptureInfo{
		Status: driver.CU_STREAM_CAPTURE_STATUS_ACTIVE,
		ID:     1 << 40,
		Graph:  6,
		Deps:   []driver.CUgraphNode{7, 8, 9},
	}, info)
	require.Equal(t, []string{"cuStreamGetCaptureInfo 0x10 deps=1 edges=1"}, s.calls(t))

	info, r = d.CuStreamGetCaptureInfo(0x10, false)
	require.Zero(t, r)
	require.Equal(t, driver.CaptureInfo{Status: driver.CU_STREAM_CAPTURE_STATUS_ACTIVE, ID: 1 << 40, Graph: 6}, info)
	require.Equal(t, []string{"cuStreamGetCaptureInfo 0x10 deps=0 edges=0"}, s.calls(t))
}

func TestCaptureAndRecordCalls(t *testing.T) {
	s, d := openStandin(t)
	require.Zero(t, d.CuStreamBeginCapture(0x10, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	require.Zero(t, d.CuEventRecord(0x41, 0x10))
	g, r := d.CuStreamEndCapture(0x10)
	require.Zero(t, r)
	require.Equal(t, driver.CUgraph(6), g)
	require.Equal(t, []string{"cuStreamBeginCapture 0x10 2", "cuEventRecord 0x41 0x10", "cuStreamEndCapture 0x10"}, s.calls(t))
}

// TestRecordMeetsCapture runs itself again, since the stand-in ends the process.
func TestRecordMeetsCapture(t *testing.T) {
	_, d := openStandin(t)
	if os.Getenv("STANDIN_LINGER") != "" {
		go func() {
			for {
				d.CuEventRecord(0x41, 0x10)
			}
		}()
		for range 10000 {
			d.CuStreamBeginCapture(0x10, driver.CU_STREAM_CAPTURE_MODE_RELAXED)
			d.CuStreamEndCapture(0x10)
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestRecordMeetsCapture$")
	child.Env = append(os.Environ(), "STANDIN_LINGER=100")
	out, err := child.CombinedOutput()
	require.Error(t, err, string(out))
	require.Contains(t, string(out), "met a call that it must not meet")
}

func TestHostFunctionRuns(t *testing.T) {
	s, d := openStandin(t)
	cell := hostfn.NewCell()
	defer cell.Free()
	require.Zero(t, d.CuLaunchHostFunc(0x10, hostfn.Count(), cell.UserData()))
	node, r := d.CuGraphAddHostNode(5, nil, &driver.CUDA_HOST_NODE_PARAMS{Fn: hostfn.Count(), UserData: cell.UserData()})
	require.Zero(t, r)
	require.EqualValues(t, 33, node)
	require.EqualValues(t, 2, cell.Value())
	require.Equal(t, []string{"cuLaunchHostFunc 0x10", "cuGraphAddHostNode 0x5 deps=0:(nil)"}, s.calls(t))
}

func TestPoolCalls(t *testing.T) {
	s, d := openStandin(t)
	pool, r := d.CuMemPoolCreate(&driver.CUmemPoolProps{
		AllocType: 1, LocationType: 1, LocationID: 7, MaxSize: 1 << 35, Usage: 3,
	})
	require.Zero(t, r)
	require.EqualValues(t, 11, pool)
	require.Zero(t, d.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1))
	require.Zero(t, d.CuMemPoolSetAttribute(pool, driver.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 1<<40))
	reuse, r := d.CuMemPoolGetAttribute(pool, driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC)
	require.Zero(t, r)
	require.EqualValues(t, 1, reuse)
	used, r := d.CuMemPoolGetAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_HIGH)
	require.Zero(t, r)
	require.EqualValues(t, 3<<32, used)
	require.Equal(t, []string{
		"cuMemPoolCreate 1 0 1 7 34359738368 3",
		"cuMemPoolSetAttribute 0xb 2 1",
		"cuMemPoolSetAttribute 0xb 4 1099511627776",
		"cuMemPoolGetAttribute 0xb 2",
		"cuMemPoolGetAttribute 0xb 8",
	}, s.calls(t))
}

func TestGraphMemoryCalls(t *testing.T) {
	s, d := openStandin(t)
	require.Zero(t, d.CuDeviceSetGraphMemAttribute(7, driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, 0))
	used, r := d.CuDeviceGetGraphMemAttribute(7, driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
	require.Zero(t, r)
	require.EqualValues(t, 3<<32, used)
	require.Equal(t, []string{"cuDeviceSetGraphMemAttribute 7 1 0", "cuDeviceGetGraphMemAttribute 7 0"}, s.calls(t))
}

func TestVirtualMemoryCalls(t *testing.T) {
	s, d := openStandin(t)
	location := driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: 7}
	prop := driver.CUmemAllocationProp{
		Type: driver.CU_MEM_ALLOCATION_TYPE_PINNED, RequestedHandleTypes: 2, Location: location,
		CompressionType: 1, GpuDirectRDMACapable: 2, Usage: 3,
	}
	granularity, r := d.CuMemGetAllocationGranularity(&prop, driver.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
	require.Zero(t, r)
	require.EqualValues(t, 2<<20, granularity)
	const p = driver.CUdeviceptr(0x7e0000000000)
	h, r := d.CuMemCreate(1<<33, &prop, 6)
	require.Zero(t, r)
	require.Equal(t, driver.CUmemGenericAllocationHandle(1<<63), h)
	require.Zero(t, d.CuMemSetAccess(p, 1<<33, []driver.CUmemAccessDesc{
		{Location: location, Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READ},
		{Location: driver.CUmemLocation{Type: 1, ID: 8}, Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	}))
	require.Zero(t, d.CuMemSetAccess(p, 1<<33, nil))
	require.Equal(t, []string{
		"cuMemGetAllocationGranularity 1 2 1 7 (nil) 1 2 3 option=1",
		"cuMemCreate 8589934592 1 2 1 7 (nil) 1 2 3 flags=6",
		"cuMemSetAccess 0x7e0000000000 8589934592 1,7,1 1,8,3",
		"cuMemSetAccess 0x7e0000000000 8589934592",
	}, s.calls(t))
}

func TestPointerAttributesAreWidened(t *testing.T) {
	tests := []struct {
		name string
		attr driver.CUpointer_attribute
		want uint64
	}{
		{"unsigned int", driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2},
		{"bool", driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, 1},
		{"int below zero", driver.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 1<<64 - 2},
		{"pointer", driver.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 0x7f0000000000},
	}
	_, d := openStandin(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, r := d.CuPointerGetAttribute(tt.attr, 0x7f0000000000)
			require.Zero(t, r)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestModuleCalls(t *testing.T) {
	s, d := openStandin(t)
	m, log, r := d.CuModuleLoadDataEx([]byte("some ptx"))
	require.Zero(t, r)
	require.EqualValues(t, 12, m)
	require.Empty(t, log)
	_, log, r = d.CuModuleLoadDataEx([]byte("bad"))
	require.Equal(t, driver.CUDA_ERROR_INVALID_PTX, r)
	require.Equal(t, "ptxas: line 1; bad", log)

	f, r := d.CuModuleGetFunction(m, "saxpy")
	require.Zero(t, r)
	require.EqualValues(t, 13, f)
	names, r := d.CuModuleFunctionNames(m)
	require.Zero(t, r)
	require.Equal(t, []string{"first", "second"}, names)
	names, r = d.CuModuleFunctionNames(99)
	require.Zero(t, r)
	require.Empty(t, names)
	require.Equal(t, []string{
		"cuModuleLoadDataEx some ptx 2",
		"cuModuleLoadDataEx bad 2",
		"cuModuleGetFunction 0xc saxpy",
		"cuModuleEnumerateFunctions 2 0xc",
	}, s.calls(t))
}

// arguments are two kernel parameters in pinned Go memory, behind a void**.
func arguments(t *testing.T, a int32, b float64) unsafe.Pointer {
	t.Helper()
	var pin runtime.Pinner
	t.Cleanup(pin.Unpin)
	pa, pb := new(int32), new(float64)
	*pa, *pb = a, b
	list := &[2]unsafe.Pointer{unsafe.Pointer(pa), unsafe.Pointer(pb)}
	pin.Pin(pa)
	pin.Pin(pb)
	pin.Pin(list)
	return unsafe.Pointer(list)
}

func TestLaunchPassesPinnedGoMemory(t *testing.T) {
	s, d := openStandin(t)
	attr := &driver.CUlaunchAttribute{ID: driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE}
	attr.Value[0] = 1
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(attr)
	config := driver.CUlaunchConfig{
		GridDimX: 1, GridDimY: 2, GridDimZ: 3, BlockDimX: 4, BlockDimY: 5, BlockDimZ: 6,
		SharedMemBytes: 7, HStream: 0x10, Attrs: unsafe.Pointer(attr), NumAttrs: 1,
	}
	require.Zero(t, d.CuLaunchKernelEx(&config, 13, arguments(t, 42, 2.5)))
	require.Equal(t, []string{
		"cuLaunchKernelEx 1,2,3 4,5,6 7 0x10 attrs=1:2:1 f=0xd params=42,2.5 extra=(nil)",
	}, s.calls(t))
}

func TestClusterOccupancyPassesPinnedGoMemory(t *testing.T) {
	s, d := openStandin(t)
	attr := &driver.CUlaunchAttribute{ID: driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION}
	attr.Value[0] = 2
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(attr)
	config := driver.CUlaunchConfig{GridDimX: 1, BlockDimX: 4, SharedMemBytes: 7, Attrs: unsafe.Pointer(attr), NumAttrs: 1}
	size, r := d.CuOccupancyMaxPotentialClusterSize(13, &config)
	require.Zero(t, r)
	require.EqualValues(t, 16, size)
	clusters, r := d.CuOccupancyMaxActiveClusters(13, &config)
	require.Zero(t, r)
	require.EqualValues(t, 33, clusters)
	require.Equal(t, []string{
		"cuOccupancyMaxPotentialClusterSize f=0xd 1 4 7 attrs=1:4:2",
		"cuOccupancyMaxActiveClusters f=0xd 1 4 7 attrs=1:4:2",
	}, s.calls(t))
}

func TestKernelNodeCalls(t *testing.T) {
	s, d := openStandin(t)
	node, r := d.CuGraphAddKernelNode(5, []driver.CUgraphNode{1, 2}, &driver.CUDA_KERNEL_NODE_PARAMS{
		Func: 13, GridDimX: 1, GridDimY: 2, GridDimZ: 3, BlockDimX: 4, BlockDimY: 5, BlockDimZ: 6,
		SharedMemBytes: 7, KernelParams: arguments(t, 42, 0), Kern: 8, Ctx: 9,
	})
	require.Zero(t, r)
	require.EqualValues(t, 30, node)
	p, r := d.CuGraphKernelNodeGetParams(node)
	require.Zero(t, r)
	require.EqualValues(t, 13, p.Func)
	require.EqualValues(t, 3, p.GridDimZ)
	require.EqualValues(t, 128, p.BlockDimX)
	require.EqualValues(t, 42, **(**int32)(p.KernelParams))
	require.EqualValues(t, 2, p.Ctx)
	require.Equal(t, []string{
		"cuGraphAddKernelNode 0x5 deps=2:0x2",
		"  0xd 1,2,3 4,5,6 7 42 (nil) 0x8 0x9",
		"cuGraphKernelNodeGetParams 0x1e",
	}, s.calls(t))
}

func TestMemoryNodeCalls(t *testing.T) {
	s, d := openStandin(t)
	copyParams := driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_HOST, SrcHost: 0x1000,
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: 0x7f0000000000,
		WidthInBytes: 1 << 33, Height: 1, Depth: 1,
	}
	node, r := d.CuGraphAddMemcpyNode(5, []driver.CUgraphNode{1}, &copyParams, 9)
	require.Zero(t, r)
	require.EqualValues(t, 31, node)
	r = d.CuGraphExecMemcpyNodeSetParams(34, node, &copyParams, 9)
	require.Equal(t, driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	node, r = d.CuGraphAddMemsetNode(5, nil, &driver.CUDA_MEMSET_NODE_PARAMS{
		Dst: 0x7f0000000000, Pitch: 64, Value: 0xff, ElementSize: 4, Width: 16, Height: 2,
	}, 9)
	require.Zero(t, r)
	require.EqualValues(t, 32, node)
	require.Equal(t, []string{
		"cuGraphAddMemcpyNode 0x5 deps=1:0x1",
		"  1 0x1000 4 0x7f0000000000 8589934592 1 1 0x9",
		"cuGraphExecMemcpyNodeSetParams 0x22 0x1f 8589934592 0x9",
		"cuGraphAddMemsetNode 0x5 deps=0:(nil)",
		"  0x7f0000000000 64 255 4 16 2 0x9",
	}, s.calls(t))
}

func TestMemOpNodeCall(t *testing.T) {
	s, d := openStandin(t)
	list := []driver.CUstreamBatchMemOpParams{
		{Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_64, Address: 0x7f0000000000, Value: 1 << 40},
		{Operation: driver.CU_STREAM_MEM_OP_WAIT_VALUE_32, Address: 0x7f0000000008, Value: 6, Flags: driver.CU_STREAM_WAIT_VALUE_NOR},
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&list[0])
	node, r := d.CuGraphAddBatchMemOpNode(5, []driver.CUgraphNode{1}, &driver.CUDA_BATCH_MEM_OP_NODE_PARAMS{
		Ctx: 9, Count: 2, ParamArray: unsafe.Pointer(&list[0]),
	})
	require.Zero(t, r)
	require.EqualValues(t, 33, node)
	require.Equal(t, []string{
		"cuGraphAddBatchMemOpNode 0x5 deps=1:0x1",
		"  0x9 2 0",
		"  5 0x7f0000000000 1099511627776 0",
		"  1 0x7f0000000008 6 3",
	}, s.calls(t))
}

func TestExternalCalls(t *testing.T) {
	s, d := openStandin(t)
	m, r := d.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: 1, Fd: 5, Size: 1 << 40, Flags: 1})
	require.Zero(t, r)
	require.EqualValues(t, 0x51, m)
	p, r := d.CuExternalMemoryGetMappedBuffer(m, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Offset: 4096, Size: 1 << 33})
	require.Zero(t, r)
	require.EqualValues(t, 0x7f0000000000, p)
	sem, r := d.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: 9, Fd: 6})
	require.Zero(t, r)
	require.EqualValues(t, 0x52, sem)
	list := []driver.CUexternalSemaphore{sem, 0x53}
	signals := []driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS{{Value: 1 << 40}, {Value: 2}}
	waits := []driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS{{Value: 3}, {Value: 1 << 41}}
	require.Zero(t, d.CuSignalExternalSemaphoresAsync(list, signals, 7))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, d.CuSignalExternalSemaphoresAsync(list[:1], signals, 7))
	require.Zero(t, d.CuWaitExternalSemaphoresAsync(list, waits, 7))
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&list[0])
	pinner.Pin(&signals[0])
	pinner.Pin(&waits[0])
	node, r := d.CuGraphAddExternalSemaphoresSignalNode(5, []driver.CUgraphNode{1}, &driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS{
		ExtSemArray: unsafe.Pointer(&list[0]), ParamsArray: unsafe.Pointer(&signals[0]), NumExtSems: 2,
	})
	require.Zero(t, r)
	require.EqualValues(t, 34, node)
	require.Zero(t, d.CuGraphExecExternalSemaphoresWaitNodeSetParams(0x22, node, &driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS{
		ExtSemArray: unsafe.Pointer(&list[0]), ParamsArray: unsafe.Pointer(&waits[0]), NumExtSems: 2,
	}))
	require.Equal(t, []string{
		"cuImportExternalMemory 1 5 1099511627776 1",
		"cuExternalMemoryGetMappedBuffer 0x51 4096 8589934592 0",
		"cuImportExternalSemaphore 9 6 0",
		"cuSignalExternalSemaphoresAsync 2 0x7", "  0x52 1099511627776 0", "  0x53 2 0",
		"cuWaitExternalSemaphoresAsync 2 0x7", "  0x52 3 0", "  0x53 2199023255552 0",
		"cuGraphAddExternalSemaphoresSignalNode 0x5 deps=1:0x1", "  0x52 1099511627776 0", "  0x53 2 0",
		"cuGraphExecExternalSemaphoresWaitNodeSetParams 0x22 0x22", "  0x52 3 0", "  0x53 2199023255552 0",
	}, s.calls(t))
}

func TestGraphStructureCalls(t *testing.T) {
	s, d := openStandin(t)
	programmatic := driver.CUgraphEdgeData{FromPort: 1, Type: 1}
	from, to, data, r := d.CuGraphGetEdges(5)
	require.Zero(t, r)
	require.Equal(t, []driver.CUgraphEdgeData{{}, programmatic}, data)
	require.Equal(t, []driver.CUgraphNode{1, 3}, from)
	require.Equal(t, []driver.CUgraphNode{2, 4}, to)
	from, to, data, r = d.CuGraphGetEdges(6)
	require.Zero(t, r)
	require.Empty(t, from)
	require.Empty(t, to)
	require.Empty(t, data)
	require.Zero(t, d.CuGraphRemoveDependencies(5, []driver.CUgraphNode{1, 3}, []driver.CUgraphNode{2, 4}, []driver.CUgraphEdgeData{{}, programmatic}))
	r = d.CuGraphRemoveDependencies(5, []driver.CUgraphNode{1}, []driver.CUgraphNode{2}, nil)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	require.Equal(t, []string{
		"cuGraphGetEdges 0x5 arrays=0",
		"cuGraphGetEdges 0x5 arrays=1",
		"cuGraphGetEdges 0x6 arrays=0",
		"cuGraphRemoveDependencies 0x5 0x3 0x4 0x10001 2",
	}, s.calls(t))
}

func TestExecCalls(t *testing.T) {
	s, d := openStandin(t)
	params := driver.CUDA_GRAPH_INSTANTIATE_PARAMS{Flags: driver.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, HUploadStream: 0x10}
	x, r := d.CuGraphInstantiateWithParams(5, &params)
	require.Zero(t, r)
	require.EqualValues(t, 34, x)
	require.Equal(t, driver.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, params.Result_out)
	require.EqualValues(t, 35, params.HErrNode_out)
	info, r := d.CuGraphExecUpdate(x, 5)
	require.Equal(t, driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	require.Equal(t, driver.CUgraphExecUpdateResultInfo{
		Result: driver.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, ErrorNode: 36, ErrorFromNode: 37,
	}, info)
	require.Equal(t, []string{
		"cuGraphInstantiateWithParams 0x5 2 0x10",
		"cuGraphExecUpdate 0x22 0x5",
	}, s.calls(t))
}

func TestPoolAccessCalls(t *testing.T) {
	s, d := openStandin(t)
	on1 := driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: 1}
	require.Zero(t, d.CuMemPoolSetAccess(11, []driver.CUmemAccessDesc{{}, {Location: on1, Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}))
	flags, r := d.CuMemPoolGetAccess(11, on1)
	require.Zero(t, r)
	require.Equal(t, driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags)
	require.Equal(t, []string{"cuMemPoolSetAccess 0xb 2 1 1 3", "cuMemPoolGetAccess 0xb 1 1"}, s.calls(t))
}

func TestManagedMemoryCalls(t *testing.T) {
	s, d := openStandin(t)
	const p = driver.CUdeviceptr(0x7f0000000000)
	location := driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_HOST, ID: 5}
	require.Zero(t, d.CuMemAdvise(p, 1<<33, driver.CU_MEM_ADVISE_SET_ACCESSED_BY, location))
	require.Zero(t, d.CuMemPrefetchAsync(p, 1<<33, location, 0, 0x10))
	data := make([]int32, 3)
	require.Zero(t, d.CuMemRangeGetAttribute(data, driver.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 64))
	require.Equal(t, []int32{-1, -2, -3}, data)
	require.Equal(t, []string{
		"cuMemAdvise 0x7f0000000000 8589934592 5 2 5", "cuMemPrefetchAsync 0x7f0000000000 8589934592 2 5 0 0x10",
		"cuMemRangeGetAttribute 12 3 0x7f0000000000 64",
	}, s.calls(t))
}

func TestAllocationAndConditionalNodeCalls(t *testing.T) {
	s, d := openStandin(t)
	params := driver.CUDA_MEM_ALLOC_NODE_PARAMS{PoolProps: driver.CUmemPoolProps{AllocType: 1, LocationType: 1, LocationID: 7}, Bytesize: 1 << 33}
	node, r := d.CuGraphAddMemAllocNode(5, nil, &params)
	require.Zero(t, r)
	require.EqualValues(t, 38, node)
	require.EqualValues(t, 0x420000000, params.Dptr)
	node, r = d.CuGraphAddMemFreeNode(5, []driver.CUgraphNode{node}, params.Dptr)
	require.Zero(t, r)
	require.EqualValues(t, 39, node)
	conditional := driver.CUgraphNodeParams{Type: driver.CU_GRAPH_NODE_TYPE_CONDITIONAL, Conditional: driver.CUDA_CONDITIONAL_NODE_PARAMS{
		Handle: 1 << 33, Type: driver.CU_GRAPH_COND_TYPE_SWITCH, Size: 2, Ctx: 2,
	}}
	node, bodies, r := d.CuGraphAddNode(5, nil, &conditional)
	require.Zero(t, r)
	require.EqualValues(t, 40, node)
	require.Equal(t, []driver.CUgraph{41, 42}, bodies)
	conditional.Conditional.Size = 3
	_, bodies, r = d.CuGraphAddNode(5, nil, &conditional)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	require.Nil(t, bodies)
	node, bodies, r = d.CuGraphAddNode(5, nil, driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{
		Graph: 0x77, Ownership: driver.CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
	}))
	require.Zero(t, r)
	require.EqualValues(t, 43, node)
	require.Empty(t, bodies)
	require.Equal(t, []string{
		"cuGraphAddMemAllocNode 0x5 deps=0:(nil)", "  1 1 7 0 8589934592",
		"cuGraphAddMemFreeNode 0x5 deps=1:0x26", "  0x420000000",
		"cuGraphAddNode 0x5 deps=0:(nil)", "  13 0x200000000 2 2 0x2 edges=0",
		"cuGraphAddNode 0x5 deps=0:(nil)", "  13 0x200000000 2 3 0x2 edges=0",
		"cuGraphAddNode 0x5 deps=0:(nil)", "  4 0x77 1 edges=0",
	}, s.calls(t))
}

func TestSharingCalls(t *testing.T) {
	s, d := openStandin(t)
	const fd = driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	out, r := d.CuMemPoolExportToShareableHandle(11, fd, 0)
	require.Zero(t, r)
	require.EqualValues(t, 17, out)
	pool, r := d.CuMemPoolImportFromShareableHandle(18, fd, 0)
	require.Zero(t, r)
	require.EqualValues(t, 12, pool)
	data, r := d.CuMemPoolExportPointer(0x6000)
	require.Zero(t, r)
	p, r := d.CuMemPoolImportPointer(pool, &data)
	require.Zero(t, r)
	require.EqualValues(t, 0x7000, p)
	event, r := d.CuIpcGetEventHandle(0x41)
	require.Zero(t, r)
	e, r := d.CuIpcOpenEventHandle(event)
	require.Zero(t, r)
	require.EqualValues(t, 0x42, e)
	out, r = d.CuMemExportToShareableHandle(1<<63, fd, 0)
	require.Zero(t, r)
	require.EqualValues(t, 19, out)
	h, r := d.CuMemImportFromShareableHandle(20, fd)
	require.Zero(t, r)
	require.Equal(t, driver.CUmemGenericAllocationHandle(1<<62), h)
	require.Equal(t, []string{
		"cuMemPoolExportToShareableHandle 0xb 1 0", "cuMemPoolImportFromShareableHandle 18 1 0",
		"cuMemPoolExportPointer 0x6000", "cuMemPoolImportPointer 0xc 1 64",
		"cuIpcGetEventHandle 0x41", "cuIpcOpenEventHandle 64 1",
		"cuMemExportToShareableHandle 0x8000000000000000 1 0", "cuMemImportFromShareableHandle 20 1",
	}, s.calls(t))
}

func TestBatchCalls(t *testing.T) {
	t.Setenv("STANDIN_VERSION", "13000")
	s, d := openStandin(t)
	attrs := []driver.CUmemcpyAttributes{{SrcAccessOrder: driver.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, DstLocHint: driver.CUmemLocation{ID: 3}, Flags: 1}}
	require.Zero(t, d.CuMemcpyBatchAsync([]driver.CUdeviceptr{1, 2}, []driver.CUdeviceptr{3, 4}, []uint64{5, 1 << 33}, attrs, []uint64{0}, 0x10))
	require.Zero(t, d.CuMemPrefetchBatchAsync([]driver.CUdeviceptr{1, 2}, []uint64{5, 6}, []driver.CUmemLocation{{Type: 1, ID: 7}}, []uint64{0}, 0, 0x10))
	require.Equal(t, []string{
		"cuMemcpyBatchAsync 2: 0x2 0x4 8589934592, 1: 1 3 1 from 0, 0x10",
		"cuMemPrefetchBatchAsync 2: 0x2 6, 1: 1 7 from 0, 0 0x10",
	}, s.calls(t))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, d.CuMemcpyBatchAsync(make([]driver.CUdeviceptr, 2), nil, nil, attrs, []uint64{0}, 0))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, d.CuMemcpyBatchAsync(nil, nil, nil, attrs, nil, 0))
}

// Its signature before CUDA 13.0 has a parameter more, and may be found.
func TestBatchOfAnOlderDriverIsNotCalled(t *testing.T) {
	t.Setenv("STANDIN_VERSION", "12090")
	_, d := openStandin(t)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, d.CuMemcpyBatchAsync(nil, nil, nil, nil, nil, 0))
}
