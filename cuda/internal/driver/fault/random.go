// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// releaseShare is how much more rarely than others a call fails that gives
// something back. One that has failed leaves behind what it was to give back:
// nobody may try again, since the driver may have reported an earlier failure and
// have done it. So each is a leak, which tests count; a few of them are enough.
const releaseShare = 0.1

// odds are what random faults are drawn from.
type odds struct {
	rate float64 // of calls that are made to fail
	seed uint64
}

// FailAtRandom makes that share of all calls fail from now on, with what the
// driver could plausibly say. Whether the n-th call of a method fails depends on
// the seed, and not on what other threads do.
func (d *Driver) FailAtRandom(rate float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.odds.rate = rate
}

// Seed sets what random faults depend on.
func (d *Driver) Seed(seed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.odds.seed = seed
}

// Faults returns how many calls of each method have been made to fail.
func (d *Driver) Faults() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.failed)
}

// draw decides whether the n-th call of a method fails.
func (o odds) draw(call string, n int) driver.CUresult {
	if o.rate <= 0 {
		return driver.CUDA_SUCCESS
	}
	results, share := plausible(call)
	if len(results) == 0 {
		return driver.CUDA_SUCCESS
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(call))
	rnd := rand.New(rand.NewPCG(o.seed^name.Sum64(), uint64(n)))
	if rnd.Float64() >= o.rate*share {
		return driver.CUDA_SUCCESS
	}
	return results[rnd.IntN(len(results))]
}

// certain calls never fail at random. Those at the head ask or set what the
// driver has in memory, and a caller that restores the thread's state by them
// could do nothing about a failure. A reset that fails means what its caller
// makes of it; it is asked for by name.
var certain = map[string]bool{
	"CuCtxGetCurrent": true, "CuCtxSetCurrent": true, "CuCtxPopCurrent": true, "CuCtxGetDevice": true,
	"CuThreadExchangeStreamCaptureMode": true,

	"CuInit": true, "CuDriverGetVersion": true, "CuDeviceGetCount": true, "CuDeviceGet": true,
	"CuDevicePrimaryCtxRelease": true, "CuDevicePrimaryCtxReset": true, "CuDevicePrimaryCtxGetState": true, "CuCtxGetId": true,
}

// plausible returns the codes with which a call can fail at any time, and how
// often it does so relative to other calls. None of them breaks the context for
// good: the wrapped driver would know nothing of it, and its work would go on.
func plausible(call string) (results []driver.CUresult, share float64) {
	switch {
	case certain[call]:
		return nil, 0
	case isRelease(call):
		return []driver.CUresult{driver.CUDA_ERROR_UNKNOWN, driver.CUDA_ERROR_OPERATING_SYSTEM}, releaseShare
	case strings.HasPrefix(call, "CuLaunchKernel"):
		return []driver.CUresult{driver.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, driver.CUDA_ERROR_OUT_OF_MEMORY}, 1
	case makes(call):
		return []driver.CUresult{driver.CUDA_ERROR_OUT_OF_MEMORY}, 1
	}
	return []driver.CUresult{driver.CUDA_ERROR_OUT_OF_MEMORY, driver.CUDA_ERROR_UNKNOWN, driver.CUDA_ERROR_OPERATING_SYSTEM}, 1
}

// isRelease reports whether a call gives something back.
func isRelease(call string) bool {
	for _, word := range []string{"Destroy", "Free", "Unload", "Unregister", "Unmap", "Release", "DisablePeerAccess"} {
		if strings.Contains(call, word) && call != "CuGraphAddMemFreeNode" {
			return true
		}
	}
	return false
}

// makes reports whether a call makes something, which takes memory.
func makes(call string) bool {
	for _, word := range []string{"Create", "Alloc", "Register", "Reserve", "Add", "Clone", "Instantiate", "Load", "Launch", "Retain"} {
		if strings.Contains(call, word) {
			return true
		}
	}
	return false
}
