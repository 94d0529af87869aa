// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// TextureSize is the bytes of a texture. A texture's handle is the device address
// where they are.
const TextureSize = 72

// AddressMode is what coordinates beyond the bounds mean. The numbers are cuda.h's
// (CUaddress_mode).
type AddressMode uint8

// The address modes.
const (
	Wrap AddressMode = iota
	Clamp
	Mirror
	Border
)

// A Texture describes elements of 1, 2 or 4 channels, in rows.
//
// Encoded, little-endian:
//
//	0   the mark
//	4   format (CUarray_format), channels, address modes of x and y: a byte each
//	8   1 for one dimension that is read by whole numbers, linear filtering,
//	    normalized coordinates, integers as they are: a byte each; zeros
//	16  address, 24 width, 32 height, 40 pitch in bytes
//	48  border color, 16 bytes; zeros
type Texture struct {
	Format, Channels uint8
	Address          [2]AddressMode
	Fetch            bool // one dimension, read by whole numbers
	Linear           bool // filtered
	Normalized       bool
	Integer          bool // integers are not promoted to numbers up to 1
	Memory           uint64
	Width, Height    uint64 // elements
	Pitch            uint64 // bytes
	Color            [4]float32
}

const textureMark = 0x78655443 // "CTex"

// Encode writes the texture into its bytes.
func (t *Texture) Encode() (b [TextureSize]byte) {
	put := binary.LittleEndian
	put.PutUint32(b[:], textureMark)
	b[4], b[5], b[6], b[7] = t.Format, t.Channels, byte(t.Address[0]), byte(t.Address[1])
	for i, on := range []bool{t.Fetch, t.Linear, t.Normalized, t.Integer} {
		if on {
			b[8+i] = 1
		}
	}
	for i, v := range []uint64{t.Memory, t.Width, t.Height, t.Pitch} {
		put.PutUint64(b[16+8*i:], v)
	}
	for i, v := range t.Color {
		put.PutUint32(b[48+4*i:], math.Float32bits(v))
	}
	return b
}

// DecodeTexture undoes Encode. The error says what is no texture.
func DecodeTexture(b []byte) (t Texture, err error) {
	get := binary.LittleEndian
	if len(b) != TextureSize || get.Uint32(b) != textureMark {
		return t, fmt.Errorf("there is no texture of this driver")
	}
	t = Texture{
		Format: b[4], Channels: b[5], Address: [2]AddressMode{AddressMode(b[6]), AddressMode(b[7])},
		Fetch: b[8] == 1, Linear: b[9] == 1, Normalized: b[10] == 1, Integer: b[11] == 1,
		Memory: get.Uint64(b[16:]), Width: get.Uint64(b[24:]), Height: get.Uint64(b[32:]), Pitch: get.Uint64(b[40:]),
	}
	for i := range t.Color {
		t.Color[i] = math.Float32frombits(get.Uint32(b[48+4*i:]))
	}
	sound := FormatSize(t.Format) > 0 && (t.Channels == 1 || t.Channels == 2 || t.Channels == 4) && max(t.Address[0], t.Address[1]) <= Border
	if !sound || t.Width == 0 || t.Height == 0 {
		return t, fmt.Errorf("the texture was changed")
	}
	return t, nil
}

// Formats of channels: those of CUarray_format.
const (
	formatU8    = 0x01
	formatU16   = 0x02
	formatU32   = 0x03
	formatS8    = 0x08
	formatS16   = 0x09
	formatS32   = 0x0a
	formatHalf  = 0x10
	formatFloat = 0x20
)

// FormatSize is the bytes of a channel, 0 for an unknown format.
func FormatSize(format uint8) uint64 {
	switch format {
	case formatU8, formatS8:
		return 1
	case formatU16, formatS16, formatHalf:
		return 2
	case formatU32, formatS32, formatFloat:
		return 4
	}
	return 0
}

// IsFloat reports whether channels are read as floating-point numbers.
func (t *Texture) IsFloat() bool {
	if t.Format == formatHalf || t.Format == formatFloat {
		return true
	}
	return !t.Integer && FormatSize(t.Format) < 4
}

// Size is the bytes of an element.
func (t *Texture) Size() uint64 { return FormatSize(t.Format) * uint64(t.Channels) }

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

