// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var graphMemories = map[string]func(*suite){
	"memory of a graph lives from alloc to free node": memoryInGraph,
	"memory of a graph can outlive a launch":          memoryLeft,
	"memory that a graph frees can serve it again":    memoryAgain,
	"another graph can free memory":                   memoryFreedElsewhere,
	"alloc node parameters are checked":               memoryAllocChecked,
	"free nodes take whole memory of graphs once":     memoryFreeChecked,
	"a graph with memory has one executable":          memoryAlone,
	"auto-free frees before the next launch":          memoryAutoFree,
	"a pool's memory in a capture is the graph's":     memoryCaptured,
	"a free in a capture takes further edges":         memoryFreeOrdered,
	"memory of a graph can be another device's":       memoryElsewhere,
	"memory of a graph can be used by peers":          memoryShared,
	"memory of graphs is counted and trimmed":         memoryCounted,
}

func memoryCounted(s *suite) {
	size := func(attr driver.CUgraphMem_attribute) uint64 {
		n, r := s.CuDeviceGetGraphMemAttribute(0, attr)
		s.ok(r)
		return n
	}
	g := s.graph()
	p, fill := s.allocating(g, 7)
	_, r := s.CuGraphAddMemFreeNode(g, []driver.CUgraphNode{fill}, p)
	s.ok(r)
	s.launchAndWait(s.instantiate(g), s.stream())
	used, reserved := size(driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), size(driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
	require.GreaterOrEqual(s.T, used, uint64(1000))
	require.GreaterOrEqual(s.T, reserved, used)
	require.GreaterOrEqual(s.T, size(driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), used)
	require.GreaterOrEqual(s.T, size(driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), reserved)
	s.ok(s.CuDeviceGraphMemTrim(0))
	require.Less(s.T, size(driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), used, "the launch has freed it")
	require.Less(s.T, size(driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), reserved)
	s.ok(s.CuDeviceSetGraphMemAttribute(0, driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, 0))
	require.Equal(s.T, size(driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), size(driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuDeviceSetGraphMemAttribute(0, driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, 0))
	_, r = s.CuDeviceGetGraphMemAttribute(0, 4)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func graphAllocation(size uint64) *driver.CUDA_MEM_ALLOC_NODE_PARAMS {
	return &driver.CUDA_MEM_ALLOC_NODE_PARAMS{
		PoolProps: driver.CUmemPoolProps{AllocType: 1, LocationType: 1}, Bytesize: size, // pinned, on device 0
	}
}

// allocating adds an alloc node and one that fills the memory with a number.
func (s *suite) allocating(g driver.CUgraph, value uint32) (driver.CUdeviceptr, driver.CUgraphNode) {
	s.Helper()
	params := graphAllocation(1000)
	n, r := s.CuGraphAddMemAllocNode(g, nil, params)
	s.ok(r)
	require.NotZero(s.T, params.Dptr)
	fill, r := s.CuGraphAddMemsetNode(g, []driver.CUgraphNode{n},
		&driver.CUDA_MEMSET_NODE_PARAMS{Dst: params.Dptr, Value: value, ElementSize: 4, Width: 250, Height: 1}, s.ctx)
	s.ok(r)
	return params.Dptr, fill
}

func memoryInGraph(s *suite) {
	g, out := s.graph(), s.word(0)
	p, fill := s.allocating(g, 7)
	copied, r := s.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{fill}, linear(out, p+996, 4), s.ctx)
	s.ok(r)
	free, r := s.CuGraphAddMemFreeNode(g, []driver.CUgraphNode{copied}, p)
	s.ok(r)
	kind, r := s.CuGraphNodeGetType(free)
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_NODE_TYPE_MEM_FREE, kind)
	x, st := s.instantiate(g), s.stream()
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	s.same(7, out)
	_, _, r = s.CuMemGetAddressRange(p)
	s.code(driver.CUDA_ERROR_NOT_FOUND, r)
}

func memoryLeft(s *suite) {
	g, st := s.graph(), s.stream()
	p, _ := s.allocating(g, 7)
	x := s.instantiate(g)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFreeAsync(p, st))
	s.launchAndWait(x, st)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphLaunch(x, st)) // it is still allocated
	s.same(7, p)
	base, _, r := s.CuMemGetAddressRange(p + 500)
	s.ok(r)
	require.Equal(s.T, p, base)
	s.ok(s.CuMemFreeAsync(p, st))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFreeAsync(p, st))
	s.launchAndWait(x, st)
	s.ok(s.CuMemFree(p))
	s.launchAndWait(x, st)
	s.same(7, p)
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

