// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"os"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var sharedVirtuals = map[string]func(*suite){
	"physical memory for sharing has a descriptor":         sharedPhysicalExport,
	"physical memory not for sharing has no descriptor":    sharedPhysicalRefused,
	"physical memory is imported from its own descriptor":  sharedPhysicalForeign,
	"imported physical memory is the same memory":          sharedPhysicalUse,
	"imported physical memory outlives the handle of it":   sharedPhysicalOutlives,
	"physical memory for sharing has the same granularity": sharedPhysicalGranularity,
}

// sharedProp is the properties of memory for sharing.
func (s *suite) sharedProp() *driver.CUmemAllocationProp {
	s.Helper()
	supported, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, s.dev)
	s.ok(r)
	if supported == 0 {
		s.Skip("the device shares no virtual memory by file descriptors")
	}
	prop := s.prop()
	prop.RequestedHandleTypes = int32(posix)
	return prop
}

// sharedPhysical makes memory for sharing and exports it. The descriptor is open
// until the end of the test.
func (s *suite) sharedPhysical(size uint64) (h driver.CUmemGenericAllocationHandle, fd int32) {
	s.Helper()
	h, r := s.CuMemCreate(size, s.sharedProp(), 0)
	s.ok(r)
	fd, r = s.CuMemExportToShareableHandle(h, posix, 0)
	s.ok(r)
	s.cleanup(func() { _ = syscall.Close(int(fd)) })
	return h, fd
}

func sharedPhysicalExport(s *suite) {
	h, a := s.sharedPhysical(s.granularity())
	b, r := s.CuMemExportToShareableHandle(h, posix, 0)
	s.ok(r)
	require.Greater(s.T, a, int32(2))
	require.NotEqual(s.T, a, b)
	require.NoError(s.T, syscall.Close(int(b)))
	_, r = s.CuMemExportToShareableHandle(h, posix, 1)
	s.refused(r, "a flag")
	s.ok(s.CuMemRelease(h))
}

func sharedPhysicalRefused(s *suite) {
	s.sharedProp()
	_, r := s.CuMemExportToShareableHandle(s.physical(s.granularity()), posix, 0)
	s.refused(r, "not for sharing")
}

func sharedPhysicalForeign(s *suite) {
	s.sharedProp()
	r, w, err := os.Pipe()
	require.NoError(s.T, err)
	s.cleanup(func() { _, _ = r.Close(), w.Close() })
	for _, fd := range []int32{int32(r.Fd()), 1 << 20, -1} {
		_, result := s.CuMemImportFromShareableHandle(fd, posix)
		require.NotEqual(s.T, driver.CUDA_SUCCESS, result, fd)
	}
}

func sharedPhysicalUse(s *suite) {
	g := s.granularity()
	own, fd := s.sharedPhysical(g)
	s.cleanup(func() { s.CuMemRelease(own) })
	imported, r := s.CuMemImportFromShareableHandle(fd, posix)
	s.ok(r)
	s.cleanup(func() { s.CuMemRelease(imported) })
	p := s.addresses(2 * g)
	q := p + driver.CUdeviceptr(g)
	s.mapAt(p, g, own)
	s.mapAt(q, g, imported)
	s.access(p, 2*g)
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, 7, g/4, st))
	s.ok(s.launch(st, s.kernel("step"), q+driver.CUdeviceptr(g-4), uint32(2), uint32(1)))
	require.Equal(s.T, []uint32{7, 15}, s.read(q-8, 2))
	require.Equal(s.T, []uint32{7, 15}, s.read(q+driver.CUdeviceptr(g-8), 2))
}

func sharedPhysicalOutlives(s *suite) {
	g := s.granularity()
	own, fd := s.sharedPhysical(g)
	p := s.addresses(g)
	s.ok(s.CuMemMap(p, g, 0, own, 0))
	s.access(p, g)
	st := s.stream()
	s.ok(s.CuMemsetD32Async(p, 11, g/4, st))
	s.ok(s.CuStreamSynchronize(st))
	s.ok(s.CuMemUnmap(p, g))
	s.ok(s.CuMemRelease(own))
	imported, r := s.CuMemImportFromShareableHandle(fd, posix) // the descriptor alone keeps it
	s.ok(r)
	s.mapAt(p, g, imported)
	s.ok(s.CuMemRelease(imported))
	s.access(p, g)
	require.Equal(s.T, []uint32{11, 11}, s.read(p+driver.CUdeviceptr(g-8), 2))
}

func sharedPhysicalGranularity(s *suite) {
	g, r := s.CuMemGetAllocationGranularity(s.sharedProp(), driver.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
	s.ok(r)
	require.Zero(s.T, g%s.granularity())
}
