// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"os"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var sharedPools = map[string]func(*suite){
	"pool for sharing has a descriptor":          sharedPoolExport,
	"pool not for sharing has no descriptor":     sharedPoolRefused,
	"pool is imported from a pool's descriptor":  sharedPoolNoPool,
	"imported pool allocates nothing":            sharedPoolAllocates,
	"memory of a pool not for sharing is no one": sharedPointerRefused,
	"memory of a shared pool is usable":          sharedPoolUse,
	"memory is imported with data about it":      sharedPointerNoData,
	"pool for sharing allocates in no capture":   sharedPoolCapture,
}

var sharedEvents = map[string]func(*suite){
	"event for sharing has no timing":           sharedEventTiming,
	"event for sharing is an event":             sharedEventUse,
	"event not for sharing has no handle":       sharedEventRefused,
	"event is opened with a handle of an event": sharedEventNoHandle,
}

const posix = driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

func (s *suite) needPoolHandles() {
	s.Helper()
	handles, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, s.dev)
	s.ok(r)
	if handles&int32(posix) == 0 {
		s.Skip("the device shares no pools by file descriptors")
	}
}

func (s *suite) sharedPool() driver.CUmemoryPool {
	s.Helper()
	s.needPoolHandles()
	p, r := s.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: 1, LocationID: int32(s.dev), HandleTypes: int32(posix)})
	s.ok(r)
	s.cleanup(func() { s.CuMemPoolDestroy(p) })
	return p
}

// descriptor exports a pool.
func (s *suite) descriptor(p driver.CUmemoryPool) int32 {
	s.Helper()
	fd, r := s.CuMemPoolExportToShareableHandle(p, posix, 0)
	s.ok(r)
	s.cleanup(func() { _ = syscall.Close(int(fd)) })
	return fd
}

func sharedPoolExport(s *suite) {
	p := s.sharedPool()
	a, b := s.descriptor(p), s.descriptor(p)
	require.Greater(s.T, a, int32(2))
	require.NotEqual(s.T, a, b)
	_, r := s.CuMemPoolExportToShareableHandle(p, posix, 1)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func sharedPoolRefused(s *suite) {
	_, r := s.CuMemPoolExportToShareableHandle(s.pool(0), posix, 0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func sharedPoolNoPool(s *suite) {
	r, w, err := os.Pipe()
	require.NoError(s.T, err)
	s.cleanup(func() { _, _ = r.Close(), w.Close() })
	for _, fd := range []int32{int32(r.Fd()), 1 << 20, -1} {
		_, result := s.CuMemPoolImportFromShareableHandle(fd, posix, 0)
		require.NotEqual(s.T, driver.CUDA_SUCCESS, result, fd)
	}
}

func (s *suite) imported() driver.CUmemoryPool {
	s.Helper()
	p, r := s.CuMemPoolImportFromShareableHandle(s.descriptor(s.sharedPool()), posix, 0)
	s.ok(r)
	s.cleanup(func() { s.CuMemPoolDestroy(p) })
	return p
}

func sharedPoolAllocates(s *suite) {
	_, r := s.CuMemAllocFromPoolAsync(64, s.imported(), s.stream())
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func sharedPointerRefused(s *suite) {
	st := s.stream()
	p, r := s.CuMemAllocFromPoolAsync(64, s.pool(0), st)
	s.ok(r)
	_, r = s.CuMemPoolExportPointer(p)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

func sharedPoolUse(s *suite) {
	st := s.stream()
	pool := s.sharedPool()
	p, r := s.CuMemAllocFromPoolAsync(8192, pool, st)
	s.ok(r)
	_, r = s.CuMemPoolExportPointer(p)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r) // the pool has no descriptor
	s.descriptor(pool)
	data, r := s.CuMemPoolExportPointer(p)
	s.ok(r)
	require.NotZero(s.T, data)
	s.ok(s.CuMemsetD32Async(p, 7, 2048, st))
	require.Equal(s.T, []uint32{7, 7}, s.read(p+8184, 2))
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

func sharedPointerNoData(s *suite) {
	_, r := s.CuMemPoolImportPointer(s.imported(), &driver.CUmemPoolPtrExportData{})
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func sharedPoolCapture(s *suite) {
	p, st := s.sharedPool(), s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	_, r := s.CuMemAllocFromPoolAsync(64, p, st)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
	g, r := s.CuStreamEndCapture(st)
	if r == driver.CUDA_SUCCESS {
		s.ok(s.CuGraphDestroy(g))
	}
}

const interprocess = driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING

func sharedEventTiming(s *suite) {
	_, r := s.CuEventCreate(driver.CU_EVENT_INTERPROCESS)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func sharedEventUse(s *suite) {
	e, a, b := s.event(interprocess), s.stream(), s.stream()
	s.ok(s.CuEventQuery(e))
	handle, r := s.CuIpcGetEventHandle(e)
	s.ok(r)
	require.NotZero(s.T, handle)
	gate := s.hold(a)
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuStreamWaitEvent(b, e, 0))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuEventQuery(e))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(b))
	gate.open()
	s.ok(s.CuEventSynchronize(e))
	s.ok(s.CuEventQuery(e))
	s.ok(s.CuStreamSynchronize(b))
}

func sharedEventRefused(s *suite) {
	_, r := s.CuIpcGetEventHandle(s.event(driver.CU_EVENT_DISABLE_TIMING))
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func sharedEventNoHandle(s *suite) {
	_, r := s.CuIpcOpenEventHandle(driver.CUipcEventHandle{})
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}