// Nodes whose memory is never allocated at once have one address: CUDA programming
// guide, "Address Reuse within a Graph".
func memoryAgain(s *suite) {
	g, st, out := s.graph(), s.stream(), s.word(0)
	p, fill := s.allocating(g, 7)
	copied, r := s.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{fill}, linear(out, p+996, 4), s.ctx)
	s.ok(r)
	free, r := s.CuGraphAddMemFreeNode(g, []driver.CUgraphNode{copied}, p)
	s.ok(r)
	again := graphAllocation(1000)
	second, r := s.CuGraphAddMemAllocNode(g, []driver.CUgraphNode{free}, again)
	s.ok(r)
	require.Equal(s.T, p, again.Dptr)
	_, r = s.CuGraphAddMemsetNode(g, []driver.CUgraphNode{second},
		&driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, Value: 9, ElementSize: 4, Width: 250, Height: 1}, s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	for range 2 {
		s.launchAndWait(x, st)
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphLaunch(x, st)) // the second is still allocated
		s.same(7, out)
		s.same(9, p)
		s.ok(s.CuMemFreeAsync(p, st))
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFreeAsync(p, st))
	}
}

func memoryFreedElsewhere(s *suite) {
	g, other, st := s.graph(), s.graph(), s.stream()
	p, _ := s.allocating(g, 7)
	_, r := s.CuGraphAddMemFreeNode(other, nil, p)
	s.ok(r)
	x, y := s.instantiate(g), s.instantiate(other)
	for range 2 {
		s.launchAndWait(x, st)
		s.launchAndWait(y, st)
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphLaunch(y, st))
	}
}

func memoryAllocChecked(s *suite) {
	g := s.graph()
	for name, test := range map[string]struct {
		change func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS)
		want   driver.CUresult
	}{
		"size":   {func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) { p.Bytesize = 0 }, driver.CUDA_ERROR_INVALID_VALUE},
		"type":   {func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) { p.PoolProps.AllocType = 0 }, driver.CUDA_ERROR_INVALID_VALUE},
		"none":   {func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) { p.PoolProps.LocationType = 0 }, driver.CUDA_ERROR_INVALID_VALUE},
		"host":   {func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) { p.PoolProps.LocationType = 2 }, driver.CUDA_ERROR_NOT_SUPPORTED},
		"device": {func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) { p.PoolProps.LocationID = 99 }, driver.CUDA_ERROR_INVALID_VALUE},
		"huge":   {func(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) { p.Bytesize = 1 << 50 }, driver.CUDA_ERROR_OUT_OF_MEMORY},
	} {
		params := graphAllocation(64)
		test.change(params)
		_, r := s.CuGraphAddMemAllocNode(g, nil, params)
		require.Equal(s.T, test.want.String(), r.String(), name)
	}
	nodes, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Empty(s.T, nodes)
}

func memoryFreeChecked(s *suite) {
	g := s.graph()
	p, fill := s.allocating(g, 7)
	after := []driver.CUgraphNode{fill}
	for _, wrong := range []driver.CUdeviceptr{0, p + 4, s.word(0)} {
		_, r := s.CuGraphAddMemFreeNode(g, after, wrong)
		s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	}
	_, r := s.CuGraphAddMemFreeNode(g, after, p)
	s.ok(r)
	_, r = s.CuGraphAddMemFreeNode(g, after, p)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func memoryAlone(s *suite) {
	g := s.graph()
	p, fill := s.allocating(g, 7)
	_, r := s.CuGraphAddMemFreeNode(g, []driver.CUgraphNode{fill}, p)
	s.ok(r)
	_, r = s.CuGraphClone(g)
	s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
	_, r = s.CuGraphAddChildGraphNode(s.graph(), nil, g)
	s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
	x := s.instantiate(g)
	s.notInstantiated(g, driver.CUDA_ERROR_NOT_SUPPORTED, driver.CUDA_GRAPH_INSTANTIATE_ERROR)
	info, r := s.CuGraphExecUpdate(x, g)
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_EXEC_UPDATE_SUCCESS, info.Result)
}

func memoryAutoFree(s *suite) {
	g, st := s.graph(), s.stream()
	p, _ := s.allocating(g, 7)
	params := driver.CUDA_GRAPH_INSTANTIATE_PARAMS{Flags: driver.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH}
	x, r := s.CuGraphInstantiateWithParams(g, &params)
	s.ok(r)
	for range 3 {
		s.launchAndWait(x, st)
	}
	s.same(7, p)
	s.ok(s.CuGraphExecDestroy(x))
	s.ok(s.CuMemFreeAsync(p, st)) // it outlives the executable
	s.ok(s.CuStreamSynchronize(st))
}

