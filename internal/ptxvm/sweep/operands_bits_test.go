// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"math/big"
	"math/bits"
)

// References for operations on bits: a bit at a time, as PTX describes them.

// fieldOperations are bfe, bfind and the shift to the right, a bit at a time.
func (i refInteger) fieldOperations() []operation {
	a, y := "A", "Y"
	if i.width == 64 {
		a, y = "AL", "YL"
	}
	bit := func(v uint64, k int) uint64 { return v >> k & 1 }
	top := i.width - 1
	sign := func(v uint64) uint64 {
		if i.signed {
			return bit(v, top)
		}
		return 0
	}
	bfind := func(o operands) int {
		for k := top; k >= 0; k-- {
			if bit(o[0], k) != sign(o[0]) {
				return k
			}
		}
		return -1
	}
	return []operation{
		{name: "bfe." + i.name, wide: i.width == 64, body: "and.b32 %b, B, 255; and.b32 %c, C, 255; bfe." + i.name + fmt.Sprintf(" %s, %s, B, C;", y, a),
			want: func(o operands) (d uint64) {
				pos, n := int(o[1]&255), int(o[2]&255)
				fill := uint64(0)
				if n != 0 && i.signed {
					fill = bit(o[0], min(pos+n-1, top))
				}
				for k := range i.width {
					if k < n && pos+k <= top {
						d |= bit(o[0], pos+k) << k
					} else {
						d |= fill << k
					}
				}
				return d
			}},
		{name: "bfind." + i.name, body: fmt.Sprintf("bfind.%s Y, %s;", i.name, a), want: func(o operands) uint64 { return uint64(uint32(bfind(o))) }},
		{name: "bfind.shiftamt." + i.name, body: fmt.Sprintf("bfind.shiftamt.%s Y, %s;", i.name, a), want: func(o operands) uint64 {
			if k := bfind(o); k >= 0 {
				return uint64(top - k)
			}
			return 1<<32 - 1
		}},
		{name: "shr." + i.name, wide: i.width == 64, body: fmt.Sprintf("shr.%s %s, %s, B;", i.name, y, a), want: func(o operands) (d uint64) {
			for k := range i.width {
				if from := uint64(k) + o[1]&(1<<32-1); from <= uint64(top) {
					d |= bit(o[0], int(from)) << k
				} else {
					d |= sign(o[0]) << k
				}
			}
			return d
		}},
	}
}

// bitOperations work on bits without a type.
func bitOperations() []operation {
	u32 := func(v uint64) uint64 { return v & (1<<32 - 1) }
	funnel := func(shift func(c uint64) uint64, left bool) func(o operands) uint64 {
		return func(o operands) uint64 {
			both := new(big.Int).SetUint64(u32(o[1])<<32 | u32(o[0]))
			n := uint(shift(u32(o[2])))
			if left {
				return low(both.Rsh(both.Lsh(both, n), 32), 32)
			}
			return low(both.Rsh(both, n), 32)
		}
	}
	clamp, wrap := func(c uint64) uint64 { return min(c, 32) }, func(c uint64) uint64 { return c % 32 }
	list := []operation{
		{name: "shf.l.clamp.b32", body: "shf.l.clamp.b32 Y, A, B, C;", want: funnel(clamp, true)},
		{name: "shf.r.clamp.b32", body: "shf.r.clamp.b32 Y, A, B, C;", want: funnel(clamp, false)},
		{name: "shf.l.wrap.b32", body: "shf.l.wrap.b32 Y, A, B, C;", want: funnel(wrap, true)},
		{name: "shf.r.wrap.b32", body: "shf.r.wrap.b32 Y, A, B, C;", want: funnel(wrap, false)},
		{name: "shl.b32", body: "shl.b32 Y, A, B;", want: func(o operands) uint64 {
			return low(new(big.Int).Lsh(new(big.Int).SetUint64(o[0]), uint(min(u32(o[1]), 64))), 32)
		}},
		{name: "shl.b64", wide: true, body: "shl.b64 YL, AL, B;", want: func(o operands) uint64 {
			return low(new(big.Int).Lsh(new(big.Int).SetUint64(o[0]), uint(min(u32(o[1]), 64))), 64)
		}},
		{name: "shl.b16", body: ".reg .b16 p; cvt.u16.u32 p, A; shl.b16 p, p, B; cvt.u32.u16 Y, p;", want: func(o operands) uint64 {
			return low(new(big.Int).Lsh(new(big.Int).SetUint64(o[0]), uint(min(u32(o[1]), 64))), 16)
		}},
		{name: "popc.b64", body: "popc.b64 Y, AL;", want: func(o operands) uint64 { return countBits(o[0]) }},
		{name: "popc.b32", body: "popc.b32 Y, A;", want: func(o operands) uint64 { return countBits(u32(o[0])) }},
		{name: "clz.b64", body: "clz.b64 Y, AL;", want: func(o operands) uint64 { return uint64(64 - new(big.Int).SetUint64(o[0]).BitLen()) }},
		{name: "clz.b32", body: "clz.b32 Y, A;", want: func(o operands) uint64 { return uint64(32 - new(big.Int).SetUint64(u32(o[0])).BitLen()) }},
		{name: "brev.b64", wide: true, body: "brev.b64 YL, AL;", want: func(o operands) uint64 { return reversed(o[0], 64) }},
		{name: "brev.b32", body: "brev.b32 Y, A;", want: func(o operands) uint64 { return reversed(o[0], 32) }},
	}
	return append(list, maskOperations()...)
}

