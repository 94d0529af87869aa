// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// addressOf returns the address of a slice's first element, as a copy wants it.
// The caller keeps the slice alive.
func addressOf[T any](b []T) driver.CUdeviceptr {
	return driver.CUdeviceptr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// params makes the void** of a launch. It is good until the test ends.
func (s *suite) params(args ...any) unsafe.Pointer {
	if len(args) == 0 {
		return nil
	}
	pinner := &runtime.Pinner{}
	s.Cleanup(pinner.Unpin)
	list := make([]unsafe.Pointer, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case driver.CUdeviceptr:
			list[i] = pinned(pinner, a)
		case uint32:
			list[i] = pinned(pinner, a)
		case float32:
			list[i] = pinned(pinner, a)
		case driver.CUtensorMap:
			list[i] = pinned(pinner, a)
		case *uint32: // whose value the test changes
			pinner.Pin(a)
			list[i] = unsafe.Pointer(a)
		default:
			s.Fatalf("BUG: kernel argument of type %T", a)
		}
	}
	pinner.Pin(unsafe.SliceData(list))
	return unsafe.Pointer(unsafe.SliceData(list))
}

// packed makes the "extra" list of a launch of step: its arguments as one block.
func (s *suite) packed(p driver.CUdeviceptr, factor, addend uint32) unsafe.Pointer {
	const end, pointer, size = 0, 1, 2 // CU_LAUNCH_PARAM_…, from cuda.h, CUDA 12.4
	block := &struct {
		p              driver.CUdeviceptr
		factor, addend uint32
	}{p, factor, addend}
	length := uint64(unsafe.Sizeof(*block))
	list := []uintptr{pointer, uintptr(unsafe.Pointer(block)), size, uintptr(unsafe.Pointer(&length)), end}
	pinner := &runtime.Pinner{}
	pinner.Pin(block)
	pinner.Pin(&length)
	pinner.Pin(unsafe.SliceData(list))
	s.Cleanup(pinner.Unpin)
	return unsafe.Pointer(unsafe.SliceData(list))
}

func pinned[T any](p *runtime.Pinner, v T) unsafe.Pointer {
	box := &v
	p.Pin(box)
	return unsafe.Pointer(box)
}

// words views host memory as n 32-bit numbers.
func words(host uintptr, n int) []uint32 {
	return unsafe.Slice((*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&host))), n)
}

// memOpNode adds a node of memory operations.
func (s *suite) memOpNode(g driver.CUgraph, deps []driver.CUgraphNode, list ...driver.CUstreamBatchMemOpParams) driver.CUgraphNode {
	s.Helper()
	n, r := s.CuGraphAddBatchMemOpNode(g, deps, s.memOps(list...))
	s.ok(r)
	return n
}

// memOps are the parameters of a node that makes memory operations.
func (s *suite) memOps(list ...driver.CUstreamBatchMemOpParams) *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS {
	pinner := &runtime.Pinner{}
	s.cleanup(pinner.Unpin)
	pinner.Pin(unsafe.SliceData(list))
	return &driver.CUDA_BATCH_MEM_OP_NODE_PARAMS{
		Ctx: s.ctx, Count: uint32(len(list)), ParamArray: unsafe.Pointer(unsafe.SliceData(list)),
	}
}

// counter makes the int64 that Options.HostFn counts up, and its address.
func (s *suite) counter() (userData uintptr, value func() int64) {
	pinner := &runtime.Pinner{}
	n := new(int64)
	pinner.Pin(n)
	s.Cleanup(pinner.Unpin)
	return uintptr(unsafe.Pointer(n)), func() int64 { return atomic.LoadInt64(n) }
}

// gate is work that occupies a stream until it is opened.
type gate struct{ flag []uint32 }

// hold queues a kernel that runs until the gate is opened, at the latest at the
// end of the test.
func (s *suite) hold(st driver.CUstream) *gate {
	s.Helper()
	host, r := s.CuMemHostAlloc(4, driver.CU_MEMHOSTALLOC_DEVICEMAP)
	s.ok(r)
	g := &gate{words(host, 1)}
	s.gates = append(s.gates, g)
	s.cleanup(func() {
		s.gates = nil
		s.CuMemFreeHost(host)
	})
	s.ok(s.launch(st, s.kernel("hold"), driver.CUdeviceptr(host)))
	return g
}

func (g *gate) open() { atomic.StoreUint32(&g.flag[0], 1) }

// attributes makes the attribute list of a launch.
func (s *suite) attributes(list ...driver.CUlaunchAttribute) unsafe.Pointer {
	pinner := &runtime.Pinner{}
	pinner.Pin(unsafe.SliceData(list))
	s.Cleanup(pinner.Unpin)
	return unsafe.Pointer(unsafe.SliceData(list))
}

// sharedAllocation describes memory on a device, which device 0 can use too.
func (s *suite) sharedAllocation(dev driver.CUdevice, with ...driver.CUdevice) *driver.CUDA_MEM_ALLOC_NODE_PARAMS {
	p := graphAllocation(64)
	p.PoolProps.LocationID = int32(dev)
	list := make([]driver.CUmemAccessDesc, len(with))
	for i, d := range with {
		list[i] = driver.CUmemAccessDesc{Location: onDevice(d), Flags: readWrite}
	}
	if len(list) > 0 {
		var pinner runtime.Pinner
		pinner.Pin(&list[0])
		s.cleanup(pinner.Unpin)
		p.AccessDescs, p.AccessDescCount = unsafe.Pointer(&list[0]), uint64(len(list))
	}
	return p
}
