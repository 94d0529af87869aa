// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var tensorMaps = map[string]func(*suite){
	"tensor map lets a kernel load a tile":        tensorMapLoad,
	"tensor map's tile beyond the bounds is zero": tensorMapBeyond,
	"tensor map swizzles the tile":                tensorMapSwizzle,
	"tensor map lets a kernel store a tile":       tensorMapStore,
	"tensor map has the same bytes each time":     tensorMapAgain,
	"tensor map refuses what breaks its rules":    tensorMapRules,
	"tensor map of columns has rules of its own":  tensorMapColumns,
	"tensor map of wide columns has others":       tensorMapWideColumns,
}

// tensorKernels need compute capability 9.0. Both move a tile of 8 × 32 words at
// the coordinates (x, y).
const tensorKernels = `.version 8.6
.target sm_90
.address_size 64

// The tile goes to out, as it lies in shared memory.
.visible .entry load(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u64 out)
{
	.reg .b32 %x, %y, %i, %v, %at;
	.reg .b64 %map, %out, %state;
	.reg .pred %p;
	.shared .align 1024 .b8 tile[1024];
	.shared .align 8 .b64 bar;
	mov.b64 %map, map;
	cvta.param.u64 %map, %map;
	ld.param.u32 %x, [x];
	ld.param.u32 %y, [y];
	ld.param.u64 %out, [out];
	mbarrier.init.shared::cta.b64 [bar], 1;
	fence.proxy.async.shared::cta;
	mbarrier.arrive.expect_tx.shared::cta.b64 %state, [bar], 1024;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%map, {%x, %y}], [bar];
wait:
	mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
	@!%p bra wait;
	mov.u32 %i, 0;
copy:
	mov.u32 %at, tile;
	add.u32 %at, %at, %i;
	ld.shared.u32 %v, [%at];
	st.global.u32 [%out], %v;
	add.u64 %out, %out, 4;
	add.u32 %i, %i, 4;
	setp.lt.u32 %p, %i, 1024;
	@%p bra copy;
	ret;
}

// The tile is filled with its words' numbers.
.visible .entry store(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y)
{
	.reg .b32 %x, %y, %i, %v, %at;
	.reg .b64 %map;
	.reg .pred %p;
	.shared .align 128 .b8 tile[1024];
	mov.b64 %map, map;
	cvta.param.u64 %map, %map;
	ld.param.u32 %x, [x];
	ld.param.u32 %y, [y];
	mov.u32 %i, 0;
fill:
	shl.b32 %v, %i, 2;
	mov.u32 %at, tile;
	add.u32 %at, %at, %v;
	st.shared.u32 [%at], %i;
	add.u32 %i, %i, 1;
	setp.lt.u32 %p, %i, 256;
	@%p bra fill;
	fence.proxy.async.shared::cta;
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%x, %y}], [tile];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
	ret;
}
`

// tiles is what CuTensorMapEncodeTiled is called with.
type tiles struct {
	dataType      driver.CUtensorMapDataType
	address       driver.CUdeviceptr
	dims, strides []uint64
	box, steps    []uint32
	interleave    driver.CUtensorMapInterleave
	swizzle       driver.CUtensorMapSwizzle
	promotion     driver.CUtensorMapL2promotion
	fill          driver.CUtensorMapFloatOOBfill
}

// matrix is of words: 40 columns and 20 rows at p, rows 256 bytes apart.
func matrix(p driver.CUdeviceptr) tiles {
	return tiles{
		dataType: driver.CU_TENSOR_MAP_DATA_TYPE_UINT32, address: p, dims: []uint64{40, 20}, strides: []uint64{256}, box: []uint32{32, 8},
		steps: []uint32{1, 1}, promotion: driver.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
	}
}

const matrixBytes = 20 * 256

func (s *suite) encode(t tiles) (driver.CUtensorMap, driver.CUresult) {
	s.Helper()
	m, r := s.CuTensorMapEncodeTiled(t.dataType, t.address, t.dims, t.strides, t.box, t.steps, t.interleave, t.swizzle, t.promotion, t.fill)
	if r == driver.CUDA_ERROR_NOT_SUPPORTED && s.major() < 9 {
		s.Skip("the driver has no tensor maps")
	}
	return m, r
}

func (s *suite) major() int32 {
	s.Helper()
	major, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, s.dev)
	s.ok(r)
	return major
}

// tensorKernel loads a kernel, on devices that can run it.
func (s *suite) tensorKernel(name string) driver.CUfunction {
	s.Helper()
	if s.major() < 9 {
		s.Skip("the device has no tensor maps")
	}
	m, log, r := s.CuModuleLoadDataEx([]byte(tensorKernels))
	require.Equal(s.T, driver.CUDA_SUCCESS, r, log)
	s.cleanup(func() { s.CuModuleUnload(m) })
	f, r := s.CuModuleGetFunction(m, name)
	s.ok(r)
	return f
}

