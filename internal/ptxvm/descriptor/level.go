// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/binary"
	"math"
)

// mostLevels is more than any array has.
const mostLevels = 32

func (m *Mips) encode(b []byte) {
	put := binary.LittleEndian
	b[0] = byte(m.Levels)
	if m.Linear {
		b[1] = 1
	}
	for i, v := range []float32{m.Bias, m.Least, m.Greatest} {
		put.PutUint32(b[4+4*i:], math.Float32bits(v))
	}
}

func decodeMips(b []byte) Mips {
	number := func(at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[at:])) }
	return Mips{Levels: int(b[0]), Linear: b[1] == 1, Bias: number(4), Least: number(8), Greatest: number(12)}
}

// Level is a level of t as a texture of its own. Levels lie one behind the other:
// each is half as wide, high and deep as the one before, but has as many layers.
func (t *Texture) Level(n int) Texture {
	l := *t
	l.Mips = Mips{}
	for range n {
		l.Memory += l.Slice * l.Depth
		l.Width, l.Height = max(l.Width/2, 1), max(l.Height/2, 1)
		if !l.Layered && !l.Cube {
			l.Depth = max(l.Depth/2, 1)
		}
		l.Pitch = l.Width * l.Size()
		l.Slice = l.Pitch * l.Height
	}
	return l
}

// MostLevels is how many levels halve the sizes until all are 1.
func (t *Texture) MostLevels() int {
	size := max(t.Width, t.Height)
	if !t.Layered && !t.Cube {
		size = max(size, t.Depth)
	}
	return 1 + int(math.Log2(float64(size)))
}

// Sample is what the texture has at x, of which the first coordinates count, at a
// level of detail. The layer is that of a layered texture, else 0.
//
// The order of bias and bounds is that of the OpenGL 4.6 specification, "Scale
// Factor and Level of Detail", since CUDA's documents have none.
func (t *Texture) Sample(x [3]float32, layer uint32, detail float32, read Read) [4]uint32 {
	if t.Mips.Levels <= 1 {
		return t.sample(x, layer, read)
	}
	n, next := t.Mips.between(detail)
	level := t.Level(n)
	out := level.sample(x, layer, read)
	if next == 0 {
		return out
	}
	level = t.Level(n + 1)
	for c, bits := range level.sample(x, layer, read) {
		a, b := float64(math.Float32frombits(out[c])), float64(math.Float32frombits(bits))
		out[c] = math.Float32bits(float32(a*(1-next) + b*next))
	}
	return out
}

// between is the level that a level of detail means, or the first of two and the
// weight of the second. A level half-way between two is the second; that is a guess.
func (m *Mips) between(detail float32) (n int, next float64) {
	d := float64(detail) + float64(m.Bias)
	if math.IsNaN(d) {
		d = 0 // CUDA does not say what is read there
	}
	d = min(max(d, float64(m.Least)), float64(m.Greatest))
	d = min(max(d, 0), float64(m.Levels-1))
	if !m.Linear {
		return int(math.Floor(d + 0.5)), 0
	}
	n, next = int(d), fraction(d)
	if next == 1 {
		return n + 1, 0
	}
	return n, next
}

// At is what the texture has at whole coordinates of a level, without a filter.
// Bias and bounds do not count; beyond the last level is the last one. Both are
// guesses.
func (t *Texture) At(x [3]int64, layer uint32, level int32, read Read) [4]uint32 {
	if t.Mips.Levels <= 1 {
		return t.at(x, layer, read)
	}
	l := t.Level(min(max(int(level), 0), t.Mips.Levels-1))
	return l.at(x, layer, read)
}

// Detail is the level of detail of a read at x, between whose neighbors the
// coordinates grow by dx and dy: that on which the longer step is one element.
//
// OpenGL 4.6 specification, "Scale Factor and Level of Detail".
func (t *Texture) Detail(x, dx, dy [3]float32) float32 {
	if t.Cube {
		dx, dy = stepOnFace(x, dx), stepOnFace(x, dy)
	}
	return float32(math.Log2(max(t.length(dx), t.length(dy))))
}

// length is that of a step, in elements of level 0.
func (t *Texture) length(step [3]float32) float64 {
	sum := 0.0
	for d := range t.Rank {
		x := float64(step[d])
		if t.Normalized || t.Cube {
			x *= float64(t.extent(d))
		}
		sum += x * x
	}
	return math.Sqrt(sum)
}
