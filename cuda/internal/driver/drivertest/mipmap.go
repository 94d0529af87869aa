// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var mipmaps = map[string]func(*suite){
	"mipmapped array halves its sizes":               mipmapSizes,
	"mipmapped array has the same level each time":   mipmapSame,
	"mipmapped array refuses what breaks its rules":  mipmapRules,
	"mipmapped array is read level by level":         mipmapLevels,
	"mipmapped array is read between levels":         mipmapBetween,
	"mipmapped array is read with bias and bounds":   mipmapBounds,
	"mipmapped array is read by steps":               mipmapSteps,
	"mipmapped array has levels with all its layers": mipmapLayers,
	"surface writes a level":                         mipmapSurface,
}

const mipmapKernels = `.version 6.4
.target sm_75
.address_size 64

.visible .entry level(.param .u64 t, .param .u64 out, .param .f32 x, .param .f32 y, .param .f32 l)
{
	.reg .b64 %t, %out;
	.reg .f32 %f<4>, %x, %y, %l;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.f32 %x, [x];
	ld.param.f32 %y, [y];
	ld.param.f32 %l, [l];
	tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x, %y}], %l;
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry steps(.param .u64 t, .param .u64 out, .param .f32 dx, .param .f32 dy)
{
	.reg .b64 %t, %out;
	.reg .f32 %f<4>, %x, %y, %z;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.f32 %x, [dx];
	ld.param.f32 %y, [dy];
	mov.f32 %z, 0f00000000;
	tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%z, %z}], {%x, %z}, {%z, %y};
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}
`

// mipmap makes an array of floats with levels.
func (s *suite) mipmap(width, height, depth uint64, flags, levels uint32) driver.CUmipmappedArray {
	s.Helper()
	m, r := s.CuMipmappedArrayCreate(&driver.CUDA_ARRAY3D_DESCRIPTOR{
		Width: width, Height: height, Depth: depth, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1, Flags: flags,
	}, levels)
	s.ok(r)
	s.cleanup(func() { s.CuMipmappedArrayDestroy(m) })
	return m
}

func (s *suite) levelOf(m driver.CUmipmappedArray, level uint32) driver.CUarray {
	s.Helper()
	a, r := s.CuMipmappedArrayGetLevel(m, level)
	s.ok(r)
	return a
}

// fill makes all numbers of an array v.
func (s *suite) fill(a driver.CUarray, width, height, depth uint64, v float32) {
	s.Helper()
	p, st := s.alloc(4*width*height*depth), s.stream()
	s.ok(s.CuMemsetD32Async(p, math.Float32bits(v), width*height*depth, st))
	s.ok(s.CuMemcpy3DAsync(toArray(a, p, width, height, depth), st))
	s.ok(s.CuStreamSynchronize(st))
}

func mipmapSizes(s *suite) {
	m, st, p := s.mipmap(8, 4, 0, 0, 99), s.stream(), s.alloc(256)
	for level, size := range [][2]uint64{{8, 4}, {4, 2}, {2, 1}, {1, 1}} {
		a := s.levelOf(m, uint32(level))
		s.ok(s.CuMemcpy3DAsync(toArray(a, p, size[0], size[1], 1), st))
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpy3DAsync(toArray(a, p, size[0]+1, size[1], 1), st), level)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpy3DAsync(toArray(a, p, size[0], size[1]+1, 1), st), level)
	}
	_, r := s.CuMipmappedArrayGetLevel(m, 4)
	require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r)
}

func mipmapSame(s *suite) {
	m := s.mipmap(8, 4, 0, 0, 2)
	first := s.levelOf(m, 1)
	require.Equal(s.T, first, s.levelOf(m, 1))
	require.NotEqual(s.T, s.levelOf(m, 0), s.levelOf(m, 1))
	_, r := s.CuMipmappedArrayGetLevel(m, 2)
	require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r)
}

func mipmapRules(s *suite) {
	for name, change := range map[string]func(*driver.CUDA_ARRAY3D_DESCRIPTOR){
		"3 channels": func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.NumChannels = 3 },
		"no columns": func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Width = 0 },
		"too wide":   func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Width = 1 << 30 },
	} {
		desc := driver.CUDA_ARRAY3D_DESCRIPTOR{Width: 4, Height: 4, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1}
		change(&desc)
		_, r := s.CuMipmappedArrayCreate(&desc, 2)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}

