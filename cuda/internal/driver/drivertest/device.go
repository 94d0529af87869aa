// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var devices = map[string]func(*suite){
	"device count and ordinals":         deviceOrdinals,
	"device limits make sense":          deviceLimits,
	"device queries refuse bad devices": deviceBad,
	"driver version is 12.4 or later":   driverVersion,
}

func deviceOrdinals(s *suite) {
	n, r := s.CuDeviceGetCount()
	s.ok(r)
	require.Positive(s.T, n)
	seen := map[[16]byte]bool{}
	for i := range n {
		dev, r := s.CuDeviceGet(i)
		s.ok(r)
		name, r := s.CuDeviceGetName(dev)
		s.ok(r)
		require.NotEmpty(s.T, name)
		bus, r := s.CuDeviceGetPCIBusId(dev)
		s.ok(r)
		require.Regexp(s.T, `^[0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.0$`, bus)
		uuid, r := s.CuDeviceGetUuid(dev)
		s.ok(r)
		require.False(s.T, seen[uuid], "two devices have one UUID")
		seen[uuid] = true
	}
	_, r = s.CuDeviceGet(n)
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, r)
	_, r = s.CuDeviceGet(-1)
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, r)
}

func deviceLimits(s *suite) {
	at := func(a driver.CUdevice_attribute) int32 {
		s.Helper()
		v, r := s.CuDeviceGetAttribute(a, s.dev)
		s.ok(r)
		return v
	}
	require.Equal(s.T, int32(32), at(driver.CU_DEVICE_ATTRIBUTE_WARP_SIZE))
	require.Equal(s.T, int32(1024), at(driver.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
	require.Positive(s.T, at(driver.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT))
	require.GreaterOrEqual(s.T, at(driver.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), int32(7))
	require.Equal(s.T, int32(48<<10), at(driver.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK))
	require.Greater(s.T, at(driver.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), int32(48<<10))
	require.Equal(s.T, int32(1), at(driver.CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
	require.Equal(s.T, int32(1), at(driver.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
	total, r := s.CuDeviceTotalMem(s.dev)
	s.ok(r)
	free, sum, r := s.CuMemGetInfo()
	s.ok(r)
	require.LessOrEqual(s.T, free, sum)
	require.Equal(s.T, total, sum)
}

func deviceBad(s *suite) {
	_, r := s.CuDeviceGetName(-1)
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, r)
	_, r = s.CuDeviceCanAccessPeer(s.dev, -1)
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, r)
	_, r = s.CuDevicePrimaryCtxRetain(999)
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, r)
	_, r = s.CuDeviceGetAttribute(-1, s.dev)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func driverVersion(s *suite) {
	v, r := s.CuDriverGetVersion()
	s.ok(r)
	require.GreaterOrEqual(s.T, v, int32(12040))
}
