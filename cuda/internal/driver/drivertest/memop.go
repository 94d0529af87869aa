// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var memOps = map[string]func(*suite){
	"value is written behind earlier work":                memOpWrite,
	"value of 64 bits is written and waited for":          memOpWide,
	"wait for a value holds back its stream alone":        memOpWait,
	"wait for a value ends when another stream writes it": memOpHandshake,
	"wait for a value compares in four ways":              memOpCompare,
	"wait for a value compares across the wrap":           memOpWrap,
	"memory operations are captured as nodes":             memOpCapture,
	"memory operations of a node run in order":            memOpNode,
	"memory operation node waits at each launch":          memOpNodeWaits,
	"memory operation node is updated":                    memOpUpdate,
	"memory operations refuse null addresses":             memOpRefusals,
}

// flag is a zeroed word of pinned memory, which the host and the device see. At
// the end of the test it is 1, so that no wait for that is left.
func (s *suite) flag() (*uint32, driver.CUdeviceptr) {
	s.Helper()
	host, r := s.CuMemHostAlloc(4, driver.CU_MEMHOSTALLOC_DEVICEMAP)
	s.ok(r)
	g := &gate{words(host, 1)}
	g.flag[0] = 0
	s.gates = append(s.gates, g)
	s.cleanup(func() {
		s.gates = nil
		s.CuMemFreeHost(host)
	})
	return &g.flag[0], driver.CUdeviceptr(host)
}

func memOpWrite(s *suite) {
	p, flag, st := s.word(1), s.word(0), s.stream()
	gate := s.hold(st)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(3)))
	s.ok(s.CuStreamWriteValue32(st, flag, 0xdeadbeef, 0))
	seen := onHeap([]uint32{7})
	other := s.stream()
	s.ok(s.CuMemcpyAsync(addressOf(seen), flag, 4, other))
	s.ok(s.CuStreamSynchronize(other))
	require.Zero(s.T, seen[0], "written before the work that it follows")
	gate.open()
	s.same(0xdeadbeef, flag)
	s.same(5, p)
}

func memOpWide(s *suite) {
	p, st, waiting := s.alloc(8), s.stream(), s.stream()
	s.ok(s.CuMemsetD32Async(p, 0, 2, st))
	s.ok(s.CuStreamSynchronize(st))
	s.ok(s.CuStreamWaitValue64(waiting, p, 1<<40|5, driver.CU_STREAM_WAIT_VALUE_EQ))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(waiting))
	s.ok(s.CuStreamWriteValue64(st, p, 1<<40|5, 0))
	s.ok(s.CuStreamSynchronize(waiting))
	require.Equal(s.T, []uint32{5, 1 << 8}, s.read(p, 2))
}

func memOpWait(s *suite) {
	host, flag := s.flag()
	p, q, waiting, free, step := s.word(1), s.word(1), s.stream(), s.stream(), s.kernel("step")
	s.ok(s.CuStreamWaitValue32(waiting, flag, 1, driver.CU_STREAM_WAIT_VALUE_GEQ))
	s.ok(s.launch(waiting, step, p, uint32(0), uint32(8)))
	s.ok(s.launch(free, step, q, uint32(0), uint32(9)))
	s.ok(s.CuStreamSynchronize(free))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(waiting))
	atomic.StoreUint32(host, 1)
	s.ok(s.CuStreamSynchronize(waiting))
	s.same(8, p)
	s.same(9, q)
}

func memOpHandshake(s *suite) {
	there, back, p := s.word(0), s.word(0), s.word(0)
	a, b, step := s.stream(), s.stream(), s.kernel("step")
	for i := range uint32(20) {
		s.ok(s.CuStreamWaitValue32(b, there, i+1, driver.CU_STREAM_WAIT_VALUE_GEQ))
		s.ok(s.launch(b, step, p, uint32(1), i))
		s.ok(s.CuStreamWriteValue32(b, back, i+1, 0))
		s.ok(s.CuStreamWriteValue32(a, there, i+1, 0))
		s.ok(s.CuStreamWaitValue32(a, back, i+1, driver.CU_STREAM_WAIT_VALUE_EQ))
	}
	s.ok(s.CuStreamSynchronize(a))
	s.same(190, p)
}

func memOpCompare(s *suite) {
	tests := []struct{ flags, value, no, yes uint32 }{
		{driver.CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6},
		{driver.CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5},
		{driver.CU_STREAM_WAIT_VALUE_AND, 6, 9, 2},
		{driver.CU_STREAM_WAIT_VALUE_NOR, 0xffff0000, 0x0000ffff, 0x0000fffe},
	}
	for _, tt := range tests {
		p, st, waiting := s.word(tt.no), s.stream(), s.stream()
		s.ok(s.CuStreamWaitValue32(waiting, p, tt.value, tt.flags))
		s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(waiting))
		s.ok(s.CuStreamWriteValue32(st, p, tt.yes, 0))
		s.ok(s.CuStreamSynchronize(waiting))
	}
}

