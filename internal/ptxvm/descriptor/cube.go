// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import "math"

// onFace is a direction seen from face n: how far it goes right, down, and towards
// the face.
//
// CUDA C++ Programming Guide, "Cubemap Textures".
func onFace(n int, x [3]float64) (s, t, m float64) {
	switch n {
	case 0:
		return -x[2], -x[1], x[0]
	case 1:
		return x[2], -x[1], -x[0]
	case 2:
		return x[0], x[2], x[1]
	case 3:
		return x[0], -x[2], -x[1]
	case 4:
		return x[0], -x[1], x[2]
	}
	return -x[0], -x[1], -x[2]
}

// through undoes onFace, of a place whose distance is 1.
func through(n int, s, t float64) [3]float64 {
	return [...][3]float64{{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}}[n]
}

// faceAt is the face that a direction points at: the one of its greatest number. Of
// numbers that are equally great z counts before y, and y before x; that is a guess.
func faceAt(x [3]float64) int {
	axis := 2
	for i := 1; i >= 0; i-- {
		if math.Abs(x[i]) > math.Abs(x[axis]) {
			axis = i
		}
	}
	if x[axis] < 0 {
		return 2*axis + 1
	}
	return 2 * axis
}

func wide(x [3]float32) [3]float64 { return [3]float64{float64(x[0]), float64(x[1]), float64(x[2])} }

// stepOnFace is how far a step in a direction goes on the face at x, on which
// coordinates go from 0 to 1.
func stepOnFace(x, step [3]float32) [3]float32 {
	n := faceAt(wide(x))
	s, t, m := onFace(n, wide(x))
	ds, dt, dm := onFace(n, wide(step))
	return [3]float32{float32((ds*m - s*dm) / (m * m) / 2), float32((dt*m - t*dm) / (m * m) / 2)}
}

// sampleCube is sample of a cube: a face is read like a layer.
func (t *Texture) sampleCube(x [3]float32, layer uint32, read Read) [4]uint32 {
	n := faceAt(wide(x))
	s, v, m := onFace(n, wide(x))
	at := [3]float32{float32((s/m + 1) / 2), float32((v/m + 1) / 2)}
	cube := uint32(min(uint64(layer), t.Depth/6-1)) * 6
	face := *t
	face.Cube, face.Layered, face.Normalized = false, true, true
	if !t.Seamless {
		return face.sample(at, cube+uint32(n), read)
	}
	face.Address = [3]AddressMode{Clamp, Clamp, Clamp} // cuda.h, cuTexObjectCreate: the others are ignored
	if !t.Linear {
		return face.sample(at, cube+uint32(n), read)
	}
	var first [3]int64
	var next [3]float64
	for d := range 2 {
		u := face.place(float64(at[d]), d) - 0.5
		first[d], next[d] = floor(u), fraction(u)
	}
	return t.mean(first, next, func(at [3]int64) [4]uint32 { return face.across(cube, n, at, read) })
}

// across is an element of a face of a cube, or one beyond an edge of it, which lies
// on another face. There is none beyond two edges: there the mean of the three faces
// that meet counts, as in the OpenGL 4.6 specification, "Seamless Cube Map Filtering".
func (t *Texture) across(cube uint32, n int, at [3]int64, read Read) [4]uint32 {
	size := int64(t.Width)
	near := [3]int64{min(max(at[0], 0), size-1), min(max(at[1], 0), size-1)}
	if at == near {
		return t.at(at, cube+uint32(n), read)
	}
	if at[0] == near[0] || at[1] == near[1] {
		n, at = t.neighbor(n, at)
		return t.at(at, cube+uint32(n), read)
	}
	var sum [4]float64
	for _, corner := range [][3]int64{near, {at[0], near[1]}, {near[0], at[1]}} {
		for c, bits := range t.across(cube, n, corner, read) {
			sum[c] += float64(math.Float32frombits(bits)) / 3
		}
	}
	var out [4]uint32
	for c := range out {
		out[c] = math.Float32bits(float32(sum[c]))
	}
	return out
}

// neighbor is the element of another face that lies beyond one edge of face n: the
// direction of the place is nowhere half an element away from its middle.
func (t *Texture) neighbor(n int, at [3]int64) (int, [3]int64) {
	size := float64(t.Width)
	place := func(i int64) float64 { return (float64(i)+0.5)/size*2 - 1 }
	x := through(n, place(at[0]), place(at[1]))
	other := faceAt(x)
	s, v, m := onFace(other, x)
	return other, [3]int64{floor((s/m + 1) / 2 * size), floor((v/m + 1) / 2 * size)}
}
