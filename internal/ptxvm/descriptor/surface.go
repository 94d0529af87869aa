// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/binary"
	"fmt"
)

// SurfaceSize is the bytes of a surface. A surface's handle is the device address
// where they are.
const SurfaceSize = 64

// A Surface describes an array that kernels read and write in place.
//
// Encoded, little-endian:
//
//	0   the mark
//	4   coordinates, 1 for layers: a byte each; zeros
//	16  address, 24 bytes of a row, 32 height, 40 depth
//	48  bytes from row to row, 56 from slice to slice
type Surface struct {
	Rank          int  // coordinates: 1 to 3, without the layer
	Layered       bool // Depth counts layers, which have a coordinate of their own
	Memory        uint64
	Width         uint64 // bytes of a row
	Height, Depth uint64 // rows; slices or layers
	Pitch, Slice  uint64 // bytes from one row, and from one slice, to the next
}

const surfaceMark = 0x72755343 // "CSur"

// Encode writes the surface into its bytes.
func (s *Surface) Encode() (b [SurfaceSize]byte) {
	put := binary.LittleEndian
	put.PutUint32(b[:], surfaceMark)
	b[4] = byte(s.Rank)
	if s.Layered {
		b[5] = 1
	}
	for i, v := range []uint64{s.Memory, s.Width, s.Height, s.Depth, s.Pitch, s.Slice} {
		put.PutUint64(b[16+8*i:], v)
	}
	return b
}

// DecodeSurface undoes Encode. The error says what is no surface.
func DecodeSurface(b []byte) (s Surface, err error) {
	get := binary.LittleEndian
	if len(b) != SurfaceSize || get.Uint32(b) != surfaceMark {
		return s, fmt.Errorf("there is no surface of this driver")
	}
	s = Surface{Rank: int(b[4]), Layered: b[5] == 1}
	for i, v := range []*uint64{&s.Memory, &s.Width, &s.Height, &s.Depth, &s.Pitch, &s.Slice} {
		*v = get.Uint64(b[16+8*i:])
	}
	if s.Rank < 1 || s.Rank > 3 || s.Width == 0 || s.Height == 0 || s.Depth == 0 {
		return s, fmt.Errorf("the surface was changed")
	}
	return s, nil
}

// Place is where size bytes are that start at byte x[0] of a row, and whether
// they are inside the surface. Those that are not are the nearest ones.
//
// PTX ISA, "Surface Instructions: suld".
func (s *Surface) Place(x [3]int64, layer uint32, size uint64) (addr uint64, inside bool) {
	inside = true
	last := [3]int64{int64(s.Width) - int64(size), int64(s.Height) - 1, int64(s.Depth) - 1}
	if s.Layered {
		x[2] = int64(layer)
	}
	for d := range x {
		if d >= s.Rank && !(d == 2 && s.Layered) {
			continue
		}
		near := max(min(x[d], last[d]), 0)
		inside = inside && near == x[d]
		x[d] = near
	}
	return s.Memory + uint64(x[2])*s.Slice + uint64(x[1])*s.Pitch + uint64(x[0]), inside && size <= s.Width
}
