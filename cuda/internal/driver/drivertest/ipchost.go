// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var importedHostMemories = map[string]func(*suite){
	"pool of host memory on a NUMA node":               poolHostNode,
	"pool of host memory for sharing has a descriptor": sharedHostExport,
	"pool of host memory anywhere is not for sharing":  sharedHostRefused,
	"imported host memory is the other process's":      importedHost,
	"access to imported host memory is to be granted":  importedHostAccess,
	"host memory is imported once":                     importedHostTwice,
}

// hostNode is the NUMA node next to the device; it skips where there are no pools
// on one.
func (s *suite) hostNode() int32 {
	s.Helper()
	has, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, s.dev)
	if r != driver.CUDA_SUCCESS || has == 0 {
		s.Skip("the device has no memory pools on a NUMA node of the host")
	}
	node, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, s.dev)
	s.ok(r)
	return max(node, 0)
}

// hostNodePool is a pool of host memory on a NUMA node.
func (s *suite) hostNodePool(handles driver.CUmemAllocationHandleType) driver.CUmemoryPool {
	s.Helper()
	p, r := s.CuMemPoolCreate(&driver.CUmemPoolProps{
		AllocType: 1, LocationType: int32(driver.CU_MEM_LOCATION_TYPE_HOST_NUMA), LocationID: s.hostNode(), HandleTypes: int32(handles),
	})
	s.ok(r)
	s.cleanup(func() {
		s.ok(s.CuCtxSynchronize()) // see poolOf
		s.CuMemPoolDestroy(p)
	})
	return p
}

func (s *suite) grant(p driver.CUmemoryPool) {
	s.Helper()
	s.ok(s.CuMemPoolSetAccess(p, []driver.CUmemAccessDesc{{Location: onDevice(s.dev), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}))
}

func poolHostNode(s *suite) {
	p := s.hostNodePool(driver.CU_MEM_HANDLE_TYPE_NONE)
	s.grant(p)
	s.hostPooled(p, s.stream(), uint64(driver.CU_MEMORYTYPE_HOST), 0)
}

func sharedHostExport(s *suite) {
	p := s.hostNodePool(posix)
	require.Greater(s.T, s.descriptor(p), int32(2))
	s.grant(p)
	s.hostPooled(p, s.stream(), uint64(driver.CU_MEMORYTYPE_HOST), 0)
}

func sharedHostRefused(s *suite) {
	_, r := s.CuMemPoolCreate(&driver.CUmemPoolProps{
		AllocType: 1, LocationType: int32(driver.CU_MEM_LOCATION_TYPE_HOST), HandleTypes: int32(posix),
	})
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func importedHost(s *suite) {
	s.hostNode()
	m := s.sharerOf("host")
	pool, st := m.pool(s), s.stream()
	s.grant(pool)
	p := s.importPointer(m, pool)
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_HOST), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p))
	base, size, r := s.CuMemGetAddressRange(p + 100)
	s.ok(r)
	require.Equal(s.T, p, base)
	require.GreaterOrEqual(s.T, size, uint64(4*sharedWords))
	require.Equal(s.T, []uint32{7, 7}, s.read(p+4*sharedWords-8, 2))
	s.ok(s.CuMemsetD32Async(p, 9, 4, st))
	require.Equal(s.T, []uint32{9, 7}, s.read(p+12, 2))
	s.ok(s.CuMemFree(p))
}

func importedHostAccess(s *suite) {
	s.hostNode()
	pool := s.sharerOf("host").pool(s)
	flags, r := s.CuMemPoolGetAccess(pool, onDevice(s.dev))
	s.ok(r)
	require.Equal(s.T, driver.CU_MEM_ACCESS_FLAGS_PROT_NONE, flags)
	s.grant(pool)
	flags, r = s.CuMemPoolGetAccess(pool, onDevice(s.dev))
	s.ok(r)
	require.Equal(s.T, driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE, flags)
}

func importedHostTwice(s *suite) {
	s.hostNode()
	m := s.sharerOf("host")
	a, b := m.pool(s), m.pool(s)
	s.grant(a)
	s.grant(b)
	p := s.importPointer(m, a)
	_, r := s.CuMemPoolImportPointer(b, &m.data)
	s.code(driver.CUDA_ERROR_ALREADY_MAPPED, r)
	s.ok(s.CuMemFree(p))
	_, _, r = s.CuMemGetAddressRange(p)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}
