// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var virtuals = map[string]func(*suite){
	"mapped memory is used like any other":              virtualUse,
	"mappings side by side are one range":               virtualNeighbours,
	"mapped memory stays when its handle is released":   virtualRelease,
	"mapped memory can have two addresses":              virtualAlias,
	"mapping takes a whole handle at a free address":    virtualMapRules,
	"unmapping takes whole mappings":                    virtualUnmapRules,
	"a reservation is freed with its address and size":  virtualFreeRules,
	"physical memory is a multiple of the granularity":  virtualCreateRules,
	"physical memory runs out":                          virtualExhausted,
	"access to mapped memory is for whole mappings":     virtualAccessRules,
	"mapped memory that was unmapped is free again":     virtualInfo,
	"mapped memory without access is out of reach":      virtualNoAccess,
	"mapped memory is out of reach once it is unmapped": virtualUnmapped,
}

func (s *suite) location() driver.CUmemLocation {
	return driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: int32(s.dev)}
}

func (s *suite) prop() *driver.CUmemAllocationProp {
	return &driver.CUmemAllocationProp{Type: driver.CU_MEM_ALLOCATION_TYPE_PINNED, Location: s.location()}
}

func (s *suite) granularity() uint64 {
	s.Helper()
	least, r := s.CuMemGetAllocationGranularity(s.prop(), driver.CU_MEM_ALLOC_GRANULARITY_MINIMUM)
	s.ok(r)
	g, r := s.CuMemGetAllocationGranularity(s.prop(), driver.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
	s.ok(r)
	require.NotZero(s.T, least)
	require.Zero(s.T, g%least)
	return g
}

// addresses reserves size bytes until the end of the test.
func (s *suite) addresses(size uint64) driver.CUdeviceptr {
	s.Helper()
	p, r := s.CuMemAddressReserve(size, 0, 0, 0)
	s.ok(r)
	s.cleanup(func() { s.CuMemAddressFree(p, size) })
	return p
}

// physical makes memory whose handle is released with the test.
func (s *suite) physical(size uint64) driver.CUmemGenericAllocationHandle {
	s.Helper()
	h, r := s.CuMemCreate(size, s.prop(), 0)
	s.ok(r)
	s.cleanup(func() { s.CuMemRelease(h) })
	return h
}

// mapAt maps all of h until the end of the test.
func (s *suite) mapAt(p driver.CUdeviceptr, size uint64, h driver.CUmemGenericAllocationHandle) {
	s.Helper()
	s.ok(s.CuMemMap(p, size, 0, h, 0))
	s.cleanup(func() { s.CuMemUnmap(p, size) })
}

func (s *suite) access(p driver.CUdeviceptr, size uint64) {
	s.Helper()
	s.ok(s.CuMemSetAccess(p, size, []driver.CUmemAccessDesc{
		{Location: s.location(), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	}))
}

// mapped is n times the granularity of usable memory, each mapped by itself, in
// a reservation of that size.
func (s *suite) mapped(n uint64) (p driver.CUdeviceptr, g uint64) {
	s.Helper()
	g = s.granularity()
	p = s.addresses(n * g)
	for i := range n {
		s.mapAt(p+driver.CUdeviceptr(i*g), g, s.physical(g))
	}
	s.access(p, n*g)
	return p, g
}

func virtualUse(s *suite) {
	p, g := s.mapped(1)
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, 5, g/4, st))
	s.ok(s.launch(st, s.kernel("step"), p+driver.CUdeviceptr(g-4), uint32(2), uint32(1)))
	require.Equal(s.T, []uint32{5, 11}, s.read(p+driver.CUdeviceptr(g-8), 2))
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_DEVICE), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p))
	require.Equal(s.T, uint64(s.dev), s.attribute(driver.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p))
}

func virtualNeighbours(s *suite) {
	p, g := s.mapped(3)
	st := s.stream()
	edge := p + driver.CUdeviceptr(g)
	in := onHeap([]uint32{1, 2, 3, 4, 5, 6})
	s.ok(s.CuMemsetD32Async(p, 0, 3*g/4, st))
	s.ok(s.CuMemcpyAsync(edge-12, addressOf(in), 24, st))
	s.ok(s.launch(st, s.kernel("step"), edge-4, uint32(10), uint32(0)))
	s.ok(s.launch(st, s.kernel("step"), edge, uint32(10), uint32(0)))
	middle := driver.CUdeviceptr(g / 2)
	s.ok(s.CuMemcpyAsync(edge+middle, p, 3*g/2, st))
	want := []uint32{0, 1, 2, 30, 40, 5, 6, 0}
	require.Equal(s.T, want, s.read(edge-16, 8))
	require.Equal(s.T, want, s.read(edge+middle+driver.CUdeviceptr(g)-16, 8))
}

func virtualRelease(s *suite) {
	g := s.granularity()
	p := s.addresses(g)
	h, r := s.CuMemCreate(g, s.prop(), 0)
	s.ok(r)
	s.mapAt(p, g, h)
	s.ok(s.CuMemRelease(h))
	s.access(p, g)
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, 7, 1, st))
	s.same(7, p)
}

func virtualAlias(s *suite) {
	g := s.granularity()
	p, h := s.addresses(2*g), s.physical(g)
	s.mapAt(p, g, h)
	s.mapAt(p+driver.CUdeviceptr(g), g, h)
	s.access(p, 2*g)
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, 9, 1, st))
	s.same(9, p+driver.CUdeviceptr(g))
}

