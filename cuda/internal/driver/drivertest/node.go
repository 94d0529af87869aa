// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var nodes = map[string]func(*suite){
	"kernel node keeps argument values":           nodeKernel,
	"kernel node tells its parameters":            nodeKernelParams,
	"kernel node takes a packed argument list":    nodeKernelPacked,
	"kernel node refuses two argument lists":      nodeKernelExtra,
	"kernel node takes attributes":                nodeAttributes,
	"kernel node's attributes are cloned":         nodeAttributesCloned,
	"cooperative kernel node must fit the device": nodeCooperative,
	"memcpy node reads host memory at each run":   nodeMemcpyHost,
	"memcpy node writes host memory at each run":  nodeMemcpyToHost,
	"memcpy node copies rows":                     nodeMemcpyRows,
	"memset node fills rows":                      nodeMemset,
	"event record node marks each run":            nodeEventRecord,
	"event wait node waits":                       nodeEventWait,
	"node parameters can be set":                  nodeSetParams,
	"node parameters of another kind are refused": nodeWrongKind,
}

// linear describes a copy of size bytes.
func linear(dst, src driver.CUdeviceptr, size uint64) *driver.CUDA_MEMCPY3D {
	return &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: src,
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: dst,
		WidthInBytes: size, Height: 1, Depth: 1,
	}
}

// escaped is never read: what is assigned to it is on the heap.
var escaped []uint32 //nolint:unused

// onHeap keeps v from the stack, which Go moves: a node keeps the address.
func onHeap(v []uint32) []uint32 {
	escaped = v
	return v
}

// fromHost describes a copy from pageable host memory.
func fromHost[T any](dst driver.CUdeviceptr, src []T, size uint64) *driver.CUDA_MEMCPY3D {
	return &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_HOST, SrcHost: uintptr(addressOf(src)),
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: dst,
		WidthInBytes: size, Height: 1, Depth: 1,
	}
}

func nodeKernel(s *suite) {
	p, g, st, step := s.word(1), s.graph(), s.stream(), s.kernel("step")
	params := s.kernelNode(step, p, uint32(1), uint32(1))
	_, r := s.CuGraphAddKernelNode(g, nil, params)
	s.ok(r)
	x := s.instantiate(g)
	for range 5 {
		s.ok(s.CuGraphLaunch(x, st))
	}
	s.same(6, p)
}

func nodeKernelParams(s *suite) {
	p, g, step := s.word(1), s.graph(), s.kernel("step")
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(1), uint32(9)))
	s.ok(r)
	got, r := s.CuGraphKernelNodeGetParams(n)
	s.ok(r)
	require.Equal(s.T, uint32(1), got.BlockDimX)
	require.NotNil(s.T, got.KernelParams)
	// What a node reports can be given to another node.
	other := s.graph()
	_, r = s.CuGraphAddKernelNode(other, nil, &got)
	s.ok(r)
	s.launchAndWait(s.instantiate(other), s.stream())
	s.same(10, p)
}

func nodeKernelPacked(s *suite) {
	p, g := s.word(1), s.graph()
	params := s.kernelNode(s.kernel("step"), p, uint32(1), uint32(9))
	params.KernelParams = nil
	params.Extra = s.packed(p, 4, 6)
	_, r := s.CuGraphAddKernelNode(g, nil, params)
	s.ok(r)
	s.launchAndWait(s.instantiate(g), s.stream())
	s.same(10, p)
}

