// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// order runs a graph of host nodes a few times and returns the orders in which
// they ran. Node i appends i.
func order(t *testing.T, o *one, build func(add func(i uintptr, deps ...driver.CUgraphNode) driver.CUgraphNode)) map[string]bool {
	t.Helper()
	const fn driver.CUhostFn = 0xC2
	var ran []byte
	hostFunctions[fn] = func(i uintptr) { ran = append(ran, byte('0'+i)) }
	defer delete(hostFunctions, fn)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	build(func(i uintptr, deps ...driver.CUgraphNode) driver.CUgraphNode {
		n, r := o.CuGraphAddHostNode(g, deps, &driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: i})
		ok(t, r)
		return n
	})
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	seen := map[string]bool{}
	for range 40 {
		ran = nil
		ok(t, o.CuGraphLaunch(x, o.stream))
		ok(t, o.CuStreamSynchronize(o.stream))
		seen[string(ran)] = true
	}
	return seen
}

// diamond is 0 before 1 and 2, and both before 3.
func diamond(add func(i uintptr, deps ...driver.CUgraphNode) driver.CUgraphNode) {
	a := add(0)
	b, c := add(1, a), add(2, a)
	add(3, b, c)
}

func TestGraphOrder(t *testing.T) {
	require.Equal(t, map[string]bool{"0123": true}, order(t, newOne(t, open(t, "")), diamond))
	require.Equal(t, map[string]bool{"0123": true, "0213": true}, order(t, newOne(t, open(t, "seed=3")), diamond),
		"with a seed, nodes without an edge run in any order")
}

func TestEventNodesWithoutAnEdge(t *testing.T) {
	for _, config := range []string{"", "seed=1", "seed=2"} {
		o := newOne(t, open(t, config))
		e, r := o.CuEventCreate(0)
		ok(t, r)
		g, r := o.CuGraphCreate(0)
		ok(t, r)
		_, r = o.CuGraphAddEventWaitNode(g, nil, e)
		ok(t, r)
		_, r = o.CuGraphAddEventRecordNode(g, nil, e)
		ok(t, r)
		x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
		ok(t, r)
		ok(t, o.CuGraphLaunch(x, o.stream))
		ok(t, o.CuStreamSynchronize(o.stream))
		ok(t, o.CuEventQuery(e))
	}
}

// allocating captures an allocation of 1 MiB, a fill, and a free if asked for.
func allocating(t *testing.T, o *one, free bool) (driver.CUgraph, driver.CUdeviceptr) {
	t.Helper()
	ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	p, r := o.CuMemAllocAsync(1<<20, o.stream)
	ok(t, r)
	ok(t, o.CuMemsetD8Async(p, 1, 1<<20, o.stream))
	if free {
		ok(t, o.CuMemFreeAsync(p, o.stream))
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemFreeAsync(p, o.stream), "twice in one graph")
	}
	g, r := o.CuStreamEndCapture(o.stream)
	ok(t, r)
	return g, p
}

func TestGraphMemoryRules(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, _ := allocating(t, o, true)
	_, r := o.CuGraphClone(g)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	parent, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddChildGraphNode(parent, nil, g)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	list, r := o.CuGraphGetNodes(g)
	ok(t, r)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, o.CuGraphDestroyNode(list[0]))
	kind, r := o.CuGraphNodeGetType(list[0])
	ok(t, r)
	require.Equal(t, driver.CU_GRAPH_NODE_TYPE_MEM_ALLOC, kind)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	_, r = o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r, "one executable at a time")
	ok(t, o.CuGraphExecDestroy(x))
	_, r = o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
}

func TestOwnedGraphsAreNotEmbedded(t *testing.T) {
	o := newOne(t, open(t, ""))
	inner, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddEmptyNode(inner, nil)
	ok(t, r)
	outer, r := o.CuGraphCreate(0)
	ok(t, r)
	n, r := o.CuGraphAddChildGraphNode(outer, nil, inner)
	ok(t, r)
	owned, r := o.CuGraphChildGraphNodeGetGraph(n)
	ok(t, r)
	other, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddChildGraphNode(other, nil, owned)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	_, _, r = o.CuGraphAddNode(other, nil, driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{Graph: owned}))
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	m, r := o.CuGraphAddChildGraphNode(other, nil, inner)
	ok(t, r)
	set := driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{Graph: owned})
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, o.CuGraphNodeSetParams(m, set))
	copied, r := o.CuGraphClone(owned)
	ok(t, r)
	ok(t, o.CuGraphNodeSetParams(m, driver.ChildGraphNode(driver.CUDA_CHILD_GRAPH_NODE_PARAMS{Graph: copied})))
}

func TestGraphMemoryGoesWithTheLast(t *testing.T) {
	o := newOne(t, open(t, ""))
	before, _, r := o.CuMemGetInfo()
	ok(t, r)
	g, p := allocating(t, o, false)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{
		Flags: driver.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
	})
	ok(t, r)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuGraphExecDestroy(x))
	ok(t, o.CuGraphDestroy(g))
	ok(t, o.CuStreamSynchronize(o.stream))
	require.Equal(t, uint32(0x01010101), o.read(t, p)[0], "what was not freed outlives graph and executable")
	ok(t, o.CuMemFreeAsync(p, o.stream))
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemFreeAsync(p, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	after, _, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, before, after)
}

func TestInvalidatedCaptureFreesItsMemory(t *testing.T) {
	o := newOne(t, open(t, ""))
	before, _, r := o.CuMemGetInfo()
	ok(t, r)
	ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	_, r = o.CuMemAllocAsync(1<<20, o.stream)
	ok(t, r)
	require.Equal(t, driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, o.CuStreamSynchronize(o.stream))
	_, r = o.CuStreamEndCapture(o.stream)
	require.Equal(t, driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, r)
	after, _, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, before, after)
}

func TestCaptureOfADestroyedStream(t *testing.T) {
	o := newOne(t, open(t, ""))
	s, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(t, r)
	ok(t, o.CuStreamBeginCapture(s, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	ok(t, o.CuStreamDestroy(s))
	_, r = o.CuMemAlloc(16)
	ok(t, r)
}

func TestGraphUnderCapture(t *testing.T) {
	o := newOne(t, open(t, ""))
	ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	info, r := o.CuStreamGetCaptureInfo(o.stream, true)
	ok(t, r)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuGraphDestroy(info.Graph))
	_, r = o.CuGraphAddEmptyNode(info.Graph, info.Deps)
	ok(t, r)
	g, r := o.CuStreamEndCapture(o.stream)
	ok(t, r)
	list, r := o.CuGraphGetNodes(g)
	ok(t, r)
	require.Len(t, list, 2)
}