// filled is memory with a matrix whose word at (x, y) is 100 * y + x.
func (s *suite) filled() driver.CUdeviceptr {
	s.Helper()
	p := s.alloc(matrixBytes)
	list := onHeap(make([]uint32, matrixBytes/4))
	for i := range list {
		list[i] = uint32(100*(i/64) + i%64)
	}
	st := s.stream()
	s.ok(s.CuMemcpyAsync(p, addressOf(list), matrixBytes, st))
	s.ok(s.CuStreamSynchronize(st))
	return p
}

// tile loads one through a map, and returns its 8 rows of 32 words.
func (s *suite) tile(t tiles, x, y int32) []uint32 {
	s.Helper()
	f := s.tensorKernel("load")
	m, r := s.encode(t)
	s.ok(r)
	out := s.alloc(1024)
	s.ok(s.launch(s.stream(), f, m, uint32(x), uint32(y), out))
	return s.read(out, 256)
}

func tensorMapLoad(s *suite) {
	for i, got := range s.tile(matrix(s.filled()), 4, 2) { // the first in steps of 16 bytes: an illegal instruction else
		require.EqualValues(s.T, 100*(2+i/32)+4+i%32, got, "word %d", i)
	}
}

func tensorMapBeyond(s *suite) {
	for i, got := range s.tile(matrix(s.filled()), 20, -3) {
		x, y := 20+i%32, i/32-3
		want := 100*y + x
		if x >= 40 || y < 0 {
			want = 0
		}
		require.EqualValues(s.T, want, got, "word %d", i)
	}
}

func tensorMapSwizzle(s *suite) {
	t := matrix(s.filled())
	t.swizzle = driver.CU_TENSOR_MAP_SWIZZLE_128B
	for i, got := range s.tile(t, 0, 0) {
		row, chunk, word := i/32, i%32/4, i%4
		require.EqualValues(s.T, 100*row+4*(chunk^row)+word, got, "word %d", i)
	}
}

func tensorMapStore(s *suite) {
	f, p := s.tensorKernel("store"), s.filled()
	m, r := s.encode(matrix(p))
	s.ok(r)
	s.ok(s.launch(s.stream(), f, m, uint32(16), uint32(15)))
	for i, got := range s.read(p, matrixBytes/4) {
		x, y := i%64, i/64
		want := 100*y + x
		if x >= 16 && x < 40 && y >= 15 { // the tile reaches beyond both edges
			want = 32*(y-15) + x - 16
		}
		require.EqualValues(s.T, want, got, "word %d of row %d", x, y)
	}
}

func tensorMapAgain(s *suite) {
	t := matrix(s.alloc(matrixBytes))
	m, r := s.encode(t)
	s.ok(r)
	again, r := s.encode(t)
	s.ok(r)
	require.Equal(s.T, m, again, "a map depends on more than what it describes")
}

