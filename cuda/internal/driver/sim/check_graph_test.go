// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// touching adds a node that runs kernel touch on the memory that args point to.
func (o *one) touching(t *testing.T, g driver.CUgraph, args unsafe.Pointer, deps ...driver.CUgraphNode) driver.CUgraphNode {
	t.Helper()
	n, r := o.CuGraphAddKernelNode(g, deps, o.touchParams(args))
	ok(t, r)
	return n
}

func (o *one) touchParams(args unsafe.Pointer) *driver.CUDA_KERNEL_NODE_PARAMS {
	return &driver.CUDA_KERNEL_NODE_PARAMS{
		Func: o.kernel, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, KernelParams: args,
	}
}

func (o *one) instantiate(t *testing.T, g driver.CUgraph) driver.CUgraphExec {
	t.Helper()
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	return x
}

// requireDangling requires that a launch is refused, for a reason that matches,
// and that nothing of it ran.
func (o *one) requireDangling(t *testing.T, x driver.CUgraphExec, reason string) {
	t.Helper()
	before := o.read(t, o.memory)[0]
	for range 2 {
		require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream))
		require.Regexp(t, "^graph launch refused, nothing ran: "+reason, o.FaultReport(o.ctx))
	}
	require.Empty(t, o.FaultReport(o.ctx), "it was told")
	require.Equal(t, before, o.read(t, o.memory)[0])
}

func TestDanglingKernelParameter(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAllocAsync(128, o.stream)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	first := o.touching(t, g, o.args)
	second := o.touching(t, g, o.pointerTo(t, p+64), first)
	checker := driver.CheckerOf(o.API)
	checker.NameNodes([]driver.CUgraphNode{second}, []string{"step"})
	x := o.instantiate(t, g)
	ok(t, o.CuGraphLaunch(x, o.stream))

	checker.NoteSite("train.py:12")
	ok(t, o.CuMemFreeAsync(p, o.stream))
	o.requireDangling(t, x, `node "step": kernel touch, parameter 0 \(p\) is 0x\w+40, at offset 64 of freed device memory of 128 `+
		`bytes at 0x\w+00, allocated at cuMemAllocAsync \(buffer \d+\), freed at train\.py:12 \(cuMemFreeAsync\)$`)
	require.Contains(t, checker.TakeReports()[0], `node "step"`)

	ok(t, o.CuGraphNodeSetEnabled(x, second, false))
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuGraphNodeSetEnabled(x, second, true))
	o.requireDangling(t, x, `node "step"`)
	ok(t, o.CuGraphExecKernelNodeSetParams(x, second, o.touchParams(o.args)))
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuGraphExecKernelNodeSetParams(x, first, o.touchParams(o.pointerTo(t, p))))
	o.requireDangling(t, x, "node 0: kernel touch")
}

func TestDanglingFreeThatIsOnlyQueued(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAllocAsync(128, o.stream)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	o.touching(t, g, o.pointerTo(t, p))
	x := o.instantiate(t, g)
	release := holdStream(t, o)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuMemFreeAsync(p, o.stream))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream))
	require.Contains(t, o.FaultReport(o.ctx), "freed device memory of 128 bytes")
	release()
	ok(t, o.CuStreamSynchronize(o.stream))
}

// holdStream keeps o's stream from going on until release is called.
func holdStream(t *testing.T, o *one) (release func()) {
	t.Helper()
	const fn driver.CUhostFn = 0xC7
	gate := make(chan struct{})
	hostFunctions[fn] = func(uintptr) { <-gate }
	ok(t, o.CuLaunchHostFunc(o.stream, fn, 0))
	return func() {
		close(gate)
		o.finish(t)
		delete(hostFunctions, fn)
	}
}

func TestDanglingFill(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	inner, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddMemsetNode(inner, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p + 8, ElementSize: 1, Width: 4, Height: 1}, 0)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddEmptyNode(g, nil)
	ok(t, r)
	_, r = o.CuGraphAddChildGraphNode(g, nil, inner)
	ok(t, r)
	x := o.instantiate(t, g)
	ok(t, o.CuMemFree(p))
	o.requireDangling(t, x, `node 0 of the child graph, node 1: fill of 4 bytes, its destination is 0x\w+08, at offset 8 of freed`)
}

func TestDanglingGraphMemory(t *testing.T) {
	o := newOne(t, open(t, ""))
	ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	p, r := o.CuMemAllocAsync(128, o.stream)
	ok(t, r)
	owner, r := o.CuStreamEndCapture(o.stream)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	o.touching(t, g, o.pointerTo(t, p))
	allocate, use := o.instantiate(t, owner), o.instantiate(t, g)
	ok(t, o.CuGraphLaunch(allocate, o.stream))
	ok(t, o.CuGraphLaunch(use, o.stream))
	ok(t, o.CuMemFreeAsync(p, o.stream))
	o.requireDangling(t, use, "node 0: kernel touch, parameter 0 .p. is .* device memory of 128 bytes .*, which is not allocated now")
	ok(t, o.CuGraphLaunch(allocate, o.stream))
	ok(t, o.CuGraphLaunch(use, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
}

// TestDanglingIsToldToItsCaller: other threads that wait meanwhile have nothing to
// do with a refused launch, and do not take its text.
func TestDanglingIsToldToItsCaller(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	o.touching(t, g, o.pointerTo(t, p))
	x := o.instantiate(t, g)
	ok(t, o.CuMemFree(p))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream))
	others := make(chan driver.CUresult)
	go func() {
		runtime.LockOSThread() // and end the thread
		defer close(others)
		others <- o.CuCtxPushCurrent(o.ctx)
		others <- o.CuStreamQuery(o.stream)
		others <- o.CuCtxSynchronize()
		assert.Empty(t, o.FaultReport(o.ctx))
	}()
	for r := range others {
		ok(t, r)
	}
	require.Regexp(t, "^graph launch refused", o.FaultReport(o.ctx))

	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream)) // and nobody asks why
	ok(t, o.CuStreamSynchronize(o.stream))
	require.Empty(t, o.FaultReport(o.ctx))
}

// TestDanglingIsNoGuess: an operand that is no address of ours, or that points
// to live memory, is accepted.
func TestDanglingIsNoGuess(t *testing.T) {
	o := newOne(t, open(t, ""))
	host, r := o.CuMemHostAlloc(128, 0)
	ok(t, r)
	freed, r := o.CuMemAlloc(128)
	ok(t, r)
	ok(t, o.CuMemFree(freed))
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	o.touching(t, g, o.args)
	o.touching(t, g, o.pointerTo(t, driver.CUdeviceptr(host)))
	x := o.instantiate(t, g)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuMemFreeHost(host))
	o.requireDangling(t, x, "node 1: .* freed pinned host memory of 128 bytes")
}

func TestDanglingWithoutFrees(t *testing.T) {
	o := newOne(t, open(t, ""))
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	for _, number := range []driver.CUdeviceptr{12, 1 << 60, o.memory + 1<<30} {
		o.touching(t, g, o.pointerTo(t, number))
	}
	x := o.instantiate(t, g)
	ok(t, o.CuGraphLaunch(x, o.stream))
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream), "the kernel itself finds out")
}
