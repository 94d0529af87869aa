// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// value is a number of the type, as math/big has it.
func (i refInteger) value(v uint64) *big.Int {
	v &= 1<<(i.width-1)<<1 - 1
	b := new(big.Int).SetUint64(v)
	if i.signed && v>>(i.width-1) != 0 {
		b.Sub(b, new(big.Int).Lsh(big.NewInt(1), uint(i.width)))
	}
	return b
}

// low is the lowest bits of a number, in two's complement.
func low(b *big.Int, width int) uint64 {
	m := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(1))
	return m.And(m, b).Uint64()
}

// operation wraps op.type over values; the result has so many bits. Operands of
// 16 bits are cut from the registers and the result is extended by zeros.
func (i refInteger) operation(op string, n, width int, want func(a, b, c *big.Int) *big.Int) operation {
	p := operation{name: op + "." + i.name, wide: width == 64, want: func(o operands) uint64 {
		return low(want(i.value(o[0]), i.value(o[1]), i.value(o[2])), width)
	}}
	sources := map[int][]string{16: {"p", "q", "r"}, 32: {"A", "B", "C"}, 64: {"AL", "BL", "CL"}}[i.width]
	dst := map[int]string{16: "p", 32: "Y", 64: "YL"}[width]
	p.body = fmt.Sprintf("%s %s, %s;", p.name, dst, strings.Join(sources[:n], ", "))
	if i.width == 16 {
		p.body = ".reg .b16 p, q, r; cvt.u16.u32 p, A; cvt.u16.u32 q, B; cvt.u16.u32 r, C; " + p.body
	}
	if width == 16 {
		p.body += " cvt.u32.u16 Y, p;"
	}
	return p
}

// multiplications are mul, mad and what is like them.
func (i refInteger) multiplications() []operation {
	mul := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	hi := func(a, b, _ *big.Int) *big.Int { return new(big.Int).Rsh(mul(a, b), uint(i.width)) }
	list := []operation{
		i.operation("mul.lo", 2, i.width, func(a, b, _ *big.Int) *big.Int { return mul(a, b) }),
		i.operation("mul.hi", 2, i.width, hi),
		i.operation("mad.lo", 3, i.width, func(a, b, c *big.Int) *big.Int { return new(big.Int).Add(mul(a, b), c) }),
		i.operation("mad.hi", 3, i.width, func(a, b, c *big.Int) *big.Int { return new(big.Int).Add(hi(a, b, c), c) }),
		i.operation("sad", 3, i.width, func(a, b, c *big.Int) *big.Int {
			d := new(big.Int).Sub(a, b)
			return d.Add(d.Abs(d), c)
		}),
		i.operation("add", 2, i.width, func(a, b, _ *big.Int) *big.Int { return new(big.Int).Add(a, b) }),
		i.operation("sub", 2, i.width, func(a, b, _ *big.Int) *big.Int { return new(big.Int).Sub(a, b) }),
		i.operation("min", 2, i.width, func(a, b, _ *big.Int) *big.Int { return smaller(a, b) }),
		i.operation("max", 2, i.width, func(a, b, _ *big.Int) *big.Int { return larger(a, b) }),
		i.operation("div", 2, i.width, func(a, b, _ *big.Int) *big.Int { return divided(a, b, (*big.Int).Quo) }),
		i.operation("rem", 2, i.width, func(a, b, _ *big.Int) *big.Int { return divided(a, b, (*big.Int).Rem) }),
	}
	if i.width < 64 {
		list = append(list, i.operation("mul.wide", 2, 2*i.width, func(a, b, _ *big.Int) *big.Int { return mul(a, b) }), i.wideMad())
	}
	return list
}

