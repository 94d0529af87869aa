// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/sim"
)

// crashes collects what would have ended the process.
type crashes struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

func (c *crashes) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

func (c *crashes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts := c.texts
	c.texts = nil
	return texts
}

func openHostile(t *testing.T) (*one, *crashes) {
	t.Helper()
	c := &crashes{}
	api, err := sim.Open(sim.Options{Config: "hostile=1", CallHost: callHost, Printf: io.Discard, Crash: c.add})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	return newOne(t, api), c
}

// captureAndRecord begins and ends captures of a stream while another thread
// records into it.
func (o *one) captureAndRecord(t *testing.T, n int, lock, unlock func()) {
	t.Helper()
	e := o.newEvent(t)
	done := make(chan struct{})
	var records sync.WaitGroup
	records.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case <-done:
				return
			default:
				lock()
				o.CuEventRecord(e, o.stream)
				unlock()
			}
		}
	})
	for range n {
		lock()
		ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
		unlock()
		lock()
		g, r := o.CuStreamEndCapture(o.stream)
		unlock()
		ok(t, r)
		ok(t, o.CuGraphDestroy(g))
	}
	close(done)
	records.Wait()
}

func TestRecordMeetsCapture(t *testing.T) {
	o, c := openHostile(t)
	o.captureAndRecord(t, 200, func() {}, func() {})
	texts := c.take()
	require.NotEmpty(t, texts)
	for _, text := range texts {
		require.Regexp(t, `^simulated driver: (cuEventRecord entered stream 0x\w+ while cuStream(Begin|End)Capture of it was running|`+
			`cuStream(Begin|End)Capture of stream 0x\w+ was called while cuEventRecord into it was running, or cuEventDestroy of an event that its capture has recorded): NVIDIA's driver crashes here$`, text)
	}
}

func TestRecordExcludesCapture(t *testing.T) {
	o, c := openHostile(t)
	var mu sync.Mutex
	o.captureAndRecord(t, 200, mu.Lock, mu.Unlock)
	require.Empty(t, c.take())
}

// captureAndDestroy captures records of events in a stream that joins, as that of
// another library may, and has another thread destroy them.
func (o *one) captureAndDestroy(t *testing.T, n int, after bool) {
	t.Helper()
	events := make(chan driver.CUevent, 2*n)
	var destroys sync.WaitGroup
	destroys.Go(func() {
		for e := range events {
			ok(t, o.CuEventDestroy(e))
		}
	})
	for range n {
		e, r := o.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
		ok(t, r)
		ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
		ok(t, o.CuEventRecord(e, o.stream))
		if !after {
			events <- e
		}
		g, r := o.CuStreamEndCapture(o.stream)
		ok(t, r)
		if after {
			events <- e
		}
		ok(t, o.CuGraphDestroy(g))
	}
	close(events)
	destroys.Wait()
}

func TestDestroyOfCapturedEventMeetsEnd(t *testing.T) {
	o, c := openHostile(t)
	o.captureAndDestroy(t, 200, false)
	texts := c.take()
	require.NotEmpty(t, texts)
	for _, text := range texts {
		require.Regexp(t, `cuEventDestroy`, text)
	}
}

func TestDestroyOfCapturedEventAfterEnd(t *testing.T) {
	o, c := openHostile(t)
	o.captureAndDestroy(t, 200, true)
	require.Empty(t, c.take())
}

// captureAndAsk captures in a stream that another joins, about which another thread
// asks the driver.
func (o *one) captureAndAsk(t *testing.T, n int, ask func(driver.CUstream) driver.CUresult) {
	t.Helper()
	joins, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(t, r)
	e := o.newEvent(t)
	done := make(chan struct{})
	var asks sync.WaitGroup
	asks.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				ok(t, ask(joins))
			}
		}
	})
	for range n {
		ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
		ok(t, o.CuEventRecord(e, o.stream))
		ok(t, o.CuStreamWaitEvent(joins, e, 0))
		g, r := o.CuStreamEndCapture(o.stream)
		ok(t, r)
		ok(t, o.CuGraphDestroy(g))
	}
	close(done)
	asks.Wait()
}