func virtualMapRules(s *suite) {
	g := s.granularity()
	p, h := s.addresses(4*g), s.physical(2*g)
	s.refused(s.CuMemMap(p, 2*g, 0, h, 1), "a flag")
	s.refused(s.CuMemMap(p, g, 0, h, 0), "a part")
	s.refused(s.CuMemMap(p, g, g, h, 0), "a part at an offset")
	// Past the reservation's end: driver 580 maps it, the simulated one refuses.
	s.mapAt(p+driver.CUdeviceptr(g), 2*g, h)
	s.refused(s.CuMemMap(p, 2*g, 0, h, 0), "into another mapping")
	s.refused(s.CuMemMap(p+driver.CUdeviceptr(2*g), 2*g, 0, h, 0), "from another mapping on")
}

// refused requires an error, where CUDA does not say which.
func (s *suite) refused(r driver.CUresult, what string) {
	s.Helper()
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r, what)
}

func virtualUnmapRules(s *suite) {
	g := s.granularity()
	p := s.addresses(4 * g)
	at := func(n uint64) driver.CUdeviceptr { return p + driver.CUdeviceptr(n*g) }
	s.mapAt(p, 2*g, s.physical(2*g))
	s.mapAt(at(2), g, s.physical(g))
	s.refused(s.CuMemUnmap(p, g), "the first half of a mapping")
	s.refused(s.CuMemUnmap(at(1), g), "the second half of a mapping")
	// Where nothing is mapped: driver 580 says success, the simulated one refuses.
	s.access(p, 3*g)
	s.ok(s.CuMemUnmap(p, 3*g)) // two at once
	s.mapAt(p, 2*g, s.physical(2*g))
}

func virtualFreeRules(s *suite) {
	g := s.granularity()
	p, r := s.CuMemAddressReserve(4*g, 4*g, 0, 0) // granularities are powers of two
	s.ok(r)
	require.Zero(s.T, uint64(p)%(4*g), "the alignment")
	s.refused(s.CuMemAddressFree(p, g), "another size")
	s.refused(s.CuMemAddressFree(p+driver.CUdeviceptr(g), 3*g), "another address")
	s.ok(s.CuMemAddressFree(p, 4*g))
	s.refused(s.CuMemAddressFree(p, 4*g), "again")
	_, r = s.CuMemAddressReserve(0, 0, 0, 0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuMemAddressReserve(g, 3, 0, 0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	_, r = s.CuMemAddressReserve(g, 0, 0, 1)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func virtualCreateRules(s *suite) {
	g := s.granularity()
	for _, size := range []uint64{0, 1, g + 1} {
		_, r := s.CuMemCreate(size, s.prop(), 0)
		s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	}
	_, r := s.CuMemCreate(g, &driver.CUmemAllocationProp{Location: s.location()}, 0)
	s.refused(r, "no type")
}

func virtualExhausted(s *suite) {
	g := s.granularity()
	_, total, r := s.CuMemGetInfo()
	s.ok(r)
	_, r = s.CuMemCreate(2*total/g*g, s.prop(), 0)
	s.code(driver.CUDA_ERROR_OUT_OF_MEMORY, r)
	s.physical(g) // the failure is not sticky
}

func virtualAccessRules(s *suite) {
	p, g := s.mapped(2)
	all := []driver.CUmemAccessDesc{{Location: s.location(), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemSetAccess(p, 2*g, nil))
	s.refused(s.CuMemSetAccess(p, 3*g, all), "more than is mapped")
	s.refused(s.CuMemSetAccess(p, 2*g, []driver.CUmemAccessDesc{{Location: s.location(), Flags: 8}}), "no such flag")
	s.ok(s.CuMemSetAccess(p+driver.CUdeviceptr(g), g, all))
}

func virtualInfo(s *suite) {
	const size = 64 << 20
	info := func() uint64 {
		free, _, r := s.CuMemGetInfo()
		s.ok(r)
		return free
	}
	before := info()
	p := s.addresses(size)
	h, r := s.CuMemCreate(size, s.prop(), 0)
	s.ok(r)
	during := info()
	require.GreaterOrEqual(s.T, before-during, uint64(size))
	s.ok(s.CuMemMap(p, size, 0, h, 0))
	s.ok(s.CuMemRelease(h))
	require.Less(s.T, info(), before, "the mapping keeps it")
	s.ok(s.CuMemUnmap(p, size))
	require.Greater(s.T, info(), during+size/2) // page tables may stay
}

func virtualNoAccess(s *suite) {
	s.needFaults()
	g := s.granularity()
	p := s.addresses(g)
	s.mapAt(p, g, s.physical(g))
	st := s.stream()
	s.ok(s.launch(st, s.kernel("step"), p, uint32(1), uint32(1)))
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuStreamSynchronize(st))
	require.Contains(s.T, s.FaultReport(s.ctx), "without access")
}

func virtualUnmapped(s *suite) {
	s.needFaults()
	p, g := s.mapped(2)
	st := s.stream()
	last := p + driver.CUdeviceptr(g)
	s.ok(s.launch(st, s.kernel("step"), last, uint32(0), uint32(3)))
	s.same(3, last)
	s.ok(s.CuMemUnmap(last, g))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpyAsync(last, p, 4, st))
	s.ok(s.launch(st, s.kernel("step"), p, uint32(0), uint32(3)))
	s.ok(s.launch(st, s.kernel("step"), last, uint32(1), uint32(1)))
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuStreamSynchronize(st))
	require.Contains(s.T, s.FaultReport(s.ctx), "freed at cuMemUnmap")
}
