// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// two is a driver with two devices, of which the first is current.
func two(t *testing.T) (o *one, peer driver.CUcontext) {
	t.Helper()
	o = newOne(t, open(t, "devices=2"))
	peer, r := o.CuDevicePrimaryCtxRetain(1)
	ok(t, r)
	return o, peer
}

// on runs f with another context current.
func (o *one) on(t *testing.T, ctx driver.CUcontext, f func()) {
	t.Helper()
	ok(t, o.CuCtxPushCurrent(ctx))
	f()
	_, r := o.CuCtxPopCurrent()
	ok(t, r)
}

// theirs makes memory of device 1 in one of the ways.
func (o *one) theirs(t *testing.T, peer driver.CUcontext, how string) (p driver.CUdeviceptr) {
	t.Helper()
	o.on(t, peer, func() {
		var r driver.CUresult
		switch how {
		case "cuMemAlloc":
			p, r = o.CuMemAlloc(128)
		case "cuMemAllocAsync":
			p, r = o.CuMemAllocAsync(128, driver.CU_STREAM_LEGACY)
		case "cuMemMap":
			p, r = o.CuMemAddressReserve(granule, 0, 0, 0)
			ok(t, r)
			h, r := o.CuMemCreate(granule, pinnedOn(1), 0)
			ok(t, r)
			ok(t, o.CuMemMap(p, granule, 0, h, 0))
			ok(t, o.CuMemSetAccess(p, granule, []driver.CUmemAccessDesc{{Location: onDevice(1), Flags: 3}}))
		}
		ok(t, r)
	})
	return p
}

// grant gives device 0 access to such memory, or takes it away.
func (o *one) grant(t *testing.T, peer driver.CUcontext, how string, p driver.CUdeviceptr, access bool) {
	t.Helper()
	desc := []driver.CUmemAccessDesc{{Location: onDevice(0)}}
	if access {
		desc[0].Flags = 3
	}
	switch how {
	case "cuMemAlloc":
		if access {
			ok(t, o.CuCtxEnablePeerAccess(peer, 0))
		} else {
			ok(t, o.CuCtxDisablePeerAccess(peer))
		}
	case "cuMemAllocAsync":
		pool, r := o.CuDeviceGetDefaultMemPool(1)
		ok(t, r)
		ok(t, o.CuMemPoolSetAccess(pool, desc))
	case "cuMemMap":
		ok(t, o.CuMemSetAccess(p, granule, desc))
	}
}

// The call that gives access to memory of each kind. Errors about missing
// access name it.
var grants = map[string]string{
	"cuMemAlloc": "cuCtxEnablePeerAccess", "cuMemAllocAsync": "cuMemPoolSetAccess", "cuMemMap": "cuMemSetAccess",
}

func TestPeerAccess(t *testing.T) {
	for how, call := range grants {
		t.Run(how, func(t *testing.T) {
			o, peer := two(t)
			p := o.theirs(t, peer, how)
			o.args = o.pointerTo(t, p)
			_, r := o.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p)
			require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
			o.grant(t, peer, how, p, true)
			at, r := o.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p)
			ok(t, r)
			require.Equal(t, uint64(p), at)
			for range 2 {
				o.touch(t, o.stream)
				ok(t, o.CuStreamSynchronize(o.stream))
			}
			o.grant(t, peer, how, p, false)
			o.touch(t, o.stream)
			require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
			require.Contains(t, o.FaultReport(o.ctx), "memory of device 1, to which device 0 has no access: "+call+" would give it")
			o.on(t, peer, func() { ok(t, o.CuCtxSynchronize()) })
		})
	}
}

// Access to memory of one kind gives none to memory of another kind.
func TestPeerAccessIsByKind(t *testing.T) {
	for how := range grants {
		for other := range grants {
			if how == other {
				continue
			}
			o, peer := two(t)
			p, q := o.theirs(t, peer, how), o.theirs(t, peer, other)
			o.grant(t, peer, other, q, true)
			o.args = o.pointerTo(t, p)
			o.touch(t, o.stream)
			require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream), "%s after access to %s", how, other)
		}
	}
}

// Access has a direction: device 1 may not touch what device 0 has.
func TestPeerAccessHasADirection(t *testing.T) {
	o, peer := two(t)
	ok(t, o.CuCtxEnablePeerAccess(peer, 0))
	var p driver.CUdeviceptr
	p, r := o.CuMemAlloc(128)
	ok(t, r)
	o.on(t, peer, func() {
		kernel := o.load(t, touchPTX, "touch")
		config := o.config
		config.HStream = driver.CU_STREAM_LEGACY
		ok(t, o.CuLaunchKernelEx(&config, kernel, o.pointerTo(t, p)))
		require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuCtxSynchronize())
		require.Contains(t, o.FaultReport(peer), "memory of device 0, to which device 1 has no access")
	})
}

func TestPeerMemoryThatWasFreed(t *testing.T) {
	o, peer := two(t)
	ok(t, o.CuCtxEnablePeerAccess(peer, 0))
	p := o.theirs(t, peer, "cuMemAlloc")
	o.args = o.pointerTo(t, p)
	o.touch(t, o.stream)
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuMemFree(p))
	o.touch(t, o.stream)
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
	require.Contains(t, o.FaultReport(o.ctx), "freed device memory of 128 bytes")
	require.NotContains(t, o.FaultReport(o.ctx), "no access")
}

func TestPeerAccessEndsWithItsContext(t *testing.T) {
	o, peer := two(t)
	ok(t, o.CuCtxEnablePeerAccess(peer, 0))
	ok(t, o.CuDevicePrimaryCtxRelease(1))
	peer, r := o.CuDevicePrimaryCtxRetain(1)
	ok(t, r)
	require.Equal(t, driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, o.CuCtxDisablePeerAccess(peer))
	o.args = o.pointerTo(t, o.theirs(t, peer, "cuMemAlloc"))
	o.touch(t, o.stream)
	require.Equal(t, driver.CUDA_ERROR_ILLEGAL_ADDRESS, o.CuStreamSynchronize(o.stream))
}

// The checks see through to the memory of the other device.
func TestChecksOfPeerMemory(t *testing.T) {
	o, peer := two(t)
	c := driver.CheckerOf(o.API)
	_, err := c.SetChecks("races,uninitialized")
	require.NoError(t, err)
	ok(t, o.CuCtxEnablePeerAccess(peer, 0))
	p := o.theirs(t, peer, "cuMemAlloc")
	o.args = o.pointerTo(t, p)
	o.touch(t, o.stream)
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuStreamSynchronize(o.stream))
	reports := c.TakeReports()
	require.Len(t, reports, 1)
	require.Contains(t, reports[0], "were never written")
	require.Contains(t, reports[0], "device memory of 128 bytes")

	ok(t, o.CuMemsetD8Async(p, 0, 128, o.newStream(t)))
	o.touch(t, o.stream)
	o.finish(t)
	reports = c.TakeReports()
	require.NotEmpty(t, reports)
	require.Contains(t, reports[0], "race in global memory")
}