func nodeKernelExtra(s *suite) {
	p := s.word(1)
	params := s.kernelNode(s.kernel("step"), p, uint32(1), uint32(9))
	params.Extra = params.KernelParams
	_, r := s.CuGraphAddKernelNode(s.graph(), nil, params)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

// cooperative asks a node whether its launches are.
func (s *suite) cooperative(n driver.CUgraphNode) bool {
	s.Helper()
	v, r := s.CuGraphKernelNodeGetAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
	s.ok(r)
	return v.Value[0] != 0
}

// setAttribute sets an attribute of a kernel node that is one number.
func (s *suite) setAttribute(n driver.CUgraphNode, id driver.CUlaunchAttributeID, value uint32) driver.CUresult {
	return s.CuGraphKernelNodeSetAttribute(n, id, &driver.CUlaunchAttributeValue{Value: attribute(id, value).Value})
}

func nodeAttributes(s *suite) {
	p, g, step := s.word(1), s.graph(), s.kernel("step")
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(1), uint32(9)))
	s.ok(r)
	require.False(s.T, s.cooperative(n))
	s.ok(s.setAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1))
	s.ok(s.setAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_PRIORITY, 0))
	require.True(s.T, s.cooperative(n))
	priority, r := s.CuGraphKernelNodeGetAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_PRIORITY)
	s.ok(r)
	require.Equal(s.T, [4]byte{}, [4]byte(priority.Value[:4]))
	x := s.instantiate(g)
	s.launchAndWait(x, s.stream())
	s.same(10, p)
	// Parameters leave the attributes alone.
	s.ok(s.CuGraphKernelNodeSetParams(n, s.kernelNode(step, p, uint32(1), uint32(5))))
	require.True(s.T, s.cooperative(n))
	s.ok(s.setAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0))
	require.False(s.T, s.cooperative(n))
	s.launchAndWait(s.instantiate(g), s.stream())
	s.same(15, p)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.setAttribute(s.empty(g), driver.CU_LAUNCH_ATTRIBUTE_PRIORITY, 0))
	_, r = s.CuGraphKernelNodeGetAttribute(s.empty(g), driver.CU_LAUNCH_ATTRIBUTE_PRIORITY)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func nodeAttributesCloned(s *suite) {
	p, g := s.word(1), s.graph()
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(s.kernel("step"), p, uint32(1), uint32(9)))
	s.ok(r)
	s.ok(s.setAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1))
	clone, r := s.CuGraphClone(g)
	s.ok(r)
	s.Cleanup(func() { s.ok(s.CuGraphDestroy(clone)) })
	copied, r := s.CuGraphNodeFindInClone(n, clone)
	s.ok(r)
	s.ok(s.setAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0))
	require.True(s.T, s.cooperative(copied))
}

// CUDA does not say which call refuses such a node, only that none runs.
func nodeCooperative(s *suite) {
	g, params := s.graph(), s.kernelNode(s.kernel("nothing"))
	params.GridDimX = 1 << 20
	n, r := s.CuGraphAddKernelNode(g, nil, params)
	s.ok(r)
	if s.setAttribute(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1) != driver.CUDA_SUCCESS {
		return
	}
	instantiation := driver.CUDA_GRAPH_INSTANTIATE_PARAMS{}
	x, r := s.CuGraphInstantiateWithParams(g, &instantiation)
	if r != driver.CUDA_SUCCESS || instantiation.Result_out != 0 {
		return
	}
	defer s.CuGraphExecDestroy(x)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.CuGraphLaunch(x, s.stream()))
}

func nodeMemcpyHost(s *suite) {
	in := onHeap([]uint32{1, 2, 3, 4})
	p, g, st := s.alloc(16), s.graph(), s.stream()
	_, r := s.CuGraphAddMemcpyNode(g, nil, fromHost(p, in, 16), s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	require.Equal(s.T, []uint32{1, 2, 3, 4}, s.read(p, 4))
	copy(in, []uint32{5, 6, 7, 8})
	s.launchAndWait(x, st)
	require.Equal(s.T, []uint32{5, 6, 7, 8}, s.read(p, 4))
	runtime.KeepAlive(in)
}

func nodeMemcpyToHost(s *suite) {
	out := onHeap(make([]uint32, 4))
	p, g, st := s.alloc(16), s.graph(), s.stream()
	_, r := s.CuGraphAddMemcpyNode(g, nil, &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: p,
		DstMemoryType: driver.CU_MEMORYTYPE_HOST, DstHost: uintptr(addressOf(out)),
		WidthInBytes: 16, Height: 1, Depth: 1,
	}, s.ctx)
	s.ok(r)
	x := s.instantiate(g)
	for i := range uint32(3) {
		s.ok(s.CuMemsetD32Async(p, i, 4, st))
		s.launchAndWait(x, st)
		require.Equal(s.T, []uint32{i, i, i, i}, out)
	}
	runtime.KeepAlive(out)
}

