// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"encoding/binary"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var launches = map[string]func(*suite){
	"launch computes":                        launchSaxpy,
	"launch reads its arguments at the call": launchSnapshot,
	"launch refuses bad shapes":              launchShapes,
	"launch needs all arguments":             launchWithoutArguments,
	"launch beyond the kernel's own limit":   launchTooMany,
	"launch beyond a thread's local memory":  launchLocal,
	"launch with dynamic shared memory":      launchShared,
	"launch takes attributes":                launchAttributes,
	"cooperative launch must fit the device": launchCooperative,
}

func launchSaxpy(s *suite) {
	const n = 1000
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i), 1
	}
	px, py, st := s.alloc(4*n), s.alloc(4*n), s.stream()
	s.ok(s.CuMemcpyAsync(px, addressOf(x), 4*n, st))
	s.ok(s.CuMemcpyAsync(py, addressOf(y), 4*n, st))
	s.ok(s.CuLaunchKernelEx(&driver.CUlaunchConfig{
		GridDimX: 8, GridDimY: 1, GridDimZ: 1, BlockDimX: 128, BlockDimY: 1, BlockDimZ: 1, HStream: st,
	}, s.kernel("saxpy"), s.params(float32(2), px, py, uint32(n))))
	got := s.read(py, n)
	for i := range got {
		require.Equal(s.T, 2*float32(i)+1, math.Float32frombits(got[i]))
	}
}

func launchSnapshot(s *suite) {
	p, st := s.word(1), s.stream()
	value := uint32(5)
	gate := s.hold(st)
	args := s.params(p, uint32(1), &value)
	s.ok(s.CuLaunchKernelEx(one(st), s.kernel("step"), args))
	value = 100
	gate.open()
	s.same(6, p)
}

// one is the shape of a launch of one thread.
func one(st driver.CUstream) *driver.CUlaunchConfig {
	return &driver.CUlaunchConfig{GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, HStream: st}
}

func launchShapes(s *suite) {
	f, st := s.kernel("nothing"), s.stream()
	tests := []struct {
		name        string
		grid, block [3]uint32
		shared      uint32
	}{
		{"empty grid", [3]uint32{0, 1, 1}, [3]uint32{1, 1, 1}, 0},
		{"empty block", [3]uint32{1, 1, 1}, [3]uint32{1, 0, 1}, 0},
		{"too many threads", [3]uint32{1, 1, 1}, [3]uint32{1025, 1, 1}, 0},
		{"too many threads in three dimensions", [3]uint32{1, 1, 1}, [3]uint32{32, 32, 2}, 0},
		{"block too deep", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 65}, 0},
		{"grid too high", [3]uint32{1, 65536, 1}, [3]uint32{1, 1, 1}, 0},
		{"too much shared memory", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 1 << 20},
	}
	for _, tt := range tests {
		r := s.CuLaunchKernelEx(&driver.CUlaunchConfig{
			GridDimX: tt.grid[0], GridDimY: tt.grid[1], GridDimZ: tt.grid[2],
			BlockDimX: tt.block[0], BlockDimY: tt.block[1], BlockDimZ: tt.block[2],
			SharedMemBytes: tt.shared, HStream: st,
		}, f, nil)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, tt.name)
	}
	s.ok(s.CuLaunchKernelEx(one(st), f, nil))
	s.ok(s.CuStreamSynchronize(st))
}

func launchWithoutArguments(s *suite) {
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuLaunchKernelEx(one(s.stream()), s.kernel("step"), nil))
}

func launchTooMany(s *suite) {
	config := one(s.stream())
	config.BlockDimX = 128
	r := s.CuLaunchKernelEx(config, s.kernel("small_blocks"), nil)
	require.Contains(s.T, []driver.CUresult{driver.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, driver.CUDA_ERROR_INVALID_VALUE}, r)
}

// Code is loaded, whatever it wants of local memory.
func launchLocal(s *suite) {
	m, _, r := s.CuModuleLoadDataEx([]byte(`.version 7.0
.target sm_75
.address_size 64
.visible .entry much(.param .u64 p)
{
	.local .align 8 .b8 x[524304];
	.reg .b64 %p, %x;
	.reg .b32 %v;
	ld.param.u64 %p, [p];
	mov.u64 %x, x;
	add.u64 %x, %x, %p;
	st.local.u32 [%x], 1;
	ld.local.u32 %v, [%x+8];
	st.local.u32 [%x+16], %v;
	ret;
}`))
	s.ok(r)
	s.cleanup(func() { s.CuModuleUnload(m) })
	f, r := s.CuModuleGetFunction(m, "much")
	s.ok(r)
	size, r := s.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f)
	s.ok(r)
	require.EqualValues(s.T, 524304, size)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuLaunchKernelEx(one(s.stream()), f, s.params(s.word(0))))
}

func launchShared(s *suite) {
	f, out, st := s.kernel("shared_size"), s.word(0), s.stream()
	config := one(st)
	config.SharedMemBytes = 50 << 10
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuLaunchKernelEx(config, f, s.params(out)))
	s.ok(s.CuFuncSetAttribute(f, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50<<10))
	s.ok(s.CuLaunchKernelEx(config, f, s.params(out)))
	s.same(50<<10, out)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuFuncSetAttribute(f, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1<<20))
}

func attribute(id driver.CUlaunchAttributeID, value uint32) driver.CUlaunchAttribute {
	a := driver.CUlaunchAttribute{ID: id}
	binary.LittleEndian.PutUint32(a.Value[:], value)
	return a
}

func launchAttributes(s *suite) {
	p, config := s.word(1), one(s.stream())
	config.NumAttrs = 2
	config.Attrs = s.attributes(attribute(driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1), attribute(driver.CU_LAUNCH_ATTRIBUTE_PRIORITY, 0))
	s.ok(s.CuLaunchKernelEx(config, s.kernel("step"), s.params(p, uint32(1), uint32(2))))
	s.same(3, p)
}

func launchCooperative(s *suite) {
	config := one(s.stream())
	config.GridDimX = 1 << 20
	config.NumAttrs = 1
	config.Attrs = s.attributes(attribute(driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1))
	s.code(driver.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, s.CuLaunchKernelEx(config, s.kernel("nothing"), nil))
}
