// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// checking opens a driver with the given checks on.
func checking(t *testing.T, checks string) (*one, driver.Checker) {
	t.Helper()
	o := newOne(t, open(t, "workers=2"))
	c := driver.CheckerOf(o.API)
	was, err := c.SetChecks(checks)
	require.NoError(t, err)
	require.Empty(t, was)
	return o, c
}

func (o *one) newStream(t *testing.T) driver.CUstream {
	t.Helper()
	s, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(t, r)
	return s
}

func (o *one) newEvent(t *testing.T) driver.CUevent {
	t.Helper()
	e, r := o.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	ok(t, r)
	return e
}

// touch launches kernel touch on o.memory in a stream.
func (o *one) touch(t *testing.T, s driver.CUstream) {
	t.Helper()
	config := o.config
	config.HStream = s
	ok(t, o.CuLaunchKernelEx(&config, o.kernel, o.args))
}

// finish waits for all work without failing on what was found.
func (o *one) finish(t *testing.T) {
	t.Helper()
	if r := o.CuCtxSynchronize(); r != driver.CUDA_SUCCESS {
		require.Equal(t, driver.CUDAGO_CHECK_FAILED, r)
	}
}

func TestSetChecks(t *testing.T) {
	c := driver.CheckerOf(open(t, ""))
	require.Equal(t, []string{"races", "uninitialized", "host"}, c.CheckNames())
	for _, names := range []string{"races", "uninitialized,collect", "races,uninitialized,host"} {
		_, err := c.SetChecks(names)
		require.NoError(t, err)
		was, err := c.SetChecks("all")
		require.NoError(t, err)
		require.Equal(t, names, was)
	}
	was, err := c.SetChecks("")
	require.NoError(t, err)
	require.Equal(t, "races,uninitialized,host", was)
	_, err = c.SetChecks("races,leaks")
	require.ErrorContains(t, err, `got "leaks"`)
	was, err = driver.CheckerOf(open(t, "check=full")).SetChecks("")
	require.NoError(t, err)
	require.Equal(t, "races,uninitialized,host", was)
}

func TestUninitializedRead(t *testing.T) {
	o, c := checking(t, "uninitialized")
	c.NoteSite("model.py:3")
	p, r := o.CuMemAllocAsync(128, o.stream)
	ok(t, r)
	ok(t, o.CuMemsetD8Async(p, 0, 100, o.stream))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuStreamSynchronize(o.stream))
	require.Regexp(t, `^uninitialized read in kernel touch, block \(0,0,0\), thread \(25,0,0\) \(PTX line 12: ld\.global\.u32 %r1, \[%d2\]\): `+
		`4 bytes at 0x\w+ were never written; at offset 100 of device memory of 128 bytes at 0x\w+, allocated at model\.py:3 \(cuMemAllocAsync\) `+
		`\(buffer \d+\); 7 times; parameter 0 \(p\) points to it$`, o.FaultReport(o.ctx))
	ok(t, o.CuStreamSynchronize(o.stream))
	require.Equal(t, uint32(1), o.read(t, p)[3])

	p, r = o.CuMemAlloc(128)
	ok(t, r)
	out := make([]uint32, 32)
	ok(t, o.CuMemcpyAsync(o.memory, p, 128, o.stream))
	ok(t, o.CuCtxSynchronize())
	ok(t, o.CuMemcpyAsync(address(out), p, 128, o.stream))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuCtxSynchronize(), "a copy to the host looks at what one inside the device only passes on")
	require.Regexp(t, "^uninitialized read in a copy of 128 bytes in stream .*: 128 bytes at", o.FaultReport(o.ctx))
}

// TestUnwatchedWorkWrites: work that was launched without checks may have
// written anything.
func TestUnwatchedWorkWrites(t *testing.T) {
	o, c := checking(t, "uninitialized")
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	_, err := c.SetChecks("")
	require.NoError(t, err)
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	_, err = c.SetChecks("uninitialized")
	require.NoError(t, err)
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.pointerTo(t, p)))
	ok(t, o.CuStreamSynchronize(o.stream))
}

