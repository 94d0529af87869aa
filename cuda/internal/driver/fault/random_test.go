// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// pattern is which of the first calls fail.
func pattern(seed uint64, rate float64, call string, n int) (failed []int) {
	o := odds{rate: rate, seed: seed}
	for i := range n {
		if o.draw(call, i+1) != driver.CUDA_SUCCESS {
			failed = append(failed, i)
		}
	}
	return failed
}

func TestRandomFaultsDependOnTheSeed(t *testing.T) {
	a := pattern(1, 0.1, "CuEventRecord", 1000)
	require.Equal(t, a, pattern(1, 0.1, "CuEventRecord", 1000))
	require.NotEqual(t, a, pattern(2, 0.1, "CuEventRecord", 1000))
	require.NotEqual(t, a, pattern(1, 0.1, "CuEventQuery", 1000))
	require.InDelta(t, 100, len(a), 50)
	require.Empty(t, pattern(1, 0, "CuEventRecord", 1000))
}

func TestReleasesFailMoreRarely(t *testing.T) {
	for _, call := range []string{"CuMemFreeAsync", "CuStreamDestroy", "CuGraphExecDestroy", "CuModuleUnload", "CuMemHostUnregister"} {
		require.InDelta(t, 100, len(pattern(1, 0.1, call, 10000)), 50, call)
	}
	require.InDelta(t, 1000, len(pattern(1, 0.1, "CuGraphAddMemFreeNode", 10000)), 200)
}

// What the driver cannot have done must not be said, and what would end the
// context for good neither: the driver behind would go on.
func TestRandomFaultsArePlausible(t *testing.T) {
	d := New(&counting{})
	d.FailAtRandom(1)
	require.Equal(t, driver.CUDA_SUCCESS, d.CuInit(0))
	require.Empty(t, d.Faults())
	_, r := d.CuMemAlloc(16)
	require.Equal(t, driver.CUDA_ERROR_OUT_OF_MEMORY, r)
	require.Equal(t, map[string]int{"CuMemAlloc": 1}, d.Faults())
	d.FailAtRandom(0)
	_, r = d.CuMemAlloc(16)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, map[string]int{"CuMemAlloc": 1}, d.Faults())
}
