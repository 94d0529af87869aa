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

// MulHiU16 is mul.hi.u16: the upper half of the product. PTX ISA, "mul".
func MulHiU16(a, b uint16) uint16 { return uint16(uint32(a) * uint32(b) >> 16) }

// MulHiS16 is mul.hi.s16.
func MulHiS16(a, b int16) int16 { return int16(int32(a) * int32(b) >> 16) }

// MulHiU32 is mul.hi.u32.
func MulHiU32(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }

// MulHiS32 is mul.hi.s32.
func MulHiS32(a, b int32) int32 { return int32(int64(a) * int64(b) >> 32) }

// MulHiU64 is mul.hi.u64.
func MulHiU64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

// MulHiS64 is mul.hi.s64. Taken as unsigned, a negative factor is 2^64 too large,
// which makes the upper half too large by the other factor.
func MulHiS64(a, b int64) int64 {
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	return int64(hi) - a>>63&b - b>>63&a
}

// Mul24LoU32 is mul24.lo.u32: the low 24 bits of both factors give a product of
// 48 bits, and this is its lower 32. PTX ISA, "mul24".
func Mul24LoU32(a, b uint32) uint32 { return (a & 0xffffff) * (b & 0xffffff) }

// Mul24LoS32 is mul24.lo.s32.
func Mul24LoS32(a, b int32) int32 { return (a << 8 >> 8) * (b << 8 >> 8) }

// Mul24HiU32 is mul24.hi.u32: the upper 32 of the product's 48 bits.
func Mul24HiU32(a, b uint32) uint32 { return uint32(uint64(a&0xffffff) * uint64(b&0xffffff) >> 16) }

// Mul24HiS32 is mul24.hi.s32.
func Mul24HiS32(a, b int32) int32 { return int32(int64(a<<8>>8) * int64(b<<8>>8) >> 16) }

// SatS32 clamps to 32 bits.
func SatS32(v int64) int32 { return int32(min(max(v, -1<<31), 1<<31-1)) }

// SlctF32 chooses by the sign of c.
func SlctF32[T uint16 | uint32 | uint64](a, b T, c float32) T {
	if c >= 0 {
		return a
	}
	return b
}

// BfeU32 is bfe.u32: n bits of a, from bit pos on. Both are taken modulo 256, and
// bits beyond the top one are zero. PTX ISA, "bfe".
func BfeU32(a, pos, n uint32) uint32 { return uint32(BfeU64(uint64(a), pos, n)) }

// BfeU64 is bfe.u64.
func BfeU64(a uint64, pos, n uint32) uint64 {
	pos, n = pos&255, n&255
	if n >= 64 {
		return a >> pos
	}
	return a >> pos & (1<<n - 1)
}

// BfeS32 is bfe.s32: the field's top bit is its sign, and bits beyond the top one
// of a are a's sign.
func BfeS32(a int32, pos, n uint32) int32 { return int32(BfeS64(int64(a), pos, n)) }

// BfeS64 is bfe.s64.
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

// BfiU32 is bfi.b32: b with the low n bits of a from bit pos on. Both are taken
// modulo 256, and what would lie beyond the top bit is dropped. PTX ISA, "bfi".
func BfiU32(a, b, pos, n uint32) uint32 {
	pos, n = pos&255, n&255
	mask := (uint32(1)<<n - 1) << pos
	return b&^mask | a<<pos&mask
}

// BfiU64 is bfi.b64.
func BfiU64(a, b uint64, pos, n uint32) uint64 {
	pos, n = pos&255, n&255
	mask := (uint64(1)<<n - 1) << pos
	return b&^mask | a<<pos&mask
}

// BfindU32 is bfind.u32: the position of the most significant 1, or all ones if
// there is none. PTX ISA, "bfind".
func BfindU32(a uint32) uint32 { return uint32(bits.Len32(a) - 1) }

// BfindU64 is bfind.u64.
func BfindU64(a uint64) uint32 { return uint32(bits.Len64(a) - 1) }

// BfindS32 is bfind.s32: the position of the most significant bit that differs
// from the sign, or all ones if there is none.
func BfindS32(a int32) uint32 { return BfindU32(uint32(a ^ a>>31)) }

// BfindS64 is bfind.s64.
func BfindS64(a int64) uint32 { return BfindU64(uint64(a ^ a>>63)) }

// BfindShiftU32 is bfind.shiftamt.u32: how far to shift left to bring the bit that
// bfind finds to the top, or all ones if there is none.
func BfindShiftU32(a uint32) uint32 { return shiftAmount(BfindU32(a), 31) }

// BfindShiftU64 is bfind.shiftamt.u64.
func BfindShiftU64(a uint64) uint32 { return shiftAmount(BfindU64(a), 63) }

// BfindShiftS32 is bfind.shiftamt.s32.
func BfindShiftS32(a int32) uint32 { return shiftAmount(BfindS32(a), 31) }

// BfindShiftS64 is bfind.shiftamt.s64.
func BfindShiftS64(a int64) uint32 { return shiftAmount(BfindS64(a), 63) }

