// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var textures = map[string]func(*suite){
	"texture of linear memory is read by numbers":  textureFetch,
	"texture of rows is read at points":            texturePoint,
	"texture of rows is filtered":                  textureLinear,
	"texture of rows wraps around and is mirrored": textureWrapped,
	"texture has a border":                         textureBorder,
	"texture promotes integers":                    texturePromoted,
	"texture refuses what breaks its rules":        textureRules,
	"texture is destroyed once":                    textureDestroyed,
}

// textureKernels read one element, of which they store 4 channels.
const textureKernels = `.version 6.4
.target sm_75
.address_size 64

.visible .entry fetch(.param .u64 t, .param .u64 out, .param .u32 i)
{
	.reg .b64 %t, %out;
	.reg .b32 %i;
	.reg .f32 %f<4>;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.u32 %i, [i];
	tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%i}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry sample(.param .u64 t, .param .u64 out, .param .f32 x, .param .f32 y)
{
	.reg .b64 %t, %out;
	.reg .f32 %f<4>, %x, %y;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.f32 %x, [x];
	ld.param.f32 %y, [y];
	tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x, %y}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}
`

// image is of 4 × 2 numbers, 10 * row + column, in rows of 64 bytes.
func (s *suite) image() (driver.CUDA_RESOURCE_DESC, driver.CUDA_TEXTURE_DESC) {
	s.Helper()
	p := s.alloc(512)
	list := onHeap(make([]uint32, 128))
	for i := range 8 {
		list[16*(i/4)+i%4] = math.Float32bits(float32(10*(i/4) + i%4))
	}
	st := s.stream()
	s.ok(s.CuMemcpyAsync(p, addressOf(list), 512, st))
	s.ok(s.CuStreamSynchronize(st))
	return driver.CUDA_RESOURCE_DESC{
			ResType: driver.CU_RESOURCE_TYPE_PITCH2D, DevPtr: p, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1, Width: 4, Height: 2, PitchInBytes: 64,
		}, driver.CUDA_TEXTURE_DESC{
			AddressMode: [3]driver.CUaddress_mode{driver.CU_TR_ADDRESS_MODE_CLAMP, driver.CU_TR_ADDRESS_MODE_CLAMP, driver.CU_TR_ADDRESS_MODE_CLAMP},
		}
}

// reader makes a texture, and returns what reads it.
func (s *suite) reader(kernel string, res driver.CUDA_RESOURCE_DESC, tex driver.CUDA_TEXTURE_DESC) func(args ...any) []float32 {
	s.Helper()
	t, r := s.CuTexObjectCreate(&res, &tex, nil)
	s.ok(r)
	s.cleanup(func() { s.CuTexObjectDestroy(t) })
	return s.through(textureKernels, kernel, uint64(t))
}

// through returns what launches a kernel with a handle, and reads the 4 numbers that
// it stores.
func (s *suite) through(text, kernel string, handle uint64) func(args ...any) []float32 {
	s.Helper()
	m, log, r := s.CuModuleLoadDataEx([]byte(text))
	require.Equal(s.T, driver.CUDA_SUCCESS, r, log)
	s.cleanup(func() { s.CuModuleUnload(m) })
	f, r := s.CuModuleGetFunction(m, kernel)
	s.ok(r)
	out, st := s.alloc(16), s.stream()
	s.ok(s.CuMemsetD32Async(out, 0, 4, st))
	return func(args ...any) []float32 {
		s.ok(s.launch(st, f, append([]any{driver.CUdeviceptr(handle), out}, args...)...))
		var list []float32
		for _, bits := range s.read(out, 4) {
			list = append(list, math.Float32frombits(bits))
		}
		return list
	}
}

func textureFetch(s *suite) {
	res, tex := s.image()
	res.ResType, res.Width, res.Height, res.PitchInBytes = driver.CU_RESOURCE_TYPE_LINEAR, 128, 0, 0
	read := s.reader("fetch", res, tex)
	require.Equal(s.T, float32(2), read(uint32(2))[0])
	require.Equal(s.T, float32(13), read(uint32(16 + 3))[0])
	require.Equal(s.T, float32(0), read(uint32(32))[0], "beyond the end")
	require.Equal(s.T, float32(0), read(^uint32(0))[0], "before the beginning")
}