// levels is an array of 4 × 4 zeros, 2 × 2 times 16, and 32.
func (s *suite) levels(tex driver.CUDA_TEXTURE_DESC, kernel string) func(args ...any) []float32 {
	s.Helper()
	m := s.mipmap(4, 4, 0, 0, 3)
	for level := range uint32(3) {
		size := uint64(4 >> level)
		s.fill(s.levelOf(m, level), size, size, 1, 16*float32(level))
	}
	res := driver.OfMipmappedArray(m)
	t, r := s.CuTexObjectCreate(&res, &tex, nil)
	s.ok(r)
	s.cleanup(func() { s.CuTexObjectDestroy(t) })
	return s.through(mipmapKernels, kernel, uint64(t))
}

func overLevels() driver.CUDA_TEXTURE_DESC {
	tex := clamped()
	tex.Flags, tex.MaxMipmapLevelClamp = driver.CU_TRSF_NORMALIZED_COORDINATES, 9
	return tex
}

func mipmapLevels(s *suite) {
	read := s.levels(overLevels(), "level")
	for level, want := range map[float32]float32{0: 0, 1: 16, 2: 32, 0.25: 0, 0.75: 16, 1.25: 16, 1.75: 32, -3: 0, 7: 32} {
		require.Equal(s.T, want, read(float32(0.5), float32(0.5), level)[0], level)
	}
}

func mipmapBetween(s *suite) {
	tex := overLevels()
	tex.FilterMode, tex.MipmapFilterMode = driver.CU_TR_FILTER_MODE_LINEAR, driver.CU_TR_FILTER_MODE_LINEAR
	read := s.levels(tex, "level")
	for level, want := range map[float32]float32{0: 0, 0.5: 8, 1.25: 20, 2: 32, 9: 32} {
		require.InDelta(s.T, want, read(float32(0.5), float32(0.5), level)[0], 0.07, level) // weights have 8 bits
	}
}

func mipmapBounds(s *suite) {
	tex := overLevels()
	tex.MipmapLevelBias = 1
	read := s.levels(tex, "level")
	require.Equal(s.T, float32(16), read(float32(0.5), float32(0.5), float32(0))[0])
	require.Equal(s.T, float32(0), read(float32(0.5), float32(0.5), float32(-1))[0])
	tex.MipmapLevelBias, tex.MinMipmapLevelClamp, tex.MaxMipmapLevelClamp = 0, 1, 1
	read = s.levels(tex, "level")
	require.Equal(s.T, float32(16), read(float32(0.5), float32(0.5), float32(0))[0])
	require.Equal(s.T, float32(16), read(float32(0.5), float32(0.5), float32(2))[0])
}

func mipmapSteps(s *suite) {
	read := s.levels(overLevels(), "steps")
	require.Equal(s.T, float32(0), read(float32(0.25), float32(0.25))[0])
	require.Equal(s.T, float32(16), read(float32(0.5), float32(0))[0])
	require.Equal(s.T, float32(16), read(float32(0), float32(0.5))[0])
	require.Equal(s.T, float32(32), read(float32(0.25), float32(1))[0], "the longer one counts")
}

func mipmapLayers(s *suite) {
	m := s.mipmap(4, 2, 3, driver.CUDA_ARRAY3D_LAYERED, 2)
	a, p, st := s.levelOf(m, 1), s.alloc(64), s.stream()
	s.fill(a, 2, 1, 3, 7)
	s.ok(s.CuMemcpy3DAsync(fromArray(p, a, 2, 1, 3), st))
	seven := math.Float32bits(7)
	require.Equal(s.T, []uint32{seven, seven, seven, seven, seven, seven}, s.read(p, 6))
	require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpy3DAsync(toArray(a, p, 2, 1, 4), st))
}

func mipmapSurface(s *suite) {
	m := s.mipmap(4, 2, 0, driver.CUDA_ARRAY3D_SURFACE_LDST, 2)
	for level, size := range []uint64{4, 2} {
		s.fill(s.levelOf(m, uint32(level)), size, size/2, 1, 3)
	}
	f := s.surface(s.levelOf(m, 1))
	load, store := s.through(arrayKernels, "load", uint64(f)), s.through(arrayKernels, "store", uint64(f))
	store(uint32(4), uint32(0))
	require.Equal(s.T, uint32(77), math.Float32bits(load(uint32(4), uint32(0))[0]))
	require.Equal(s.T, float32(3), load(uint32(0), uint32(0))[0])
	over := s.surface(s.levelOf(m, 0))
	require.Equal(s.T, float32(3), s.through(arrayKernels, "load", uint64(over))(uint32(4), uint32(0))[0])
}
