// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var faults = map[string]func(*suite){
	"fault of a kernel is sticky":                     faultSticky,
	"fault stops what comes after it":                 faultStops,
	"fault in a graph keeps later nodes from running": faultGraph,
}

// wild is an address that nothing lives at.
const wild driver.CUdeviceptr = 64

func (s *suite) needFaults() {
	if !s.options.Faults {
		s.Skip("a fault would end this process's use of the device")
	}
}

func faultSticky(s *suite) {
	s.needFaults()
	st, step := s.stream(), s.kernel("step")
	s.ok(s.launch(st, step, wild, uint32(1), uint32(1)))
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuStreamSynchronize(st))
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuCtxSynchronize())
	_, r := s.CuMemAlloc(16)
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, r)
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.launch(st, step, wild, uint32(1), uint32(1)))
	name, r := s.CuDeviceGetName(s.dev)
	s.ok(r)
	require.NotEmpty(s.T, name)
}

func faultStops(s *suite) {
	s.needFaults()
	host, r := s.CuMemHostAlloc(4, 0)
	s.ok(r)
	st, step := s.stream(), s.kernel("step")
	gate := s.hold(st)
	s.ok(s.launch(st, step, wild, uint32(1), uint32(1)))
	s.ok(s.launch(st, step, driver.CUdeviceptr(host), uint32(1), uint32(1)))
	gate.open()
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuStreamSynchronize(st))
	require.Zero(s.T, words(host, 1)[0])
}

func faultGraph(s *suite) {
	s.needFaults()
	fn, st, g := s.hostFn(), s.stream(), s.graph()
	data, count := s.counter()
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(s.kernel("step"), wild, uint32(1), uint32(1)))
	s.ok(r)
	_, r = s.CuGraphAddHostNode(g, []driver.CUgraphNode{n}, &driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: data})
	s.ok(r)
	s.ok(s.CuGraphLaunch(s.instantiate(g), st))
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuStreamSynchronize(st))
	require.Zero(s.T, count())
}
