// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package drivertest is the conformance suite of the drivers: behaviours that
// hold for every driver.API, on NVIDIA's hardware as on the simulated device.
// What only one driver promises is tested in that driver's package.
package drivertest

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Options say what the suite may expect of the place where it runs.
type Options struct {
	// HostFn is a C function that atomically adds 1 to the int64 at userData.
	// Without it, behaviours of host functions are skipped.
	HostFn driver.CUhostFn

	// Exporter stands for another API. Without it, behaviours of what is imported
	// from there are skipped.
	Exporter Exporter

	// Faults says that a device survives a kernel's fault, so that behaviours
	// that cause one may run. On hardware they would end the process's use of
	// the device.
	Faults bool

	test string // that called Run
}

// Run tests the driver that open returns. Each behaviour opens it anew; open
// arranges for it to be closed, and skips where there is no device.
func Run(t *testing.T, open func(t *testing.T) driver.API, o Options) {
	o.test = t.Name()
	if os.Getenv(sharesMemory) != "" {
		newSuite(t, open(t), o).share()
		return
	}
	for _, group := range groups {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			t.Run(name, func(t *testing.T) { group[name](newSuite(t, open(t), o)) })
		}
	}
}

var groups = []map[string]func(*suite){
	devices, contexts, memories, exhaustions, registrations, managed, copies, pools, sharedPools, importedMemories, importedHostMemories, sharedEvents, batches, virtuals, sharedVirtuals, streams, greens, memOps, externals, events, hostFunctions, modules, launches, tensorMaps, textures, arrays, mipmaps, cubes,
	peers, graphs, edges, nodes, graphMemories, movedGraphs, conditionals, execs, updates, captures, invalidations, faults, resets,
}

// suite is what a behaviour works with: a driver, and the primary context of
// device 0, current on the test's thread.
type suite struct {
	*testing.T
	driver.API
	options Options
	dev     driver.CUdevice
	ctx     driver.CUcontext
	kernels map[string]driver.CUfunction
	gates   []*gate
	resets  int // of the device; what was made before the last one is gone
}

func newSuite(t *testing.T, api driver.API, o Options) *suite {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	s := &suite{T: t, API: api, options: o}
	s.ok(api.CuInit(0))
	var r driver.CUresult
	s.dev, r = api.CuDeviceGet(0)
	s.ok(r)
	s.ctx, r = api.CuDevicePrimaryCtxRetain(s.dev)
	s.ok(r)
	s.ok(api.CuCtxPushCurrent(s.ctx))
	t.Cleanup(func() {
		popped, r := api.CuCtxPopCurrent()
		require.Equal(t, driver.CUDA_SUCCESS, r)
		require.Equal(t, s.ctx, popped, "the behaviour left another context current")
		require.Equal(t, driver.CUDA_SUCCESS, api.CuDevicePrimaryCtxRelease(s.dev))
	})
	s.loadKernels()
	return s
}

// cleanup runs f when the test ends. Gates are opened before: f may wait for
// the device, also when the test failed before it came to open them. What a
// reset took away is left alone: NVIDIA's driver may follow a stale handle.
func (s *suite) cleanup(f func()) {
	made := s.resets
	s.Cleanup(func() {
		if made != s.resets {
			return
		}
		for _, g := range s.gates {
			g.open()
		}
		f()
	})
}

// ok requires success.
func (s *suite) ok(r driver.CUresult) {
	s.Helper()
	require.Equal(s.T, driver.CUDA_SUCCESS, r, r.String())
}

// code requires a result.
func (s *suite) code(want, got driver.CUresult) {
	s.Helper()
	require.Equal(s.T, want.String(), got.String())
}

// stream makes a non-blocking stream that is destroyed with the test.
func (s *suite) stream() driver.CUstream {
	s.Helper()
	return s.streamWith(driver.CU_STREAM_NON_BLOCKING)
}

func (s *suite) streamWith(flags uint32) driver.CUstream {
	s.Helper()
	h, r := s.CuStreamCreateWithPriority(flags, 0)
	s.ok(r)
	s.cleanup(func() { s.CuStreamDestroy(h) })
	return h
}

func (s *suite) event(flags uint32) driver.CUevent {
	s.Helper()
	e, r := s.CuEventCreate(flags)
	s.ok(r)
	s.cleanup(func() { s.CuEventDestroy(e) })
	return e
}

// alloc makes device memory that is freed with the test.
func (s *suite) alloc(size uint64) driver.CUdeviceptr {
	s.Helper()
	p, r := s.CuMemAlloc(size)
	s.ok(r)
	s.cleanup(func() { s.CuMemFree(p) })
	return p
}

// word is device memory of one 32-bit number.
func (s *suite) word(value uint32) driver.CUdeviceptr {
	s.Helper()
	p := s.alloc(4)
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, value, 1, st))
	s.ok(s.CuStreamSynchronize(st))
	return p
}

// read returns n 32-bit numbers of device memory, once all work is done.
func (s *suite) read(p driver.CUdeviceptr, n int) []uint32 {
	s.Helper()
	s.ok(s.CuCtxSynchronize())
	out := make([]uint32, n)
	st := s.stream()
	s.ok(s.CuMemcpyAsync(addressOf(out), p, uint64(4*n), st))
	s.ok(s.CuStreamSynchronize(st))
	return out
}

// same requires the one number at p.
func (s *suite) same(want uint32, p driver.CUdeviceptr) {
	s.Helper()
	require.Equal(s.T, want, s.read(p, 1)[0])
}

// graph makes a graph that is destroyed with the test.
func (s *suite) graph() driver.CUgraph {
	s.Helper()
	g, r := s.CuGraphCreate(0)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	return g
}

func (s *suite) instantiate(g driver.CUgraph) driver.CUgraphExec {
	s.Helper()
	var p driver.CUDA_GRAPH_INSTANTIATE_PARAMS
	x, r := s.CuGraphInstantiateWithParams(g, &p)
	s.ok(r)
	require.Equal(s.T, driver.CUDA_GRAPH_INSTANTIATE_SUCCESS, p.Result_out)
	s.cleanup(func() { s.CuGraphExecDestroy(x) })
	return x
}

// launchAndWait runs an executable once.
func (s *suite) launchAndWait(x driver.CUgraphExec, st driver.CUstream) {
	s.Helper()
	s.ok(s.CuGraphLaunch(x, st))
	s.ok(s.CuStreamSynchronize(st))
}
