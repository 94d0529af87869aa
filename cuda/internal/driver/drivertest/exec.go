// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var execs = map[string]func(*suite){
	"executable of an empty graph runs":             execEmpty,
	"executable is independent of its graph":        execIndependent,
	"executable respects the edges":                 execEdges,
	"executable's launches never overlap":           execSerialised,
	"executables overlap each other":                execOverlap,
	"executable destroyed in flight completes":      execDestroyed,
	"executable of a graph with a cycle is refused": execCycle,
	"executable can be uploaded":                    execUpload,
	"executable's nodes can be disabled":            execDisable,
	"executable refuses flags it does not know":     execFlags,
}

func execEmpty(s *suite) {
	s.launchAndWait(s.instantiate(s.graph()), s.stream())
}

func execIndependent(s *suite) {
	p, step, st := s.word(1), s.kernel("step"), s.stream()
	g, r := s.CuGraphCreate(0)
	s.ok(r)
	n, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(2), uint32(0)))
	s.ok(r)
	x := s.instantiate(g)
	s.ok(s.CuGraphKernelNodeSetParams(n, s.kernelNode(step, p, uint32(100), uint32(0))))
	s.launchAndWait(x, st)
	s.same(2, p)
	s.ok(s.CuGraphDestroy(g))
	s.launchAndWait(x, st)
	s.same(4, p)
}

func execEdges(s *suite) {
	p, g, step := s.word(1), s.graph(), s.kernel("step")
	want := uint32(1)
	var deps []driver.CUgraphNode
	for i := range uint32(10) {
		n, r := s.CuGraphAddKernelNode(g, deps, s.kernelNode(step, p, uint32(3), i))
		s.ok(r)
		deps = []driver.CUgraphNode{n}
		want = want*3 + i
	}
	s.launchAndWait(s.instantiate(g), s.stream())
	s.same(want, p)
}

func execSerialised(s *suite) {
	p, g, step := s.word(0), s.graph(), s.kernel("step")
	_, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(1), uint32(1)))
	s.ok(r)
	x := s.instantiate(g)
	streams := []driver.CUstream{s.stream(), s.stream(), s.stream(), s.stream()}
	for i := range 100 {
		s.ok(s.CuGraphLaunch(x, streams[i%len(streams)]))
	}
	s.same(100, p)
}

func execOverlap(s *suite) {
	p, q, st, other := s.word(0), s.word(0), s.stream(), s.stream()
	// What the gate orders, a check for races does not see: each has its own word.
	stepOf := func(word driver.CUdeviceptr) driver.CUgraphExec {
		g := s.graph()
		_, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(s.kernel("step"), word, uint32(1), uint32(1)))
		s.ok(r)
		return s.instantiate(g)
	}
	x, y := stepOf(p), stepOf(q)
	gate := s.hold(st)
	s.ok(s.CuGraphLaunch(x, st))
	s.launchAndWait(y, other)
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
	gate.open()
	s.same(1, p)
	s.same(1, q)
}

func execDestroyed(s *suite) {
	p, g, st := s.word(0), s.graph(), s.stream()
	_, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(s.kernel("step"), p, uint32(1), uint32(1)))
	s.ok(r)
	var params driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	x, r := s.CuGraphInstantiateWithParams(g, &params)
	s.ok(r)
	gate := s.hold(st)
	s.ok(s.CuGraphLaunch(x, st))
	s.ok(s.CuGraphLaunch(x, st))
	s.ok(s.CuGraphExecDestroy(x))
	gate.open()
	s.same(2, p)
}

func execCycle(s *suite) {
	g := s.graph()
	a := s.empty(g)
	b := s.empty(g, a)
	s.ok(s.CuGraphAddDependencies(g, []driver.CUgraphNode{b}, []driver.CUgraphNode{a}, plain))
	var params driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	_, r := s.CuGraphInstantiateWithParams(g, &params)
	refused := r != driver.CUDA_SUCCESS || params.Result_out != driver.CUDA_GRAPH_INSTANTIATE_SUCCESS
	require.True(s.T, refused)
	require.Equal(s.T, driver.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, params.Result_out)
}

func execUpload(s *suite) {
	p, g, st := s.word(0), s.graph(), s.stream()
	_, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(s.kernel("step"), p, uint32(1), uint32(1)))
	s.ok(r)
	x := s.instantiate(g)
	s.ok(s.CuGraphUpload(x, st))
	s.launchAndWait(x, st)
	s.same(1, p)
}

func execDisable(s *suite) {
	p, g, st, step := s.word(1), s.graph(), s.stream(), s.kernel("step")
	a, r := s.CuGraphAddKernelNode(g, nil, s.kernelNode(step, p, uint32(10), uint32(0)))
	s.ok(r)
	b, r := s.CuGraphAddKernelNode(g, []driver.CUgraphNode{a}, s.kernelNode(step, p, uint32(1), uint32(1)))
	s.ok(r)
	x := s.instantiate(g)
	enabled, r := s.CuGraphNodeGetEnabled(x, a)
	s.ok(r)
	require.True(s.T, enabled)
	s.ok(s.CuGraphNodeSetEnabled(x, a, false))
	s.launchAndWait(x, st)
	s.same(2, p)
	s.ok(s.CuGraphNodeSetEnabled(x, a, true))
	s.ok(s.CuGraphNodeSetEnabled(x, b, false))
	s.launchAndWait(x, st)
	s.same(20, p)
	enabled, r = s.CuGraphNodeGetEnabled(x, b)
	s.ok(r)
	require.False(s.T, enabled)
}

func execFlags(s *suite) {
	params := driver.CUDA_GRAPH_INSTANTIATE_PARAMS{Flags: 1 << 20}
	_, r := s.CuGraphInstantiateWithParams(s.graph(), &params)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}
