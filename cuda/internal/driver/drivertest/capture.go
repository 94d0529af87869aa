// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var captures = map[string]func(*suite){
	"capture records and runs nothing":          captureRecords,
	"capture keeps the order of a stream":       captureOrder,
	"capture follows events to other streams":   captureFork,
	"capture tells its state":                   captureInfo,
	"capture allocates and frees":               captureMemory,
	"capture of memory left allocated":          captureUnfreed,
	"capture must be joined":                    captureUnjoined,
	"capture ends where it began":               captureUnmatched,
	"capture ends on its own thread":            captureThread,
	"capture cannot wait for outside work":      captureIsolation,
	"captures do not merge":                     captureMerge,
	"capture that never began":                  captureIdle,
	"capture needs a stream of its own":         captureLegacy,
	"capture twice is refused":                  captureTwice,
	"capture reads pageable memory at each run": capturePageable,
	"capture takes a graph as one node":         captureChild,
	"capture's dependencies are checked":        captureDependencies,
}

func (s *suite) begin(st driver.CUstream) {
	s.Helper()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
}

// end ends a capture and makes an executable of it.
func (s *suite) end(st driver.CUstream) driver.CUgraphExec {
	s.Helper()
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	return s.instantiate(g)
}

// invalidated ends a capture that was invalidated, and requires the stream to work.
func (s *suite) invalidated(st driver.CUstream) {
	s.Helper()
	g, r := s.CuStreamEndCapture(st)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, r)
	require.Zero(s.T, g)
	s.ok(s.CuStreamSynchronize(st))
}

func captureRecords(s *suite) {
	p, st := s.word(1), s.stream()
	step := s.kernel("step")
	s.begin(st)
	s.ok(s.launch(st, step, p, uint32(2), uint32(0)))
	s.ok(s.CuMemsetD32Async(p+0, 3, 1, st))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	s.same(1, p)
	list, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Len(s.T, list, 2)
	from, _, _, r := s.CuGraphGetEdges(g)
	s.ok(r)
	require.Len(s.T, from, 1)
}

func captureOrder(s *suite) {
	p, st, step := s.word(1), s.stream(), s.kernel("step")
	s.ok(s.launch(st, step, p, uint32(1), uint32(1)))
	s.begin(st)
	s.ok(s.launch(st, step, p, uint32(10), uint32(0)))
	s.ok(s.launch(st, step, p, uint32(1), uint32(3)))
	x := s.end(st)
	s.ok(s.launch(st, step, p, uint32(1), uint32(1)))
	s.ok(s.CuGraphLaunch(x, st))
	s.same(33, p)
}

func captureFork(s *suite) {
	p, q, a, b, step := s.word(1), s.word(1), s.stream(), s.stream(), s.kernel("step")
	fork, join := s.event(driver.CU_EVENT_DISABLE_TIMING), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.begin(a)
	s.ok(s.launch(a, step, p, uint32(2), uint32(0)))
	s.ok(s.CuEventRecord(fork, a))
	s.ok(s.CuStreamWaitEvent(b, fork, 0))
	status, r := s.CuStreamIsCapturing(b)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE, status)
	s.ok(s.launch(b, step, q, uint32(5), uint32(0)))
	s.ok(s.launch(a, step, p, uint32(3), uint32(0)))
	s.ok(s.CuEventRecord(join, b))
	s.ok(s.CuStreamWaitEvent(a, join, 0))
	s.ok(s.launch(a, step, q, uint32(1), uint32(2)))
	x := s.end(a)
	status, r = s.CuStreamIsCapturing(b)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_CAPTURE_STATUS_NONE, status)
	s.launchAndWait(x, b)
	s.same(6, p)
	s.same(7, q)
}

func captureInfo(s *suite) {
	p, st := s.word(1), s.stream()
	step := s.kernel("step")
	info, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_CAPTURE_STATUS_NONE, info.Status)
	s.begin(st)
	info, r = s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE, info.Status)
	require.NotZero(s.T, info.Graph)
	require.Empty(s.T, info.Deps)
	s.ok(s.launch(st, step, p, uint32(2), uint32(0)))
	info, r = s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	require.Len(s.T, info.Deps, 1)
	kind, r := s.CuGraphNodeGetType(info.Deps[0])
	s.ok(r)
	require.Equal(s.T, driver.CU_GRAPH_NODE_TYPE_KERNEL, kind)
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	require.Equal(s.T, info.Graph, g)
	s.ok(s.CuGraphDestroy(g))
}

func captureMemory(s *suite) {
	out, st := s.word(0), s.stream()
	step := s.kernel("step")
	s.begin(st)
	p, r := s.CuMemAllocAsync(1<<16, st)
	s.ok(r)
	s.ok(s.CuMemsetD32Async(p, 6, 1<<14, st))
	s.ok(s.launch(st, step, p, uint32(7), uint32(0)))
	s.ok(s.CuMemcpyAsync(out, p, 4, st))
	s.ok(s.CuMemFreeAsync(p, st))
	x := s.end(st)
	for range 3 {
		s.ok(s.CuMemsetD32Async(out, 0, 1, st))
		s.launchAndWait(x, st)
		s.same(42, out)
	}
}

func captureUnfreed(s *suite) {
	st := s.stream()
	s.begin(st)
	p, r := s.CuMemAllocAsync(64, st)
	s.ok(r)
	s.ok(s.CuMemsetD32Async(p, 6, 16, st))
	x := s.end(st)
	s.launchAndWait(x, st)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphLaunch(x, st))
	s.same(6, p)
	s.ok(s.CuMemFreeAsync(p, st))
	s.launchAndWait(x, st)
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