func shiftAmount(position, top uint32) uint32 {
	if position == ^uint32(0) {
		return position
	}
	return top - position
}

// BmskClamp32 is bmsk.clamp.b32: n ones from bit pos on. Ones beyond the top bit
// are dropped, however large pos and n are. PTX ISA, "bmsk".
func BmskClamp32(pos, n uint32) uint32 {
	if pos >= 32 {
		return 0
	}
	return (1<<min(n, 32) - 1) << pos
}

// BmskWrap32 is bmsk.wrap.b32, which takes pos and n modulo 32.
func BmskWrap32(pos, n uint32) uint32 { return (1<<(n&31) - 1) << (pos & 31) }

// SzextClampU32 is szext.clamp.u32: the low n bits of a, extended with zeros; all
// of them if n is 32 or more. PTX ISA, "szext".
func SzextClampU32(a, n uint32) uint32 { return a & (1<<min(n, 32) - 1) }

// SzextWrapU32 is szext.wrap.u32, which takes n modulo 32.
func SzextWrapU32(a, n uint32) uint32 { return a & (1<<(n&31) - 1) }

// SzextClampS32 is szext.clamp.s32, which extends with the highest bit that it
// keeps.
func SzextClampS32(a int32, n uint32) int32 { return signExtend(a, min(n, 32)) }

// SzextWrapS32 is szext.wrap.s32, which takes n modulo 32.
func SzextWrapS32(a int32, n uint32) int32 { return signExtend(a, n&31) }

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
		for i := range 4 {
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
	for i := range uint32(4) {
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
	for i := range uint32(8) {
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

// The last letters of the functions below say whether the parts of a and of b are
// unsigned or signed. PTX ISA, "dp4a" and "dp2a".

// Dp4aUU is dp4a.u32.u32: c plus the products of four bytes of a and b.
func Dp4aUU(a, b, c uint32) uint32 { return dp4a(a, b, c, false, false) }

// Dp4aUS is dp4a.u32.s32.
func Dp4aUS(a, b, c uint32) uint32 { return dp4a(a, b, c, false, true) }

// Dp4aSU is dp4a.s32.u32.
func Dp4aSU(a, b, c uint32) uint32 { return dp4a(a, b, c, true, false) }

// Dp4aSS is dp4a.s32.s32.
func Dp4aSS(a, b, c uint32) uint32 { return dp4a(a, b, c, true, true) }

// Dp2aLoUU is dp2a.lo.u32.u32: c plus the products of the halves of a and the
// lower two bytes of b.
func Dp2aLoUU(a, b, c uint32) uint32 { return dp2a(a, b, c, false, false, 0) }

// Dp2aLoUS is dp2a.lo.u32.s32.
func Dp2aLoUS(a, b, c uint32) uint32 { return dp2a(a, b, c, false, true, 0) }

// Dp2aLoSU is dp2a.lo.s32.u32.
func Dp2aLoSU(a, b, c uint32) uint32 { return dp2a(a, b, c, true, false, 0) }

// Dp2aLoSS is dp2a.lo.s32.s32.
func Dp2aLoSS(a, b, c uint32) uint32 { return dp2a(a, b, c, true, true, 0) }

// Dp2aHiUU is dp2a.hi.u32.u32, with the upper two bytes of b.
func Dp2aHiUU(a, b, c uint32) uint32 { return dp2a(a, b, c, false, false, 2) }

// Dp2aHiUS is dp2a.hi.u32.s32.
func Dp2aHiUS(a, b, c uint32) uint32 { return dp2a(a, b, c, false, true, 2) }

// Dp2aHiSU is dp2a.hi.s32.u32.
func Dp2aHiSU(a, b, c uint32) uint32 { return dp2a(a, b, c, true, false, 2) }

// Dp2aHiSS is dp2a.hi.s32.s32.
func Dp2aHiSS(a, b, c uint32) uint32 { return dp2a(a, b, c, true, true, 2) }

// MinOfU16x2 is min.u16x2: two integers side by side, each with its counterpart
// in the other operand. PTX ISA, "min".
func MinOfU16x2(a, b uint32) uint32 {
	return uint32(min(uint16(a), uint16(b))) | uint32(min(uint16(a>>16), uint16(b>>16)))<<16
}

// MaxOfU16x2 is max.u16x2.
func MaxOfU16x2(a, b uint32) uint32 {
	return uint32(max(uint16(a), uint16(b))) | uint32(max(uint16(a>>16), uint16(b>>16)))<<16
}

// MinOfS16x2 is min.s16x2.
func MinOfS16x2(a, b uint32) uint32 {
	return uint32(uint16(min(int16(a), int16(b)))) | uint32(uint16(min(int16(a>>16), int16(b>>16))))<<16
}

// MaxOfS16x2 is max.s16x2.
func MaxOfS16x2(a, b uint32) uint32 {
	return uint32(uint16(max(int16(a), int16(b)))) | uint32(uint16(max(int16(a>>16), int16(b>>16))))<<16
}
