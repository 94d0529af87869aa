// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var hostFunctions = map[string]func(*suite){
	"host function runs in stream order":   hostOrder,
	"host function runs at each launch":    hostNode,
	"host function of a capture is a node": hostCaptured,
	"host function needs an address":       hostNull,
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
