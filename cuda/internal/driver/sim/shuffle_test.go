// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// TestShuffledStreams: with a seed, unordered streams run in any order, and the
// work of each stream in its own order.
func TestShuffledStreams(t *testing.T) {
	const fn driver.CUhostFn = 0xCA
	seen := map[string]bool{}
	for seed := range 8 {
		o := newOne(t, open(t, fmt.Sprintf("seed=%d", seed+1)))
		var mu sync.Mutex // streams without an order may run at the same time
		var ran []byte
		hostFunctions[fn] = func(i uintptr) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, byte(i))
		}
		// All of it is there before any of it can run.
		release := holdStream(t, o)
		e := o.newEvent(t)
		ok(t, o.CuEventRecord(e, o.stream))
		for _, name := range "abc" {
			s := o.newStream(t)
			ok(t, o.CuStreamWaitEvent(s, e, 0))
			ok(t, o.CuLaunchHostFunc(s, fn, uintptr(name)))
			ok(t, o.CuLaunchHostFunc(s, fn, uintptr(name-'a'+'A')))
			ok(t, o.CuStreamWaitEvent(o.stream, e, 0))
		}
		release()
		delete(hostFunctions, fn)
		order := string(ran)
		require.Len(t, order, 6)
		for _, name := range "abc" {
			require.Less(t, indexOf(order, name), indexOf(order, name-'a'+'A'), order)
		}
		seen[order] = true
	}
	require.Greater(t, len(seen), 1, "%v", seen)
}

func indexOf(s string, c rune) int {
	for i, x := range s {
		if x == c {
			return i
		}
	}
	return -1
}

func TestStepBudget(t *testing.T) {
	o := newOne(t, open(t, "steps=1e5"))
	config := o.config
	config.BlockDimX = 1
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, spinPTX, "spin"), nil))
	require.Equal(t, driver.CUDA_ERROR_LAUNCH_TIMEOUT, o.CuStreamSynchronize(o.stream))
	require.Regexp(t, `^step budget exhausted in kernel spin, block \(0,0,0\), thread \(0,0,0\), PTX line 7: bra again.*more than 100000 loop iterations`,
		o.FaultReport(o.ctx))
}

func TestCancel(t *testing.T) {
	o := newOne(t, open(t, ""))
	config := o.config
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, spinPTX, "spin"), nil))
	c := driver.CheckerOf(o.API)
	for o.CuStreamQuery(o.stream) == driver.CUDA_ERROR_NOT_READY {
		c.Cancel() // repeatedly, since the kernel may not have begun
	}
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuStreamSynchronize(o.stream))
	require.Regexp(t, `^canceled in kernel spin, block \(0,0,0\), thread \(0,0,0\)`, o.FaultReport(o.ctx))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	ok(t, o.CuStreamSynchronize(o.stream))
}

func TestInterrupt(t *testing.T) {
	o := newOne(t, open(t, ""))
	c := driver.CheckerOf(o.API)
	require.Empty(t, c.Interrupt(time.Hour), "nothing runs")
	config := o.config
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, spinPTX, "spin"), nil))
	var ended []string
	for len(ended) == 0 {
		ended = c.Interrupt(time.Hour) // repeatedly, since the kernel may not have begun
	}
	require.Len(t, ended, 1)
	require.Regexp(t, `^canceled in kernel spin, block \(0,0,0\), thread \(0,0,0\)`, ended[0])
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
	ok(t, o.CuStreamSynchronize(o.stream))
	require.Empty(t, c.TakeReports(), "it was told")
}

// A caller that does not wait for the end of a kernel learns of it from the next wait.
func TestInterruptWithoutPatience(t *testing.T) {
	o := newOne(t, open(t, ""))
	c := driver.CheckerOf(o.API)
	config := o.config
	ok(t, o.CuLaunchKernelEx(&config, o.load(t, spinPTX, "spin"), nil))
	var told []string
	for o.CuStreamQuery(o.stream) == driver.CUDA_ERROR_NOT_READY {
		told = append(told, c.Interrupt(0)...)
	}
	if r := o.CuStreamSynchronize(o.stream); r != driver.CUDA_SUCCESS {
		require.Equal(t, driver.CUDAGO_CHECK_FAILED, r)
		told = append(told, o.FaultReport(o.ctx))
	}
	require.Len(t, told, 1)
	require.Regexp(t, `^canceled in kernel spin`, told[0])
}

// A wait node whose event a graph in another stream records: the shuffler runs
// that graph inside the wait.
func TestShuffledEventNodes(t *testing.T) {
	for seed := range 8 {
		o := newOne(t, open(t, "seed="+strconv.Itoa(seed+1)))
		e, other := o.newEvent(t), o.newStream(t)
		recording, r := o.CuGraphCreate(0)
		ok(t, r)
		waiting, r := o.CuGraphCreate(0)
		ok(t, r)
		_, r = o.CuGraphAddEventRecordNode(recording, []driver.CUgraphNode{o.touching(t, recording, o.args)}, e)
		ok(t, r)
		n, r := o.CuGraphAddEventWaitNode(waiting, nil, e)
		ok(t, r)
		o.touching(t, waiting, o.args, n)
		ok(t, o.CuGraphLaunch(o.instantiate(t, recording), o.stream))
		ok(t, o.CuGraphLaunch(o.instantiate(t, waiting), other))
		// Without helping, as a call that waits would.
		for deadline := time.Now().Add(10 * time.Second); o.CuStreamQuery(other) == driver.CUDA_ERROR_NOT_READY; {
			require.True(t, time.Now().Before(deadline), "the wait node waits forever")
			time.Sleep(time.Millisecond)
		}
		require.EqualValues(t, 2, o.read(t, o.memory)[0])
	}
}
