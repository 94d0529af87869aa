// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/binary"
	"fmt"
)

const (
	// TensorMapSize is the bytes of a tensor map. PTX ISA, "Tensor-map".
	TensorMapSize = 128
	// TensorMapAlign is the alignment that copies need of one. PTX ISA,
	// "cp.async.bulk.tensor".
	TensorMapAlign = 64
	// MaxRank is the most dimensions of a tensor. PTX ISA, "Tensors: Tensor
	// Dimension, size and format".
	MaxRank = 5
)

// A TensorMap describes a tensor in global memory and the box of it that one copy
// moves, dimensions from the innermost outwards.
//
// Encoded, little-endian, zeros elsewhere:
//
//	0   the mark
//	4   rank, bytes of an element, swizzle, 1 for NaN beyond the bounds: a byte each
//	8   address of the tensor
//	16  sizes, 32 bits for each dimension
//	36  box less 1, a byte for each dimension
//	41  element strides, a byte for each dimension
//	48  strides in bytes, 64 bits for each dimension but the innermost
type TensorMap struct {
	Address uint64
	Rank    int
	// ElementSize is 1, 2, 4 or 8 bytes.
	ElementSize uint64
	Size        [MaxRank]uint64 // elements
	Stride      [MaxRank]uint64 // bytes; of the innermost dimension ElementSize
	Box         [MaxRank]uint64 // elements that are traversed, 1 to 256
	Step        [MaxRank]uint64 // one element of so many is copied; of the innermost dimension 1
	Swizzle     Swizzle
	// NaN says that numbers beyond the bounds are read as NaN, not as zeros.
	NaN bool
}

// Swizzle is the order of a box's 16 bytes in shared memory: how many bits of
// their address are exchanged.
type Swizzle uint8

// The orders. Each row of a box is as long as the name says.
const (
	Plain Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
)

// Span is the bytes of a row that a swizzle permutes, 0 for Plain.
func (s Swizzle) Span() uint64 {
	if s == Plain {
		return 0
	}
	return 16 << s
}

// Place is where in shared memory a byte lies whose place without the swizzle is
// offset: the 16 bytes of a row of the span trade places by the number of the 128
// bytes that they are in.
//
// PTX ISA, "Tensors: Swizzling Modes".
func (s Swizzle) Place(offset uint64) uint64 {
	return offset ^ (offset>>7&(1<<s-1))<<4
}

const tensorMapMark = 0x70614D54 // "TMap"

// Im2col is what a map of columns has besides a tensor. No copy reads it here.
//
// Encoded behind the tensor's numbers, little-endian:
//
//	80  lower corner, 86 upper corner: 16 bits for each dimension between the
//	    first and the last
//	92  channels, 94 pixels: 16 bits each
//	96  wide: a byte
type Im2col struct {
	Lower, Upper     [MaxRank - 2]int16
	Channels, Pixels uint16
	Wide             uint8 // 0: not; 1 or 2: along the width alone, with so many pixels or 128
}

const im2colMark = 0x63614D54 // "TMac"

// EncodeIm2col writes a map of columns into 128 bytes.
func (m *TensorMap) EncodeIm2col(c *Im2col) (b [TensorMapSize]byte) {
	put := binary.LittleEndian
	b = m.Encode()
	put.PutUint32(b[0:], im2colMark)
	for i := range c.Lower {
		put.PutUint16(b[80+2*i:], uint16(c.Lower[i]))
		put.PutUint16(b[86+2*i:], uint16(c.Upper[i]))
	}
	put.PutUint16(b[92:], c.Channels)
	put.PutUint16(b[94:], c.Pixels)
	b[96] = c.Wide
	return b
}

// Encode writes the map into 128 bytes.
func (m *TensorMap) Encode() (b [TensorMapSize]byte) {
	put := binary.LittleEndian
	put.PutUint32(b[0:], tensorMapMark)
	b[4], b[5], b[6] = byte(m.Rank), byte(m.ElementSize), byte(m.Swizzle)
	if m.NaN {
		b[7] = 1
	}
	put.PutUint64(b[8:], m.Address)
	for i := range m.Rank {
		put.PutUint32(b[16+4*i:], uint32(m.Size[i]))
		b[36+i], b[41+i] = byte(m.Box[i]-1), byte(m.Step[i])
		if i > 0 {
			put.PutUint64(b[40+8*i:], m.Stride[i])
		}
	}
	return b
}