func TestQuestionAmidTheEndOfACapture(t *testing.T) {
	o, c := openHostile(t)
	for _, deps := range []bool{false, true} {
		o.captureAndAsk(t, 200, func(s driver.CUstream) driver.CUresult {
			_, r := o.CuStreamGetCaptureInfo(s, deps)
			return r
		})
		texts := c.take()
		require.NotEmpty(t, texts)
		for _, text := range texts {
			require.Regexp(t, `cuStreamGetCaptureInfo asked about its capture`, text)
		}
	}
}

func TestOneMayAskAmidTheEndWhetherItCaptures(t *testing.T) {
	o, c := openHostile(t)
	o.captureAndAsk(t, 200, func(s driver.CUstream) driver.CUresult {
		_, r := o.CuStreamIsCapturing(s)
		return r
	})
	require.Empty(t, c.take())
}

func TestStaleStreamCrashes(t *testing.T) {
	o, c := openHostile(t)
	s, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(t, r)
	e := o.newEvent(t)
	ok(t, o.CuStreamDestroy(s))
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuStreamDestroy(s))
	require.Empty(t, c.take())
	config := o.config
	config.HStream = s
	calls := map[string]func() driver.CUresult{
		"cuEventRecord":    func() driver.CUresult { return o.CuEventRecord(e, s) },
		"cuStreamQuery":    func() driver.CUresult { return o.CuStreamQuery(s) },
		"cuLaunchKernelEx": func() driver.CUresult { return o.CuLaunchKernelEx(&config, o.kernel, o.args) },
	}
	for name, call := range calls {
		require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, call())
		texts := c.take()
		require.Len(t, texts, 1)
		require.Regexp(t, "^simulated driver: "+name+" was called with stream 0x", texts[0])
	}
}

// Of a process that waits for a context while it destroys a pool: see contextTraffic.
func TestPoolGoesDuringAWait(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{})
	c := &crashes{}
	api, err := sim.Open(sim.Options{
		CallHost: func(driver.CUhostFn, uintptr) { close(inside); <-release }, Printf: io.Discard, Crash: c.add,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	o := newOne(t, api)
	pool, r := o.CuMemPoolCreate(&driver.CUmemPoolProps{
		AllocType: int32(driver.CU_MEM_ALLOCATION_TYPE_PINNED), LocationType: int32(driver.CU_MEM_LOCATION_TYPE_DEVICE),
	})
	ok(t, r)
	ok(t, o.CuLaunchHostFunc(o.stream, 1, 2))
	<-inside
	waited := make(chan driver.CUresult)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		waited <- max(o.CuCtxSetCurrent(o.ctx), o.CuCtxSynchronize())
	}()
	time.Sleep(10 * time.Millisecond)
	ok(t, o.CuMemPoolTrimTo(pool, 0))
	require.Empty(t, c.take())
	ok(t, o.CuMemPoolDestroy(pool))
	require.Len(t, c.take(), 1)
	close(release)
	ok(t, <-waited)
}

// TestCrashEndsTheProcess runs itself again, without a hook.
func TestCrashEndsTheProcess(t *testing.T) {
	if os.Getenv("CUDAGO_TEST_CRASH") != "" {
		o := newOne(t, open(t, "hostile=1"))
		defer func() { _ = recover() }()
		o.CuStreamQuery(o.stream + 1)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestCrashEndsTheProcess$")
	child.Env = append(os.Environ(), "CUDAGO_TEST_CRASH=1")
	out, err := child.CombinedOutput()
	require.Error(t, err, string(out))
	require.Contains(t, string(out), "simulated driver: cuStreamQuery was called with stream 0x")
	require.Contains(t, string(out), "NVIDIA's driver crashes here\n")
}
