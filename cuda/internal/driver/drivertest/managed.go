// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// What cuda.h leaves open here was seen on an H200, driver 580.159, CUDA 13.0.
var managed = map[string]func(*suite){
	"managed memory has no advice at first":              managedFresh,
	"managed memory keeps advice":                        managedAdvice,
	"managed memory keeps advice by the page":            managedPages,
	"managed memory remembers prefetches":                managedPrefetch,
	"advice needs an advice, a location and whole pages": managedBadAdvice,
	"prefetch needs a location and managed memory":       managedBadPrefetch,
	"range attributes are of managed memory":             managedBadAttribute,
	"advice invalidates captures in global mode":         managedAdviseCapture,
	"prefetch cannot be captured":                        managedPrefetchCapture,
}

const (
	pageCount  = 256
	noDevice   = driver.CU_DEVICE_INVALID
	theHost    = driver.CU_DEVICE_CPU
	readMostly = driver.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY
	ignored    = -99 // the number of a place that has none
)

var (
	onHost  = driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_HOST}
	nowhere = driver.CUmemLocation{}
	numa    = driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_HOST_NUMA}
	missing = onDevice(99)
)

// managed makes managed memory that a device may use while the host does.
func (s *suite) managed() driver.CUdeviceptr {
	s.Helper()
	if v, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, s.dev); r != driver.CUDA_SUCCESS || v == 0 {
		s.Skip("the device takes no advice about managed memory")
	}
	p, r := s.CuMemAllocManaged(pageCount*page, driver.CU_MEM_ATTACH_GLOBAL)
	s.ok(r)
	s.cleanup(func() { s.CuMemFree(p) })
	return p
}

func (s *suite) here() driver.CUmemLocation { return onDevice(s.dev) }

// advise requires success.
func (s *suite) advise(p driver.CUdeviceptr, size uint64, advice driver.CUmem_advise, at driver.CUmemLocation) {
	s.Helper()
	s.ok(s.CuMemAdvise(p, size, advice, at))
}

// told requires the answers to all attributes, in their order, and room for two
// with who accesses the range.
func (s *suite) told(p driver.CUdeviceptr, size uint64, want [8]any) {
	s.Helper()
	for i, w := range want {
		data := make([]int32, 1)
		list, several := w.([]int32)
		if several {
			data = make([]int32, 2)
		} else {
			list = []int32{int32(w.(int))}
		}
		attribute := driver.CUmem_range_attribute(i + 1)
		s.ok(s.CuMemRangeGetAttribute(data, attribute, p, size))
		if w == ignored {
			continue
		}
		require.Equal(s.T, list, data, "attribute %d", attribute)
	}
}

var (
	nobody     = []int32{noDevice, noDevice}
	hostType   = int(driver.CU_MEM_LOCATION_TYPE_HOST)
	deviceType = int(driver.CU_MEM_LOCATION_TYPE_DEVICE)
)

func managedFresh(s *suite) {
	s.told(s.managed(), pageCount*page, [8]any{0, -2, nobody, -2, 0, -2, 0, -2})
}

func managedAdvice(s *suite) {
	p, size, dev := s.managed(), uint64(pageCount*page), int(s.dev)
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_READ_MOSTLY, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_ACCESSED_BY, onHost)
	s.told(p, size, [8]any{1, dev, []int32{theHost, noDevice}, -2, deviceType, dev, 0, -2})
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_ACCESSED_BY, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, onHost)
	s.told(p, size, [8]any{1, -1, []int32{int32(s.dev), theHost}, -2, hostType, ignored, 0, -2})
	s.advise(p, size, driver.CU_MEM_ADVISE_UNSET_READ_MOSTLY, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_UNSET_ACCESSED_BY, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_UNSET_ACCESSED_BY, onHost)
	s.told(p, size, [8]any{0, -2, nobody, -2, 0, -2, 0, -2})
}

func managedPages(s *suite) {
	p, size, dev := s.managed(), uint64(pageCount*page), int(s.dev)
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_READ_MOSTLY, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, s.here())
	s.advise(p, size, driver.CU_MEM_ADVISE_SET_ACCESSED_BY, s.here())
	s.advise(p+page+100, 50, driver.CU_MEM_ADVISE_UNSET_READ_MOSTLY, s.here())
	s.advise(p+page, page, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, onHost)
	accessed := []int32{int32(s.dev), noDevice}
	s.told(p, size, [8]any{0, -2, accessed, -2, 0, -2, 0, -2})
	s.told(p, page, [8]any{1, dev, accessed, -2, deviceType, dev, 0, -2})
	s.told(p+page+1, 1, [8]any{0, -1, accessed, -2, hostType, ignored, 0, -2})
	s.told(p+2*page-1, 2, [8]any{0, -2, accessed, -2, 0, -2, 0, -2})
	s.told(p+2*page, size-2*page, [8]any{1, dev, accessed, -2, deviceType, dev, 0, -2})
	s.advise(p+page, page, driver.CU_MEM_ADVISE_SET_READ_MOSTLY, s.here())
	s.advise(p+page, page, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, s.here())
	s.told(p, size, [8]any{1, dev, accessed, -2, deviceType, dev, 0, -2})
}