func texturePoint(s *suite) {
	res, tex := s.image()
	read := s.reader("sample", res, tex)
	require.Equal(s.T, float32(0), read(float32(0), float32(0))[0])
	require.Equal(s.T, float32(12), read(float32(2.75), float32(1.5))[0])
	require.Equal(s.T, float32(13), read(float32(9), float32(7))[0], "clamped")
	require.Equal(s.T, float32(0), read(float32(-9), float32(-7))[0], "clamped")
}

func textureLinear(s *suite) {
	res, tex := s.image()
	tex.FilterMode = driver.CU_TR_FILTER_MODE_LINEAR
	read := s.reader("sample", res, tex)
	require.Equal(s.T, float32(1), read(float32(1.5), float32(0.5))[0])
	require.Equal(s.T, float32(1.5), read(float32(2), float32(0.5))[0])
	require.Equal(s.T, float32(6.75), read(float32(2.25), float32(1))[0])
	require.Equal(s.T, float32(3), read(float32(3.9), float32(0))[0], "clamped")
}

func textureWrapped(s *suite) {
	res, tex := s.image()
	tex.Flags = driver.CU_TRSF_NORMALIZED_COORDINATES
	tex.AddressMode[0], tex.AddressMode[1] = driver.CU_TR_ADDRESS_MODE_WRAP, driver.CU_TR_ADDRESS_MODE_MIRROR
	read := s.reader("sample", res, tex)
	require.Equal(s.T, float32(12), read(float32(0.625), float32(0.75))[0])
	require.Equal(s.T, float32(2), read(float32(1.625), float32(0.25))[0])
	require.Equal(s.T, float32(3), read(float32(-0.125), float32(0.25))[0])
	require.Equal(s.T, float32(10), read(float32(0), float32(1.25))[0])
}

func textureBorder(s *suite) {
	res, tex := s.image()
	tex.AddressMode[0], tex.AddressMode[1] = driver.CU_TR_ADDRESS_MODE_BORDER, driver.CU_TR_ADDRESS_MODE_BORDER
	tex.BorderColor = [4]float32{7, 7, 7, 7}
	read := s.reader("sample", res, tex)
	require.Equal(s.T, float32(12), read(float32(2.5), float32(1.5))[0])
	require.Equal(s.T, float32(7), read(float32(4.5), float32(1.5))[0])
	require.Equal(s.T, float32(7), read(float32(1.5), float32(-0.5))[0])
}

func texturePromoted(s *suite) {
	p, st := s.alloc(512), s.stream()
	s.ok(s.CuMemsetD32Async(p, 0xff80_3300, 128, st))
	s.ok(s.CuStreamSynchronize(st))
	res := driver.CUDA_RESOURCE_DESC{ResType: driver.CU_RESOURCE_TYPE_LINEAR, DevPtr: p, Format: driver.CU_AD_FORMAT_UNSIGNED_INT8, NumChannels: 4, Width: 512}
	read := s.reader("fetch", res, driver.CUDA_TEXTURE_DESC{})
	require.Equal(s.T, []float32{0, 0.2, 128. / 255, 1}, read(uint32(3)))
}

func textureRules(s *suite) {
	for name, change := range map[string]func(*driver.CUDA_RESOURCE_DESC, *driver.CUDA_TEXTURE_DESC){
		"address of 16": func(r *driver.CUDA_RESOURCE_DESC, _ *driver.CUDA_TEXTURE_DESC) { r.DevPtr += 16 },
		"3 channels":    func(r *driver.CUDA_RESOURCE_DESC, _ *driver.CUDA_TEXTURE_DESC) { r.NumChannels = 3 },
		"no format":     func(r *driver.CUDA_RESOURCE_DESC, _ *driver.CUDA_TEXTURE_DESC) { r.Format = 0 },
		"pitch of 40":   func(r *driver.CUDA_RESOURCE_DESC, _ *driver.CUDA_TEXTURE_DESC) { r.PitchInBytes = 40 },
		"flags":         func(r *driver.CUDA_RESOURCE_DESC, _ *driver.CUDA_TEXTURE_DESC) { r.Flags = 1 },
	} {
		res, tex := s.image()
		change(&res, &tex)
		_, r := s.CuTexObjectCreate(&res, &tex, nil)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}

func textureDestroyed(s *suite) {
	res, tex := s.image()
	t, r := s.CuTexObjectCreate(&res, &tex, nil)
	s.ok(r)
	s.ok(s.CuTexObjectDestroy(t))
}
