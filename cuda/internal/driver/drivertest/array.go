// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var arrays = map[string]func(*suite){
	"array of two dimensions is copied to and from":  arrayCopied,
	"array of three dimensions is copied in boxes":   arrayBoxes,
	"array is copied to by a node of a graph":        arrayNode,
	"array refuses copies beyond its bounds":         arrayBounds,
	"array refuses what breaks its rules":            arrayRules,
	"texture of an array is read at points":          arrayPoint,
	"texture of an array is filtered":                arrayLinear,
	"texture of an array of one dimension":           arrayLine,
	"texture of an array of three dimensions":        arrayVolume,
	"texture of layers is read in one":               arrayLayers,
	"surface is read and written":                    surfaceMoved,
	"surface does what an access says beyond bounds": surfaceBeyond,
}

// arrayKernels read four channels of a texture, and move numbers through a
// surface.
const arrayKernels = `.version 6.4
.target sm_75
.address_size 64

.visible .entry line(.param .u64 t, .param .u64 out, .param .f32 x)
{
	.reg .b64 %t, %out;
	.reg .f32 %f<4>, %x;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.f32 %x, [x];
	tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry volume(.param .u64 t, .param .u64 out, .param .f32 x, .param .f32 y, .param .f32 z)
{
	.reg .b64 %t, %out;
	.reg .f32 %f<4>, %x, %y, %z;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.f32 %x, [x];
	ld.param.f32 %y, [y];
	ld.param.f32 %z, [z];
	tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x, %y, %z, %z}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry layer(.param .u64 t, .param .u64 out, .param .u32 i, .param .f32 x, .param .f32 y)
{
	.reg .b64 %t, %out;
	.reg .b32 %i;
	.reg .f32 %f<4>, %x, %y;
	ld.param.u64 %t, [t];
	ld.param.u64 %out, [out];
	ld.param.u32 %i, [i];
	ld.param.f32 %x, [x];
	ld.param.f32 %y, [y];
	tex.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%i, %x, %y, %y}];
	st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
	ret;
}

.visible .entry load(.param .u64 s, .param .u64 out, .param .u32 x, .param .u32 y)
{
	.reg .b64 %s, %out;
	.reg .b32 %x, %y, %v<4>;
	ld.param.u64 %s, [s];
	ld.param.u64 %out, [out];
	ld.param.u32 %x, [x];
	ld.param.u32 %y, [y];
	suld.b.2d.b32.clamp {%v0}, [%s, {%x, %y}];
	suld.b.2d.b32.zero {%v1}, [%s, {%x, %y}];
	mov.b32 %v2, 0;
	mov.b32 %v3, 0;
	st.global.v4.b32 [%out], {%v0, %v1, %v2, %v3};
	ret;
}

.visible .entry store(.param .u64 s, .param .u64 out, .param .u32 x, .param .u32 y)
{
	.reg .b64 %s, %out;
	.reg .b32 %x, %y, %v;
	ld.param.u64 %s, [s];
	ld.param.u32 %x, [x];
	ld.param.u32 %y, [y];
	mov.b32 %v, 77;
	sust.b.2d.b32.zero [%s, {%x, %y}], {%v};
	ret;
}
`

// array makes an array of floats.
func (s *suite) array(width, height, depth uint64, flags uint32) driver.CUarray {
	s.Helper()
	a, r := s.CuArray3DCreate(&driver.CUDA_ARRAY3D_DESCRIPTOR{
		Width: width, Height: height, Depth: depth, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1, Flags: flags,
	})
	s.ok(r)
	s.cleanup(func() { s.CuArrayDestroy(a) })
	return a
}

// toArray copies rows without gaps from p into the array.
func toArray(a driver.CUarray, p driver.CUdeviceptr, width, height, depth uint64) *driver.CUDA_MEMCPY3D {
	return &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: p, SrcPitch: 4 * width, SrcHeight: height,
		DstMemoryType: driver.CU_MEMORYTYPE_ARRAY, DstArray: a, WidthInBytes: 4 * width, Height: height, Depth: depth,
	}
}

func fromArray(p driver.CUdeviceptr, a driver.CUarray, width, height, depth uint64) *driver.CUDA_MEMCPY3D {
	return &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_ARRAY, SrcArray: a,
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: p, DstPitch: 4 * width, DstHeight: height,
		WidthInBytes: 4 * width, Height: height, Depth: depth,
	}
}