// From CUDA Driver API, cuMemAllocFromPoolAsync: "during stream capture, this
// function results in the creation of an allocation node".
func memoryCaptured(s *suite) {
	st, pool := s.stream(), s.pool(0)
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	p, r := s.CuMemAllocFromPoolAsync(1000, pool, st)
	s.ok(r)
	kept, r := s.CuMemAllocFromPoolAsync(1000, pool, st)
	s.ok(r)
	s.ok(s.CuMemsetD32Async(p, 7, 250, st))
	s.ok(s.CuMemcpyAsync(kept, p, 1000, st))
	s.ok(s.CuMemFreeAsync(p, st))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	nodes, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Len(s.T, nodes, 5)
	require.Zero(s.T, s.poolAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemFreeAsync(kept, st)) // no launch has allocated it
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphLaunch(x, st))
	s.same(7, kept)
	s.ok(s.CuMemFreeAsync(kept, st))
	s.ok(s.CuStreamSynchronize(st))
	s.ok(s.CuGraphExecDestroy(x))
	s.ok(s.CuGraphDestroy(g))
}

// From cuda.h, cuStreamGetCaptureInfo: "all operations other than destroy and node
// removal are permitted on the graph while the capture sequence is in progress".
func memoryFreeOrdered(s *suite) {
	st, fork := s.stream(), s.stream()
	forked, joined := s.event(0), s.event(0)
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	p, r := s.CuMemAllocAsync(1000, st)
	s.ok(r)
	s.ok(s.CuEventRecord(forked, st))
	s.ok(s.CuStreamWaitEvent(fork, forked, 0))
	s.ok(s.CuMemsetD32Async(p, 7, 250, fork))
	use, r := s.CuStreamGetCaptureInfo(fork, true)
	s.ok(r)
	s.ok(s.CuMemFreeAsync(p, st))
	free, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	require.Len(s.T, use.Deps, 1)
	require.Len(s.T, free.Deps, 1)
	s.ok(s.CuGraphAddDependencies(free.Graph, use.Deps, free.Deps, plain))
	s.ok(s.CuEventRecord(joined, fork))
	s.ok(s.CuStreamWaitEvent(st, joined, 0))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	from, _, _, r := s.CuGraphGetEdges(g)
	s.ok(r)
	require.Len(s.T, from, 3)
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	s.ok(s.CuGraphExecDestroy(x))
	s.ok(s.CuGraphDestroy(g))
}

// memoryElsewhere: a graph of device 0 has memory of another device, which device 0
// may use.
func memoryElsewhere(s *suite) {
	dev, _ := s.peer()
	g, out := s.graph(), s.word(0)
	params := s.sharedAllocation(dev, s.dev)
	n, r := s.CuGraphAddMemAllocNode(g, nil, params)
	s.ok(r)
	copied, r := s.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{n}, linear(params.Dptr, s.word(5), 4), s.ctx)
	s.ok(r)
	stepped, r := s.CuGraphAddKernelNode(g, []driver.CUgraphNode{copied}, s.kernelNode(s.kernel("step"), params.Dptr, uint32(3), uint32(2)))
	s.ok(r)
	back, r := s.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{stepped}, linear(out, params.Dptr, 4), s.ctx)
	s.ok(r)
	_, r = s.CuGraphAddMemFreeNode(g, []driver.CUgraphNode{back}, params.Dptr)
	s.ok(r)
	x, st := s.instantiate(g), s.stream()
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	s.same(17, out)
}

// memoryShared: what a launch has left on device 0 can be used by a peer.
func memoryShared(s *suite) {
	dev, ctx := s.peer()
	g := s.graph()
	params := s.sharedAllocation(s.dev, dev)
	n, r := s.CuGraphAddMemAllocNode(g, nil, params)
	s.ok(r)
	_, r = s.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{n}, linear(params.Dptr, s.word(9), 4), s.ctx)
	s.ok(r)
	st := s.stream()
	s.launchAndWait(s.instantiate(g), st)
	s.in(ctx, func() {
		p, there := s.word(0), s.stream()
		s.ok(s.CuMemcpyAsync(p, params.Dptr, 4, there))
		s.ok(s.CuStreamSynchronize(there))
		s.same(9, p)
	})
	s.ok(s.CuMemFreeAsync(params.Dptr, st))
	s.ok(s.CuStreamSynchronize(st))
}