func countBits(v uint64) (n uint64) {
	for ; v != 0; v >>= 1 {
		n += v & 1
	}
	return n
}

func reversed(v uint64, width int) (r uint64) {
	for k := range width {
		r |= v >> k & 1 << (width - 1 - k)
	}
	return r
}

// maskOperations insert, select and extend.
func maskOperations() []operation {
	insert := func(width int) func(o operands) uint64 {
		return func(o operands) uint64 { // f = bfi(a, b, pos and len from c)
			pos, n, d := int(o[2]&255), int(o[2]>>8&255), o[1]&(1<<(width-1)<<1-1)
			for k := 0; k < n && pos+k < width; k++ {
				d = d&^(1<<(pos+k)) | o[0]>>k&1<<(pos+k)
			}
			return d
		}
	}
	list := []operation{
		{name: "bfi.b32", body: ".reg .b32 n; shr.u32 n, C, 8; and.b32 n, n, 255; and.b32 %c, C, 255; bfi.b32 Y, A, B, C, n;", want: insert(32)},
		{name: "bfi.b64", wide: true, body: ".reg .b32 n; shr.u32 n, C, 8; and.b32 n, n, 255; and.b32 %c, C, 255; bfi.b64 YL, AL, BL, C, n;", want: insert(64)},
		{name: "prmt.b32", body: "prmt.b32 Y, A, B, C;", want: permuted},
		{name: "fns.b32", body: "and.b32 %b, B, 31; fns.b32 Y, A, B, C;", want: nthSet},
	}
	for _, table := range []uint64{0x00, 0x1b, 0x80, 0x96, 0xca, 0xe8, 0xff} {
		list = append(list, operation{name: fmt.Sprintf("lop3.b32 %#x", table), body: fmt.Sprintf("lop3.b32 Y, A, B, C, %d;", table), want: func(o operands) (d uint64) {
			for k := range 32 {
				d |= table >> (o[0]>>k&1<<2 | o[1]>>k&1<<1 | o[2]>>k&1) & 1 << k
			}
			return d
		}})
	}
	for mode, limit := range map[string]func(n uint64) uint64{"clamp": func(n uint64) uint64 { return min(n, 32) }, "wrap": func(n uint64) uint64 { return n % 32 }} {
		list = append(list,
			operation{name: "bmsk." + mode + ".b32", body: "bmsk." + mode + ".b32 Y, A, B;", want: func(o operands) (d uint64) {
				first := o[0] & (1<<32 - 1)
				if mode == "wrap" {
					first %= 32
				}
				for k := range limit(o[1] & (1<<32 - 1)) {
					if first+k < 32 {
						d |= 1 << (first + k)
					}
				}
				return d
			}},
			operation{name: "szext." + mode + ".u32", body: "szext." + mode + ".u32 Y, A, B;", want: func(o operands) uint64 {
				return o[0] & (1<<limit(o[1]&(1<<32-1)) - 1)
			}},
			operation{name: "szext." + mode + ".s32", body: "szext." + mode + ".s32 Y, A, B;", want: func(o operands) uint64 {
				n := limit(o[1] & (1<<32 - 1))
				if n == 0 {
					return 0
				}
				return low(refInteger{"", int(n), true}.value(o[0]), 32)
			}})
	}
	return list
}

// permuted is prmt without a mode. PTX ISA, "prmt".
func permuted(o operands) (d uint64) {
	for k := range 4 {
		sel := o[2] >> (4 * k) & 15
		from := o[sel>>2&1] >> (8 * (sel & 3)) & 255
		if sel&8 != 0 {
			from = from >> 7 * 255
		}
		d |= from << (8 * k)
	}
	return d
}

// nthSet is fns. PTX ISA, "fns".
func nthSet(o operands) uint64 {
	base, offset := int(o[1]&31), int64(int32(o[2]))
	if offset == 0 {
		if o[0]>>base&1 != 0 {
			return uint64(base)
		}
		return 1<<32 - 1
	}
	mask := uint32(o[0]) >> base << base
	if offset < 0 {
		mask, offset = bits.Reverse32(uint32(o[0])<<(31-base)>>(31-base)), -offset
	}
	for ; mask != 0; mask &= mask - 1 {
		if offset--; offset == 0 {
			k := uint64(bits.TrailingZeros32(mask))
			if int32(o[2]) < 0 {
				return 31 - k
			}
			return k
		}
	}
	return 1<<32 - 1
}
