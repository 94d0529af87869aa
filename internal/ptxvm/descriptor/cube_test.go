// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// cubeOf is a cube with so many floats in a row, and what reads it: face n has
// 100 * n + 10 * row + column.
func cubeOf(size uint64) (Texture, Read) {
	t := Texture{
		Format: formatFloat, Channels: 1, Address: [3]AddressMode{Clamp, Clamp, Clamp}, Rank: 2, Cube: true,
		Width: size, Height: size, Depth: 6, Pitch: 4 * size, Slice: 4 * size * size,
	}
	return t, func(addr uint64) []byte {
		i := addr / 4
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(100*(i/size/size)+10*(i/size%size)+i%size)))
		return b[:]
	}
}

func number(bits [4]uint32) float64 { return float64(math.Float32frombits(bits[0])) }

// CUDA C++ Programming Guide, "Cubemap Textures".
func TestDirectionNamesAnElementOfAFace(t *testing.T) {
	cube, read := cubeOf(2)
	for direction, want := range map[[3]float32]float64{
		{1, 0.5, 0.5}: 0, {1, 0.5, -0.5}: 1, {1, -0.5, 0.5}: 10,
		{-1, 0.5, -0.5}: 100, {-1, 0.5, 0.5}: 101, {-1, -0.5, -0.5}: 110,
		{-0.5, 1, -0.5}: 200, {0.5, 1, -0.5}: 201, {-0.5, 1, 0.5}: 210,
		{-0.5, -1, 0.5}: 300, {0.5, -1, 0.5}: 301, {-0.5, -1, -0.5}: 310,
		{-0.5, 0.5, 1}: 400, {0.5, 0.5, 1}: 401, {-0.5, -0.5, 1}: 410,
		{0.5, 0.5, -1}: 500, {-0.5, 0.5, -1}: 501, {0.5, -0.5, -1}: 510,
		{20, 5, 5}: 0,
	} {
		require.Equal(t, want, number(cube.Sample(direction, 0, 0, read)), direction)
	}
}

func TestPlacesOnFacesAndDirectionsUndoEachOther(t *testing.T) {
	for n := range 6 {
		x := through(n, 0.25, -0.75)
		require.Equal(t, n, faceAt(x))
		s, v, m := onFace(n, x)
		require.Equal(t, [3]float64{0.25, -0.75, 1}, [3]float64{s, v, m}, n)
	}
}

// TestNeighborsMeetAtOneEdge goes across each edge of each face and back: the two
// elements lie next to each other on the cube.
func TestNeighborsMeetAtOneEdge(t *testing.T) {
	for _, size := range []int64{1, 2, 3, 8, 1000} {
		cube, _ := cubeOf(uint64(size))
		middle := func(n int, at [3]int64) [3]float64 {
			return through(n, (float64(at[0])+0.5)/float64(size)*2-1, (float64(at[1])+0.5)/float64(size)*2-1)
		}
		for n := range 6 {
			for i := range size {
				for _, beyond := range [][2][3]int64{
					{{-1, i}, {0, i}}, {{size, i}, {size - 1, i}}, {{i, -1}, {i, 0}}, {{i, size}, {i, size - 1}},
				} {
					other, at := cube.neighbor(n, beyond[0])
					require.NotEqual(t, n, other)
					a, b := middle(n, beyond[1]), middle(other, at)
					for k := range a { // around the edge, in no direction further than an element
						require.LessOrEqual(t, math.Abs(a[k]-b[k]), 1/float64(size)+1e-9, "face %d, %v of %d", n, beyond[0], size)
					}
				}
			}
		}
	}
}

func TestSeamlessFilterGoesOnBeyondAnEdge(t *testing.T) {
	cube, read := cubeOf(2)
	cube.Linear = true
	edge := [3]float32{1, 0.5, 1} // faces 0 and 4, the upper row: 0 is next to 401
	require.Equal(t, 401.0, number(cube.Sample(edge, 0, 0, read)), "clamped")
	cube.Seamless = true
	require.Equal(t, 200.5, number(cube.Sample(edge, 0, 0, read)))
	corner := [3]float32{1, 1, 1} // 401, 0 and 211 meet
	want := (401.0 + 0 + 211) / 3
	require.InDelta(t, (401+0+211+want)/4, number(cube.Sample(corner, 0, 0, read)), 1e-3)
	cube.Linear = false
	require.Equal(t, 401.0, number(cube.Sample(edge, 0, 0, read)), "points")
}

func TestStepsOnAFaceChooseALevel(t *testing.T) {
	cube, _ := cubeOf(8)
	x := [3]float32{0, 0, 1}
	for step, want := range map[[3]float32]float32{{0.25, 0, 0}: 0, {0.5, 0, 0}: 1, {0, 1, 0}: 2, {0, 0, 1}: float32(math.Inf(-1))} {
		require.Equal(t, want, cube.Detail(x, step, [3]float32{}), step)
		require.Equal(t, want, cube.Detail(x, [3]float32{}, step), step)
	}
	require.Equal(t, float32(0), cube.Detail([3]float32{0, 0, 2}, [3]float32{0.5, 0, 0}, [3]float32{}), "twice as far away")
}

func TestTextureIsReadAsWritten(t *testing.T) {
	cube, _ := cubeOf(4)
	cube.Seamless, cube.Layered, cube.Depth, cube.Color = true, true, 12, [4]float32{1, 2, 3, 4}
	cube.Mips = Mips{Levels: 3, Linear: true, Bias: -0.5, Least: 0.25, Greatest: 2}
	line := Texture{Format: formatU8, Channels: 4, Rank: 1, Width: 7, Height: 1, Depth: 1, Fetch: true, Integer: true, SRGB: true}
	for _, want := range []Texture{cube, line} {
		b := want.Encode()
		got, err := DecodeTexture(b[:])
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	cube.Depth = 11
	b := cube.Encode()
	_, err := DecodeTexture(b[:])
	require.ErrorContains(t, err, "was changed")
}
