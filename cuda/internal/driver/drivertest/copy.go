// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var copies = map[string]func(*suite){
	"copy goes to the device and back":               copyRoundTrip,
	"copy from pageable memory may be overwritten":   copyStaged,
	"copy within a device":                           copyDevice,
	"copy of nothing is fine":                        copyNothing,
	"copy of a box keeps the pitches of both sides":  copyBox,
	"copy of a box from and to pageable memory":      copyPageableBox,
	"copy of a box refuses rows that overlap":        copyOverlappingRows,
	"fill writes elements of 1, 2 and 4 bytes":       fillWidths,
	"fill refuses addresses that are not aligned":    fillAlignment,
	"copy between pinned memory and device overlaps": copyPinned,
}

func copyRoundTrip(s *suite) {
	const n = 1 << 18 // 1 MiB: more than what a driver stages at once
	in, out := make([]uint32, n), make([]uint32, n)
	for i := range in {
		in[i] = uint32(i) * 2654435761
	}
	p, st := s.alloc(4*n), s.stream()
	s.ok(s.CuMemcpyAsync(p, addressOf(in), 4*n, st))
	s.ok(s.CuMemcpyAsync(addressOf(out), p, 4*n, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, in, out)
}

func copyStaged(s *suite) {
	in := onHeap([]uint32{1, 2, 3, 4})
	p, st := s.alloc(16), s.stream()
	s.ok(s.CuMemcpyAsync(p, addressOf(in), 16, st))
	clear(in)
	require.Equal(s.T, []uint32{1, 2, 3, 4}, s.read(p, 4))
}

func copyDevice(s *suite) {
	a, b, st := s.alloc(64), s.alloc(64), s.stream()
	s.ok(s.CuMemsetD32Async(a, 9, 16, st))
	s.ok(s.CuMemsetD32Async(b, 0, 16, st))
	s.ok(s.CuMemcpyAsync(b+16, a, 32, st))
	require.Equal(s.T, []uint32{0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0}, s.read(b, 16))
}

func copyNothing(s *suite) {
	p := s.alloc(16)
	s.ok(s.CuMemcpyAsync(p, p, 0, s.stream()))
	s.ok(s.CuMemsetD8Async(p, 1, 0, s.stream()))
}

// box copies 2 slices of 2 rows of 8 bytes, out of slices of 3 rows of 16 bytes,
// into slices of 2 rows of 12 bytes.
func box(dst, src driver.CUdeviceptr) *driver.CUDA_MEMCPY3D {
	return &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: src, SrcPitch: 16, SrcHeight: 3,
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: dst, DstPitch: 12, DstHeight: 2,
		WidthInBytes: 8, Height: 2, Depth: 2,
	}
}

func boxed() (in, out []uint32) {
	in = make([]uint32, 24)
	for i := range in {
		in[i] = uint32(i)
	}
	return in, []uint32{0, 1, 77, 4, 5, 77, 12, 13, 77, 16, 17, 77}
}

func copyBox(s *suite) {
	in, out := boxed()
	a, b, st := s.alloc(96), s.alloc(48), s.stream()
	s.ok(s.CuMemcpyAsync(a, addressOf(in), 96, st))
	s.ok(s.CuMemsetD32Async(b, 77, 12, st))
	s.ok(s.CuMemcpy3DAsync(box(b, a), st))
	require.Equal(s.T, out, s.read(b, 12))
}

func copyPageableBox(s *suite) {
	in, out := boxed()
	p, st := s.alloc(48), s.stream()
	s.ok(s.CuMemsetD32Async(p, 77, 12, st))
	params := box(p, 0)
	params.SrcMemoryType, params.SrcHost = driver.CU_MEMORYTYPE_HOST, uintptr(addressOf(in))
	s.ok(s.CuMemcpy3DAsync(params, st))
	require.Equal(s.T, out, s.read(p, 12))

	back := make([]uint32, 12)
	s.ok(s.CuMemsetD32Async(p, 5, 12, st))
	params = &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: p, SrcPitch: 16, SrcHeight: 3,
		DstMemoryType: driver.CU_MEMORYTYPE_HOST, DstHost: uintptr(addressOf(back)), DstPitch: 12, DstHeight: 3,
		WidthInBytes: 8, Height: 3, Depth: 1,
	}
	s.ok(s.CuMemcpy3DAsync(params, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, []uint32{5, 5, 0, 5, 5, 0, 5, 5, 0, 0, 0, 0}, back)
}

func copyOverlappingRows(s *suite) {
	a, b, st := s.alloc(96), s.alloc(48), s.stream()
	params := box(b, a)
	params.SrcPitch = 4
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpy3DAsync(params, st))
	params = box(b, a)
	params.SrcHeight = 1
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpy3DAsync(params, st))
}

func fillWidths(s *suite) {
	p, st := s.alloc(16), s.stream()
	s.ok(s.CuMemsetD32Async(p, 0xDEADBEEF, 4, st))
	s.ok(s.CuMemsetD8Async(p+1, 0x11, 2, st))
	s.ok(s.CuMemsetD16Async(p+6, 0x2233, 1, st))
	s.ok(s.CuMemsetD16Async(p+8, 0x4455, 3, st))
	require.Equal(s.T, []uint32{0xDE1111EF, 0x2233BEEF, 0x44554455, 0xDEAD4455}, s.read(p, 4))
}

func fillAlignment(s *suite) {
	p, st := s.alloc(16), s.stream()
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemsetD16Async(p+1, 0, 1, st))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemsetD32Async(p+2, 0, 1, st))
}

func copyPinned(s *suite) {
	host, r := s.CuMemHostAlloc(16, 0)
	s.ok(r)
	p, st := s.alloc(16), s.stream()
	gate := s.hold(st)
	s.ok(s.CuMemsetD32Async(p, 3, 4, st))
	s.ok(s.CuMemcpyAsync(driver.CUdeviceptr(host), p, 16, st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
	gate.open()
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, []uint32{3, 3, 3, 3}, words(host, 4))
	s.ok(s.CuMemFreeHost(host))
}
