// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import "math"

// A Read returns the bytes of the element at an address.
type Read func(addr uint64) []byte

// FetchAt is the element with number i, zeros beyond the bounds: 4 channels of 32
// bits.
//
// CUDA C++ Programming Guide, "Texture Fetching".
func (t *Texture) FetchAt(i int64, read Read) [4]uint32 {
	if i < 0 || uint64(i) >= t.Width {
		return [4]uint32{}
	}
	return t.bits(read(t.Memory + uint64(i)*t.Size()))
}

// sample is Sample on level 0.
//
// CUDA C++ Programming Guide, "Texture Fetching".
func (t *Texture) sample(x [3]float32, layer uint32, read Read) [4]uint32 {
	if t.Cube {
		return t.sampleCube(x, layer, read)
	}
	var first [3]int64
	var next [3]float64 // the weights of the elements behind the first
	for d := range t.Rank {
		u := t.place(float64(x[d]), d)
		if t.Linear {
			u -= 0.5
			next[d] = fraction(u)
		}
		first[d] = floor(u)
	}
	if !t.Linear {
		return t.at(first, layer, read)
	}
	return t.mean(first, next, func(at [3]int64) [4]uint32 { return t.at(at, layer, read) })
}

// mean is that of the elements around a place. next are the weights of those behind
// the first.
func (t *Texture) mean(first [3]int64, next [3]float64, element func([3]int64) [4]uint32) [4]uint32 {
	var sum [4]float64
	for k := range 1 << t.Rank {
		weight, at := 1.0, first
		for d := range t.Rank {
			if k>>d&1 != 0 {
				weight *= next[d]
				at[d]++
			} else {
				weight *= 1 - next[d]
			}
		}
		if weight == 0 {
			continue // what is not read cannot be NaN
		}
		for c, bits := range element(at) {
			sum[c] += weight * float64(math.Float32frombits(bits))
		}
	}
	var out [4]uint32
	for c := range out {
		out[c] = math.Float32bits(float32(sum[c]))
	}
	return out
}

// extent is how many elements a dimension has.
func (t *Texture) extent(dimension int) uint64 {
	return [...]uint64{t.Width, t.Height, t.Depth}[dimension]
}

// place is a coordinate in elements. Beyond the bounds it is that of the element
// that is read, but for Clamp and Border.
func (t *Texture) place(x float64, dimension int) float64 {
	if math.IsNaN(x) {
		x = 0 // CUDA does not say what is read there
	}
	if !t.Normalized {
		return x
	}
	switch t.Address[dimension] {
	case Wrap:
		x -= math.Floor(x)
	case Mirror:
		if f := math.Floor(x); math.Mod(f, 2) == 0 {
			x -= f
		} else {
			x = 1 - (x - f)
		}
	}
	return x * float64(t.extent(dimension))
}

// floor is the whole number below x, within what an int64 has.
func floor(x float64) int64 { return int64(math.Floor(min(max(x, -1<<40), 1<<40))) }

// fraction is the weight of the next element: the guide says 9 bits, 8 of them
// behind the point. That it is rounded to the nearest is a guess.
func fraction(x float64) float64 {
	x = min(max(x, -1<<40), 1<<40)
	return math.Round((x-math.Floor(x))*256) / 256
}

// at is At on level 0. A layer beyond the last is the last one.
func (t *Texture) at(x [3]int64, layer uint32, read Read) [4]uint32 {
	for d := range t.Rank {
		var inside bool
		if x[d], inside = bound(x[d], t.extent(d), t.mode(d)); !inside {
			return t.border()
		}
	}
	if t.Layered {
		x[2] = int64(min(uint64(layer), t.Depth-1))
	}
	return t.bits(read(t.Memory + uint64(x[2])*t.Slice + uint64(x[1])*t.Pitch + uint64(x[0])*t.Size()))
}

// mode is the address mode of a dimension. Coordinates that are not normalized
// are clamped, or have a border.
func (t *Texture) mode(dimension int) AddressMode {
	m := t.Address[dimension]
	if !t.Normalized && m != Border {
		return Clamp
	}
	return m
}

// bound moves a whole coordinate into the bounds; a mirrored or wrapped one lies
// at most one element beyond them.
func bound(i int64, size uint64, mode AddressMode) (inside int64, ok bool) {
	n := int64(size)
	switch {
	case i >= 0 && i < n:
		return i, true
	case mode == Border:
		return 0, false
	case mode == Wrap:
		return (i%n + n) % n, true
	}
	return min(max(i, 0), n-1), true // the mirror image of the next element is the last one
}
