// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// What cuda.h leaves open here was seen on two H200, driver 580.159, CUDA 13.0.
var peers = map[string]func(*suite){
	"context is no peer of its own":                                peerSelf,
	"peer access is enabled once":                                  peerEnable,
	"peer access reaches what cuMemAlloc gave":                     peerAllocation,
	"peer access to a pool is the pool's own":                      peerPool,
	"pool's own device keeps its access":                           poolSelf,
	"mapped memory can be another device's":                        peerMapped,
	"peer access cannot be enabled during captures":                peerCapture,
	"peer without access faults":                                   peerFault,
	"copy reaches what cuMemAlloc gave, and of a pool what it may": peerCopy,
	"copy between contexts needs no access":                        peerCopyBetween,
	"copy between contexts cannot be captured":                     peerCopyCaptured,
	"fill needs access":                                            peerFill,
	"memory operations need access":                                peerMemOp,
}

const readWrite = driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE

// peer returns another device whose memory device 0 can access, and its context.
func (s *suite) peer() (driver.CUdevice, driver.CUcontext) {
	s.Helper()
	n, r := s.CuDeviceGetCount()
	s.ok(r)
	for i := range n {
		dev, r := s.CuDeviceGet(i)
		s.ok(r)
		if can, r := s.CuDeviceCanAccessPeer(s.dev, dev); r == driver.CUDA_SUCCESS && can {
			ctx, r := s.CuDevicePrimaryCtxRetain(dev)
			s.ok(r)
			s.cleanup(func() { s.CuDevicePrimaryCtxRelease(dev) })
			return dev, ctx
		}
	}
	s.Skip("needs two devices that can access each other's memory")
	return 0, 0
}

func onDevice(dev driver.CUdevice) driver.CUmemLocation {
	return driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: int32(dev)}
}

// in runs f with another context current.
func (s *suite) in(ctx driver.CUcontext, f func()) {
	s.Helper()
	s.ok(s.CuCtxPushCurrent(ctx))
	f()
	_, r := s.CuCtxPopCurrent()
	s.ok(r)
}

// stepped runs a kernel on device 0 that makes 3 of the 1 at p.
func (s *suite) stepped(p driver.CUdeviceptr) {
	s.Helper()
	st := s.stream()
	s.ok(s.CuMemcpyAsync(p, s.word(1), 4, st))
	s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(1)))
	s.ok(s.CuStreamSynchronize(st))
	s.same(3, p)
}

func peerSelf(s *suite) {
	can, r := s.CuDeviceCanAccessPeer(s.dev, s.dev)
	s.ok(r)
	require.False(s.T, can)
	s.code(driver.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, s.CuCtxEnablePeerAccess(s.ctx, 0))
	s.code(driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, s.CuCtxDisablePeerAccess(s.ctx))
	s.code(driver.CUDA_ERROR_INVALID_CONTEXT, s.CuCtxEnablePeerAccess(0, 0))
}

func peerEnable(s *suite) {
	_, ctx := s.peer()
	s.code(driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, s.CuCtxDisablePeerAccess(ctx))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuCtxEnablePeerAccess(ctx, 1))
	s.ok(s.CuCtxEnablePeerAccess(ctx, 0))
	s.code(driver.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, s.CuCtxEnablePeerAccess(ctx, 0))
	s.ok(s.CuCtxDisablePeerAccess(ctx))
	s.code(driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, s.CuCtxDisablePeerAccess(ctx))
}

func peerAllocation(s *suite) {
	_, ctx := s.peer()
	s.in(ctx, func() {
		p := s.alloc(64)
		s.in(s.ctx, func() {
			s.ok(s.CuCtxEnablePeerAccess(ctx, 0))
			s.stepped(p)
			s.ok(s.CuCtxDisablePeerAccess(ctx))
		})
	})
}

func peerPool(s *suite) {
	dev, ctx := s.peer()
	pool, r := s.CuDeviceGetDefaultMemPool(dev)
	s.ok(r)
	access := func() driver.CUmemAccess_flags {
		flags, r := s.CuMemPoolGetAccess(pool, onDevice(s.dev))
		s.ok(r)
		return flags
	}
	var p driver.CUdeviceptr
	s.in(ctx, func() {
		st := s.stream()
		p, r = s.CuMemAllocAsync(64, st)
		s.ok(r)
		s.ok(s.CuStreamSynchronize(st))
		s.cleanup(func() {
			s.CuCtxPushCurrent(ctx)
			s.CuMemFree(p)
			s.CuCtxPopCurrent()
		})
	})
	require.Zero(s.T, access())
	s.ok(s.CuCtxEnablePeerAccess(ctx, 0))
	require.Zero(s.T, access(), "that is for what cuMemAlloc gave")
	s.ok(s.CuCtxDisablePeerAccess(ctx))
	desc := []driver.CUmemAccessDesc{{Location: onDevice(s.dev), Flags: readWrite}}
	s.ok(s.CuMemPoolSetAccess(pool, desc))
	require.Equal(s.T, readWrite, access())
	s.stepped(p)
	desc[0].Flags = driver.CU_MEM_ACCESS_FLAGS_PROT_READ
	s.code(driver.CUDA_ERROR_NOT_SUPPORTED, s.CuMemPoolSetAccess(pool, desc))
	require.Equal(s.T, readWrite, access())
	desc[0].Flags = driver.CU_MEM_ACCESS_FLAGS_PROT_NONE
	s.ok(s.CuMemPoolSetAccess(pool, desc))
	require.Zero(s.T, access())
}

