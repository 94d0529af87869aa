// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// sample is a 3 × 5 matrix of 4-byte numbers in rows of 32 bytes, and a box of 2 × 4.
func sample() TensorMap {
	return TensorMap{
		Address: 0x1000, Rank: 2, ElementSize: 4, Size: [MaxRank]uint64{5, 3}, Stride: [MaxRank]uint64{4, 32},
		Box: [MaxRank]uint64{4, 2}, Step: [MaxRank]uint64{1, 1},
	}
}

func TestTensorMapIsReadAsWritten(t *testing.T) {
	full := TensorMap{
		Address: 1<<63 + 16, Rank: 5, ElementSize: 8, Swizzle: Swizzle128, NaN: true, Size: [MaxRank]uint64{1 << 31, 2, 3, 4, 5},
		Stride: [MaxRank]uint64{8, 16, 1<<40 - 16, 48, 64}, Box: [MaxRank]uint64{256, 1, 2, 3, 4}, Step: [MaxRank]uint64{1, 2, 3, 4, 8},
	}
	for _, m := range []TensorMap{sample(), full} {
		b := m.Encode()
		got, err := DecodeTensorMap(b[:])
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
}

func TestWhatIsNoTensorMap(t *testing.T) {
	m := sample()
	good := m.Encode()
	_, err := DecodeTensorMap(make([]byte, TensorMapSize))
	require.ErrorContains(t, err, "no tensor map")
	_, err = DecodeTensorMap(good[:64])
	require.Error(t, err)
	for at, v := range map[int]byte{4: 0, 5: 3, 6: 9, 7: 2, 41: 0} {
		b := good
		b[at] = v
		_, err := DecodeTensorMap(b[:])
		require.ErrorContains(t, err, "was changed", "byte %d", at)
	}
	b := good
	b[4] = 6
	_, err = DecodeTensorMap(b[:])
	require.Error(t, err)
}

func pieces(m TensorMap, at ...int32) (list []Piece) {
	var c [MaxRank]int32
	copy(c[:], at)
	m.Pieces(0, c, func(p Piece) { list = append(list, p) })
	return list
}

func TestPieces(t *testing.T) {
	m := sample()
	require.EqualValues(t, 32, m.Bytes())
	require.Equal(t, []Piece{{0, 0x1004, 16, false}, {16, 0x1024, 16, false}}, pieces(m, 1, 0))
	// Across the right edge and the lower one.
	require.Equal(t, []Piece{{0, 0x100c + 64, 8, false}, {8, 0, 8, true}, {16, 0, 16, true}}, pieces(m, 3, 2))
	// Across the left edge and the upper one.
	require.Equal(t, []Piece{{0, 0, 16, true}, {16, 0, 4, true}, {20, 0x1000, 12, false}}, pieces(m, -1, -1))
	// Nothing of it is inside.
	require.Equal(t, []Piece{{0, 0, 16, true}, {16, 0, 16, true}}, pieces(m, 5, 0))
	require.Equal(t, []Piece{{0, 0, 16, true}, {16, 0, 16, true}}, pieces(m, -2147483648, 2147483647))
	m.Box, m.Step = [MaxRank]uint64{4, 3}, [MaxRank]uint64{1, 2}
	require.EqualValues(t, 32, m.Bytes())
	require.Equal(t, []Piece{{0, 0x1000, 16, false}, {16, 0x1040, 16, false}}, pieces(m, 0, 0))
}

func TestPiecesOfFiveDimensions(t *testing.T) {
	m := TensorMap{
		Address: 0, Rank: 5, ElementSize: 2, Size: [MaxRank]uint64{8, 2, 2, 2, 2}, Stride: [MaxRank]uint64{2, 16, 32, 64, 128},
		Box: [MaxRank]uint64{8, 2, 2, 2, 2}, Step: [MaxRank]uint64{1, 1, 1, 1, 1},
	}
	list := pieces(m)
	require.Len(t, list, 16)
	for i, p := range list { // compact: every byte is where it was
		require.Equal(t, Piece{uint64(16 * i), uint64(16 * i), 16, false}, p)
	}
}

func TestSwizzle(t *testing.T) {
	require.Equal(t, []uint64{0, 32, 64, 128}, []uint64{Plain.Span(), Swizzle32.Span(), Swizzle64.Span(), Swizzle128.Span()})
	// The 16 bytes of the second row of 128 bytes trade places with their neighbours.
	require.EqualValues(t, 128+16+5, Swizzle128.Place(128+5))
	require.EqualValues(t, 7*128+(6^7)*16, Swizzle128.Place(7*128+6*16))
	require.EqualValues(t, 8*128+6*16, Swizzle128.Place(8*128+6*16))
	require.EqualValues(t, 256+32, Swizzle64.Place(256))
	require.EqualValues(t, 128+16, Swizzle32.Place(128))
	require.EqualValues(t, 256, Swizzle32.Place(256))
	for _, s := range []Swizzle{Swizzle32, Swizzle64, Swizzle128} { // all bytes are somewhere
		seen := map[uint64]bool{}
		for i := range uint64(2048) {
			seen[s.Place(i)] = true
		}
		require.Len(t, seen, 2048)
	}
	m := sample()
	m.Box, m.Swizzle, m.Size = [MaxRank]uint64{8, 8}, Swizzle32, [MaxRank]uint64{8, 8}
	list := pieces(m)
	require.Equal(t, Piece{128 + 16, 0x1000 + 128, 16, false}, list[8])
}
