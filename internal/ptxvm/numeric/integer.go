// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// The lane functions of integer operations. The loops around them are
// generated; see gen.

// DivInt divides. A zero divisor gives all ones, as on an H200; PTX leaves it
// open.
func DivInt[T uint16 | int16 | uint32 | int32 | uint64 | int64](a, b T) T {
	if b == 0 {
		return ^T(0)
	}
	return a / b
}

// RemInt is the remainder. A zero divisor gives all ones here too.
func RemInt[T uint16 | int16 | uint32 | int32 | uint64 | int64](a, b T) T {
	if b == 0 {
		return ^T(0)
	}
	return a % b
}

// MulHi… return the upper half of a product.
func MulHiU16(a, b uint16) uint16 { return uint16(uint32(a) * uint32(b) >> 16) }
func MulHiS16(a, b int16) int16   { return int16(int32(a) * int32(b) >> 16) }
func MulHiU32(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }
func MulHiS32(a, b int32) int32   { return int32(int64(a) * int64(b) >> 32) }

func MulHiU64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

func MulHiS64(a, b int64) int64 {
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	return int64(hi) - a>>63&b - b>>63&a
}

// Mul24… multiply the low 24 bits; Lo is the low 32 bits of the product, Hi its
// upper ones.
func Mul24LoU32(a, b uint32) uint32 { return (a & 0xffffff) * (b & 0xffffff) }
func Mul24LoS32(a, b int32) int32   { return (a << 8 >> 8) * (b << 8 >> 8) }
func Mul24HiU32(a, b uint32) uint32 { return uint32(uint64(a&0xffffff) * uint64(b&0xffffff) >> 16) }
func Mul24HiS32(a, b int32) int32   { return int32(int64(a<<8>>8) * int64(b<<8>>8) >> 16) }

// SatS32 clamps to 32 bits.
func SatS32(v int64) int32 { return int32(min(max(v, -1<<31), 1<<31-1)) }

// SlctF32 chooses by the sign of c.
func SlctF32[T uint16 | uint32 | uint64](a, b T, c float32) T {
	if c >= 0 {
		return a
	}
	return b
}

// bfe… extract a bit field. Position and length are taken modulo 256, and what
// lies beyond the top bit is the sign (s) or zero (u). PTX ISA, "bfe".
func BfeU32(a, pos, n uint32) uint32 { return uint32(BfeU64(uint64(a), pos, n)) }

func BfeU64(a uint64, pos, n uint32) uint64 {
	pos, n = pos&255, n&255
	if n >= 64 {
		return a >> pos
	}
	return a >> pos & (1<<n - 1)
}

func BfeS32(a int32, pos, n uint32) int32 { return int32(BfeS64(int64(a), pos, n)) }

func BfeS64(a int64, pos, n uint32) int64 {
	pos, n = pos&255, n&255
	if n == 0 {
		return 0
	}
	a >>= pos // beyond the top bit this is the sign already
	if n >= 64 {
		return a
	}
	return a << (64 - n) >> (64 - n)
}

// Bfi… insert the low n bits of a into b. PTX ISA, "bfi".
func BfiU32(a, b, pos, n uint32) uint32 {
	pos, n = pos&255, n&255
	mask := (uint32(1)<<n - 1) << pos
	return b&^mask | a<<pos&mask
}

func BfiU64(a, b uint64, pos, n uint32) uint64 {
	pos, n = pos&255, n&255
	mask := (uint64(1)<<n - 1) << pos
	return b&^mask | a<<pos&mask
}

// bfind… return the position of the most significant bit that is not a copy of
// the sign, or all ones if there is none.
func BfindU32(a uint32) uint32 { return uint32(bits.Len32(a) - 1) }
func BfindU64(a uint64) uint32 { return uint32(bits.Len64(a) - 1) }
func BfindS32(a int32) uint32  { return BfindU32(uint32(a ^ a>>31)) }
func BfindS64(a int64) uint32  { return BfindU64(uint64(a ^ a>>63)) }

// bfindShift… return how far to shift left to bring that bit to the top.
func BfindShiftU32(a uint32) uint32 { return shiftAmount(BfindU32(a), 31) }
func BfindShiftU64(a uint64) uint32 { return shiftAmount(BfindU64(a), 63) }
func BfindShiftS32(a int32) uint32  { return shiftAmount(BfindS32(a), 31) }
func BfindShiftS64(a int64) uint32  { return shiftAmount(BfindS64(a), 63) }

func shiftAmount(position, top uint32) uint32 {
	if position == ^uint32(0) {
		return position
	}
	return top - position
}

// Bmsk… make n ones from bit pos on. PTX ISA, "bmsk".
func BmskClamp32(pos, n uint32) uint32 {
	if pos >= 32 {
		return 0
	}
	return (1<<min(n, 32) - 1) << pos
}

func BmskWrap32(pos, n uint32) uint32 { return (1<<(n&31) - 1) << (pos & 31) }

// szext… keep the low n bits and extend them. Clamp: 32 and more keep all.
func SzextClampU32(a, n uint32) uint32      { return a & (1<<min(n, 32) - 1) }
func SzextWrapU32(a, n uint32) uint32       { return a & (1<<(n&31) - 1) }
func SzextClampS32(a int32, n uint32) int32 { return signExtend(a, min(n, 32)) }
func SzextWrapS32(a int32, n uint32) int32  { return signExtend(a, n&31) }
func signExtend(a int32, n uint32) int32 {
	if n == 0 {
		return 0
	}
	return a << (32 - n) >> (32 - n)
}