func managedPrefetch(s *suite) {
	p, size, dev, st := s.managed(), uint64(pageCount*page), int(s.dev), s.stream()
	w := words(uintptr(p), 1)
	w[0] = 5
	s.ok(s.CuMemPrefetchAsync(p, size, s.here(), 0, st))
	s.told(p, size, [8]any{0, -2, nobody, dev, 0, -2, deviceType, dev})
	s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(1)))
	s.ok(s.CuMemPrefetchAsync(p+100, 50, onHost, 0, st))
	s.told(p, size, [8]any{0, -2, nobody, -2, 0, -2, 0, -2})
	s.told(p, page, [8]any{0, -2, nobody, -1, 0, -2, hostType, -1})
	s.ok(s.CuMemPrefetchAsync(p, page, numa, 0, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, uint32(11), w[0])
}

func managedBadAdvice(s *suite) {
	p, size := s.managed(), uint64(pageCount*page)
	for advice := driver.CU_MEM_ADVISE_SET_READ_MOSTLY; advice <= driver.CU_MEM_ADVISE_UNSET_ACCESSED_BY; advice++ {
		s.ok(s.CuMemAdvise(p, size, advice, s.here()))
		s.ok(s.CuMemAdvise(p, size, advice, onHost))
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemAdvise(p, size, advice, nowhere))
	}
	bad := func(p driver.CUdeviceptr, size uint64, advice driver.CUmem_advise, at driver.CUmemLocation) {
		s.Helper()
		s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemAdvise(p, size, advice, at))
	}
	const set = driver.CU_MEM_ADVISE_SET_READ_MOSTLY
	bad(p, size, 0, s.here())
	bad(p, size, 7, s.here())
	bad(p, size, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, missing)
	s.ok(s.CuMemAdvise(p, size, set, missing)) // the location is ignored
	s.ok(s.CuMemAdvise(p, size, driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, numa))
	bad(p, size, driver.CU_MEM_ADVISE_SET_ACCESSED_BY, numa)
	bad(p, 0, set, s.here())
	bad(p, size+page, set, s.here())
	bad(s.alloc(64), 64, set, s.here())
	host, r := s.CuMemHostAlloc(page, driver.CU_MEMHOSTALLOC_DEVICEMAP)
	s.ok(r)
	s.cleanup(func() { s.CuMemFreeHost(host) })
	bad(driver.CUdeviceptr(host), page, set, s.here())
}

func managedBadPrefetch(s *suite) {
	p, size, st := s.managed(), uint64(pageCount*page), s.stream()
	prefetch := func(p driver.CUdeviceptr, size uint64, at driver.CUmemLocation, flags uint32) driver.CUresult {
		return s.CuMemPrefetchAsync(p, size, at, flags, st)
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, prefetch(p, size, nowhere, 0))
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, prefetch(p, size, missing, 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, prefetch(p, size, s.here(), 1))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, prefetch(p, 0, s.here(), 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, prefetch(p, 2*size, s.here(), 0))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, prefetch(s.alloc(64), 64, s.here(), 0))
	s.told(p, size, [8]any{0, -2, nobody, -2, 0, -2, 0, -2})
}

func managedBadAttribute(s *suite) {
	p, data := s.managed(), make([]int32, 1)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemRangeGetAttribute(data, readMostly, s.alloc(64), 64))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemRangeGetAttribute(data, 77, p, page))
}

func managedAdviseCapture(s *suite) {
	p, st := s.managed(), s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuMemAdvise(p, page, driver.CU_MEM_ADVISE_SET_READ_MOSTLY, s.here()))
	s.invalidated(st)
	s.told(p, page, [8]any{0, -2, nobody, -2, 0, -2, 0, -2})
}

func managedPrefetchCapture(s *suite) {
	p, st, other := s.managed(), s.stream(), s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	s.ok(s.CuMemPrefetchAsync(p, page, s.here(), 0, other))
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuMemPrefetchAsync(p, page, onHost, 0, st))
	s.invalidated(st)
	s.told(p, page, [8]any{0, -2, nobody, int(s.dev), 0, -2, deviceType, int(s.dev)})
}
