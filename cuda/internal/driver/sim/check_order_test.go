// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// TestOrderIsPruned: the state does not grow with the number of streams ever created.
func TestOrderIsPruned(t *testing.T) {
	api, err := Open(Options{Config: "check=full"})
	require.NoError(t, err)
	defer func() { require.NoError(t, api.Close()) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ok := func(r driver.CUresult) { require.Equal(t, driver.CUDA_SUCCESS, r) }
	ok(api.CuInit(0))
	ctx, r := api.CuDevicePrimaryCtxRetain(0)
	ok(r)
	ok(api.CuCtxPushCurrent(ctx))
	memory, r := api.CuMemAlloc(256)
	ok(r)
	o := &api.(*simulator).check.order
	open, r := api.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(r)
	for range 10 {
		s, r := api.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
		ok(r)
		ok(api.CuMemsetD8Async(memory, 1, 128, s))
		ok(api.CuMemsetD8Async(memory+128, 1, 128, open))
		ok(api.CuStreamSynchronize(s))
		ok(api.CuStreamDestroy(s))
	}
	o.mu.Lock()
	require.Len(t, o.streams, 1)
	require.Empty(t, o.host)
	o.mu.Unlock()
	ok(api.CuCtxSynchronize())
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.streams)
	require.Empty(t, o.host)
	require.Empty(t, o.tasks)
}

// In one launch nobody waits, so a long loop has to forget by itself.
func TestLoopsForget(t *testing.T) {
	var o order
	g := &graphRun{}
	most := 0
	for range 10 * mostTurned {
		g.turned(&o, o.add(&task{run: g}))
		most = max(most, len(o.tasks))
	}
	require.Equal(t, 2*mostTurned-1, most)
	require.Contains(t, o.tasks, o.last)
	require.NotContains(t, o.tasks, o.last-2*mostTurned)
}
