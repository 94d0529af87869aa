// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
func u64(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

func TestPackOne(t *testing.T) {
	var null *Buffer
	tests := []struct {
		name string
		kind string
		size uint32
		arg  any
		want []byte
	}{
		{"int", "u32", 4, 7, u32(7)},
		{"negative in an unsigned kind", "u32", 4, -1, u32(math.MaxUint32)},
		{"largest unsigned in a signed kind", "s32", 4, uint32(math.MaxUint32), u32(math.MaxUint32)},
		{"smallest int8", "u8", 1, -128, []byte{0x80}},
		{"wide int8", "u64", 8, int8(-2), u64(math.MaxUint64 - 1)},
		{"uint64", "u64", 8, uint64(math.MaxUint64), u64(math.MaxUint64)},
		{"uintptr as a pointer", "u64", 8, uintptr(0x1000), u64(0x1000)},
		{"true", "u8", 1, true, []byte{1}},
		{"false", "u32", 4, false, u32(0)},
		{"float64 as f32", "f32", 4, 2.5, u32(math.Float32bits(2.5))},
		{"float32 as f64", "f64", 8, float32(2.5), u64(math.Float64bits(2.5))},
		{"infinity as f32", "f32", 4, math.Inf(1), u32(math.Float32bits(float32(math.Inf(1))))},
		{"int as f32", "f32", 4, -3, u32(math.Float32bits(-3))},
		{"largest exact int as f32", "f32", 4, 1 << 24, u32(math.Float32bits(1 << 24))},
		{"float32 where only the size is known", "b32", 4, float32(1), u32(math.Float32bits(1))},
		{"float64 where only the size is known", "b64", 8, 1.0, u64(math.Float64bits(1))},
		{"nil", "u64", 8, nil, u64(0)},
		{"nil buffer", "u64", 8, null, u64(0)},
		{"struct", "b8[]", 3, []byte{1, 2, 3}, []byte{1, 2, 3}},
		{"bytes for a scalar", "u32", 4, []byte{1, 2, 3, 4}, []byte{1, 2, 3, 4}},
	}
	k := &Kernel{name: "f"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := make([]byte, tt.size)
			require.NoError(t, packOne(k, 0, Param{Kind: tt.kind, Size: tt.size}, out, tt.arg))
			require.Equal(t, tt.want, out)
		})
	}
}

func TestPackOneRefuses(t *testing.T) {
	tests := []struct {
		name string
		kind string
		size uint32
		arg  any
		as   ArgumentKind
		want string
	}{
		{"float for an int", "u32", 4, 3.5, WrongType, `parameter 3 of kernel "saxpy" wants u32, got 3.5`},
		{"too large", "u32", 4, 1 << 32, Overflow, `parameter 3 of kernel "saxpy" is u32, which cannot hold 4294967296`},
		{"too small", "s8", 1, -129, Overflow, `parameter 3 of kernel "saxpy" is s8, which cannot hold -129`},
		{"float64 too large", "f32", 4, 1e300, Overflow, `parameter 3 of kernel "saxpy" is f32, which cannot hold 1e+300`},
		{"inexact int", "f32", 4, 1<<24 + 1, WrongValue, `parameter 3 of kernel "saxpy" is f32, which may not represent 16777217; give a float`},
		{"string", "u32", 4, "x", WrongType, `parameter 3 of kernel "saxpy" wants u32, got string`},
		{"nil for an int", "u32", 4, nil, WrongType, `parameter 3 of kernel "saxpy" wants u32, got nil`},
		{"nil for a double", "f64", 8, nil, WrongType, `parameter 3 of kernel "saxpy" wants f64, got nil`},
		{"int for a struct", "b8[]", 12, 1, WrongType, `parameter 3 of kernel "saxpy" wants 12 bytes, got an integer`},
		{"short struct", "b8[]", 12, []byte{1}, WrongValue, `parameter 3 of kernel "saxpy" has 12 bytes, got 1`},
		{"float32 for 8 unknown bytes", "b64", 8, float32(1), WrongType, `parameter 3 of kernel "saxpy" wants b64, got 1`},
	}
	k := &Kernel{name: "saxpy"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := packOne(k, 3, Param{Kind: tt.kind, Size: tt.size}, make([]byte, tt.size), tt.arg)
			require.EqualError(t, err, tt.want)
			var e *ArgumentError
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.as, e.Kind)
		})
	}
}

func TestPackCountsArguments(t *testing.T) {
	k := &Kernel{name: "f", signature: Signature{{Kind: "f32", Size: 4}, {Kind: "b8[]", Offset: 4, Size: 12}}}
	_, err := pack(k, []any{1.0})
	require.EqualError(t, err, `kernel "f" takes 2 arguments (f32, b8[12]), got 1`)
	block, err := pack(k, []any{1.0, []byte("0123456789ab")})
	require.NoError(t, err)
	require.Equal(t, append(u32(math.Float32bits(1)), "0123456789ab"...), block)
}

func FuzzPack(f *testing.F) {
	f.Add(uint8(4), int64(-1), 2.5, "abc")
	f.Fuzz(func(t *testing.T, size uint8, i int64, x float64, s string) {
		k := &Kernel{name: "f"}
		kinds := []string{"u8", "u16", "u32", "u64", "f32", "f64", "b8[]", "b32", "b64"}
		sizes := []uint32{1, 2, 4, 8, 4, 8, uint32(size), 4, 8}
		n := int(size) % len(kinds)
		p := Param{Kind: kinds[n], Size: sizes[n]}
		for _, arg := range []any{i, uint64(i), int32(i), x, float32(x), []byte(s), nil, s, i > 0} {
			out := make([]byte, p.Size)
			if packOne(k, 0, p, out, arg) == nil {
				continue
			}
			require.Equal(t, make([]byte, p.Size), out, "a refused argument writes nothing")
		}
	})
}
