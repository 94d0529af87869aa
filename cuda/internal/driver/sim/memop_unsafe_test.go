// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// addMemOp adds a node that writes a value to p, or waits until it is there.
func addMemOp(t *testing.T, o *one, g driver.CUgraph, kind driver.CUstreamBatchMemOpType, p driver.CUdeviceptr, value uint64,
	deps ...driver.CUgraphNode) driver.CUgraphNode {
	op := driver.CUstreamBatchMemOpParams{Operation: kind, Address: p, Value: value}
	n, r := o.CuGraphAddBatchMemOpNode(g, deps, &driver.CUDA_BATCH_MEM_OP_NODE_PARAMS{
		Ctx: o.ctx, Count: 1, ParamArray: unsafe.Pointer(&op),
	})
	ok(t, r)
	return n
}

const (
	waits  = driver.CU_STREAM_MEM_OP_WAIT_VALUE_32
	writes = driver.CU_STREAM_MEM_OP_WRITE_VALUE_32
)

func zeroed(t *testing.T, o *one, words uint64) driver.CUdeviceptr {
	p, r := o.CuMemAlloc(4 * words)
	ok(t, r)
	ok(t, o.CuMemsetD32Async(p, 0, words, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	return p
}

// In a graph, a branch that waits does not keep back the branch that writes.
func TestBranchesOfAGraphWaitForEachOther(t *testing.T) {
	for seed := range 10 {
		o := newOne(t, open(t, fmt.Sprintf("seed=%d", seed)))
		p := zeroed(t, o, 2)
		g, r := o.CuGraphCreate(0)
		ok(t, r)
		a := addMemOp(t, o, g, waits, p, 1)
		addMemOp(t, o, g, writes, p+4, 1, a)
		addMemOp(t, o, g, waits, p+4, 1, addMemOp(t, o, g, writes, p, 1))
		x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
		ok(t, r)
		ok(t, o.CuGraphLaunch(x, o.stream))
		ok(t, o.CuStreamSynchronize(o.stream))
	}
}

// With a seed, few goroutines run all streams: one that waits must not keep back
// the others, in whatever order they are chosen.
func TestStreamsWaitForEachOtherInAnyOrder(t *testing.T) {
	for seed := range 20 {
		o := newOne(t, open(t, fmt.Sprintf("seed=%d", seed+1)))
		p := zeroed(t, o, 4)
		streams := make([]driver.CUstream, 4)
		for i := range streams {
			s, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
			ok(t, r)
			streams[i] = s
		}
		at := func(i int) driver.CUdeviceptr { return p + driver.CUdeviceptr(4*(i%4)) }
		for round := range uint32(3) {
			for i, s := range streams { // each waits for the next, and the last for what the first did before
				want := round + 1
				if i == 3 {
					want = round
				}
				ok(t, o.CuStreamWaitValue32(s, at(i+1), want, driver.CU_STREAM_WAIT_VALUE_GEQ))
				ok(t, o.CuStreamWriteValue32(s, at(i), round+1, 0))
			}
		}
		for _, s := range streams {
			ok(t, o.CuStreamSynchronize(s))
		}
	}
}

func TestResetEndsAWait(t *testing.T) {
	o := newOne(t, open(t, ""))
	ok(t, o.CuStreamWaitValue32(o.stream, zeroed(t, o, 1), 1, driver.CU_STREAM_WAIT_VALUE_EQ))
	require.Equal(t, driver.CUDA_ERROR_NOT_READY, o.CuStreamQuery(o.stream))
	ok(t, o.CuDevicePrimaryCtxReset(0))
}

func TestMemOpsRefuse(t *testing.T) {
	o := newOne(t, open(t, ""))
	p := zeroed(t, o, 2)
	managed, r := o.CuMemAllocManaged(8, 1)
	ok(t, r)
	pageable := make([]uint64, 1)
	for name, r := range map[string]driver.CUresult{
		"misaligned":       o.CuStreamWriteValue32(o.stream, p+2, 0, 0),
		"misaligned, wide": o.CuStreamWriteValue64(o.stream, p+4, 0, 0),
		"beyond the end":   o.CuStreamWaitValue64(o.stream, p+8, 0, 0),
		"managed":          o.CuStreamWaitValue32(o.stream, managed, 0, 0),
		"pageable":         o.CuStreamWriteValue32(o.stream, driver.CUdeviceptr(uintptr(unsafe.Pointer(&pageable[0]))), 0, 0),
		"flags of a write": o.CuStreamWriteValue32(o.stream, p, 0, 2),
		"flags of a wait":  o.CuStreamWaitValue32(o.stream, p, 0, 4),
	} {
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE.String(), r.String(), name)
	}
	ok(t, o.CuStreamSynchronize(o.stream))
}
