// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var modules = map[string]func(*suite){
	"module lists its kernels":                  moduleNames,
	"module has variables":                      moduleGlobal,
	"module has variables that are managed":     moduleManaged,
	"module that is not PTX is refused":         moduleSyntax,
	"module for a later PTX version is refused": moduleVersion,
	"kernel that is loaded does not wait":       kernelLoad,
	"kernel tells its parameters":               kernelParams,
	"kernel tells its attributes":               kernelAttributes,
	"occupancy falls with shared memory":        occupancy,
	"clusters have an occupancy of their own":   clusterOccupancy,
}

func moduleNames(s *suite) {
	names, r := s.CuModuleFunctionNames(s.module())
	s.ok(r)
	require.ElementsMatch(s.T, kernelNames, names)
	_, r = s.CuModuleGetFunction(s.module(), "missing")
	s.code(driver.CUDA_ERROR_NOT_FOUND, r)
}

func moduleGlobal(s *suite) {
	m := s.module()
	p, size, r := s.CuModuleGetGlobal(m, "table")
	s.ok(r)
	require.Equal(s.T, uint64(16), size)
	require.Equal(s.T, []uint32{10, 20, 30, 40}, s.read(p, 4))
	base, extent, r := s.CuMemGetAddressRange(p)
	s.ok(r)
	require.LessOrEqual(s.T, base, p)
	require.GreaterOrEqual(s.T, extent, size)
	require.Equal(s.T, uint64(driver.CU_MEMORYTYPE_DEVICE), s.attribute(driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p))
	f, r := s.CuModuleGetFunction(m, "look_up")
	s.ok(r)
	out, st := s.word(0), s.stream()
	s.ok(s.CuMemsetD32Async(p+8, 31, 1, st))
	s.ok(s.launch(st, f, out, uint32(2)))
	s.same(31, out)
	_, _, r = s.CuModuleGetGlobal(m, "missing")
	s.code(driver.CUDA_ERROR_NOT_FOUND, r)
	_, _, r = s.CuModuleGetGlobal(m, "look_up")
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

// What the driver says of a managed variable, and of the one beside it.
func moduleManaged(s *suite) {
	const text = ".version 6.4\n.target sm_50\n.address_size 64\n" +
		".visible .global .align 4 .u32 alone;\n.visible .global .attribute(.managed) .align 4 .u32 shared;\n"
	m, log, r := s.CuModuleLoadDataEx([]byte(text))
	require.Equal(s.T, driver.CUDA_SUCCESS, r, log)
	defer func() { s.ok(s.CuModuleUnload(m)) }()
	for name, managed := range map[string]uint64{"alone": 0, "shared": 1} {
		p, size, r := s.CuModuleGetGlobal(m, name)
		s.ok(r)
		require.Equal(s.T, uint64(4), size)
		require.Equal(s.T, managed, s.attribute(driver.CU_POINTER_ATTRIBUTE_IS_MANAGED, p), name)
		if managed != 0 {
			require.NotZero(s.T, s.attribute(driver.CU_POINTER_ATTRIBUTE_HOST_POINTER, p))
		}
	}
}

func moduleSyntax(s *suite) {
	text := strings.Replace(kernels, "mad.lo.u32 %r4", "mad.lo.u32 %%r4", 1)
	_, log, r := s.CuModuleLoadDataEx([]byte(text))
	s.code(driver.CUDA_ERROR_INVALID_PTX, r)
	require.Contains(s.T, log, "line 2", "the log names a line in the twenties")
}

func moduleVersion(s *suite) {
	_, log, r := s.CuModuleLoadDataEx([]byte(strings.Replace(kernels, ".version 6.4", ".version 99.0", 1)))
	s.code(driver.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, r)
	require.NotEmpty(s.T, log)
}

// The module is new, so that nothing has launched its kernel before.
func kernelLoad(s *suite) {
	f, r := s.CuModuleGetFunction(s.module(), "step")
	s.ok(r)
	s.ok(s.CuFuncLoad(f))
	s.ok(s.CuFuncLoad(f))
	p, held, st := s.word(1), s.stream(), s.stream()
	gate := s.hold(held)
	defer time.AfterFunc(20*time.Second, gate.open).Stop() // else a launch that waits for the gate would hang
	s.ok(s.launch(st, f, p, uint32(1), uint32(5)))
	s.ok(s.CuStreamSynchronize(st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(held)) // the gate has not been opened for it
	gate.open()
	s.same(6, p)
}

func kernelParams(s *suite) {
	f := s.kernel("saxpy")
	want := [][2]uint64{{0, 4}, {8, 8}, {16, 8}, {24, 4}}
	for i, w := range want {
		offset, size, r := s.CuFuncGetParamInfo(f, uint64(i))
		s.ok(r)
		got := [2]uint64{offset, size}
		require.Equal(s.T, w, got)
	}
	_, _, r := s.CuFuncGetParamInfo(f, 4)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func kernelAttributes(s *suite) {
	f := s.kernel("small_blocks")
	v, r := s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f)
	s.ok(r)
	require.Equal(s.T, int32(64), v)
	v, r = s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_PTX_VERSION, f)
	s.ok(r)
	require.Equal(s.T, int32(75), v, "the virtual architecture, whatever its name says")
	for _, a := range []driver.CUfunction_attribute{
		driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, driver.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
		driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
	} {
		v, r = s.CuFuncGetAttribute(a, f)
		s.ok(r)
		require.Zero(s.T, v)
	}
	v, r = s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, f)
	s.ok(r)
	require.Positive(s.T, v)
	v, r = s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_BINARY_VERSION, f)
	s.ok(r)
	require.GreaterOrEqual(s.T, v, int32(75))
	v, r = s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f)
	s.ok(r)
	require.Equal(s.T, int32(48<<10), v)
	s.ok(s.CuFuncSetAttribute(f, driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50))
	v, r = s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, f)
	s.ok(r)
	require.Equal(s.T, int32(50), v)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuFuncSetAttribute(f, driver.CU_FUNC_ATTRIBUTE_NUM_REGS, 5))
	_, r = s.CuFuncGetAttribute(999, f)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func occupancy(s *suite) {
	f := s.kernel("shared_size")
	without, r := s.CuOccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 0)
	s.ok(r)
	require.Positive(s.T, without)
	with, r := s.CuOccupancyMaxActiveBlocksPerMultiprocessor(f, 32, 40<<10)
	s.ok(r)
	require.Positive(s.T, with)
	require.Less(s.T, with, without)
}

// What a device without clusters answers is a guess: there was none to ask.
func clusterOccupancy(s *suite) {
	const clusterLaunch = 120 // CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, cuda.h, CUDA 12.4
	f, config := s.kernel("nothing"), one(0)
	config.GridDimX, config.BlockDimX = 64, 128
	has, r := s.CuDeviceGetAttribute(clusterLaunch, s.dev)
	s.ok(r)
	if has == 0 {
		_, r := s.CuOccupancyMaxPotentialClusterSize(f, config)
		s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
		_, r = s.CuOccupancyMaxActiveClusters(f, config)
		s.code(driver.CUDA_ERROR_NOT_SUPPORTED, r)
		return
	}
	size, r := s.CuOccupancyMaxPotentialClusterSize(f, config)
	s.ok(r)
	require.Equal(s.T, int32(8), size, "what is portable")
	active := func(blocks uint32) int32 {
		of := attribute(driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, blocks)
		of.Value[4], of.Value[8] = 1, 1
		config.Attrs, config.NumAttrs = s.attributes(of), 1
		n, r := s.CuOccupancyMaxActiveClusters(f, config)
		s.ok(r)
		return n
	}
	require.Positive(s.T, active(8))
	require.Less(s.T, active(8), active(2))
}
