// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// The lane functions of integer operations. The loops around them are
// generated; see gen.

// divInt divides. A zero divisor gives all ones, as on an H200; PTX leaves it
// open.
func divInt[T uint16 | int16 | uint32 | int32 | uint64 | int64](a, b T) T {
	if b == 0 {
		return ^T(0)
	}
	return a / b
}

// remInt is the remainder. A zero divisor gives all ones here too.
func remInt[T uint16 | int16 | uint32 | int32 | uint64 | int64](a, b T) T {
	if b == 0 {
		return ^T(0)
	}
	return a % b
}

func mulHiU16(a, b uint16) uint16 { return uint16(uint32(a) * uint32(b) >> 16) }
func mulHiS16(a, b int16) int16   { return int16(int32(a) * int32(b) >> 16) }
func mulHiU32(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }
func mulHiS32(a, b int32) int32   { return int32(int64(a) * int64(b) >> 32) }

func mulHiU64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

func mulHiS64(a, b int64) int64 {
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	return int64(hi) - a>>63&b - b>>63&a
}

func mul24LoU32(a, b uint32) uint32 { return (a & 0xffffff) * (b & 0xffffff) }
func mul24LoS32(a, b int32) int32   { return (a << 8 >> 8) * (b << 8 >> 8) }
func mul24HiU32(a, b uint32) uint32 { return uint32(uint64(a&0xffffff) * uint64(b&0xffffff) >> 16) }
func mul24HiS32(a, b int32) int32   { return int32(int64(a<<8>>8) * int64(b<<8>>8) >> 16) }

func satS32(v int64) int32 { return int32(min(max(v, -1<<31), 1<<31-1)) }

func slctF32[T uint16 | uint32 | uint64](a, b T, c float32) T {
	if c >= 0 {
		return a
	}
	return b
}

// bfe… extract a bit field. Position and length are taken modulo 256, and what
// lies beyond the top bit is the sign (s) or zero (u). PTX ISA, "bfe".
func bfeU32(a, pos, n uint32) uint32 { return uint32(bfeU64(uint64(a), pos, n)) }

func bfeU64(a uint64, pos, n uint32) uint64 {
	pos, n = pos&255, n&255
	if n >= 64 {
		return a >> pos
	}
	return a >> pos & (1<<n - 1)
}

func bfeS32(a int32, pos, n uint32) int32 { return int32(bfeS64(int64(a), pos, n)) }

func bfeS64(a int64, pos, n uint32) int64 {
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

func bfiU32(a, b, pos, n uint32) uint32 {
	pos, n = pos&255, n&255
	mask := (uint32(1)<<n - 1) << pos
	return b&^mask | a<<pos&mask
}

func bfiU64(a, b uint64, pos, n uint32) uint64 {
	pos, n = pos&255, n&255
	mask := (uint64(1)<<n - 1) << pos
	return b&^mask | a<<pos&mask
}

// bfind… return the position of the most significant bit that is not a copy of
// the sign, or all ones if there is none.
func bfindU32(a uint32) uint32 { return uint32(bits.Len32(a) - 1) }
func bfindU64(a uint64) uint32 { return uint32(bits.Len64(a) - 1) }
func bfindS32(a int32) uint32  { return bfindU32(uint32(a ^ a>>31)) }
func bfindS64(a int64) uint32  { return bfindU64(uint64(a ^ a>>63)) }

// bfindShift… return how far to shift left to bring that bit to the top.
func bfindShiftU32(a uint32) uint32 { return shiftAmount(bfindU32(a), 31) }
func bfindShiftU64(a uint64) uint32 { return shiftAmount(bfindU64(a), 63) }
func bfindShiftS32(a int32) uint32  { return shiftAmount(bfindS32(a), 31) }
func bfindShiftS64(a int64) uint32  { return shiftAmount(bfindS64(a), 63) }

func shiftAmount(position, top uint32) uint32 {
	if position == ^uint32(0) {
		return position
	}
	return top - position
}

func bmskClamp32(pos, n uint32) uint32 {
	if pos >= 32 {
		return 0
	}
	return (1<<min(n, 32) - 1) << pos
}

func bmskWrap32(pos, n uint32) uint32 { return (1<<(n&31) - 1) << (pos & 31) }

// szext… keep the low n bits and extend them. Clamp: 32 and more keep all.
func szextClampU32(a, n uint32) uint32      { return a & (1<<min(n, 32) - 1) }
func szextWrapU32(a, n uint32) uint32       { return a & (1<<(n&31) - 1) }
func szextClampS32(a int32, n uint32) int32 { return signExtend(a, min(n, 32)) }
func szextWrapS32(a int32, n uint32) int32  { return signExtend(a, n&31) }
func signExtend(a int32, n uint32) int32 {
	if n == 0 {
		return 0
	}
	return a << (32 - n) >> (32 - n)
}

// prmt picks four bytes of the eight in b:a. PTX ISA, "prmt".
func prmt(a, b, c uint32, mode ptxir.Mode) uint32 {
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

// lop3 is any function of three bits, given by its truth table.
func lop3(a, b, c, lut uint32) uint32 {
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

// fns finds the n-th set bit of mask from base on. PTX ISA, "fns".
func fns(mask, base uint32, offset int32) uint32 {
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

func dp4aUU(a, b, c uint32) uint32   { return dp4a(a, b, c, false, false) }
func dp4aUS(a, b, c uint32) uint32   { return dp4a(a, b, c, false, true) }
func dp4aSU(a, b, c uint32) uint32   { return dp4a(a, b, c, true, false) }
func dp4aSS(a, b, c uint32) uint32   { return dp4a(a, b, c, true, true) }
func dp2aLoUU(a, b, c uint32) uint32 { return dp2a(a, b, c, false, false, 0) }
func dp2aLoUS(a, b, c uint32) uint32 { return dp2a(a, b, c, false, true, 0) }
func dp2aLoSU(a, b, c uint32) uint32 { return dp2a(a, b, c, true, false, 0) }
func dp2aLoSS(a, b, c uint32) uint32 { return dp2a(a, b, c, true, true, 0) }
func dp2aHiUU(a, b, c uint32) uint32 { return dp2a(a, b, c, false, false, 2) }
func dp2aHiUS(a, b, c uint32) uint32 { return dp2a(a, b, c, false, true, 2) }
func dp2aHiSU(a, b, c uint32) uint32 { return dp2a(a, b, c, true, false, 2) }
func dp2aHiSS(a, b, c uint32) uint32 { return dp2a(a, b, c, true, true, 2) }

// minOfU16x2 and its kin work on two 16-bit integers side by side.
func minOfU16x2(a, b uint32) uint32 {
	return uint32(min(uint16(a), uint16(b))) | uint32(min(uint16(a>>16), uint16(b>>16)))<<16
}

func maxOfU16x2(a, b uint32) uint32 {
	return uint32(max(uint16(a), uint16(b))) | uint32(max(uint16(a>>16), uint16(b>>16)))<<16
}

func minOfS16x2(a, b uint32) uint32 {
	return uint32(uint16(min(int16(a), int16(b)))) | uint32(uint16(min(int16(a>>16), int16(b>>16))))<<16
}

func maxOfS16x2(a, b uint32) uint32 {
	return uint32(uint16(max(int16(a), int16(b)))) | uint32(uint16(max(int16(a>>16), int16(b>>16))))<<16
}