// numbered is an array in which each number is 100 * slice + 10 * row + column.
func (s *suite) numbered(width, height, depth uint64, flags uint32) driver.CUarray {
	s.Helper()
	a := s.array(width, height, depth, flags)
	rows, slices := max(height, 1), max(depth, 1)
	list := onHeap(make([]uint32, width*rows*slices))
	for i := range uint64(len(list)) {
		list[i] = math.Float32bits(float32(100*(i/width/rows) + 10*(i/width%rows) + i%width))
	}
	p, st := s.alloc(4*uint64(len(list))), s.stream()
	s.ok(s.CuMemcpyAsync(p, addressOf(list), 4*uint64(len(list)), st))
	s.ok(s.CuMemcpy3DAsync(toArray(a, p, width, rows, slices), st))
	s.ok(s.CuStreamSynchronize(st))
	return a
}

func arrayCopied(s *suite) {
	a, p, st := s.array(5, 3, 0, 0), s.alloc(60), s.stream()
	in := onHeap([]uint32{0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24})
	params := toArray(a, 0, 5, 3, 1)
	params.SrcMemoryType, params.SrcHost = driver.CU_MEMORYTYPE_HOST, uintptr(addressOf(in))
	s.ok(s.CuMemcpy3DAsync(params, st))
	s.ok(s.CuMemcpy3DAsync(fromArray(p, a, 5, 3, 1), st))
	require.Equal(s.T, in, s.read(p, 15))
	back := make([]uint32, 15)
	params = fromArray(0, a, 5, 3, 1)
	params.DstMemoryType, params.DstHost = driver.CU_MEMORYTYPE_HOST, uintptr(addressOf(back))
	s.ok(s.CuMemcpy3DAsync(params, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, in, back)
}

func arrayBoxes(s *suite) {
	a, b, p, st := s.numbered(4, 3, 2, 0), s.array(4, 3, 2, 0), s.alloc(32), s.stream()
	s.ok(s.CuMemcpy3DAsync(&driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_ARRAY, SrcArray: a, SrcXInBytes: 4, SrcY: 1,
		DstMemoryType: driver.CU_MEMORYTYPE_ARRAY, DstArray: b, DstXInBytes: 8,
		WidthInBytes: 8, Height: 2, Depth: 2,
	}, st))
	params := fromArray(p, b, 2, 2, 2)
	params.SrcXInBytes = 8
	s.ok(s.CuMemcpy3DAsync(params, st))
	var got []float32
	for _, bits := range s.read(p, 8) {
		got = append(got, math.Float32frombits(bits))
	}
	require.Equal(s.T, []float32{11, 12, 21, 22, 111, 112, 121, 122}, got)
}

func arrayNode(s *suite) {
	a, p, q, st := s.array(4, 2, 0, 0), s.alloc(32), s.alloc(32), s.stream()
	s.ok(s.CuMemsetD32Async(p, 5, 8, st))
	s.ok(s.CuStreamSynchronize(st))
	g, r := s.CuGraphCreate(0)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	in := toArray(a, p, 4, 2, 1)
	first, r := s.CuGraphAddMemcpyNode(g, nil, in, s.ctx)
	s.ok(r)
	_, r = s.CuGraphAddMemcpyNode(g, []driver.CUgraphNode{first}, fromArray(q, a, 4, 2, 1), s.ctx)
	s.ok(r)
	got, r := s.CuGraphMemcpyNodeGetParams(first)
	s.ok(r)
	require.Equal(s.T, driver.CU_MEMORYTYPE_ARRAY, got.DstMemoryType)
	require.Equal(s.T, a, got.DstArray)
	x := s.instantiate(g)
	s.ok(s.CuGraphLaunch(x, st))
	require.Equal(s.T, []uint32{5, 5, 5, 5, 5, 5, 5, 5}, s.read(q, 8))
}

func arrayBounds(s *suite) {
	a, p, st := s.array(4, 2, 0, 0), s.alloc(256), s.stream()
	for name, change := range map[string]func(*driver.CUDA_MEMCPY3D){
		"row":             func(p *driver.CUDA_MEMCPY3D) { p.DstXInBytes = 4 },
		"column":          func(p *driver.CUDA_MEMCPY3D) { p.DstY = 1 },
		"first row alone": func(p *driver.CUDA_MEMCPY3D) { p.DstXInBytes, p.Height = 4, 1 },
		"slice":           func(p *driver.CUDA_MEMCPY3D) { p.Depth = 2 },
	} {
		params := toArray(a, p, 4, 2, 1)
		change(params)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, s.CuMemcpy3DAsync(params, st), name)
	}
}

func arrayRules(s *suite) {
	for name, change := range map[string]func(*driver.CUDA_ARRAY3D_DESCRIPTOR){
		"3 channels": func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.NumChannels = 3 },
		"no format":  func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Format = 0 },
		"no columns": func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Width = 0 },
		"too wide":   func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Width = 1 << 30 },
		"no layers":  func(d *driver.CUDA_ARRAY3D_DESCRIPTOR) { d.Flags = driver.CUDA_ARRAY3D_LAYERED },
	} {
		desc := driver.CUDA_ARRAY3D_DESCRIPTOR{Width: 4, Height: 4, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1}
		change(&desc)
		_, r := s.CuArray3DCreate(&desc)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}