func memOpWrap(s *suite) {
	p, st, waiting := s.word(0xfffffff0), s.stream(), s.stream()
	s.ok(s.CuStreamWaitValue32(waiting, p, 3, driver.CU_STREAM_WAIT_VALUE_GEQ))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(waiting))
	s.ok(s.CuStreamWriteValue32(st, p, 3, 0))
	s.ok(s.CuStreamSynchronize(waiting))
	s.ok(s.CuStreamWaitValue32(waiting, p, 0xfffffff0, driver.CU_STREAM_WAIT_VALUE_GEQ))
	s.ok(s.CuStreamSynchronize(waiting))
}

func memOpCapture(s *suite) {
	p, flag, st := s.word(0), s.word(0), s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	s.ok(s.CuStreamWriteValue32(st, flag, 7, 0))
	s.ok(s.CuStreamWaitValue32(st, flag, 7, driver.CU_STREAM_WAIT_VALUE_EQ))
	s.ok(s.launch(st, s.kernel("step"), p, uint32(1), uint32(2)))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	list, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Len(s.T, list, 3)
	count := 0
	for _, n := range list {
		kind, r := s.CuGraphNodeGetType(n)
		s.ok(r)
		if kind == driver.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP {
			count++
		}
	}
	require.Equal(s.T, 2, count)
	s.same(0, flag)
	x := s.instantiate(g)
	s.launchAndWait(x, st)
	s.launchAndWait(x, st)
	s.same(7, flag)
	s.same(4, p)
}

func memOpNode(s *suite) {
	p, q, g := s.word(0), s.word(0), s.graph()
	s.memOpNode(g, nil,
		driver.CUstreamBatchMemOpParams{Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_32, Address: p, Value: 3},
		driver.CUstreamBatchMemOpParams{
			Operation: driver.CU_STREAM_MEM_OP_WAIT_VALUE_32, Address: p, Value: 3, Flags: driver.CU_STREAM_WAIT_VALUE_EQ,
		},
		driver.CUstreamBatchMemOpParams{Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_32, Address: q, Value: 4})
	s.launchAndWait(s.instantiate(g), s.stream())
	s.same(3, p)
	s.same(4, q)
}

func memOpNodeWaits(s *suite) {
	host, flag := s.flag()
	p, g, st := s.word(0), s.graph(), s.stream()
	n := s.memOpNode(g, nil, driver.CUstreamBatchMemOpParams{
		Operation: driver.CU_STREAM_MEM_OP_WAIT_VALUE_32, Address: flag, Value: 1,
	})
	_, r := s.CuGraphAddKernelNode(g, []driver.CUgraphNode{n}, s.kernelNode(s.kernel("step"), p, uint32(1), uint32(1)))
	s.ok(r)
	x := s.instantiate(g)
	for range 2 {
		atomic.StoreUint32(host, 0)
		s.ok(s.CuGraphLaunch(x, st))
		s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
		atomic.StoreUint32(host, 1)
		s.ok(s.CuStreamSynchronize(st))
	}
	s.same(2, p)
}

func memOpUpdate(s *suite) {
	p, q, g, st := s.word(0), s.word(0), s.graph(), s.stream()
	write := func(at driver.CUdeviceptr, value uint64) *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS {
		return s.memOps(driver.CUstreamBatchMemOpParams{Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_32, Address: at, Value: value})
	}
	n, r := s.CuGraphAddBatchMemOpNode(g, nil, write(p, 1))
	s.ok(r)
	before := s.instantiate(g)
	s.ok(s.CuGraphBatchMemOpNodeSetParams(n, write(q, 2)))
	after := s.instantiate(g)
	s.launchAndWait(before, st)
	s.same(1, p)
	s.same(0, q)
	s.launchAndWait(after, st)
	s.same(2, q)
	s.ok(s.CuGraphExecBatchMemOpNodeSetParams(before, n, write(q, 3)))
	s.launchAndWait(before, st)
	s.same(1, p)
	s.same(3, q)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphBatchMemOpNodeSetParams(0, write(p, 1)))
}

func memOpRefusals(s *suite) {
	st := s.stream()
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWriteValue32(st, 0, 1, 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWaitValue32(st, 0, 1, 0))
	s.ok(s.CuStreamSynchronize(st))
	pooled, r := s.CuMemAllocAsync(64, st)
	s.ok(r)
	s.ok(s.CuStreamSynchronize(st))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWriteValue32(st, pooled, 1, 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWaitValue32(st, pooled, 1, 0))
	s.ok(s.CuMemFreeAsync(pooled, st))
	s.ok(s.CuStreamSynchronize(st))
}