func tensorMapRules(s *suite) {
	p := s.alloc(matrixBytes)
	_, r := s.encode(matrix(p))
	s.ok(r)
	for name, change := range map[string]func(*tiles){
		"address of 8":           func(t *tiles) { t.address += 8 },
		"stride of 8":            func(t *tiles) { t.strides = []uint64{264} },
		"stride of 2**40":        func(t *tiles) { t.strides = []uint64{1 << 40} },
		"empty":                  func(t *tiles) { t.dims = []uint64{40, 0} },
		"more than 2**32":        func(t *tiles) { t.dims = []uint64{40, 1<<32 + 1} },
		"empty box":              func(t *tiles) { t.box = []uint32{32, 0} },
		"box of 257":             func(t *tiles) { t.box = []uint32{32, 257} },
		"box of 12 bytes":        func(t *tiles) { t.box = []uint32{3, 8} },
		"no step":                func(t *tiles) { t.steps = []uint32{1, 0} },
		"step of 9":              func(t *tiles) { t.steps = []uint32{1, 9} },
		"wide box for its order": func(t *tiles) { t.swizzle = driver.CU_TENSOR_MAP_SWIZZLE_64B },
		"NaN of integers":        func(t *tiles) { t.fill = driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA },
		"interleaved matrix":     func(t *tiles) { t.interleave = driver.CU_TENSOR_MAP_INTERLEAVE_16B },
		"unknown type":           func(t *tiles) { t.dataType = 99 },
		"unknown order":          func(t *tiles) { t.swizzle = 99 },
		"no dimension":           func(t *tiles) { t.dims, t.strides, t.box, t.steps = nil, nil, nil, nil },
		"six dimensions": func(t *tiles) {
			t.dims, t.strides = []uint64{8, 1, 1, 1, 1, 1}, []uint64{256, 256, 256, 256, 256}
			t.box, t.steps = []uint32{8, 1, 1, 1, 1, 1}, []uint32{1, 1, 1, 1, 1, 1}
		},
	} {
		t := matrix(p)
		change(&t)
		_, r := s.encode(t)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}

// The rules are those of the text about cuTensorMapEncodeIm2col in cuda.h, CUDA
// 13.5.
func tensorMapColumns(s *suite) {
	p := s.alloc(1 << 14)
	type columns struct {
		address          driver.CUdeviceptr
		dims, strides    []uint64
		lower, upper     []int32
		channels, pixels uint32
		steps            []uint32
	}
	encode := func(c columns) (driver.CUtensorMap, driver.CUresult) {
		return s.CuTensorMapEncodeIm2col(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, c.address, c.dims, c.strides, c.lower, c.upper, c.channels, c.pixels, c.steps,
			driver.CU_TENSOR_MAP_INTERLEAVE_NONE, driver.CU_TENSOR_MAP_SWIZZLE_NONE, driver.CU_TENSOR_MAP_L2_PROMOTION_NONE, driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
	}
	sound := func() columns {
		return columns{
			p, []uint64{16, 8, 8, 4}, []uint64{64, 512, 4096}, []int32{-1, -1}, []int32{-1, -1}, 8, 16, []uint32{1, 1, 1, 1},
		}
	}
	first, r := encode(sound())
	s.ok(r)
	other := sound()
	other.lower = []int32{0, -1}
	second, r := encode(other)
	s.ok(r)
	require.NotEqual(s.T, first, second)
	for name, change := range map[string]func(*columns){
		"address of 8":      func(c *columns) { c.address += 8 },
		"stride of 8":       func(c *columns) { c.strides = []uint64{72, 512, 4096} },
		"far corner":        func(c *columns) { c.lower = []int32{-129, 0} },
		"too many channels": func(c *columns) { c.channels = 257 },
		"too many pixels":   func(c *columns) { c.pixels = 1025 },
		"step of 9":         func(c *columns) { c.steps = []uint32{1, 9, 1, 1} },
		"two dimensions": func(c *columns) {
			c.dims, c.strides, c.lower, c.upper, c.steps = []uint64{16, 8}, []uint64{64}, nil, nil, []uint32{1, 1}
		},
	} {
		c := sound()
		change(&c)
		_, r := encode(c)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}

func tensorMapWideColumns(s *suite) {
	p := s.alloc(1 << 14)
	type columns struct {
		lower, upper     int32
		channels, pixels uint32
		steps            []uint32
		mode             driver.CUtensorMapIm2ColWideMode
		swizzle          driver.CUtensorMapSwizzle
	}
	encode := func(c columns) (driver.CUtensorMap, driver.CUresult) {
		return s.CuTensorMapEncodeIm2colWide(driver.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, p, []uint64{16, 8, 8, 4}, []uint64{64, 512, 4096}, c.lower, c.upper,
			c.channels, c.pixels, c.steps, driver.CU_TENSOR_MAP_INTERLEAVE_NONE, c.mode, c.swizzle, driver.CU_TENSOR_MAP_L2_PROMOTION_NONE,
			driver.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
	}
	sound := func() columns {
		return columns{lower: -1, upper: 1, channels: 8, pixels: 16, steps: []uint32{1, 1, 1, 1}, swizzle: driver.CU_TENSOR_MAP_SWIZZLE_64B}
	}
	first, r := encode(sound())
	if s.major() < 10 {
		s.Skip("the device has no maps of wide columns") // driver 580 makes some all the same, without the mode
	}
	s.ok(r)
	other := sound()
	other.mode = driver.CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128
	second, r := encode(other)
	s.ok(r)
	require.NotEqual(s.T, first, second)
	for name, change := range map[string]func(*columns){
		"far corner":        func(c *columns) { c.lower = -1<<15 - 1 },
		"too many channels": func(c *columns) { c.channels = 257 },
		"too many pixels":   func(c *columns) { c.pixels = 1025 },
		"step of 9":         func(c *columns) { c.steps = []uint32{1, 9, 1, 1} },
		"no swizzle":        func(c *columns) { c.swizzle = driver.CU_TENSOR_MAP_SWIZZLE_NONE },
		"short swizzle":     func(c *columns) { c.swizzle = driver.CU_TENSOR_MAP_SWIZZLE_32B },
		"unknown mode":      func(c *columns) { c.mode = 2 },
	} {
		c := sound()
		change(&c)
		_, r := encode(c)
		require.Equal(s.T, driver.CUDA_ERROR_INVALID_VALUE, r, name)
	}
}