func clamped() driver.CUDA_TEXTURE_DESC {
	const clamp = driver.CU_TR_ADDRESS_MODE_CLAMP
	return driver.CUDA_TEXTURE_DESC{AddressMode: [3]driver.CUaddress_mode{clamp, clamp, clamp}}
}

func arrayPoint(s *suite) {
	read := s.reader("sample", driver.OfArray(s.numbered(4, 2, 0, 0)), clamped())
	require.Equal(s.T, float32(12), read(float32(2.75), float32(1.5))[0])
	require.Equal(s.T, float32(13), read(float32(9), float32(7))[0], "clamped")
}

func arrayLinear(s *suite) {
	tex := clamped()
	tex.FilterMode, tex.Flags = driver.CU_TR_FILTER_MODE_LINEAR, driver.CU_TRSF_NORMALIZED_COORDINATES
	tex.AddressMode[0] = driver.CU_TR_ADDRESS_MODE_WRAP
	read := s.reader("sample", driver.OfArray(s.numbered(4, 2, 0, 0)), tex)
	require.Equal(s.T, float32(6.75), read(float32(2.25/4), float32(0.5))[0])
	require.Equal(s.T, float32(1.5), read(float32(0), float32(0))[0], "between the last and the first")
}

func arrayLine(s *suite) {
	tex := clamped()
	tex.FilterMode = driver.CU_TR_FILTER_MODE_LINEAR
	read := s.arrayReader("line", s.numbered(8, 0, 0, 0), tex)
	require.Equal(s.T, float32(2.5), read(float32(3))[0])
	require.Equal(s.T, float32(7), read(float32(99))[0])
}

func arrayVolume(s *suite) {
	tex := clamped()
	read := s.arrayReader("volume", s.numbered(4, 3, 2, 0), tex)
	require.Equal(s.T, float32(121), read(float32(1.5), float32(2.5), float32(1.5))[0])
	tex.FilterMode = driver.CU_TR_FILTER_MODE_LINEAR
	read = s.arrayReader("volume", s.numbered(4, 3, 2, 0), tex)
	require.Equal(s.T, float32(66.5), read(float32(2), float32(2), float32(1))[0], "the mean of eight")
}

func arrayLayers(s *suite) {
	a := s.numbered(4, 2, 3, driver.CUDA_ARRAY3D_LAYERED)
	read := s.arrayReader("layer", a, clamped())
	require.Equal(s.T, float32(2), read(uint32(0), float32(2.5), float32(0.5))[0])
	require.Equal(s.T, float32(213), read(uint32(2), float32(3.5), float32(1.5))[0])
}

func (s *suite) arrayReader(kernel string, a driver.CUarray, tex driver.CUDA_TEXTURE_DESC) func(args ...any) []float32 {
	s.Helper()
	res := driver.OfArray(a)
	t, r := s.CuTexObjectCreate(&res, &tex, nil)
	s.ok(r)
	s.cleanup(func() { s.CuTexObjectDestroy(t) })
	return s.through(arrayKernels, kernel, uint64(t))
}

func (s *suite) surface(a driver.CUarray) driver.CUsurfObject {
	s.Helper()
	res := driver.OfArray(a)
	f, r := s.CuSurfObjectCreate(&res)
	s.ok(r)
	s.cleanup(func() { s.CuSurfObjectDestroy(f) })
	return f
}

func surfaceMoved(s *suite) {
	a := s.numbered(4, 2, 0, driver.CUDA_ARRAY3D_SURFACE_LDST)
	f := s.surface(a)
	load, store := s.through(arrayKernels, "load", uint64(f)), s.through(arrayKernels, "store", uint64(f))
	require.Equal(s.T, float32(12), load(uint32(8), uint32(1))[0])
	store(uint32(8), uint32(1))
	require.Equal(s.T, uint32(77), math.Float32bits(load(uint32(8), uint32(1))[0]))
	require.Equal(s.T, float32(11), load(uint32(4), uint32(1))[0])
}

// PTX ISA, "Surface Instructions: suld" and "sust".
func surfaceBeyond(s *suite) {
	f := s.surface(s.numbered(4, 2, 0, driver.CUDA_ARRAY3D_SURFACE_LDST))
	load, store := s.through(arrayKernels, "load", uint64(f)), s.through(arrayKernels, "store", uint64(f))
	store(uint32(16), uint32(1))
	store(uint32(4), ^uint32(0))
	require.Equal(s.T, []float32{13, 0}, load(uint32(16), uint32(1))[:2])
	require.Equal(s.T, []float32{1, 0}, load(uint32(4), ^uint32(0))[:2])
	require.Equal(s.T, []float32{1, 1}, load(uint32(4), uint32(0))[:2])
}