func TestRacingStreams(t *testing.T) {
	o, c := checking(t, "races")
	other := o.newStream(t)
	o.touch(t, o.stream)
	c.NoteSite("step.py:8")
	o.touch(t, other)
	o.finish(t)
	report := o.FaultReport(o.ctx)
	require.Regexp(t, `^race in global memory in kernel touch, block \(0,0,0\), thread \(0,0,0\) \(PTX line 1[24]: .*\): it (reads|writes) 4 bytes at `+
		`0x\w+, and kernel touch in stream \d+(, launched at step\.py:8)? (wrote|read) them in block \(0,0,0\), thread \(0,0,0\) \(PTX line 1[24]: .*\); `+
		`nothing orders the two: .*; 32 times; parameter 0 \(p\) points to it`, report)
	require.Contains(t, c.TakeReports()[0], "race in global memory")
	o.touch(t, other)
	ok(t, o.CuCtxSynchronize())
}

func TestCollect(t *testing.T) {
	o, c := checking(t, "races,collect")
	other := o.newStream(t)
	o.touch(t, o.stream)
	o.touch(t, other)
	ok(t, o.CuCtxSynchronize())
	require.Len(t, c.TakeReports(), 2)
	require.Empty(t, c.TakeReports())
}

func TestOrderedStreams(t *testing.T) {
	order := map[string]func(t *testing.T, o *one, other driver.CUstream){
		"event": func(t *testing.T, o *one, other driver.CUstream) {
			e := o.newEvent(t)
			ok(t, o.CuEventRecord(e, o.stream))
			ok(t, o.CuStreamWaitEvent(other, e, 0))
		},
		"event that is long past": func(t *testing.T, o *one, other driver.CUstream) {
			e, past := o.newEvent(t), o.newEvent(t)
			ok(t, o.CuEventRecord(e, o.stream))
			third := o.newStream(t)
			ok(t, o.CuStreamWaitEvent(third, e, 0))
			ok(t, o.CuEventRecord(past, third))
			for o.CuEventQuery(past) == driver.CUDA_ERROR_NOT_READY {
			}
			ok(t, o.CuStreamWaitEvent(other, past, 0))
		},
		"stream synchronized": func(t *testing.T, o *one, other driver.CUstream) { ok(t, o.CuStreamSynchronize(o.stream)) },
		"stream queried": func(t *testing.T, o *one, other driver.CUstream) {
			for o.CuStreamQuery(o.stream) == driver.CUDA_ERROR_NOT_READY {
			}
		},
		"event synchronized": func(t *testing.T, o *one, other driver.CUstream) {
			e := o.newEvent(t)
			ok(t, o.CuEventRecord(e, o.stream))
			ok(t, o.CuEventSynchronize(e))
		},
		"context synchronized": func(t *testing.T, o *one, other driver.CUstream) { ok(t, o.CuCtxSynchronize()) },
		"host function": func(t *testing.T, o *one, other driver.CUstream) {
			const fn driver.CUhostFn = 0xC9
			done := make(chan struct{})
			hostFunctions[fn] = func(uintptr) { close(done) }
			ok(t, o.CuLaunchHostFunc(o.stream, fn, 0))
			<-done
			delete(hostFunctions, fn)
		},
	}
	for name, order := range order {
		t.Run(name, func(t *testing.T) {
			o, c := checking(t, "all")
			ok(t, o.CuMemsetD32Async(o.memory, 0, 32, o.stream))
			other := o.newStream(t)
			o.touch(t, o.stream)
			order(t, o, other)
			o.touch(t, other)
			ok(t, o.CuStreamDestroy(other))
			ok(t, o.CuCtxSynchronize())
			o.touch(t, o.stream)
			ok(t, o.CuCtxSynchronize())
			require.Empty(t, c.TakeReports())
		})
	}
}

