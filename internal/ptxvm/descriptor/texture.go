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
const TextureSize = 96

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

// A Texture describes elements of 1, 2 or 4 channels, in rows, and these in
// slices or layers.
//
// Encoded, little-endian:
//
//	0   the mark
//	4   format (CUarray_format), channels, address modes of x and y: a byte each
//	8   1 for one dimension that is read by whole numbers, linear filtering,
//	    normalized coordinates, integers as they are: a byte each
//	12  address mode of z, coordinates, 1 for layers, 1 for cubes: a byte each
//	16  address, 24 width, 32 height, 40 pitch in bytes
//	48  border color, 16 bytes
//	64  depth, 72 bytes from slice to slice
//	80  levels, 1 for means between levels, 1 for means across the edges of cubes, 1
//	    for colors in sRGB: a byte each
//	84  bias of levels, 88 the least, 92 the greatest: numbers of 32 bits
type Texture struct {
	Format, Channels uint8
	Address          [3]AddressMode
	Rank             int  // coordinates: 1 to 3, without the layer
	Layered          bool // Depth counts layers, which have a coordinate of their own
	Cube             bool // Depth counts faces, 6 of each layer; a direction names an element. Rank is 2
	Seamless         bool // of a cube: a filter goes on beyond the edges of faces
	Fetch            bool // one dimension, read by whole numbers
	Linear           bool // filtered
	Normalized       bool
	Integer          bool // integers are not promoted to numbers up to 1
	SRGB             bool // promoted unsigned bytes are colors in sRGB
	Memory           uint64
	Width, Height    uint64 // elements
	Depth            uint64 // slices or layers
	Pitch, Slice     uint64 // bytes from one row, and from one slice, to the next
	Color            [4]float32
	Mips             Mips
}

// Mips is what a texture of a mipmapped array has besides its level 0. Its zero is
// that of all others, which are a level 0 alone.
type Mips struct {
	Levels          int // 1 to 32; 0 means 1
	Linear          bool
	Bias            float32 // added to what a kernel asks for
	Least, Greatest float32 // what comes of that is at least, and at most
}

const textureMark = 0x78655443 // "CTex"

// Encode writes the texture into its bytes.
func (t *Texture) Encode() (b [TextureSize]byte) {
	put := binary.LittleEndian
	put.PutUint32(b[:], textureMark)
	b[4], b[5], b[6], b[7] = t.Format, t.Channels, byte(t.Address[0]), byte(t.Address[1])
	b[12], b[13] = byte(t.Address[2]), byte(t.Rank)
	for place, on := range map[int]bool{8: t.Fetch, 9: t.Linear, 10: t.Normalized, 11: t.Integer, 14: t.Layered, 15: t.Cube, 82: t.Seamless, 83: t.SRGB} {
		if on {
			b[place] = 1
		}
	}
	for i, v := range []uint64{t.Memory, t.Width, t.Height, t.Pitch} {
		put.PutUint64(b[16+8*i:], v)
	}
	for i, v := range t.Color {
		put.PutUint32(b[48+4*i:], math.Float32bits(v))
	}
	put.PutUint64(b[64:], t.Depth)
	put.PutUint64(b[72:], t.Slice)
	t.Mips.encode(b[80:])
	return b
}

// DecodeTexture undoes Encode. The error says what is no texture.
func DecodeTexture(b []byte) (t Texture, err error) {
	get := binary.LittleEndian
	if len(b) != TextureSize || get.Uint32(b) != textureMark {
		return t, fmt.Errorf("there is no texture of this driver")
	}
	t = Texture{
		Format: b[4], Channels: b[5], Address: [3]AddressMode{AddressMode(b[6]), AddressMode(b[7]), AddressMode(b[12])},
		Fetch: b[8] == 1, Linear: b[9] == 1, Normalized: b[10] == 1, Integer: b[11] == 1, Rank: int(b[13]), Layered: b[14] == 1, Cube: b[15] == 1, Seamless: b[82] == 1, SRGB: b[83] == 1,
		Memory: get.Uint64(b[16:]), Width: get.Uint64(b[24:]), Height: get.Uint64(b[32:]), Pitch: get.Uint64(b[40:]),
		Depth: get.Uint64(b[64:]), Slice: get.Uint64(b[72:]),
	}
	for i := range t.Color {
		t.Color[i] = math.Float32frombits(get.Uint32(b[48+4*i:]))
	}
	t.Mips = decodeMips(b[80:])
	sound := FormatSize(t.Format) > 0 && (t.Channels == 1 || t.Channels == 2 || t.Channels == 4) && max(t.Address[0], t.Address[1], t.Address[2]) <= Border
	sized := t.Width > 0 && t.Height > 0 && t.Depth > 0 && t.Rank >= 1 && t.Rank <= 3 && t.Mips.Levels <= mostLevels
	if !sound || !sized || t.Cube && (t.Rank != 2 || t.Width != t.Height || t.Depth%6 != 0) {
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
		if t.SRGB && c < 3 && t.Format == formatU8 && !t.Integer { // the fourth is no color
			out[c] = math.Float32bits(float32(linear(float64(math.Float32frombits(out[c])))))
		}
	}
	return out
}

// linear is the intensity of a color in sRGB: IEC 61966-2-1. Like hardware, this
// comes before all filters.
func linear(c float64) float64 {
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
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
