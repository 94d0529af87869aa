// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cudago/cudago/internal/ptxir"
)

// extreme is min or max as PTX writes it down. PTX ISA, "min", "max".
func (f *refFormat) extreme(op string, a, b uint64, names []string) uint64 {
	sign := uint64(1) << (f.width - 1)
	if has(names, "ftz") {
		a, b = f.flush(a), f.flush(b)
	}
	negative := (a ^ b) & sign
	xorsign := has(names, "xorsign.abs")
	if xorsign {
		a, b = a&^sign, b&^sign
	}
	// Bits in this order compare like the numbers, with -0 below +0.
	order := func(v uint64) int64 {
		if v&sign != 0 {
			return -int64(v&^sign) - 1
		}
		return int64(v)
	}
	d := a
	switch {
	case f.isNaN(a) && f.isNaN(b), has(names, "NaN") && (f.isNaN(a) || f.isNaN(b)):
		return f.nan
	case f.isNaN(a), !f.isNaN(b) && (order(b) < order(a)) == (op == "min"):
		d = b
	}
	if xorsign {
		d |= negative
	}
	return d
}

// extremeOperations are min and max of a type in every form.
func extremeOperations(typ string, f *refFormat) []operation {
	var list []operation
	for _, op := range []string{"min", "max"} {
		for _, names := range flagSets("ftz", "NaN", "xorsign.abs") {
			if typ == "bf16" && has(names, "ftz") {
				continue
			}
			name := mnemonic(op, strings.Join(names, "."), typ)
			p := operation{name: name, body: name + " Y, A, B;", want: func(o operands) uint64 { return f.extreme(op, o[0]&(1<<f.width-1), o[1]&(1<<f.width-1), names) }}
			if f.width == 16 {
				p.body = fmt.Sprintf(".reg .b16 p, q; cvt.u16.u32 p, A; cvt.u16.u32 q, B; %s p, p, q; cvt.u32.u16 Y, p;", name)
				list = append(list, operation{name: name + "x2", body: name + "x2 Y, A, B;", want: func(o operands) uint64 {
					return f.extreme(op, o[0]&0xffff, o[1]&0xffff, names) | f.extreme(op, o[0]>>16&0xffff, o[1]>>16&0xffff, names)<<16
				}})
			}
			list = append(list, p)
		}
	}
	return list
}

func TestOperandsExtremes(t *testing.T) {
	for typ, f := range map[string]*refFormat{"f32": refF32, "f16": refF16, "bf16": refBF16} {
		r := rand.New(rand.NewPCG(33, 34))
		edges := slices.Concat(f.edges(), []uint64{f.nan - 1, f.nan - 1 | 1<<(f.width-1)})
		list := crossed(edges, operandCount(), func() operands {
			low, high := f.near(r), f.near(r)
			if f.width == 32 {
				return low
			}
			return operands{low[0] | high[0]<<16, low[1] | high[1]<<16}
		})
		newOperandRig(t, list).runAll(t, extremeOperations(typ, f))
	}
}

// TestOperandsOutOfBounds covers fma.oob, which is zero where a factor is the
// NaN that fills what lies beyond a tensor.
func TestOperandsOutOfBounds(t *testing.T) {
	for _, h := range refHalves {
		edges := append(h.f.edges()[:20], 0x7ff7, 0xfff7, 0x7ff6, 0x7ff8)
		rig := newOperandRig(t, crossed(edges, 0, nil))
		for _, names := range flagSets("relu") {
			flags := flagsOf(names)
			ref := func(o operands) uint64 {
				if o[0]&0x7fff == 0x7ff7 || o[1]&0x7fff == 0x7ff7 {
					return 0
				}
				return h.f.apply("fma", o, flags, ptxir.RoundRN)
			}
			name := mnemonic("fma.rn.oob", strings.Join(names, "."), h.name+"x2")
			rig.runAll(t, []operation{{name: name, body: name + " Y, A, B, C;", want: func(o operands) uint64 {
				return ref(low16(o)) | ref(operands{})<<16
			}}})
		}
	}
}