// TestOrderOfManyStreams: the state does not grow with the number of streams
// ever created.
func TestOrderOfManyStreams(t *testing.T) {
	o, c := checking(t, "races")
	for range 200 {
		s := o.newStream(t)
		o.touch(t, s)
		ok(t, o.CuStreamSynchronize(s))
		ok(t, o.CuStreamDestroy(s))
		o.touch(t, o.stream)
		e := o.newEvent(t)
		ok(t, o.CuEventRecord(e, o.stream))
		ok(t, o.CuEventSynchronize(e))
		ok(t, o.CuEventDestroy(e))
	}
	require.Empty(t, c.TakeReports())
	o.touch(t, o.stream)
	o.touch(t, o.newStream(t))
	o.finish(t)
	require.NotEmpty(t, c.TakeReports())
}

func TestDefaultStreamOrders(t *testing.T) {
	o, c := checking(t, "races")
	blocking, r := o.CuStreamCreateWithPriority(0, 0)
	ok(t, r)
	for range 3 {
		o.touch(t, blocking)
		o.touch(t, driver.CU_STREAM_LEGACY)
	}
	ok(t, o.CuCtxSynchronize())
	o.touch(t, driver.CU_STREAM_LEGACY)
	o.touch(t, o.stream) // non-blocking
	o.finish(t)
	require.NotEmpty(t, c.TakeReports())
}

func TestMissingEdge(t *testing.T) {
	o, c := checking(t, "races")
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	first := o.touching(t, g, o.args)
	second := o.touching(t, g, o.args)
	c.NameNodes([]driver.CUgraphNode{first, second}, []string{"left", "right"})
	x := o.instantiate(t, g)
	ok(t, o.CuGraphLaunch(x, o.stream))
	o.finish(t)
	reports := strings.Join(c.TakeReports(), "\n")
	require.Regexp(t, `graph launch, node "right": race in global memory in kernel touch, .* and kernel touch, node "left" of a graph launch in stream \d+ (wrote|read) them`, reports)

	empty, r := o.CuGraphAddEmptyNode(g, []driver.CUgraphNode{first})
	ok(t, r)
	ok(t, o.CuGraphAddDependencies(g, []driver.CUgraphNode{empty}, []driver.CUgraphNode{second}, make([]driver.CUgraphEdgeData, 1)))
	x = o.instantiate(t, g)
	other := o.newStream(t)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuGraphLaunch(x, other))
	o.finish(t)
	require.Empty(t, c.TakeReports(), "launches of one executable follow each other")
}

func TestRacingCopies(t *testing.T) {
	o, c := checking(t, "races")
	host, r := o.CuMemHostAlloc(128, 0)
	ok(t, r)
	other := o.newStream(t)
	ok(t, o.CuMemcpyAsync(driver.CUdeviceptr(host), o.memory, 128, o.stream))
	ok(t, o.CuMemcpyAsync(o.memory, driver.CUdeviceptr(host), 128, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuMemcpyAsync(driver.CUdeviceptr(host), o.memory, 128, o.stream))
	ok(t, o.CuMemsetD8Async(o.memory, 0, 64, other))
	o.finish(t)
	require.Regexp(t, `race in global memory in a (copy of 128|fill of 64) bytes in stream \d+: it (reads|writes) 4 bytes at 0x\w+, and a (fill|copy) of`,
		strings.Join(c.TakeReports(), "\n"))
}

func TestHostAccessBeforeTheEnd(t *testing.T) {
	o, c := checking(t, "all")
	ok(t, o.CuMemsetD32Async(o.memory, 5, 32, o.stream))
	host, r := o.CuMemHostAlloc(128, 0)
	ok(t, r)
	c.HostAccess(host, 128)
	ok(t, o.CuMemcpyAsync(driver.CUdeviceptr(host), o.memory, 128, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	c.HostAccess(host, 128)
	require.Empty(t, c.TakeReports())

	release := holdStream(t, o)
	ok(t, o.CuMemcpyAsync(driver.CUdeviceptr(host), o.memory, 128, o.stream))
	c.NoteSite("main.py:7")
	c.HostAccess(host+64, 64)
	release()
	o.finish(t)
	require.Regexp(t, `race in global memory in a copy of 128 bytes in stream \d+: it writes 4 bytes at 0x\w+, and the host at main\.py:7 read them; the host did not wait for the stream; at offset 64 of pinned host memory of 128 bytes at 0x\w+, allocated at cuMemHostAlloc`,
		strings.Join(c.TakeReports(), "\n"))
}