// Prmt picks four bytes of the eight in b:a. PTX ISA, "prmt".
func Prmt(a, b, c uint32, mode ptxir.Mode) uint32 {
	in := uint64(b)<<32 | uint64(a)
	if mode == ptxir.ModeNone {
		var r uint32
		for i := 0; i < 4; i++ {
			sel := c >> (4 * i)
			v := uint32(in>>(8*(sel&7))) & 255
			if sel&8 != 0 { // replicate the sign
				v = uint32(int8(v)>>7) & 255
			}
			r |= v << (8 * i)
		}
		return r
	}
	return prmtPattern(in, c&3, mode)
}

func prmtPattern(in uint64, c uint32, mode ptxir.Mode) uint32 {
	var r uint32
	for i := uint32(0); i < 4; i++ {
		var from uint32
		switch mode {
		case ptxir.ModePrmtF4E:
			from = c + i
		case ptxir.ModePrmtB4E:
			from = (c - i) & 7
		case ptxir.ModePrmtRC8:
			from = c
		case ptxir.ModePrmtECL:
			from = max(i, c)
		case ptxir.ModePrmtECR:
			from = min(i, c)
		case ptxir.ModePrmtRC16:
			from = c&1*2 + i&1
		}
		r |= uint32(in>>(8*from)) & 255 << (8 * i)
	}
	return r
}

// Lop3 is any function of three bits, given by its truth table.
func Lop3(a, b, c, lut uint32) uint32 {
	var r uint32
	for i := uint32(0); i < 8; i++ {
		if lut>>i&1 == 0 {
			continue
		}
		x, y, z := a, b, c
		if i&4 == 0 {
			x = ^x
		}
		if i&2 == 0 {
			y = ^y
		}
		if i&1 == 0 {
			z = ^z
		}
		r |= x & y & z
	}
	return r
}

// Fns finds the n-th set bit of mask from base on. PTX ISA, "fns".
func Fns(mask, base uint32, offset int32) uint32 {
	if base > 31 {
		return ^uint32(0)
	}
	if offset == 0 {
		if mask>>base&1 != 0 {
			return base
		}
		return ^uint32(0)
	}
	step := int32(1)
	if offset < 0 {
		step, offset = -1, -offset
	}
	for pos := int32(base); pos >= 0 && pos < 32; pos += step {
		if mask>>uint(pos)&1 != 0 {
			if offset--; offset == 0 {
				return uint32(pos)
			}
		}
	}
	return ^uint32(0)
}

// byteOf returns byte i of v, sign-extended if signed.
func byteOf(v uint32, i int, signed bool) int32 {
	if signed {
		return int32(int8(v >> (8 * i)))
	}
	return int32(uint8(v >> (8 * i)))
}

func halfOf(v uint32, i int, signed bool) int32 {
	if signed {
		return int32(int16(v >> (16 * i)))
	}
	return int32(uint16(v >> (16 * i)))
}

func dp4a(a, b, c uint32, sa, sb bool) uint32 {
	for i := range 4 {
		c += uint32(byteOf(a, i, sa) * byteOf(b, i, sb))
	}
	return c
}

// dp2a multiplies the halves of a with two bytes of b, from byte first on.
func dp2a(a, b, c uint32, sa, sb bool, first int) uint32 {
	for i := range 2 {
		c += uint32(halfOf(a, i, sa)) * uint32(byteOf(b, first+i, sb))
	}
	return c
}

// Dp4a… and Dp2a… say the signs of both factors, and which bytes.
func Dp4aUU(a, b, c uint32) uint32   { return dp4a(a, b, c, false, false) }
func Dp4aUS(a, b, c uint32) uint32   { return dp4a(a, b, c, false, true) }
func Dp4aSU(a, b, c uint32) uint32   { return dp4a(a, b, c, true, false) }
func Dp4aSS(a, b, c uint32) uint32   { return dp4a(a, b, c, true, true) }
func Dp2aLoUU(a, b, c uint32) uint32 { return dp2a(a, b, c, false, false, 0) }
func Dp2aLoUS(a, b, c uint32) uint32 { return dp2a(a, b, c, false, true, 0) }
func Dp2aLoSU(a, b, c uint32) uint32 { return dp2a(a, b, c, true, false, 0) }
func Dp2aLoSS(a, b, c uint32) uint32 { return dp2a(a, b, c, true, true, 0) }
func Dp2aHiUU(a, b, c uint32) uint32 { return dp2a(a, b, c, false, false, 2) }
func Dp2aHiUS(a, b, c uint32) uint32 { return dp2a(a, b, c, false, true, 2) }
func Dp2aHiSU(a, b, c uint32) uint32 { return dp2a(a, b, c, true, false, 2) }
func Dp2aHiSS(a, b, c uint32) uint32 { return dp2a(a, b, c, true, true, 2) }

// MinOfU16x2 and its kin work on two 16-bit integers side by side.
func MinOfU16x2(a, b uint32) uint32 {
	return uint32(min(uint16(a), uint16(b))) | uint32(min(uint16(a>>16), uint16(b>>16)))<<16
}

func MaxOfU16x2(a, b uint32) uint32 {
	return uint32(max(uint16(a), uint16(b))) | uint32(max(uint16(a>>16), uint16(b>>16)))<<16
}

func MinOfS16x2(a, b uint32) uint32 {
	return uint32(uint16(min(int16(a), int16(b)))) | uint32(uint16(min(int16(a>>16), int16(b>>16))))<<16
}

func MaxOfS16x2(a, b uint32) uint32 {
	return uint32(uint16(max(int16(a), int16(b)))) | uint32(uint16(max(int16(a>>16), int16(b>>16))))<<16
}
