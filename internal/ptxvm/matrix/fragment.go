// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"
	"sync"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// placeFn finds a register of a class in the frame.
type placeFn = func(r ptxir.Reg, class ptxir.Class) (uint32, error)

// fragment says how a matrix is spread over registers.
type fragment struct {
	typ    ptxir.Type
	bits   int // of an element
	regs   []uint32
	wide   bool // Class64 registers
	perReg int
}

// set gives the fragment its registers.
func (f *fragment) set(t ptxir.Type, regs []ptxir.Reg, place placeFn) error {
	f.typ, f.bits = t, t.Bits()
	f.wide = f.bits == 64
	f.perReg = max(1, 32/f.bits)
	class := ptxir.Class32
	if f.wide {
		class = ptxir.Class64
	}
	for _, r := range regs {
		o, err := place(r, class)
		if err != nil {
			return err
		}
		f.regs = append(f.regs, o)
	}
	return nil
}

// registersOf is how many registers of a lane hold its share of n elements.
func registersOf(t ptxir.Type, n int) int {
	return n / register.Lanes * t.Bits() / max(32, t.Bits())
}

// number decodes element i of a register.
func (f *fragment) number(raw uint64, i int) float64 {
	switch f.typ {
	case ptxir.F64:
		return math.Float64frombits(raw)
	case ptxir.F32:
		return float64(math.Float32frombits(uint32(raw)))
	case ptxir.TF32: // the low bits are ignored
		return float64(math.Float32frombits(uint32(raw) &^ 0x1fff))
	case ptxir.F16:
		return float64(numeric.FromHalf(uint16(raw >> (16 * i))))
	case ptxir.BF16:
		return float64(numeric.FromBFloat(uint16(raw >> (16 * i))))
	case ptxir.E4M3:
		return valuesE4M3()[uint8(raw>>(8*i))]
	case ptxir.E5M2:
		return valuesE5M2()[uint8(raw>>(8*i))]
	}
	v := raw >> (f.bits * i) << (64 - f.bits)
	if f.typ.Signed() {
		return float64(int64(v) >> (64 - f.bits))
	}
	return float64(v >> (64 - f.bits))
}

// The value of each number of 8 bits.
var (
	valuesE4M3 = sync.OnceValue(func() *[256]float64 { return allValues(numeric.E4M3) })
	valuesE5M2 = sync.OnceValue(func() *[256]float64 { return allValues(numeric.E5M2) })
)

func allValues(f numeric.Format) *[256]float64 {
	var list [256]float64
	for i := range list {
		list[i] = f.Value(uint16(i))
	}
	return &list
}
