// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var hostFunctions = map[string]func(*suite){
	"host function runs in stream order":    hostOrder,
	"host function runs at each launch":     hostNode,
	"host function of a capture is a node":  hostCaptured,
	"host function needs an address":        hostNull,
	"graphs hold user objects":              userObjects,
	"user objects are exchanged in updates": userObjectsUpdated,
	"user objects are checked":              userObjectsChecked,
}

// hostFn skips where there is no C function to call.
func (s *suite) hostFn() driver.CUhostFn {
	if s.options.HostFn == 0 {
		s.Skip("no C function was supplied")
	}
	return s.options.HostFn
}

func hostOrder(s *suite) {
	fn, st := s.hostFn(), s.stream()
	data, count := s.counter()
	gate := s.hold(st)
	for range 3 {
		s.ok(s.CuLaunchHostFunc(st, fn, data))
	}
	require.Zero(s.T, count())
	gate.open()
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, int64(3), count())
}

func hostNode(s *suite) {
	fn, st, g := s.hostFn(), s.stream(), s.graph()
	data, count := s.counter()
	other, otherCount := s.counter()
	n, r := s.CuGraphAddHostNode(g, nil, &driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: data})
	s.ok(r)
	s.ok(s.CuGraphHostNodeSetParams(n, &driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: other}))
	s.ok(s.CuGraphHostNodeSetParams(n, &driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: data}))
	got, r := s.CuGraphHostNodeGetParams(n)
	s.ok(r)
	require.Equal(s.T, driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: data}, got)
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	require.Equal(s.T, int64(2), count())
	s.ok(s.CuGraphExecHostNodeSetParams(x, n, &driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: other}))
	s.launchAndWait(x, st)
	require.Equal(s.T, int64(2), count())
	require.Equal(s.T, int64(1), otherCount())
}

func hostCaptured(s *suite) {
	fn, st := s.hostFn(), s.stream()
	data, count := s.counter()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	s.ok(s.CuLaunchHostFunc(st, fn, data))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	require.Zero(s.T, count(), "a capture runs nothing")
	s.launchAndWait(s.instantiate(g), st)
	require.Equal(s.T, int64(1), count())
}

func hostNull(s *suite) {
	s.hostFn()
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuLaunchHostFunc(s.stream(), 0, 0))
}

// object makes a user object that a graph holds, and returns how often it was
// destroyed.
func (s *suite) object(g driver.CUgraph) (destroyed func() int64) {
	data, count := s.counter()
	o, r := s.CuUserObjectCreate(data, s.hostFn(), 1, driver.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
	s.ok(r)
	s.ok(s.CuGraphRetainUserObject(g, o, 1, driver.CU_GRAPH_USER_OBJECT_MOVE))
	return count
}

// gone waits until an object has been destroyed.
func (s *suite) gone(destroyed func() int64) {
	s.Helper()
	require.Eventually(s.T, func() bool { return destroyed() == 1 }, 10*time.Second, time.Millisecond)
}

func userObjects(s *suite) {
	s.hostFn()
	st := s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	info, r := s.CuStreamGetCaptureInfo(st, true)
	s.ok(r)
	captured := s.object(info.Graph)
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	clone, r := s.CuGraphClone(g)
	s.ok(r)
	of := func(g driver.CUgraph) driver.CUgraphExec {
		x, r := s.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
		s.ok(r)
		s.ok(s.CuGraphDestroy(g))
		return x
	}
	x, y := of(g), of(clone)
	gate := s.hold(st)
	s.ok(s.CuGraphLaunch(x, st))
	s.ok(s.CuGraphExecDestroy(y))
	s.ok(s.CuGraphExecDestroy(x))
	require.Zero(s.T, captured(), "a launch has not ended")
	gate.open()
	s.gone(captured)

	discarded := s.stream()
	s.begin(discarded)
	info, r = s.CuStreamGetCaptureInfo(discarded, true)
	s.ok(r)
	never := s.object(info.Graph)
	require.Equal(s.T, driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuStreamSynchronize(discarded))
	s.invalidated(discarded)
	s.gone(never)
}

// shortLived makes a graph that the test destroys.
func (s *suite) shortLived() driver.CUgraph {
	s.Helper()
	g, r := s.CuGraphCreate(0)
	s.ok(r)
	return g
}

// holding makes a graph that holds an object, with a child graph that holds
// another one. The test destroys it.
func (s *suite) holding() (g driver.CUgraph, of, ofChild func() int64) {
	s.Helper()
	g, inner := s.shortLived(), s.shortLived()
	s.empty(inner)
	ofChild = s.object(inner)
	_, r := s.CuGraphAddChildGraphNode(g, nil, inner)
	s.ok(r)
	s.ok(s.CuGraphDestroy(inner))
	return g, s.object(g), ofChild
}

func userObjectsUpdated(s *suite) {
	s.hostFn()
	st := s.stream()
	g, a, b := s.holding()
	other, c, d := s.holding()
	wrong := s.shortLived()
	never := s.object(wrong)
	x, r := s.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	s.ok(r)
	s.ok(s.CuGraphDestroy(g))
	_, r = s.CuGraphExecUpdate(x, wrong)
	s.code(driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, r)
	s.ok(s.CuGraphDestroy(wrong))
	s.gone(never)
	gate := s.hold(st)
	s.ok(s.CuGraphLaunch(x, st))
	_, r = s.CuGraphExecUpdate(x, other)
	s.ok(r)
	s.ok(s.CuGraphDestroy(other))
	require.Zero(s.T, a()+b(), "a launch has not ended")
	gate.open()
	s.gone(a)
	s.gone(b)
	s.launchAndWait(x, st)
	require.Zero(s.T, c()+d(), "the executable has them")
	s.ok(s.CuGraphExecDestroy(x))
	s.gone(c)
	s.gone(d)
}

func userObjectsChecked(s *suite) {
	fn, g := s.hostFn(), s.graph()
	flags := driver.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
	_, r := s.CuUserObjectCreate(0, fn, 1, 0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuUserObjectCreate(0, 0, 1, flags)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphRetainUserObject(g, 0, 1, 0))
}
