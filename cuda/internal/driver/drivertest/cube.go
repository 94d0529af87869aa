// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var cubes = map[string]func(*suite){
	"cubemap is read by directions":           cubeDirections,
	"cubemap of layers is read in one":        cubeLayers,
	"cubemap is filtered across its edges":    cubeSeamless,
	"cubemap's faces are layers of a surface": cubeSurface,
	"cubemap refuses what breaks its rules":   cubeRules,
}

const cubeKernels = `.version 6.4
.target sm_75
.address_size 64

.visible .entry cube(.param .u64 t, .param .u64 out, .param .f32 x, .param .f32 y, .param .f32 z)
{
	.reg .b64 %t, %out;
	.reg .f32 %f<4>, %x, %y, %z;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.f32 %x, [x];
	ld.param.f32 %y, [y];
	ld.param.f32 %z, [z];
	tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x, %y, %z, %z}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry cubes(.param .u64 t, .param .u64 out, .param .u32 i, .param .f32 x, .param .f32 y, .param .f32 z)
{
	.reg .b64 %t, %out;
	.reg .b32 %i;
	.reg .f32 %f<4>, %x, %y, %z;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.u32 %i, [i];
	ld.param.f32 %x, [x];
	ld.param.f32 %y, [y];
	ld.param.f32 %z, [z];
	tex.acube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%i, %x, %y, %z}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry face(.param .u64 s, .param .u64 out, .param .u32 i, .param .u32 x, .param .u32 y)
{
	.reg .b64 %s, %out;
	.reg .b32 %i, %x, %y, %v;
	ld.param.u64 %s, [s];
	ld.param.u64 %out, [out];
	ld.param.u32 %i, [i];
	ld.param.u32 %x, [x];
	ld.param.u32 %y, [y];
	suld.b.a2d.b32.trap {%v}, [%s, {%i, %x, %y, %y}];
	st.global.u32 [%out], %v;
	ret;
}
`

func cubeTexture() driver.CUDA_TEXTURE_DESC {
	tex := clamped()
	tex.Flags = driver.CU_TRSF_NORMALIZED_COORDINATES
	return tex
}

func (s *suite) cubeReader(kernel string, a driver.CUarray, tex driver.CUDA_TEXTURE_DESC) func(args ...any) []float32 {
	s.Helper()
	res := driver.OfArray(a)
	t, r := s.CuTexObjectCreate(&res, &tex, nil)
	s.ok(r)
	s.cleanup(func() { s.CuTexObjectDestroy(t) })
	return s.through(cubeKernels, kernel, uint64(t))
}

// CUDA C++ Programming Guide, "Cubemap Textures".
func cubeDirections(s *suite) {
	read := s.cubeReader("cube", s.numbered(2, 2, 6, driver.CUDA_ARRAY3D_CUBEMAP), cubeTexture())
	for direction, want := range map[[3]float32]float32{
		{1, 0.5, 0.5}: 0, {1, 0.5, -0.5}: 1, {1, -0.5, 0.5}: 10,
		{-1, 0.5, -0.5}: 100, {-1, 0.5, 0.5}: 101, {-1, -0.5, -0.5}: 110,
		{-0.5, 1, -0.5}: 200, {0.5, 1, -0.5}: 201, {-0.5, 1, 0.5}: 210,
		{-0.5, -1, 0.5}: 300, {0.5, -1, 0.5}: 301, {-0.5, -1, -0.5}: 310,
		{-0.5, 0.5, 1}: 400, {0.5, 0.5, 1}: 401, {-0.5, -0.5, 1}: 410,
		{0.5, 0.5, -1}: 500, {-0.5, 0.5, -1}: 501, {0.5, -0.5, -1}: 510,
	} {
		require.Equal(s.T, want, read(direction[0], direction[1], direction[2])[0], direction)
	}
}

func cubeLayers(s *suite) {
	a := s.numbered(2, 2, 12, driver.CUDA_ARRAY3D_CUBEMAP|driver.CUDA_ARRAY3D_LAYERED)
	read := s.cubeReader("cubes", a, cubeTexture())
	require.Equal(s.T, float32(401), read(uint32(0), float32(0.5), float32(0.5), float32(1))[0])
	require.Equal(s.T, float32(1001), read(uint32(1), float32(0.5), float32(0.5), float32(1))[0])
}

func cubeSeamless(s *suite) {
	a := s.numbered(2, 2, 6, driver.CUDA_ARRAY3D_CUBEMAP)
	tex := cubeTexture()
	tex.FilterMode = driver.CU_TR_FILTER_MODE_LINEAR
	read := s.cubeReader("cube", a, tex)
	require.InDelta(s.T, 401, read(float32(0.998), float32(0.5), float32(1))[0], 0.5, "clamped")
	tex.Flags |= driver.CU_TRSF_SEAMLESS_CUBEMAP
	read = s.cubeReader("cube", a, tex)
	require.InDelta(s.T, 200.5, read(float32(0.998), float32(0.5), float32(1))[0], 4, "between 401 and 0")
}

func cubeSurface(s *suite) {
	f := s.surface(s.numbered(2, 2, 6, driver.CUDA_ARRAY3D_CUBEMAP|driver.CUDA_ARRAY3D_SURFACE_LDST))
	read := s.through(cubeKernels, "face", uint64(f))
	require.Equal(s.T, math.Float32bits(411), math.Float32bits(read(uint32(4), uint32(4), uint32(1))[0]))
}

func cubeRules(s *suite) {
	for name, change := range map[string]func(*driver.CUDA_ARRAY3D_DESCRIPTOR){
		"not square":    func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Height = 2 },
		"7 faces":       func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Depth = 7 },
		"two cubes":     func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Depth = 12 },
		"half a layer":  func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Depth, d.Flags = 9, d.Flags|driver.CUDA_ARRAY3D_LAYERED },
		"one dimension": func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Height = 0 },
	} {
		desc := driver.CUDA_ARRAY3D_DESCRIPTOR{
			Width: 4, Height: 4, Depth: 6, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1, Flags: driver.CUDA_ARRAY3D_CUBEMAP,
		}
		change(&desc)
		_, r := s.CuArray3DCreate(&desc)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}