func smaller(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// divided is a quotient or remainder; by zero, PTX leaves it open, and this is
// what an H200 returns for both.
func divided(a, b *big.Int, op func(z, a, b *big.Int) *big.Int) *big.Int {
	if b.Sign() == 0 {
		return big.NewInt(-1)
	}
	return op(new(big.Int), a, b)
}

// wideMad is mad.wide, whose addend has twice the bits.
func (i refInteger) wideMad() operation {
	double := refInteger{"", 2 * i.width, i.signed}
	body := "mad.wide." + i.name + " YL, A, B, CL;"
	if i.width == 16 {
		body = ".reg .b16 p, q; cvt.u16.u32 p, A; cvt.u16.u32 q, B; mad.wide." + i.name + " Y, p, q, C;"
	}
	return operation{name: "mad.wide." + i.name, wide: i.width == 32, body: body, want: func(o operands) uint64 {
		p := new(big.Int).Mul(i.value(o[0]), i.value(o[1]))
		return low(p.Add(p, double.value(o[2])), 2*i.width)
	}}
}

// operations24 are mul24 and mad24, and the saturated forms.
func (i refInteger) operations24() []operation {
	narrow := refInteger{"", 24, i.signed}
	product := func(o operands, shift uint) *big.Int {
		p := new(big.Int).Mul(narrow.value(o[0]), narrow.value(o[1]))
		return p.Rsh(p, shift)
	}
	var list []operation
	for mode, shift := range map[string]uint{"lo": 0, "hi": 16} {
		list = append(list,
			operation{name: "mul24." + mode + "." + i.name, body: "mul24." + mode + "." + i.name + " Y, A, B;",
				want: func(o operands) uint64 { return low(product(o, shift), 32) }},
			operation{name: "mad24." + mode + "." + i.name, body: "mad24." + mode + "." + i.name + " Y, A, B, C;",
				want: func(o operands) uint64 {
					p := product(o, shift)
					return low(p.Add(p, i.value(o[2])), 32)
				}})
	}
	return list
}

// saturatedOperations clamp to the range of s32.
func saturatedOperations() []operation {
	i := refIntegers[5]
	clamp := func(b *big.Int) *big.Int {
		return larger(smaller(b, big.NewInt(1<<31-1)), big.NewInt(-1<<31))
	}
	hi24 := func(a, b *big.Int) *big.Int {
		narrow := refInteger{"", 24, true}
		p := new(big.Int).Mul(narrow.value(a.Uint64()), narrow.value(b.Uint64()))
		return p.Rsh(p, 16)
	}
	return []operation{
		i.operation("add.sat", 2, 32, func(a, b, _ *big.Int) *big.Int { return clamp(new(big.Int).Add(a, b)) }),
		i.operation("sub.sat", 2, 32, func(a, b, _ *big.Int) *big.Int { return clamp(new(big.Int).Sub(a, b)) }),
		i.operation("mad.hi.sat", 3, 32, func(a, b, c *big.Int) *big.Int {
			p := new(big.Int).Mul(a, b)
			return clamp(p.Add(p.Rsh(p, 32), c))
		}),
		{name: "mad24.hi.sat.s32", body: "mad24.hi.sat.s32 Y, A, B, C;", want: func(o operands) uint64 {
			p := hi24(new(big.Int).SetUint64(o[0]), new(big.Int).SetUint64(o[1]))
			return low(clamp(p.Add(p, i.value(o[2]))), 32)
		}},
	}
}

// dotOperations are dp4a and dp2a with every mixture of signs.
func dotOperations() []operation {
	var list []operation
	types := []refInteger{refIntegers[4], refIntegers[5]}
	for _, ta := range types {
		for _, tb := range types {
			dot := func(o operands, n, bitsA, first int) uint64 {
				sum := refIntegers[5].value(o[2])
				a, b := refInteger{"", bitsA, ta.signed}, refInteger{"", 8, tb.signed}
				for k := range n {
					sum.Add(sum, new(big.Int).Mul(a.value(o[0]>>(bitsA*k)), b.value(o[1]>>(8*(k+first)))))
				}
				return low(sum, 32)
			}
			suffix := "." + ta.name + "." + tb.name
			list = append(list,
				operation{name: "dp4a" + suffix, body: "dp4a" + suffix + " Y, A, B, C;", want: func(o operands) uint64 { return dot(o, 4, 8, 0) }},
				operation{name: "dp2a.lo" + suffix, body: "dp2a.lo" + suffix + " Y, A, B, C;", want: func(o operands) uint64 { return dot(o, 2, 16, 0) }},
				operation{name: "dp2a.hi" + suffix, body: "dp2a.hi" + suffix + " Y, A, B, C;", want: func(o operands) uint64 { return dot(o, 2, 16, 2) }})
		}
	}
	return list
}

// integerEdges are the limits of every width, and small numbers.
func integerEdges() []uint64 {
	list := []uint64{0, 1, 2, 7, 24, 31, 32, 33, 63, 64, 65, 255, 256}
	for _, w := range []int{8, 16, 24, 32, 64} {
		list = append(list, 1<<(w-1)-1, 1<<(w-1), 1<<(w-1)<<1-1)
	}
	return list
}

// randomIntegers have numbers of every length.
func randomIntegers(r *rand.Rand) operands {
	one := func() uint64 { return r.Uint64() >> r.IntN(64) * (1 + (1<<63-1)*2*uint64(r.IntN(2))) }
	return operands{one(), one(), one()}
}

func integerRig(t *testing.T) *operandRig {
	r := rand.New(rand.NewPCG(31, 32))
	return newOperandRig(t, crossed(integerEdges(), operandCount(), func() operands { return randomIntegers(r) }))
}

func TestOperandsIntegers(t *testing.T) {
	rig := integerRig(t)
	for _, i := range refIntegers[2:] {
		rig.runAll(t, i.multiplications())
		if i.width == 32 {
			rig.runAll(t, i.operations24())
		}
	}
	rig.runAll(t, saturatedOperations())
	rig.runAll(t, dotOperations())
	rig.runAll(t, bitOperations())
	for _, i := range refIntegers[4:] {
		rig.runAll(t, i.fieldOperations())
	}
}