// Sample is what the texture has at (x, y).
//
// CUDA C++ Programming Guide, "Texture Fetching".
func (t *Texture) Sample(x, y float32, read Read) [4]uint32 {
	u, v := t.place(float64(x), t.Width, 0), t.place(float64(y), t.Height, 1)
	if !t.Linear {
		return t.element(floor(u), floor(v), read)
	}
	u, v = u-0.5, v-0.5
	i, j := floor(u), floor(v)
	a, b := fraction(u), fraction(v)
	var sum [4]float64
	for k := range 4 {
		di, dj := int64(k&1), int64(k>>1)
		weight := (1 - a) * (1 - b)
		switch k {
		case 1:
			weight = a * (1 - b)
		case 2:
			weight = (1 - a) * b
		case 3:
			weight = a * b
		}
		if weight == 0 {
			continue // what is not read cannot be NaN
		}
		for c, bits := range t.element(i+di, j+dj, read) {
			sum[c] += weight * float64(math.Float32frombits(bits))
		}
	}
	var out [4]uint32
	for c := range out {
		out[c] = math.Float32bits(float32(sum[c]))
	}
	return out
}

// place is a coordinate in elements. Beyond the bounds it is that of the element
// that is read, but for Clamp and Border.
func (t *Texture) place(x float64, n uint64, dimension int) float64 {
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
	return x * float64(n)
}

// floor is the whole number below x, within what an int64 has.
func floor(x float64) int64 { return int64(math.Floor(min(max(x, -1<<40), 1<<40))) }

// fraction is the weight of the next element: the guide says 9 bits, 8 of them
// behind the point. That it is rounded to the nearest is a guess.
func fraction(x float64) float64 {
	x = min(max(x, -1<<40), 1<<40)
	return math.Round((x-math.Floor(x))*256) / 256
}

// At is what the texture has at whole coordinates, without a filter.
func (t *Texture) At(i, j int64, read Read) [4]uint32 { return t.element(i, j, read) }

func (t *Texture) element(i, j int64, read Read) [4]uint32 {
	i, inX := bound(i, t.Width, t.mode(0))
	j, inY := bound(j, t.Height, t.mode(1))
	if !inX || !inY {
		return t.border()
	}
	return t.bits(read(t.Memory + uint64(j)*t.Pitch + uint64(i)*t.Size()))
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

func (t *Texture) border() (out [4]uint32) {
	for c := range out {
		if t.IsFloat() {
			out[c] = math.Float32bits(t.Color[c])
		} else {
			out[c] = uint32(int64(t.Color[c]))
		}
	}
	return out
}

// bits are an element's channels. Those that it lacks are 0, and the last 1; that
// is a guess.
func (t *Texture) bits(b []byte) [4]uint32 {
	out := [4]uint32{0, 0, 0, 1}
	if t.IsFloat() {
		out[3] = math.Float32bits(1)
	}
	size := FormatSize(t.Format)
	for c := range int(t.Channels) {
		out[c] = t.channel(b[uint64(c)*size:])
	}
	return out
}

func (t *Texture) channel(b []byte) uint32 {
	get := binary.LittleEndian
	promoted := func(v, most float64) uint32 { return math.Float32bits(float32(max(v/most, -1))) }
	switch t.Format {
	case formatU8:
		if !t.Integer {
			return promoted(float64(b[0]), math.MaxUint8)
		}
		return uint32(b[0])
	case formatS8:
		if !t.Integer {
			return promoted(float64(int8(b[0])), math.MaxInt8)
		}
		return uint32(int32(int8(b[0])))
	case formatU16:
		if !t.Integer {
			return promoted(float64(get.Uint16(b)), math.MaxUint16)
		}
		return uint32(get.Uint16(b))
	case formatS16:
		if !t.Integer {
			return promoted(float64(int16(get.Uint16(b))), math.MaxInt16)
		}
		return uint32(int32(int16(get.Uint16(b))))
	case formatHalf:
		return math.Float32bits(halfToFloat(get.Uint16(b)))
	}
	return get.Uint32(b)
}

func halfToFloat(h uint16) float32 {
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1024+mantissa, exponent-25)
	switch {
	case exponent == 0:
		v = math.Ldexp(mantissa, -24)
	case exponent == 31 && mantissa == 0:
		v = math.Inf(1)
	case exponent == 31:
		v = math.NaN()
	}
	if h>>15 != 0 {
		v = -v
	}
	return float32(v)
}