// peerMemory returns 4 bytes of cuMemAlloc and 4 of the default pool of the other
// device.
func (s *suite) peerMemory(dev driver.CUdevice, ctx driver.CUcontext) (plain, pooled driver.CUdeviceptr) {
	s.Helper()
	s.in(ctx, func() {
		plain = s.alloc(4)
		st := s.stream()
		var r driver.CUresult
		pooled, r = s.CuMemAllocAsync(4, st)
		s.ok(r)
		s.ok(s.CuMemcpyAsync(pooled, s.word(5), 4, st))
		s.ok(s.CuMemcpyAsync(plain, s.word(5), 4, st))
		s.ok(s.CuStreamSynchronize(st))
		s.cleanup(func() {
			s.CuCtxPushCurrent(ctx)
			s.CuMemFree(pooled)
			s.CuCtxPopCurrent()
		})
	})
	pool, r := s.CuDeviceGetDefaultMemPool(dev)
	s.ok(r)
	flags, r := s.CuMemPoolGetAccess(pool, onDevice(s.dev))
	s.ok(r)
	require.Zero(s.T, flags)
	return plain, pooled
}

// allow gives device 0 access to the default pool of another device while f runs.
func (s *suite) allow(dev driver.CUdevice, f func()) {
	s.Helper()
	pool, r := s.CuDeviceGetDefaultMemPool(dev)
	s.ok(r)
	desc := []driver.CUmemAccessDesc{{Location: onDevice(s.dev), Flags: readWrite}}
	s.ok(s.CuMemPoolSetAccess(pool, desc))
	f()
	desc[0].Flags = driver.CU_MEM_ACCESS_FLAGS_PROT_NONE
	s.ok(s.CuMemPoolSetAccess(pool, desc))
}

func peerCopy(s *suite) {
	dev, ctx := s.peer()
	plain, pooled := s.peerMemory(dev, ctx)
	st, here := s.stream(), s.alloc(4)
	node := func(src driver.CUdeviceptr) driver.CUresult {
		g, r := s.CuGraphCreate(0)
		s.ok(r)
		defer s.CuGraphDestroy(g)
		_, r = s.CuGraphAddMemcpyNode(g, nil, &driver.CUDA_MEMCPY3D{
			SrcMemoryType: driver.CU_MEMORYTYPE_DEVICE, SrcDevice: src,
			DstMemoryType: driver.CU_MEMORYTYPE_DEVICE, DstDevice: here, WidthInBytes: 4, Height: 1, Depth: 1,
		}, s.ctx)
		return r
	}
	s.ok(s.CuMemcpyAsync(here, plain, 4, st))
	s.ok(s.CuStreamSynchronize(st))
	s.same(5, here)
	s.ok(node(plain))
	refused := func() {
		s.Helper()
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpyAsync(here, pooled, 4, st))
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpyAsync(pooled, s.word(1), 4, st))
	}
	refused()
	s.code(driver.CUDA_ERROR_INVALID_VALUE, node(pooled))
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	refused()
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.ok(s.CuGraphDestroy(g))
	s.allow(dev, func() {
		s.ok(s.CuMemcpyAsync(pooled, s.word(7), 4, st))
		s.ok(s.CuMemcpyAsync(here, pooled, 4, st))
		s.ok(s.CuStreamSynchronize(st))
		s.same(7, here)
		s.ok(node(pooled))
	})
	refused()
}

func peerCopyBetween(s *suite) {
	dev, ctx := s.peer()
	plain, pooled := s.peerMemory(dev, ctx)
	here := s.alloc(4)
	var theirs driver.CUstream
	s.in(ctx, func() { theirs = s.stream() })
	for _, st := range []driver.CUstream{s.stream(), theirs} {
		for _, there := range []driver.CUdeviceptr{plain, pooled} {
			s.ok(s.CuMemcpyAsync(here, s.word(9), 4, driver.CU_STREAM_LEGACY))
			s.ok(s.CuStreamSynchronize(driver.CU_STREAM_LEGACY))
			current := s.ctx
			if st == theirs {
				current = ctx
			}
			s.in(current, func() {
				s.ok(s.CuMemcpyPeerAsync(there, ctx, here, s.ctx, 4, st))
				s.ok(s.CuStreamSynchronize(st))
			})
			s.ok(s.CuMemcpyAsync(here, s.word(0), 4, driver.CU_STREAM_LEGACY))
			s.ok(s.CuStreamSynchronize(driver.CU_STREAM_LEGACY))
			s.in(current, func() {
				s.ok(s.CuMemcpyPeerAsync(here, s.ctx, there, ctx, 4, st))
				s.ok(s.CuStreamSynchronize(st))
			})
			s.same(9, here)
		}
	}
	own, other := s.alloc(4), s.stream()
	s.ok(s.CuMemcpyPeerAsync(own, s.ctx, here, s.ctx, 4, other))
	s.ok(s.CuMemcpyPeerAsync(pooled, ctx, plain, ctx, 4, other)) // in a stream of another device
	s.ok(s.CuStreamSynchronize(other))
	s.same(9, own)
}