func captureUnjoined(s *suite) {
	p, a, b, e := s.word(1), s.stream(), s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	step := s.kernel("step")
	s.begin(a)
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuStreamWaitEvent(b, e, 0))
	s.ok(s.launch(b, step, p, uint32(2), uint32(0)))
	g, r := s.CuStreamEndCapture(a)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNJOINED, r)
	require.Zero(s.T, g)
	s.ok(s.CuStreamSynchronize(a))
	s.ok(s.CuStreamSynchronize(b))
	s.same(1, p)
}

func captureUnmatched(s *suite) {
	a, b, e := s.stream(), s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.begin(a)
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuStreamWaitEvent(b, e, 0))
	_, r := s.CuStreamEndCapture(b)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, r)
	s.invalidated(a)
}

func captureThread(s *suite) {
	st := s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
	results := make(chan driver.CUresult)
	go func() {
		runtime.LockOSThread()
		_, r := s.CuStreamEndCapture(st)
		results <- r
	}()
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, <-results)
	_, r := s.CuStreamEndCapture(st)
	s.code(driver.CUDA_ERROR_ILLEGAL_STATE, r) // the attempt has ended it
	s.ok(s.CuStreamSynchronize(st))
}

func captureIsolation(s *suite) {
	a, b, e := s.stream(), s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.ok(s.CuEventRecord(e, b))
	s.begin(a)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, s.CuStreamWaitEvent(a, e, 0))
	s.invalidated(a)
}

func captureMerge(s *suite) {
	a, b, e := s.stream(), s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.begin(a)
	s.begin(b)
	s.ok(s.CuEventRecord(e, b))
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_MERGE, s.CuStreamWaitEvent(a, e, 0))
	for _, st := range []driver.CUstream{a, b} {
		if g, r := s.CuStreamEndCapture(st); r == driver.CUDA_SUCCESS {
			s.ok(s.CuGraphDestroy(g))
		}
		s.ok(s.CuStreamSynchronize(st))
	}
}

func captureIdle(s *suite) {
	_, r := s.CuStreamEndCapture(s.stream())
	s.code(driver.CUDA_ERROR_ILLEGAL_STATE, r)
}

func captureLegacy(s *suite) {
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuStreamBeginCapture(0, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	s.begin(driver.CU_STREAM_PER_THREAD)
	g, r := s.CuStreamEndCapture(driver.CU_STREAM_PER_THREAD)
	s.ok(r)
	s.ok(s.CuGraphDestroy(g))
}

func captureTwice(s *suite) {
	st := s.stream()
	s.begin(st)
	s.code(driver.CUDA_ERROR_ILLEGAL_STATE, s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	// Whether the attempt invalidates the capture is not specified; it must end here.
	if g, r := s.CuStreamEndCapture(st); r == driver.CUDA_SUCCESS {
		s.ok(s.CuGraphDestroy(g))
	}
	s.ok(s.CuStreamSynchronize(st))
}

func capturePageable(s *suite) {
	in := onHeap([]uint32{1})
	p, st := s.word(0), s.stream()
	s.begin(st)
	s.ok(s.CuMemcpyAsync(p, addressOf(in), 4, st))
	x := s.end(st)
	in[0] = 2
	s.launchAndWait(x, st)
	s.same(2, p)
	runtime.KeepAlive(in)
}

// captureChild: what is launched into a capture is added to its graph by hand,
// since cuGraphLaunch there invalidates it.
func captureChild(s *suite) {
	p, st, step := s.word(1), s.stream(), s.kernel("step")
	inner, r := s.CuGraphCreate(0)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(inner) })
	_, r = s.CuGraphAddKernelNode(inner, nil, s.kernelNode(step, p, uint32(3), uint32(0)))
	s.ok(r)
	s.begin(st)
	s.ok(s.launch(st, step, p, uint32(2), uint32(0)))
	info, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	child, r := s.CuGraphAddChildGraphNode(info.Graph, info.Deps, inner)
	s.ok(r)
	s.ok(s.CuStreamUpdateCaptureDependencies(st, []driver.CUgraphNode{child}, driver.CU_STREAM_SET_CAPTURE_DEPENDENCIES))
	info, r = s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	require.Equal(s.T, []driver.CUgraphNode{child}, info.Deps)
	s.ok(s.launch(st, step, p, uint32(1), uint32(1)))
	x := s.end(st)
	s.launchAndWait(x, st)
	s.same(7, p) // ((1*2)*3)+1
}

func captureDependencies(s *suite) {
	p, q, st, step := s.word(1), s.word(1), s.stream(), s.kernel("step")
	const set, add = driver.CU_STREAM_SET_CAPTURE_DEPENDENCIES, driver.CU_STREAM_ADD_CAPTURE_DEPENDENCIES
	s.code(driver.CUDA_ERROR_ILLEGAL_STATE, s.CuStreamUpdateCaptureDependencies(st, nil, set))
	s.begin(st)
	s.ok(s.launch(st, step, p, uint32(2), uint32(0)))
	one, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	s.ok(s.CuStreamUpdateCaptureDependencies(st, nil, set))
	s.ok(s.launch(st, step, q, uint32(5), uint32(0))) // beside the first, not behind it
	two, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	before, r := s.CuGraphNodeGetDependencies(two.Deps[0])
	s.ok(r)
	require.Empty(s.T, before)
	s.ok(s.CuStreamUpdateCaptureDependencies(st, one.Deps, add))
	both, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	require.ElementsMatch(s.T, append(one.Deps, two.Deps...), both.Deps)
	x := s.end(st)
	s.launchAndWait(x, st)
	s.same(2, p)
	s.same(5, q)
}