func nodeMemcpyRows(s *suite) {
	in := onHeap([]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8})
	src, dst, g, st := s.alloc(36), s.alloc(32), s.graph(), s.stream()
	s.ok(s.CuMemcpyAsync(src, addressOf(in), 36, st))
	s.ok(s.CuMemsetD32Async(dst, 99, 8, st))
	s.ok(s.CuStreamSynchronize(st))
	// The lower right 2×2 of a 3×3 matrix into the left of a 2×4 one.
	_, r := s.CuGraphAddMemcpyNode(g, nil, &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: src, SrcPitch: 12, SrcHeight: 3, SrcXInBytes: 4, SrcY: 1,
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: dst, DstPitch: 16, DstHeight: 2,
		WidthInBytes: 8, Height: 2, Depth: 1,
	}, s.ctx)
	s.ok(r)
	s.launchAndWait(s.instantiate(g), st)
	require.Equal(s.T, []uint32{4, 5, 99, 99, 7, 8, 99, 99}, s.read(dst, 8))
}

func nodeMemset(s *suite) {
	p, g := s.alloc(32), s.graph()
	all, r := s.CuGraphAddMemsetNode(g, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, Value: 0, ElementSize: 4, Width: 8, Height: 1}, s.ctx)
	s.ok(r)
	params := driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, Pitch: 16, Value: 7, ElementSize: 4, Width: 2, Height: 2}
	n, r := s.CuGraphAddMemsetNode(g, []driver.CUgraphNode{all}, &params, s.ctx)
	s.ok(r)
	got, r := s.CuGraphMemsetNodeGetParams(n)
	s.ok(r)
	require.Equal(s.T, params.Width, got.Width)
	require.Equal(s.T, params.Value, got.Value)
	s.launchAndWait(s.instantiate(g), s.stream())
	require.Equal(s.T, []uint32{7, 7, 0, 0, 7, 7, 0, 0}, s.read(p, 8))
	params.ElementSize = 3
	_, r = s.CuGraphAddMemsetNode(g, nil, &params, s.ctx)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func nodeEventRecord(s *suite) {
	g, st, e := s.graph(), s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	_, r := s.CuGraphAddEventRecordNode(g, nil, e)
	s.ok(r)
	x := s.instantiate(g)
	s.ok(s.CuEventQuery(e))
	gate := s.hold(st)
	s.ok(s.CuGraphLaunch(x, st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuEventQuery(e))
	gate.open()
	s.ok(s.CuEventSynchronize(e))
	s.ok(s.CuStreamSynchronize(st))
}

func nodeEventWait(s *suite) {
	p, g, a, b := s.word(1), s.graph(), s.stream(), s.stream()
	step, e := s.kernel("step"), s.event(driver.CU_EVENT_DISABLE_TIMING)
	n, r := s.CuGraphAddEventWaitNode(g, nil, e)
	s.ok(r)
	_, r = s.CuGraphAddKernelNode(g, []driver.CUgraphNode{n}, s.kernelNode(step, p, uint32(1), uint32(5)))
	s.ok(r)
	x := s.instantiate(g)
	gate := s.hold(a)
	s.ok(s.launch(a, step, p, uint32(2), uint32(0)))
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuGraphLaunch(x, b))
	gate.open()
	s.same(7, p)
}

func nodeSetParams(s *suite) {
	a, b, p, q, g := s.word(1), s.word(2), s.word(0), s.word(0), s.graph()
	up, r := s.CuGraphAddMemcpyNode(g, nil, linear(p, a, 4), s.ctx)
	s.ok(r)
	fill, r := s.CuGraphAddMemsetNode(g, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: q, Value: 1, ElementSize: 4, Width: 1, Height: 1}, s.ctx)
	s.ok(r)
	s.ok(s.CuGraphMemcpyNodeSetParams(up, linear(p, b, 4)))
	s.ok(s.CuGraphMemsetNodeSetParams(fill, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: q, Value: 9, ElementSize: 4, Width: 1, Height: 1}))
	s.launchAndWait(s.instantiate(g), s.stream())
	s.same(2, p)
	s.same(9, q)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, s.CuGraphMemcpyNodeSetParams(up, linear(p, b, 0)))
}

func nodeWrongKind(s *suite) {
	g := s.graph()
	n := s.empty(g)
	_, r := s.CuGraphKernelNodeGetParams(n)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuGraphMemcpyNodeGetParams(n)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuGraphChildGraphNodeGetGraph(n)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}