func peerCopyCaptured(s *suite) {
	dev, ctx := s.peer()
	plain, _ := s.peerMemory(dev, ctx)
	st, here := s.stream(), s.alloc(4)
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuMemcpyPeerAsync(here, s.ctx, plain, ctx, 4, st))
	s.invalidated(st)
}

func peerFill(s *suite) {
	dev, ctx := s.peer()
	plain, pooled := s.peerMemory(dev, ctx)
	st := s.stream()
	for _, p := range []driver.CUdeviceptr{plain, pooled} {
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemsetD32Async(p, 1, 1, st))
		s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
		s.ok(s.CuMemsetD32Async(p, 1, 1, st))
		g, r := s.CuStreamEndCapture(st)
		s.ok(r)
		_, r = s.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
		s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
		s.ok(s.CuGraphDestroy(g))
	}
	g, r := s.CuGraphCreate(0)
	s.ok(r)
	defer s.CuGraphDestroy(g)
	params := driver.CUDA_MEMSET_NODE_PARAMS{ElementSize: 4, Width: 1, Height: 1, Value: 1, Dst: plain}
	_, r = s.CuGraphAddMemsetNode(g, nil, &params, s.ctx)
	s.ok(r)
	params.Dst = pooled
	_, r = s.CuGraphAddMemsetNode(g, nil, &params, s.ctx)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuGraphAddMemsetNode(g, nil, &params, ctx)
	s.ok(r)
	s.allow(dev, func() {
		s.ok(s.CuMemsetD32Async(pooled, 1, 1, st))
		s.ok(s.CuStreamSynchronize(st))
	})
}

func peerMemOp(s *suite) {
	dev, ctx := s.peer()
	plain, _ := s.peerMemory(dev, ctx)
	st := s.stream()
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWriteValue32(st, plain, 7, 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWriteValue64(st, plain, 7, 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuStreamWaitValue32(st, plain, 0, driver.CU_STREAM_WAIT_VALUE_GEQ))
	s.ok(s.CuStreamSynchronize(st))
}

func poolSelf(s *suite) {
	pool, r := s.CuDeviceGetDefaultMemPool(s.dev)
	s.ok(r)
	desc := []driver.CUmemAccessDesc{{Location: onDevice(s.dev)}}
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, s.CuMemPoolSetAccess(pool, desc))
	desc[0].Flags = readWrite
	s.ok(s.CuMemPoolSetAccess(pool, desc))
	flags, r := s.CuMemPoolGetAccess(pool, onDevice(s.dev))
	s.ok(r)
	require.Equal(s.T, readWrite, flags)
	desc[0].Location = missing
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, s.CuMemPoolSetAccess(pool, desc))
}

func peerMapped(s *suite) {
	dev, _ := s.peer()
	prop := &driver.CUmemAllocationProp{Type: driver.CU_MEM_ALLOCATION_TYPE_PINNED, Location: onDevice(dev)}
	size, r := s.CuMemGetAllocationGranularity(prop, driver.CU_MEM_ALLOC_GRANULARITY_MINIMUM)
	s.ok(r)
	p, r := s.CuMemAddressReserve(size, 0, 0, 0)
	s.ok(r)
	s.cleanup(func() { s.CuMemAddressFree(p, size) })
	h, r := s.CuMemCreate(size, prop, 0)
	s.ok(r)
	s.ok(s.CuMemMap(p, size, 0, h, 0))
	s.cleanup(func() { s.CuMemUnmap(p, size) })
	s.ok(s.CuMemRelease(h))
	s.ok(s.CuMemSetAccess(p, size, []driver.CUmemAccessDesc{
		{Location: onDevice(dev), Flags: readWrite}, {Location: onDevice(s.dev), Flags: readWrite},
	}))
	s.stepped(p)
}

func peerCapture(s *suite) {
	_, ctx := s.peer()
	st := s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuCtxEnablePeerAccess(ctx, 0))
	s.invalidated(st)
	s.code(driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, s.CuCtxDisablePeerAccess(ctx))
}

func peerFault(s *suite) {
	s.needFaults()
	_, ctx := s.peer()
	s.in(ctx, func() {
		p := s.alloc(64)
		s.in(s.ctx, func() {
			s.ok(s.CuCtxEnablePeerAccess(ctx, 0))
			s.stepped(p)
			s.ok(s.CuCtxDisablePeerAccess(ctx))
			st := s.stream()
			s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(1)))
			s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuStreamSynchronize(st))
		})
	})
}
