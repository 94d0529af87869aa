// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/dlpack/dlpacktest"
)

const padded = 1 << 2 // DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

func TestCheckAccepts(t *testing.T) {
	fp4 := func(lanes uint16, n int64) dlpacktest.Tensor {
		return dlpacktest.Tensor{Data: 0x1000, DeviceType: 2, NDim: 1, Code: 17, Bits: 4, Lanes: lanes, Shape: []int64{n}}
	}
	tests := []struct {
		name  string
		t     dlpacktest.Tensor
		flags uint64
		want  dlpacktest.Extent
	}{
		{"row-major", float32s(0x1000, []int64{2, 3}, []int64{3, 1}), 0, dlpacktest.Extent{ItemSize: 4, Size: 6, High: 24}},
		{"strides missing", float32s(0x1000, []int64{2, 3}, nil), 0, dlpacktest.Extent{ItemSize: 4, Size: 6, High: 24}},
		{"no dimensions", float32s(0x1000, nil, nil), 0, dlpacktest.Extent{ItemSize: 4, Size: 1, High: 4}},
		{"every second", float32s(0x1000, []int64{3}, []int64{2}), 0, dlpacktest.Extent{ItemSize: 4, Size: 3, High: 20}},
		{"backwards", float32s(0x1000, []int64{3}, []int64{-2}), 0, dlpacktest.Extent{ItemSize: 4, Size: 3, Low: -16, High: 4}},
		{"broadcast", float32s(0x1000, []int64{1000, 3}, []int64{0, 1}), 0, dlpacktest.Extent{ItemSize: 4, Size: 3000, High: 12}},
		{"empty without data", float32s(0, []int64{0, 3}, []int64{math.MaxInt64, 1}), 0, dlpacktest.Extent{ItemSize: 4}},
		{"empty behind a huge dimension", float32s(0, []int64{math.MaxInt64, 0}, nil), 0, dlpacktest.Extent{ItemSize: 4}},
		{"packed FP4", fp4(1, 5), 0, dlpacktest.Extent{Size: 5, High: 3}},
		{"PyTorch's FP4 pairs", fp4(2, 5), 0, dlpacktest.Extent{ItemSize: 1, Size: 5, High: 5}},
		{"padded FP4", fp4(1, 5), padded, dlpacktest.Extent{ItemSize: 1, Size: 5, High: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, wrong := tt.t.Check(tt.flags)
			require.Empty(t, wrong)
			require.Equal(t, tt.want, e)
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	with := func(change func(*dlpacktest.Tensor)) dlpacktest.Tensor {
		d := float32s(0x1000, []int64{2, 3}, []int64{3, 1})
		change(&d)
		return d
	}
	tests := []struct {
		name string
		t    dlpacktest.Tensor
		want string
	}{
		{"negative ndim", with(func(d *dlpacktest.Tensor) { d.NDim = -1 }), "number of dimensions"},
		{"65 dimensions", with(func(d *dlpacktest.Tensor) { d.NDim = 65 }), "number of dimensions"},
		{"no shape", with(func(d *dlpacktest.Tensor) { d.Shape = nil }), "shape is missing"},
		{"negative dimension", with(func(d *dlpacktest.Tensor) { d.Shape[1] = -3 }), "dimension is negative"},
		{"lanes", with(func(d *dlpacktest.Tensor) { d.Lanes = 4 }), "element type"},
		{"no lanes", with(func(d *dlpacktest.Tensor) { d.Lanes = 0 }), "element type"},
		{"unknown code", with(func(d *dlpacktest.Tensor) { d.Code = 99 }), "element type"},
		{"opaque handles", with(func(d *dlpacktest.Tensor) { d.Code, d.Bits = 3, 64 }), "element type"},
		{"80-bit float", with(func(d *dlpacktest.Tensor) { d.Bits = 80 }), "element type"},
		{"32-bit bool", with(func(d *dlpacktest.Tensor) { d.Code = 6 }), "element type"},
		{"Vulkan", with(func(d *dlpacktest.Tensor) { d.DeviceType = 7 }), "neither the host nor a CUDA device"},
		{"negative device", with(func(d *dlpacktest.Tensor) { d.DeviceID = -1 }), "device number"},
		{"no data", with(func(d *dlpacktest.Tensor) { d.Data = 0 }), "data pointer is missing"},
		{"too many elements", with(func(d *dlpacktest.Tensor) { d.Shape = []int64{1 << 32, 1 << 32} }), "size overflows"},
		{"too many bits", with(func(d *dlpacktest.Tensor) { d.Shape = []int64{1 << 30, 1 << 30} }), "size overflows"},
		{"stride overflows", with(func(d *dlpacktest.Tensor) { d.Strides[0] = math.MaxInt64 }), "strides overflow"},
		{"lowest stride", with(func(d *dlpacktest.Tensor) { d.Strides[0] = math.MinInt64 }), "strides overflow"},
		{"bits reach the lowest integer", with(func(d *dlpacktest.Tensor) { d.Strides[0] = math.MinInt64 / 32 }), "strides overflow"},
		{"byte offset", with(func(d *dlpacktest.Tensor) { d.ByteOffset = math.MaxUint64 }), "byte offset"},
		{"byte offset beyond memory", with(func(d *dlpacktest.Tensor) { d.ByteOffset = math.MaxInt64 }), "byte offset"},
		{"address in the kernel's half", with(func(d *dlpacktest.Tensor) { d.Data = 1 << 63 }), "address space"},
		{"backwards past zero", with(func(d *dlpacktest.Tensor) { d.Strides[0] = -1 << 20 }), "address space"},
		{"past the end of memory", with(func(d *dlpacktest.Tensor) { d.Data = math.MaxInt64 - 8 }), "address space"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, wrong := tt.t.Check(0)
			require.Contains(t, wrong, tt.want)
		})
	}
}

// FuzzCheck compares the extent of what passes with one worked out in big
// integers, where nothing overflows.
func FuzzCheck(f *testing.F) {
	f.Add(uint8(2), int64(3), int64(4), int64(4), int64(1), uint64(0))
	f.Add(uint8(4), int64(3), int64(4), int64(-4), int64(1), uint64(16))
	f.Add(uint8(1), int64(1)<<40, int64(2), int64(math.MinInt64), int64(math.MaxInt64), uint64(1)<<62)
	f.Fuzz(func(t *testing.T, width uint8, n0, n1, s0, s1 int64, offset uint64) {
		size := int64(1) << (width % 4)
		d := dlpacktest.Tensor{
			Data: 1 << 40, DeviceType: 1, NDim: 2, Code: 1, Bits: uint8(8 * size), Lanes: 1,
			Shape: []int64{n0, n1}, Strides: []int64{s0, s1}, ByteOffset: offset,
		}
		e, wrong := d.Check(0)
		if wrong != "" || e.Size == 0 {
			return
		}
		low, high := big.NewInt(0), big.NewInt(size)
		for i, n := range d.Shape {
			span := new(big.Int).Mul(big.NewInt(d.Strides[i]), big.NewInt(n-1))
			span.Mul(span, big.NewInt(size))
			if span.Sign() < 0 {
				low.Add(low, span)
			} else {
				high.Add(high, span)
			}
		}
		require.Equal(t, low.String(), big.NewInt(e.Low).String())
		require.Equal(t, high.String(), big.NewInt(e.High).String())
		first := new(big.Int).Add(big.NewInt(1<<40), new(big.Int).SetUint64(offset))
		require.GreaterOrEqual(t, new(big.Int).Add(first, low).Sign(), 0)
		require.True(t, new(big.Int).Add(first, high).IsInt64())
	})
}