// DecodeTensorMap undoes Encode. The error says what is no map: memory may hold
// anything.
func DecodeTensorMap(b []byte) (m TensorMap, err error) {
	get := binary.LittleEndian
	if len(b) == TensorMapSize && get.Uint32(b) == im2colMark {
		return m, fmt.Errorf("the tensor map is one of im2col, whose copies are not simulated")
	}
	if len(b) != TensorMapSize || get.Uint32(b) != tensorMapMark {
		return m, fmt.Errorf("there is no tensor map of this driver")
	}
	m = TensorMap{Address: get.Uint64(b[8:]), Rank: int(b[4]), ElementSize: uint64(b[5]), Swizzle: Swizzle(b[6]), NaN: b[7] == 1}
	sized := m.ElementSize == 1 || m.ElementSize == 2 || m.ElementSize == 4 || m.ElementSize == 8
	if m.Rank < 1 || m.Rank > MaxRank || !sized || m.Swizzle > Swizzle128 || b[7] > 1 {
		return m, fmt.Errorf("the tensor map was changed")
	}
	for i := range m.Rank {
		m.Size[i], m.Box[i], m.Step[i] = uint64(get.Uint32(b[16+4*i:])), uint64(b[36+i])+1, uint64(b[41+i])
		if m.Step[i] == 0 {
			return m, fmt.Errorf("the tensor map was changed")
		}
		if i > 0 {
			m.Stride[i] = get.Uint64(b[40+8*i:])
		}
	}
	m.Stride[0] = m.ElementSize
	return m, nil
}

// Count is how many elements of a dimension a copy moves.
func (m *TensorMap) Count(dimension int) uint64 {
	return (m.Box[dimension] + m.Step[dimension] - 1) / m.Step[dimension]
}

// Bytes is what one copy writes to shared memory, or reads from it, whether or not
// it lies within the bounds.
func (m *TensorMap) Bytes() uint64 {
	n := m.ElementSize
	for i := range m.Rank {
		n *= m.Count(i)
	}
	return n
}

// A Piece is some bytes that a copy moves.
type Piece struct {
	Shared uint64 // their place in shared memory
	Global uint64 // their address; 0 beyond the bounds
	Bytes  uint64
	Beyond bool // outside of the tensor
}

// Pieces calls f for all bytes of the box at the coordinates, whose place in shared
// memory begins at shared.
func (m *TensorMap) Pieces(shared uint64, at [MaxRank]int32, f func(Piece)) {
	var index [MaxRank]uint64
	row := m.Count(0) * m.ElementSize
	for {
		global, beyond := m.Address, false
		for i := 1; i < m.Rank; i++ {
			c := int64(at[i]) + int64(index[i]*m.Step[i])
			beyond = beyond || c < 0 || uint64(c) >= m.Size[i]
			global += uint64(c) * m.Stride[i]
		}
		m.row(shared, global, int64(at[0]), beyond, f)
		shared += row
		i := 1
		for ; i < m.Rank; i++ {
			if index[i]++; index[i] < m.Count(i) {
				break
			}
			index[i] = 0
		}
		if i >= m.Rank {
			return
		}
	}
}

// row is one row of the box: what lies before the tensor, in it and behind it.
func (m *TensorMap) row(shared, global uint64, at int64, beyond bool, f func(Piece)) {
	n, size := int64(m.Count(0)), int64(m.Size[0])
	from, to := min(max(-at, 0), n), max(min(size-at, n), 0) // of the row, within the bounds
	if beyond || from >= to {
		from, to = n, n
	}
	e := int64(m.ElementSize)
	m.piece(Piece{Shared: shared, Bytes: uint64(from * e), Beyond: true}, f)
	m.piece(Piece{Shared: shared + uint64(from*e), Global: global + uint64((at+from)*e), Bytes: uint64((to - from) * e)}, f)
	m.piece(Piece{Shared: shared + uint64(to*e), Bytes: uint64((n - to) * e), Beyond: true}, f)
}

// piece calls f for bytes that lie together without a swizzle.
func (m *TensorMap) piece(p Piece, f func(Piece)) {
	if m.Swizzle == Plain {
		if p.Bytes > 0 {
			f(p)
		}
		return
	}
	for p.Bytes > 0 {
		n := min(p.Bytes, 16-p.Shared%16)
		part := p
		part.Shared, part.Bytes = m.Swizzle.Place(p.Shared), n
		f(part)
		p.Shared, p.Bytes = p.Shared+n, p.Bytes-n
		if !p.Beyond {
			p.Global += n
		}
	}
}
